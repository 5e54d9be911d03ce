//! Operators that give the same elements another shape: Reshape and Flatten.

use super::Operator;
use super::Property::{
    CarriesIntegers, ChangesForm, KeepsIndices, KeepsRange, MovesData, PassesInfinity, Reshapes,
};
use super::Treatment;
use super::node_context::{NodeContext, Validation, ensure, refuse};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use crate::inferred_value::{InferredValue, count, sizes};
use crate::{Dim, Node};

/// An operator that gives the same elements another shape.
pub(super) const fn reshaping(name: &'static str) -> Operator {
    Operator::onnx(name)
        .with(&[MovesData, KeepsRange, Reshapes, ChangesForm, KeepsIndices])
        .with(&[PassesInfinity, CarriesIntegers])
        .quantized(Treatment::Share)
        .same_type(1)
        .integers_since(1)
        .channels(ChannelRole::Reshapes)
}

pub(super) static OPERATORS: &[Operator] = &[
    reshaping("Flatten")
        .at_most(1)
        .checks(splits)
        .infers(flatten),
    reshaping("Reshape")
        .integer_list()
        .changed(&[(5, shape_as_input)])
        .checks_shapes(fits)
        .infers(reshape)
        .shape_from(&[1]),
];

fn flatten(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let result = |dims| Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input));
    let Some(shape) = &input.shape else {
        return result(vec![Dim::Unknown; 2]);
    };
    let axis = ctx.node.int("axis").unwrap_or(1);
    let axis = if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    };
    let (left, right) = shape.split_at_checked(usize::try_from(axis).ok()?)?;
    result(vec![product(left), product(right)])
}

fn product(dims: &[Dim]) -> Dim {
    match dims {
        [one] => one.clone(),
        _ => sizes(dims).map_or(Dim::Unknown, |s| Dim::Known(count(&s))),
    }
}

fn reshape(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let Some(target) = (match ctx.node.ints("shape") {
        Some(shape) => Some(shape.iter().map(|&v| Some(v)).collect::<Vec<_>>()),
        None => ctx.input(1)?.integers.clone(),
    }) else {
        return Some(InferredValue::new(input.element, ctx.shape_from_input(1)));
    };
    let keeps = ctx.node.int("allowzero").unwrap_or(0) == 0;
    let from = input.shape.as_deref();
    // Sizes that are copied cancel out of the inferred one, known or not.
    let mut rest: Option<Vec<Dim>> = from.map(<[Dim]>::to_vec);
    let mut taken = Some(1usize);
    let mut dims = Vec::new();
    let mut open = None;
    for (axis, &size) in target.iter().enumerate() {
        dims.push(match size {
            Some(0) if keeps => {
                let size = from
                    .and_then(|f| f.get(axis))
                    .cloned()
                    .unwrap_or(Dim::Unknown);
                if let Some(rest) = rest.as_mut().and_then(|r| r.get_mut(axis)) {
                    *rest = Dim::Known(1);
                }
                size
            }
            Some(-1) => {
                open = Some(axis);
                Dim::Unknown
            }
            Some(size) if size >= 0 => {
                taken = taken.and_then(|t| t.checked_mul(size as usize));
                Dim::Known(size as usize)
            }
            _ => {
                taken = None;
                Dim::Unknown
            }
        });
    }
    if let (Some(axis), Some(taken), Some(rest)) = (open, taken, rest.as_deref().and_then(sizes)) {
        let count = count(&rest);
        if taken > 0 && count.is_multiple_of(taken) {
            dims[axis] = Dim::Known(count / taken);
        }
    }
    Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input))
}

/// Checks the axis of Flatten, which may also split behind the last axis.
fn splits(ctx: &NodeContext) -> Validation {
    let axis = ctx.node.int("axis").unwrap_or(1);
    match ctx.shape(0) {
        Some(shape) => ctx.axis(axis, shape.len(), true),
        None => Ok(()),
    }
}

/// Checks that the requested shape has as many elements as the input.
fn fits(ctx: &NodeContext) -> Validation {
    let requested = match ctx.node.ints("shape") {
        Some(shape) => Some(shape.to_vec()),
        None => ctx.input(1).and_then(InferredValue::all_integers),
    };
    let Some(requested) = requested else {
        return Ok(());
    };
    let sound = requested.iter().all(|&size| size >= -1)
        && requested.iter().filter(|&&size| size == -1).count() <= 1;
    let expected = "sizes of at least 0, with -1 at most once";
    ensure(sound, "its requested shape", &requested, expected)?;
    let Some(own) = ctx.shape(0) else {
        return Ok(());
    };
    let keeps = ctx.node.int("allowzero").unwrap_or(0) == 0;
    let zeros = requested.iter().enumerate().filter(|&(_, &size)| size == 0);
    if keeps && zeros.clone().any(|(axis, _)| axis >= own.len()) {
        let expected = format!("without a 0 beyond the {} axes of its input", own.len());
        return refuse("its requested shape", &requested, expected);
    }
    let Some(sizes) = ctx.input(0).and_then(InferredValue::sizes) else {
        return Ok(());
    };
    let resolved = |(axis, &size): (usize, &i64)| match size {
        0 if keeps => sizes[axis],
        _ => size.max(0) as usize,
    };
    let places = requested.iter().enumerate();
    let known_sizes: Vec<usize> = places
        .filter(|&(_, &size)| size != -1)
        .map(resolved)
        .collect();
    let (all, known_sizes) = (count(&sizes), count(&known_sizes));
    let fits = match requested.contains(&-1) {
        true => known_sizes > 0 && all.is_multiple_of(known_sizes) || all == 0 && known_sizes == 0,
        false => all == known_sizes,
    };
    let expected = format!("a shape for the {all} elements of its input of shape {sizes:?}");
    ensure(fits, "its requested shape", &requested, expected)
}

/// Changes to opset 5.
fn shape_as_input(to: &mut OpsetContext, mut node: Node) -> Adapted {
    let shape = node.take("shape").ok_or("it has no shape")?;
    let shape = to.integers(&node, "shape", shape.as_ints());
    node.set_input(1, shape);
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, int, node, refused, taken};

    #[test]
    fn a_requested_shape_has_the_elements_of_the_input() {
        for shape in [&[5, -1][..], &[-1, -1], &[-2], &[144, 2], &[1, 4, 6, 6, 0]] {
            refused(node("Reshape"), PICTURE, &[Integers(shape)]);
        }
        for shape in [&[-1][..], &[0, 0, 36], &[2, -1, 9]] {
            taken(node("Reshape"), PICTURE, &[Integers(shape)]);
        }
        let error = refused(int("Flatten", "axis", 5), PICTURE, &[]);
        assert!(error.contains("axis"), "{error}");
        taken(int("Flatten", "axis", 4), PICTURE, &[]);
    }
}
