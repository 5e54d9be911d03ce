//! A step of a plan, without tract's types.

use std::collections::HashMap;

use octet_int8::FusedNode;

/// A tensor that a step reads or makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepValue {
    /// The element type as ONNX names it, or the engine's name of a packed layout.
    pub element: String,
    /// The shape; unknown sizes are 0.
    pub shape: Vec<usize>,
    /// Bytes of the elements; 0 if the shape is unknown.
    pub bytes: u64,
}

/// One operator of a plan.
#[derive(Clone, Debug)]
pub struct PlanStep {
    /// Index of the node whose layer the step belongs to; `None` if its name doesn't tell.
    pub node: Option<usize>,
    /// The code that runs.
    pub kernel: String,
    /// The step multiplies matrices: the main work of a convolution or fully connected layer.
    pub product: bool,
    /// The step runs in an integer region, so its inputs and outputs are not values of the model.
    pub on_integers: bool,
    /// Inputs without constants.
    pub inputs: Vec<StepValue>,
    /// Outputs.
    pub outputs: Vec<StepValue>,
}

impl PlanStep {
    /// Describes a step of an integer region.
    pub(super) fn from_fused(fused: &FusedNode, known: &HashMap<&str, usize>) -> PlanStep {
        let value = |element: &String, shape: &Vec<usize>| {
            let elements: u64 = shape.iter().map(|&size| size as u64).product();
            let width = if element.ends_with("int8") { 1 } else { 4 };
            StepValue {
                element: element.clone(),
                shape: shape.clone(),
                bytes: elements.saturating_mul(width),
            }
        };
        let inputs = fused.inputs.iter().zip(&fused.input_shapes);
        let kernel = fused.kernel.as_deref().unwrap_or_default();
        PlanStep {
            node: known.get(fused.node.as_str()).copied(),
            kernel: format!("{} {kernel}", fused.operation)
                .trim_end()
                .to_string(),
            product: fused.kernel.is_some(),
            on_integers: true,
            inputs: inputs
                .map(|(element, shape)| value(element, shape))
                .collect(),
            outputs: vec![value(&fused.output, &fused.output_shape)],
        }
    }
}
