//! Matrix products.

use super::Property::{EndsClassifier, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::node_context::{NodeContext, Validation, broadcasts, ensure};
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::shape_context::{ShapeContext, broadcast};
use super::{DynamicForm, Operator, QLinearInputs, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Einsum").with(&[MatrixProduct]),
    Operator::onnx("MatMul")
        .requires(2)
        .at_most(2)
        .ranks(&[(0, 1), (1, 1)])
        .checks_shapes(depths)
        .infers(product)
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::MatMul)
        .qlinear("QLinearMatMul", QLinearInputs::Product)
        .dynamic(DynamicForm::MatMul)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Product)
        .channels(ChannelRole::Layer(ChannelPosition::Last)),
    Operator::onnx("MatMulInteger")
        .requires(2)
        .checks_shapes(depths)
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[1])
        .macs(MacRule::Product),
    Operator::onnx("QLinearMatMul")
        .with(&[SaturatesPairs, OnlyQuantized])
        .weights(&[3])
        .macs(MacRule::Product),
    Operator::microsoft("DynamicQuantizeMatMul")
        .with(&[MatrixProduct, OnlyQuantized])
        .macs(MacRule::Product),
    Operator::microsoft("FusedMatMul")
        .fused(|to, node| to.matmul(node))
        .macs(MacRule::Product),
    Operator::microsoft("MatMulIntegerToFloat").with(&[MatrixProduct, OnlyQuantized]),
    Operator::microsoft("TransposeMatMul").fused(|to, node| to.matmul(node)),
];

fn product(ctx: &ShapeContext) -> Option<InferredValue> {
    let (a, b) = (ctx.input(0), ctx.input(1));
    let element = a.or(b)?.element;
    let (Some(left), Some(right)) = (
        a.and_then(|k| k.shape.as_deref()),
        b.and_then(|k| k.shape.as_deref()),
    ) else {
        return Some(InferredValue::new(element, None));
    };
    let batch = |s: &[Dim]| s[..s.len().saturating_sub(2)].to_vec();
    let mut dims = broadcast(&[&batch(left), &batch(right)]);
    if left.len() > 1 {
        dims.push(left[left.len() - 2].clone());
    }
    if right.len() > 1 {
        dims.push(right[right.len() - 1].clone());
    }
    Some(InferredValue::new(element, Some(dims)))
}

fn depths(ctx: &NodeContext) -> Validation {
    let (Some(left), Some(right)) = (ctx.shape(0), ctx.shape(1)) else {
        return Ok(());
    };
    let depth = [left.last(), right.get(right.len().saturating_sub(2))];
    if let [Some(Dim::Known(first)), Some(Dim::Known(second))] = depth {
        let expected = "as many columns in the first as rows in the second";
        ensure(
            first == second,
            "the shape of its inputs",
            [left, right],
            expected,
        )?;
    }
    let stacks = [left, right].map(|shape| &shape[..shape.len().saturating_sub(2)]);
    broadcasts("the shape of its stacks of matrices", &stacks)
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{PICTURE, node, refused, taken};

    #[test]
    fn matrices_have_the_same_depth() {
        let matrix = [0.0; 24];
        refused(node("MatMul"), PICTURE, &[Floats(&[4, 6], &matrix)]);
        taken(node("MatMul"), PICTURE, &[Floats(&[6, 4], &matrix)]);
        taken(node("MatMul"), PICTURE, &[Floats(&[6], &[0.0; 6])]);
    }
}
