//! The requirements of a model's input.

use octet_graph::Dim;
use octet_onnx::schema::DataType;

/// Requirements of a model's input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Name of the input.
    pub name: String,
    /// Element type.
    pub element: DataType,
    /// Dimension of each axis.
    pub shape: Vec<Dim>,
}
