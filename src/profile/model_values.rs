//! Access to the values of a model, for the layer table.

use crate::graph::Node;
use serde::Serialize;

/// A tensor that enters or leaves a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LayerTensor")]
pub struct LayerPort {
    /// Name of the value.
    pub name: String,
    /// Element type.
    pub element: String,
    /// Shape. Dimensions that depend on the input values are 0.
    pub shape: Vec<usize>,
}

/// Access to the values of a model.
pub trait ModelValues {
    /// Element type and shape of a value; `None` for a constant.
    fn port(&self, name: &str) -> Option<LayerPort>;

    /// Shape of a value or constant.
    fn shape(&self, name: &str) -> Option<Vec<u64>>;

    /// Nodes that read a value.
    fn readers(&self, name: &str) -> Vec<&Node>;

    /// Node that computes a value.
    fn maker(&self, name: &str) -> Option<&Node>;
}
