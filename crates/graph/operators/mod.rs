//! The operators: one descriptor for each, in the file of its family.
//!
//! Passes ask a descriptor for properties, such as [`Property::MovesData`], instead of comparing
//! names. An operator without a descriptor has no property.

mod arithmetic;
mod attention;
mod cast;
mod concat;
mod constant;
mod control_flow;
mod convolution;
mod decoder_attention;
mod decomposer;
mod descriptor;
mod elements;
mod expand;
mod float16;
mod fused_activation;
mod fused_attention;
mod fused_matmul;
mod fused_norm;
mod gather;
mod gather_block_quantized;
mod gemm;
mod identity;
mod image;
mod input_rule;
mod integer_forms;
mod logic;
mod loss;
mod matmul;
mod matmul_nbits;
mod matrix;
mod node_context;
mod normalization;
mod octet;
mod one_hot;
mod onnx_attention;
mod opset_context;
mod pad;
mod pooling;
mod power_of_two;
mod properties;
mod qlinear;
mod quantization;
mod quantize_linear;
mod random;
mod recurrent;
mod reduction;
mod removed;
mod reshape;
mod resize;
mod rotary;
mod scatter;
mod selection;
mod sequence;
mod sequence_rewriter;
mod shape;
mod shape_context;
mod signal;
mod slice;
mod softmax;
mod space_to_depth;
mod split;
mod squeeze;
#[cfg(test)]
mod test_models;
mod text;
mod transpose;
mod unary;
mod window;
mod window_check;

pub(crate) use constant::constant_value;
pub(crate) use decomposer::FusedOperatorDecomposer;
pub use descriptor::Operator;
pub use float16::float16_treatment;
pub(crate) use fused_norm::OPSET_WITH_NORM;
pub use integer_forms::{DynamicForm, QLinearForm, QLinearInputs};
pub(crate) use node_context::NodeContext;
pub use node_context::ShapeProblem;
pub use octet::REGION;
pub(crate) use opset_context::OpsetContext;
pub use power_of_two::{DEFAULT_EPSILON, PowerRule, power_rule};
pub use properties::{ChannelPosition, ChannelRole, Float16, MacRule, OutputType, Property};
pub use quantization::{Treatment, WeightAxis};
pub(crate) use sequence_rewriter::SequenceRewriter;
pub use slice::slice_bounds;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{MICROSOFT, Node, domain_named};

/// All operators, by family.
static FAMILIES: &[&[Operator]] = &[
    arithmetic::OPERATORS,
    attention::OPERATORS,
    cast::OPERATORS,
    concat::OPERATORS,
    constant::OPERATORS,
    control_flow::OPERATORS,
    convolution::OPERATORS,
    decoder_attention::OPERATORS,
    expand::OPERATORS,
    fused_activation::OPERATORS,
    gather::OPERATORS,
    gather_block_quantized::OPERATORS,
    gemm::OPERATORS,
    identity::OPERATORS,
    image::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    matmul::OPERATORS,
    matmul_nbits::OPERATORS,
    matrix::OPERATORS,
    normalization::OPERATORS,
    octet::OPERATORS,
    one_hot::OPERATORS,
    pad::OPERATORS,
    pooling::OPERATORS,
    qlinear::OPERATORS,
    quantize_linear::OPERATORS,
    random::OPERATORS,
    recurrent::OPERATORS,
    reduction::OPERATORS,
    removed::OPERATORS,
    reshape::OPERATORS,
    resize::OPERATORS,
    rotary::OPERATORS,
    scatter::OPERATORS,
    selection::OPERATORS,
    sequence::OPERATORS,
    shape::OPERATORS,
    signal::OPERATORS,
    slice::OPERATORS,
    softmax::OPERATORS,
    space_to_depth::OPERATORS,
    split::OPERATORS,
    squeeze::OPERATORS,
    text::OPERATORS,
    transpose::OPERATORS,
    unary::OPERATORS,
];

/// Operators by domain and name.
static BY_NAME: LazyLock<HashMap<(&str, &str), &Operator>> = LazyLock::new(|| {
    let all = FAMILIES.iter().copied().flatten();
    all.map(|operator| ((operator.domain, operator.name), operator))
        .collect()
});

/// The descriptor of an operator of ONNX that is not registered.
static UNKNOWN: Operator = Operator::onnx("");

/// The descriptor of an operator of another domain that is not registered.
static FOREIGN: Operator = Operator::microsoft("");

impl Operator {
    /// The descriptor of a node's operator, if it is registered.
    pub fn find(node: &Node) -> Option<&'static Operator> {
        let domain = domain_named(node.domain.as_deref());
        Operator::in_domain(domain, node.op_type.as_str())
    }

    /// The descriptor of a node's operator; one without properties if it is not registered.
    pub fn of(node: &Node) -> &'static Operator {
        let domain = domain_named(node.domain.as_deref());
        let operator = Operator::find(node);
        operator.unwrap_or_else(|| Operator::unregistered(domain))
    }

    /// The descriptor for a name as [`Node::operator`] gives it: `Conv`,
    /// `com.microsoft::QGemm`. One without properties if it is not registered.
    pub fn named(name: &str) -> &'static Operator {
        let (domain, name) = name.split_once("::").unwrap_or(("", name));
        let operator = Operator::in_domain(domain, name);
        operator.unwrap_or_else(|| Operator::unregistered(domain))
    }

    /// The descriptor for a name in any domain; ONNX's own comes first.
    pub fn in_any_domain(name: &str) -> &'static Operator {
        let domains = ["", MICROSOFT];
        let mut operators = domains
            .iter()
            .filter_map(|domain| Operator::in_domain(domain, name));
        operators.next().unwrap_or(&FOREIGN)
    }

    fn in_domain(domain: &str, name: &str) -> Option<&'static Operator> {
        let by_name: &HashMap<(&str, &str), &'static Operator> = &BY_NAME;
        by_name.get(&(domain, name)).copied()
    }

    /// The descriptor by which tract executes a node, and true if it is ONNX's own. tract ignores the
    /// domain and reads operators of ONNX Runtime as the standard ones. `None` for other domains.
    fn as_executed(node: &Node) -> (Option<&'static Operator>, bool) {
        let name = node.op_type.as_str();
        match domain_named(node.domain.as_deref()) {
            "" => (Some(Operator::of(node)), true),
            MICROSOFT => {
                let standard = || Operator::in_domain("", name).unwrap_or(&UNKNOWN);
                (Some(Operator::find(node).unwrap_or_else(standard)), false)
            }
            _ => (None, false),
        }
    }

    fn unregistered(domain: &str) -> &'static Operator {
        match domain {
            "" => &UNKNOWN,
            _ => &FOREIGN,
        }
    }

    /// All registered operators.
    pub fn all() -> impl Iterator<Item = &'static Operator> {
        FAMILIES.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operator_is_registered_once() {
        let mut names = HashSet::new();
        for operator in Operator::all() {
            assert!(
                names.insert((operator.domain, operator.name)),
                "{}",
                operator.name
            );
        }
    }

    #[test]
    fn changes_between_opsets_ascend() {
        for operator in Operator::all() {
            let ascends = operator.changes.is_sorted_by(|one, next| one.0 < next.0);
            assert!(ascends, "{}", operator.name);
        }
    }

    #[test]
    fn an_operator_is_one_of_its_domain() {
        let mut node = Node::new("Gelu", "n", &["x"], &["y"]);
        assert!(!Operator::of(&node).has(Property::Fused));
        node.domain = Some(MICROSOFT.into());
        assert!(Operator::of(&node).has(Property::Fused));
        node.domain = Some("com.example".into());
        assert!(Operator::find(&node).is_none() && !Operator::of(&node).has(Property::Fused));
        assert!(std::ptr::eq(
            Operator::named("com.microsoft::QGemm"),
            Operator::in_any_domain("QGemm")
        ));
        node.domain = Some("ai.onnx".into());
        assert!(Operator::find(&node).is_some());
    }

    #[test]
    fn operators_without_a_descriptor_stay_float() {
        let reason = |name| Operator::named(name).float_reason();
        assert_eq!(reason("Conv"), None);
        assert_eq!(reason("NoSuch"), reason("Tile"));
        assert_eq!(reason("com.example::Conv"), reason("com.microsoft::QGemm"));
        assert!(reason("NoSuch") != reason("com.example::Conv"));
    }
}
