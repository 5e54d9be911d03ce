//! ONNX Runtime's quantized operators of one or two values.

use super::{Decomposer, Decomposition};
use octet_graph::Node;

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["com.microsoft::QLinearAdd", "com.microsoft::QLinearMul"],
        rewrite: |to, node, _| to.quantized_operator(node, float_name(node)?, &[0, 3], 6, None),
    },
    Decomposition {
        operators: &[
            "com.microsoft::QLinearSigmoid",
            "com.microsoft::QLinearLeakyRelu",
            "com.microsoft::QLinearReduceMean",
        ],
        rewrite: |to, node, _| to.of_one(node),
    },
];

/// Name of the float operator.
fn float_name(node: &Node) -> Option<&str> {
    node.op_type.as_str().strip_prefix("QLinear")
}

impl Decomposer {
    /// Decomposes a quantized operator of one value.
    pub(super) fn of_one(&mut self, node: &Node) -> Option<()> {
        self.quantized_operator(node, float_name(node)?, &[0], 3, None)
    }
}
