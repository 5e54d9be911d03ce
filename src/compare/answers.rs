//! Answers of both models for one sample.

use super::boxes::DetectedBox;
use super::output_kinds::OutputKind;
use crate::tensor::Tensor;

/// The answers of both models for one sample.
pub struct SampleAnswers {
    /// Name and kind of each output.
    pub outputs: Vec<(String, OutputKind)>,
    /// Outputs of the float model.
    pub float: Vec<Tensor>,
    /// Outputs of the quantized model.
    pub quantized: Vec<Tensor>,
    /// For a detector: confident boxes of the float model and of the quantized one, the best first.
    pub boxes: Option<[Vec<DetectedBox>; 2]>,
    /// Output with the prototypes of the masks of these boxes.
    pub prototypes: Option<usize>,
}
