//! The float engine that the compiler needs, as a trait. Tests use a small one of their own.

use octet_graph::Model;
use octet_onnx::in_memory::Tensor;

/// Runs float nodes for the compiler.
pub trait FloatEvaluator {
    /// The outputs of a small float model for its inputs.
    fn evaluate(&self, model: Model, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String>;
}
