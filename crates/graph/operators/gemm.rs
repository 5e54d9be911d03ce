//! Products of two matrices with a bias.

use super::Property::{EndsClassifier, MatrixProduct, OnlyQuantized, SaturatesPairs};
use super::descriptor::ALL_INPUTS;
use super::node_context::{NodeContext, Validation, ensure};
use super::properties::{ChannelPosition, ChannelRole, MacRule};
use super::shape_context::ShapeContext;
use super::{DynamicForm, Operator, QLinearInputs, Treatment, WeightAxis};
use crate::inferred_value::InferredValue;
use crate::{Dim, Node};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Gemm")
        .requires(2)
        .at_most(3)
        .changed(&[(7, |to, mut node| {
            node.take("broadcast");
            to.write(node);
            Ok(())
        })])
        .checks_shapes(depths)
        .infers(product)
        .with(&[MatrixProduct, SaturatesPairs, EndsClassifier])
        .quantized(Treatment::Weighted(WeightAxis::OfGemm))
        .qlinear_microsoft("QGemm", QLinearInputs::Gemm)
        .dynamic(DynamicForm::Gemm)
        .weights(&[1])
        .same_type(ALL_INPUTS)
        .macs(MacRule::Gemm)
        .channels(ChannelRole::Layer(ChannelPosition::Second)),
    Operator::microsoft("FusedGemm")
        .fused(|to, node| to.fused_activation(node, "Gemm"))
        .with(&[EndsClassifier]),
    Operator::microsoft("QGemm")
        .with(&[MatrixProduct, SaturatesPairs, OnlyQuantized])
        .weights(&[3]),
];

/// The attributes that shapes depend on.
struct GemmAttributes {
    /// The first matrix is transposed.
    trans_a: bool,
    /// The second matrix is transposed.
    trans_b: bool,
}

impl GemmAttributes {
    fn read(node: &Node) -> GemmAttributes {
        let is_set = |key| node.int(key).unwrap_or(0) != 0;
        GemmAttributes {
            trans_a: is_set("transA"),
            trans_b: is_set("transB"),
        }
    }
}

fn product(ctx: &ShapeContext) -> Option<InferredValue> {
    let GemmAttributes { trans_a, trans_b } = GemmAttributes::read(ctx.node);
    let size = |slot: usize, axis: usize| {
        let input = ctx.input(slot);
        let size = input.and_then(|k| k.shape.as_ref()?.get(axis).cloned());
        size.unwrap_or(Dim::Unknown)
    };
    let element = ctx.input(0).or(ctx.input(1))?.element;
    let shape = vec![
        size(0, usize::from(trans_a)),
        size(1, usize::from(!trans_b)),
    ];
    Some(InferredValue::new(element, Some(shape)))
}

fn depths(ctx: &NodeContext) -> Validation {
    let (Some(left), Some(right)) = (ctx.shape(0), ctx.shape(1)) else {
        return Ok(());
    };
    let expected = "two matrices";
    let two = left.len() == 2 && right.len() == 2;
    ensure(two, "the shape of its inputs", [left, right], expected)?;
    let attributes = GemmAttributes::read(ctx.node);
    let (a, b) = (
        usize::from(attributes.trans_a),
        usize::from(attributes.trans_b),
    );
    if let (Dim::Known(first), Dim::Known(second)) = (&left[1 - a], &right[b]) {
        let expected =
            "as many columns in the first as rows in the second, as transA and transB say";
        ensure(
            first == second,
            "the shape of its inputs",
            [left, right],
            expected,
        )?;
    }
    let Some(added) = ctx.shape(2) else {
        return Ok(());
    };
    let made = [left[a].clone(), right[1 - b].clone()];
    let fits = added.len() <= 2
        && added
            .iter()
            .rev()
            .zip(made.iter().rev())
            .all(|pair| match pair {
                (Dim::Known(own), Dim::Known(size)) => own == size || *own == 1,
                _ => true,
            });
    let expected = format!("one that is broadcast over {made:?}");
    ensure(fits, "the shape of its input 2", added, expected)
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{int, node, refused, taken};

    #[test]
    fn matrices_and_bias_fit_each_other() {
        let matrix = [0.0; 24];
        refused(node("Gemm"), &[2, 6], &[Floats(&[4, 6], &matrix)]);
        taken(
            int("Gemm", "transB", 1),
            &[2, 6],
            &[Floats(&[4, 6], &matrix)],
        );
        let added = |size| [Floats(&[6, 4], &matrix), Floats(size, &[0.0; 2])];
        refused(node("Gemm"), &[2, 6], &added(&[2]));
        taken(node("Gemm"), &[2, 6], &added(&[2, 1]));
    }
}
