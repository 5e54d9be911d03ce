//! The way in which a power of two passes through a node, so that its results stay the same.

use super::{Operator, Property};
use crate::{Graph, Node};

/// The way of a power of two through a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PowerRule {
    /// These inputs and the outputs have one power.
    Carries(Vec<usize>),
    /// A constant takes the difference between the powers of input and output.
    Absorbs {
        /// The input that is no constant.
        value: usize,
        /// The constant.
        constant: usize,
        /// True if the node divides by the constant.
        divides: bool,
        /// A constant that is added and has the power of the output.
        bias: Option<usize>,
    },
    /// The power of the output is the sum of those of the first two inputs.
    Product,
    /// The power of the second input is subtracted from that of the first.
    Quotient,
    /// The power of the output is twice that of the input.
    Square,
    /// The power of the output is half of that of the input.
    Root,
    /// The output does not depend on the power of the first input, if its epsilon has twice that power.
    Normalizes,
}

/// Operators that commute with a positive factor, beside those that move data.
const OF_ONE: [&str; 15] = [
    "Abs",
    "AveragePool",
    "CumSum",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "LeakyRelu",
    "Neg",
    "PRelu",
    "ReduceL1",
    "ReduceL2",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "SpaceToDepth",
];

/// Operators whose operands and results have one factor.
const OF_ALL: [&str; 6] = ["Add", "Concat", "Max", "Mean", "Min", "Sub"];

/// Normalizations that divide by a deviation, with an epsilon as attribute.
const NORMS: [&str; 5] = [
    "GroupNormalization",
    "InstanceNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
];

/// The epsilon of these operators without the attribute.
pub const DEFAULT_EPSILON: f32 = 1e-5;

/// The rule of a node; `None` if no power may pass.
pub fn power_rule(node: &Node, graph: &Graph) -> Option<PowerRule> {
    let operator = Operator::of(node);
    if !operator.domain.is_empty() || node.subgraphs().next().is_some() {
        return None;
    }
    let is_constant = |slot: usize| {
        let name = node.input_at(slot);
        name.is_some_and(|name| graph.initializers.contains(name))
    };
    let absorbs = |value: usize, constant: usize| PowerRule::Absorbs {
        value,
        constant,
        divides: false,
        bias: None,
    };
    let same = node.input.len() > 1 && node.input_at(0) == node.input_at(1);
    let exponent = || {
        let tensor = graph.initializers.get(node.input_at(1)?)?;
        tensor.to_f32().ok().filter(|numbers| numbers.len() == 1)
    };
    Some(match operator.name {
        "Conv" | "ConvTranspose" | "Gemm" => {
            let bias = node.input_at(2).map(|_| 2);
            if !is_constant(1) || is_constant(0) || bias.is_some_and(|slot| !is_constant(slot)) {
                return None;
            }
            PowerRule::Absorbs {
                value: 0,
                constant: 1,
                divides: false,
                bias,
            }
        }
        "Mul" | "MatMul" => match (is_constant(0), is_constant(1)) {
            (true, true) => return None,
            (false, true) => absorbs(0, 1),
            (true, false) => absorbs(1, 0),
            (false, false) if same && operator.name == "Mul" => PowerRule::Square,
            (false, false) if same => return None,
            (false, false) => PowerRule::Product,
        },
        "Div" => match (is_constant(0), is_constant(1)) {
            (false, true) => PowerRule::Absorbs {
                value: 0,
                constant: 1,
                divides: true,
                bias: None,
            },
            (false, false) if !same => PowerRule::Quotient,
            _ => return None,
        },
        "Pow" => match exponent()?[..] {
            [2.0] => PowerRule::Square,
            [0.5] => PowerRule::Root,
            _ => return None,
        },
        "Sqrt" => PowerRule::Root,
        "Clip" if node.float("min").is_none() && node.float("max").is_none() => {
            PowerRule::Carries(vec![0, 1, 2])
        }
        "Where" => PowerRule::Carries(vec![1, 2]),
        "Pad" => PowerRule::Carries(vec![0, 2]),
        name if OF_ALL.contains(&name) => PowerRule::Carries((0..node.input.len()).collect()),
        name if OF_ONE.contains(&name) => PowerRule::Carries(vec![0]),
        name if NORMS.contains(&name) => PowerRule::Normalizes,
        _ if operator.has(Property::MovesData) => PowerRule::Carries(vec![0]),
        _ => return None,
    })
}
