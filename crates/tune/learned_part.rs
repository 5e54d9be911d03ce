//! A part of a model that has learned: its constants and its report.

use octet_onnx::schema::TensorProto;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// [`LayerReport::taken`] without a gain, and where nothing could learn.
pub(crate) const GIVEN: &str = "given";
pub(crate) const NOT_POSSIBLE: &str = "not possible";

/// The part of a model that a report describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TunedPart {
    /// One layer.
    #[default]
    Layer,
    /// A block of layers, which learned together.
    Block,
    /// The whole model, which learned from the outputs of the float model.
    Model,
}

/// A layer, a block or a model whose constants were learned.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayerReport {
    /// The kind of part.
    pub part: TunedPart,
    /// Title of the layer; of a block, those of its first and last layer.
    pub layer: String,
    /// Its operator.
    pub operator: String,
    /// The proposal that was taken: `given`, `closed form` or `learned`. `not possible` if the
    /// part has no gradient, or if there are fewer than four samples.
    pub taken: String,
    /// Mean squared error at positions that did not teach, before.
    pub before: f64,
    /// Mean squared error there, with the constants that were taken.
    pub after: f64,
    /// Mean squared error along the steps of the fine-tuning.
    pub curve: Vec<f64>,
}

impl LayerReport {
    /// True if learned constants were taken.
    pub fn is_changed(&self) -> bool {
        ![GIVEN, NOT_POSSIBLE].contains(&self.taken.as_str())
    }

    pub(crate) fn unchanged() -> LayerReport {
        LayerReport {
            part: TunedPart::Layer,
            layer: String::new(),
            operator: String::new(),
            taken: GIVEN.into(),
            before: 0.0,
            after: 0.0,
            curve: Vec::new(),
        }
    }
}

/// The outcome of a part. A journal keeps it, so that a run that was stopped continues after it.
#[derive(Clone, Debug)]
pub struct LearnedPart {
    /// The report.
    pub report: LayerReport,
    /// Constants that take the place of those of the same names.
    pub constants: Vec<TensorProto>,
}

impl From<(Vec<TensorProto>, LayerReport)> for LearnedPart {
    fn from((constants, report): (Vec<TensorProto>, LayerReport)) -> LearnedPart {
        LearnedPart { report, constants }
    }
}
