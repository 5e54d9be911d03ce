//! Slice.

use super::Property::{CarriesIntegers, KeepsRange, MovesData, PassesInfinity, SelectsElements};
use super::elements::{positions_of, strides};
use super::node_context::{NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, LARGEST, count, positions};
use crate::{Dim, Node};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Slice")
    .with(&[SelectsElements, CarriesIntegers])
    .moved(&[("axes", 10), ("ends", 10), ("starts", 10)])
    .changed(&[(10, bounds_as_inputs)])
    .checks(bounds)
    .infers(slice)
    .with(&[MovesData, KeepsRange, PassesInfinity])
    .quantized(Treatment::Share)
    .shape_from(&[1, 2, 3, 4])
    .same_type(1)
    .integers_since(1)];

fn slice(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let rank = shape.len();
    let (starts, ends) = (ctx.list("starts", 1), ctx.list("ends", 2));
    let axes = match (ctx.list("axes", 3), ctx.is_present("axes", 3)) {
        (Some(axes), _) => Some(axes),
        (None, true) => None,
        (None, false) => starts.as_ref().map(|s| (0..s.len() as i64).collect()),
    };
    let steps = match (ctx.list("steps", 4), ctx.node.input_at(4)) {
        (Some(steps), _) => Some(steps),
        (None, Some(_)) => None,
        (None, None) => starts.as_ref().map(|s| vec![1; s.len()]),
    };
    let Some(axes) = axes else {
        return Some(InferredValue::new(
            input.element,
            Some(vec![Dim::Unknown; rank]),
        ));
    };
    let axes = positions(&axes, rank)?;
    let mut dims = shape.clone();
    let mut from = vec![(0i64, 1i64); rank];
    for (i, &axis) in axes.iter().enumerate() {
        let number = |list: &Option<Vec<i64>>| list.as_ref().and_then(|l| l.get(i)).copied();
        dims[axis] = match (&shape[axis], number(&starts), number(&ends), number(&steps)) {
            (Dim::Known(size), Some(start), Some(end), Some(step)) if step != 0 => {
                let (first, count) = slice_bounds(*size as i64, start, end, step);
                from[axis] = (first, step);
                Dim::Known(count)
            }
            // The whole axis, of any length.
            (dim, Some(0), Some(i64::MAX), Some(1)) => dim.clone(),
            _ => Dim::Unknown,
        };
    }
    let result = InferredValue::new(input.element, Some(dims));
    let (Some(old), Some(new)) = (input.sizes(), result.sizes()) else {
        return Some(result);
    };
    if count(&old) > LARGEST {
        return Some(result);
    }
    let stride = strides(&old);
    let places = positions_of(&new, |index| {
        let along = |a: usize| (from[a].0 + from[a].1 * index[a] as i64) as usize * stride[a];
        (0..rank).map(along).sum()
    });
    Some(result.with_elements_at(input, &places))
}

/// First index and number of elements of a slice, clamped as ONNX specifies.
pub fn slice_bounds(size: i64, start: i64, end: i64, step: i64) -> (i64, usize) {
    let size = size.max(0); // damaged models declare negative sizes
    let from_front = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
    let (low, high) = if step > 0 { (0, size) } else { (0, size - 1) };
    let first = from_front(start).clamp(low, high.max(low));
    let last = if step > 0 {
        from_front(end).clamp(0, size)
    } else {
        from_front(end).clamp(-1, size - 1)
    };
    let distance = if step > 0 { last - first } else { first - last };
    let count = if distance <= 0 || size == 0 {
        0
    } else {
        (distance - 1) / step.saturating_abs() + 1
    };
    (first, count as usize)
}

fn bounds(ctx: &NodeContext) -> Validation {
    ctx.axes_in_range(3)?;
    if let Some(axes) = ctx.axes_or_all(3) {
        let twice = (1..axes.len()).any(|at| axes[..at].contains(&axes[at]));
        ensure(!twice, "axes", &axes, "each another")?;
    }
    let steps = ctx.input(4).and_then(|steps| steps.all_integers());
    let steps = steps.unwrap_or_default();
    ensure(!steps.contains(&0), "steps", &steps, "no zeros")?;
    if let (Some(starts), Some(ends)) = (ctx.list("starts", 1), ctx.list("ends", 2)) {
        let expected = format!("as many numbers as its starts {starts:?}");
        ensure(starts.len() == ends.len(), "ends", &ends, expected)?;
    }
    Ok(())
}

/// Changes to opset 10.
fn bounds_as_inputs(to: &mut OpsetContext, mut node: Node) -> Adapted {
    for (slot, key) in [(1, "starts"), (2, "ends"), (3, "axes")] {
        match node.take(key) {
            Some(attribute) => {
                let name = to.integers(&node, key, attribute.as_ints());
                node.set_input(slot, name);
            }
            None if key == "axes" => {}
            None => return Err(format!("it has no {key}")),
        }
    }
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, node, refused, taken};
    use super::slice_bounds;

    #[test]
    fn axes_and_steps_are_valid() {
        let slice = |axes: &'static [i64], steps: &'static [i64]| {
            [
                Integers(&[0]),
                Integers(&[2]),
                Integers(axes),
                Integers(steps),
            ]
        };
        refused(node("Slice"), PICTURE, &slice(&[1], &[0]));
        refused(node("Slice"), PICTURE, &slice(&[4], &[1]));
        taken(node("Slice"), PICTURE, &slice(&[-1], &[-1]));
    }

    #[test]
    fn an_axis_of_a_negative_size_is_empty() {
        for step in [1, -1, i64::MIN, i64::MAX] {
            assert_eq!(slice_bounds(i64::MIN, 0, i64::MAX, step).1, 0, "{step}");
            assert_eq!(slice_bounds(-1, -3, 2, step).1, 0, "{step}");
        }
    }
}
