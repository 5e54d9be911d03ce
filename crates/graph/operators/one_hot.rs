//! OneHot.

use super::Operator;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, position};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("OneHot")
    .scalars(&[1])
    .checks(|ctx| match (ctx.shape(0), ctx.input(1)) {
        (Some(shape), Some(_)) => ctx.axis_attribute(shape.len() + 1, false),
        _ => Ok(()),
    })
    .infers(one_hot)
    .stays_float(SHAPES)
    .shape_from(&[1])];

fn one_hot(ctx: &ShapeContext) -> Option<InferredValue> {
    let (indices, places) = (ctx.input(0)?, ctx.input(1)?.all_integers());
    let places = places.and_then(|places| usize::try_from(*places.first()?).ok());
    let shape = indices.shape.clone().and_then(|mut shape| {
        let axis = position(ctx.node.int("axis").unwrap_or(-1), shape.len() + 1)?;
        shape.insert(axis, places.map_or(Dim::Unknown, Dim::Known));
        Some(shape)
    });
    Some(InferredValue::new(ctx.input(2)?.element, shape))
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{Floats, Integers};
    use super::super::test_models::{PICTURE, int, node, refused, taken};

    #[test]
    fn the_new_axis_is_among_those_of_the_output() {
        for axis in [5, -6, i64::MAX, i64::MIN] {
            refused(int("OneHot", "axis", axis), PICTURE, &[Integers(&[3])]);
        }
        taken(int("OneHot", "axis", 4), PICTURE, &[Integers(&[3])]);
        let marks = [Integers(&[1 << 40]), Floats(&[2], &[0.0, 1.0])];
        let error = refused(node("OneHot"), PICTURE, &marks);
        assert!(error.contains("the shape of its output"), "{error}");
    }
}
