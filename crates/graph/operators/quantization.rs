//! Treatment of operators when a model is quantized.
use crate::Node;

/// The treatment of an operator's inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Activations in and out, a weight in slot 1, a bias in slot 2.
    Weighted(WeightAxis),
    /// Constants are weights, everything else activations.
    MatMul,
    /// Every float input and output is an activation; constants take the activations' type.
    Elementwise,
    /// Folded into the node before it where that is exact.
    Clamp,
    /// The output shares the input's scale; quantized only if the input is.
    Share,
    /// The output shares the input's scale if the padding value is representable in it.
    Pad,
    /// The input is quantized; all outputs share its scale.
    Split,
    /// The output shares the scale of the data, which is a constant or a quantized value.
    Gather,
    /// Quantized if both branches are.
    Where,
    /// The input is an activation, the scale a weight, the bias int32.
    Normalize,
}

/// The axis of a weight's output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightAxis {
    /// A fixed axis.
    Fixed(usize),
    /// Axis 0 if the attribute transB is set, else 1.
    OfGemm,
}

impl WeightAxis {
    /// The axis for a given node.
    pub fn at(self, node: &Node) -> usize {
        match self {
            WeightAxis::Fixed(axis) => axis,
            WeightAxis::OfGemm => usize::from(node.int("transB").unwrap_or(0) == 0),
        }
    }
}

/// Reason of most operators without a treatment.
pub(super) const NO_INTEGER_FORM: &str = "Octet has no integer form of it yet";
/// Reason of operators of other domains.
pub(super) const FOREIGN: &str = "it is not an operator of ONNX itself";
/// Reason of control flow.
pub(super) const SUBGRAPHS: &str = "its subgraphs are left as they are";
/// Reason of shape arithmetic.
pub(super) const SHAPES: &str = "it computes shapes, indices or conditions";
/// Reason of nodes without effect.
pub(super) const IDLE: &str = "it changes nothing and is removed";
