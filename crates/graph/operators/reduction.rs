//! Reductions of axes, and sums and products along an axis.

use super::Property::{CarriesIntegers, KeepsRange, MovesData};
use super::float16::NOT_IN_EVERY_OPSET;
use super::node_context::{NodeContext, Validation};
use super::opset_context::as_input;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, count};
use octet_onnx::schema::DataType;

const fn reduction(name: &'static str) -> Operator {
    Operator::onnx(name)
        .moved(&[("axes", 18)])
        .changed(&[(18, |to, node| as_input(to, node, "axes"))])
        .checks(axes)
        .infers(reduce)
        .shape_from(&[1])
}

/// A reduction to the largest or smallest element.
const fn selection(name: &'static str) -> Operator {
    reduction(name)
        .with(&[MovesData, KeepsRange, CarriesIntegers])
        .quantized_here(Treatment::Share)
        .integers_since(12)
}

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("ArgMax")
        .checks(|ctx| ctx.axis_in_range())
        .infers(place)
        .quantized(Treatment::Elementwise),
    Operator::onnx("ArgMin")
        .checks(|ctx| ctx.axis_in_range())
        .infers(place),
    Operator::onnx("CumProd")
        .requires(2)
        .scalars(&[1])
        .ranks(&[(0, 1)])
        .infers_same(),
    Operator::onnx("CumSum")
        .scalars(&[1])
        .ranks(&[(0, 1)])
        .infers_same()
        .quantized(Treatment::Elementwise)
        .float16(NOT_IN_EVERY_OPSET),
    reduction("ReduceL1"),
    reduction("ReduceL2"),
    reduction("ReduceLogSum"),
    reduction("ReduceLogSumExp"),
    selection("ReduceMax").reduces_integers(|all| all.iter().copied().max()),
    reduction("ReduceMean").quantized_here(Treatment::Elementwise),
    selection("ReduceMin").reduces_integers(|all| all.iter().copied().min()),
    reduction("ReduceProd")
        .reduces_integers(|all| all.iter().try_fold(1i64, |a, &v| a.checked_mul(v))),
    reduction("ReduceSum")
        .moved(&[("axes", 13)])
        .changed(&[(13, |to, node| as_input(to, node, "axes"))])
        .reduces_integers(|all| all.iter().try_fold(0i64, |a, &v| a.checked_add(v)))
        .quantized_here(Treatment::Elementwise),
    reduction("ReduceSumSquare"),
];

/// Index of the largest or smallest element along an axis.
fn place(ctx: &ShapeContext) -> Option<InferredValue> {
    let axis = ctx.node.int("axis").unwrap_or(0);
    let shape = ctx.reduced(Some(vec![axis]));
    Some(InferredValue::new(DataType::Int64, shape))
}

fn reduce(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let rank = input.shape.as_ref().map(Vec::len);
    let present = ctx.is_present("axes", 1);
    let axes = ctx.list("axes", 1).filter(|a| !a.is_empty());
    if present && axes.is_none() || !present && ctx.node.int("noop_with_empty_axes") == Some(1) {
        return Some(InferredValue::new(input.element, None));
    }
    let axes = axes.or_else(|| rank.map(|r| (0..r as i64).collect()));
    let mut result = InferredValue::new(input.element, ctx.reduced(axes));
    let one = |sizes: Vec<usize>| count(&sizes) == 1;
    if result.sizes().is_some_and(one)
        && let Some(all) = input.all_integers()
    {
        let number = ctx.operator.reduces.and_then(|reduce| reduce(&all));
        result.integers = number.map(|n| vec![Some(n)]);
    }
    Some(result)
}

fn axes(ctx: &NodeContext) -> Validation {
    match ctx.shape(0) {
        Some(shape) => ctx.axes_among(shape.len(), true),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, checked, int, ints, model, node, refused};

    #[test]
    fn axes_are_those_of_the_input() {
        let error = refused(int("ArgMax", "axis", 9), PICTURE, &[]);
        assert!(error.contains("axis"), "{error}");
        for operator in ["ReduceMean", "ReduceL2"] {
            refused(node(operator), PICTURE, &[Integers(&[9])]);
        }
    }

    #[test]
    fn axes_became_an_input_at_different_opsets() {
        for (operator, opset, is_valid) in [
            ("ReduceSum", 12, true),
            ("ReduceSum", 13, false),
            ("ReduceSumSquare", 17, true),
            ("ReduceSumSquare", 18, false),
        ] {
            let node = ints(operator, &[("axes", &[1])]);
            let mut model = model(node, PICTURE, &[]);
            model.set_opset(opset);
            assert_eq!(
                checked(&model, None).is_ok(),
                is_valid,
                "{operator} {opset}"
            );
        }
    }
}
