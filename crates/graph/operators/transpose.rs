//! Transpose.

use super::Property::{
    CarriesIntegers, ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity,
};
use super::elements::{positions_of, strides};
use super::node_context::{NodeContext, Validation, ensure};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, count, positions};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Transpose")
    .with(&[CarriesIntegers])
    .at_most(1)
    .checks(permutes)
    .infers(permuted)
    .with(&[MovesData, KeepsRange, ChangesForm, KeepsIndices])
    .with(&[PassesInfinity])
    .quantized(Treatment::Share)
    .same_type(1)
    .integers_since(1)];

fn permuted(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let Some(shape) = &input.shape else {
        return Some(InferredValue::new(input.element, None));
    };
    let order: Vec<usize> = match ctx.node.ints("perm") {
        Some(order) => positions(order, shape.len())?,
        None => (0..shape.len()).rev().collect(),
    };
    let dims: Vec<Dim> = order.iter().map(|&a| shape[a].clone()).collect();
    let result = InferredValue::new(input.element, Some(dims));
    let (Some(from), Some(to)) = (input.sizes(), result.sizes()) else {
        return Some(result);
    };
    if count(&to) > LARGEST {
        return Some(result);
    }
    let steps = strides(&from);
    let places = positions_of(&to, |index| {
        order.iter().zip(index).map(|(&a, i)| steps[a] * i).sum()
    });
    Some(result.with_elements_at(input, &places))
}

fn permutes(ctx: &NodeContext) -> Validation {
    match (ctx.node.ints("perm"), ctx.shape(0)) {
        (Some(order), Some(shape)) => permutation(order, shape.len()),
        (Some(order), None) => permutation(order, order.len()),
        (None, _) => Ok(()),
    }
}

fn permutation(order: &[i64], rank: usize) -> Validation {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let whole = sorted.iter().copied().eq(0..rank as i64);
    let expected = format!("a permutation of 0 to {}", rank as i64 - 1);
    ensure(whole, "perm", order, expected)
}

#[cfg(test)]
mod tests {
    use super::super::test_models::{PICTURE, ints, refused, taken};

    #[test]
    fn the_order_is_a_permutation_of_the_axes() {
        for order in [&[0, 0, 1, 2][..], &[0, 1, 2, 9], &[1, 0]] {
            let error = refused(ints("Transpose", &[("perm", order)]), PICTURE, &[]);
            assert!(error.contains("perm"), "{error}");
        }
        taken(ints("Transpose", &[("perm", &[3, 1, 2, 0])]), PICTURE, &[]);
    }
}
