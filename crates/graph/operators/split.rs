//! Split.

use super::Property::{CarriesIntegers, KeepsRange, MovesData, SelectsElements};
use super::node_context::{MAX_SIZE, NodeContext, Validation, ensure, refuse};
use super::opset_context::{Adapted, OpsetContext, as_input};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, LARGEST, position};
use crate::{Attribute, Dim, Node};

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Split")
    .with(&[SelectsElements, CarriesIntegers])
    .integer_list()
    .moved(&[("split", 13)])
    .changed(&[
        (2, |_, _| {
            Err("opset 1 did not define its meaning".to_owned())
        }),
        (13, |to, node| as_input(to, node, "split")),
        (18, number_of_outputs),
    ])
    .checks(|ctx| ctx.axis_in_range().and_then(|()| sum_of_parts(ctx)))
    .infers_all(parts)
    .with(&[MovesData, KeepsRange])
    .quantized(Treatment::Split)
    .shape_from(&[1])
    .same_type(1)
    .integers_since(1)];

fn parts(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let count = ctx.node.output.len();
    let Some(input) = ctx.input(0) else {
        return vec![None; count];
    };
    let unknown = vec![Some(InferredValue::new(input.element, None)); count];
    let Some(shape) = &input.shape else {
        return unknown;
    };
    let Some(axis) = position(ctx.node.int("axis").unwrap_or(0), shape.len()) else {
        return unknown;
    };
    let parts: Option<Vec<usize>> = match (ctx.list("split", 1), &shape[axis]) {
        (Some(parts), _) => parts.iter().map(|&p| usize::try_from(p).ok()).collect(),
        (None, Dim::Known(size)) if !ctx.is_present("split", 1) && count > 0 => {
            // Equal parts, the last one smaller.
            let part = size.div_ceil(count);
            Some(
                (0..count)
                    .map(|i| part.min(size.saturating_sub(i * part)))
                    .collect(),
            )
        }
        _ => None,
    };
    let parts = parts.filter(|p| p.len() == count);
    let all = parts.iter().flatten();
    let few = all.fold(0, |all: usize, &part| all.saturating_add(part)) <= LARGEST;
    let mut start = 0;
    (0..count)
        .map(|i| {
            let mut dims = shape.clone();
            dims[axis] = parts.as_ref().map_or(Dim::Unknown, |p| Dim::Known(p[i]));
            let result = InferredValue::new(input.element, Some(dims));
            let (Some(parts), 1, true) = (&parts, shape.len(), few) else {
                return Some(result);
            };
            let places: Vec<usize> = (start..start + parts[i]).collect();
            start += parts[i];
            Some(result.with_elements_at(input, &places))
        })
        .collect()
}

fn sum_of_parts(ctx: &NodeContext) -> Validation {
    let Some(parts) = ctx.list("split", 1) else {
        return Ok(());
    };
    let sound = parts.iter().all(|part| (0..MAX_SIZE).contains(part));
    ensure(sound, "split", &parts, "sizes of at least 0")?;
    let outputs = ctx.node.output.len();
    let expected = format!("one size for each of its {outputs} outputs");
    ensure(parts.len() == outputs, "split", &parts, expected)?;
    let Some(shape) = ctx.shape(0) else {
        return Ok(());
    };
    let Some(axis) = position(ctx.node.int("axis").unwrap_or(0), shape.len()) else {
        return Ok(());
    };
    match &shape[axis] {
        Dim::Known(size) if parts.iter().sum::<i64>() != *size as i64 => refuse(
            "split",
            &parts,
            format!("sizes whose sum is the {size} of axis {axis}"),
        ),
        _ => Ok(()),
    }
}

/// Changes to opset 18, which requires the number of parts of equal size.
fn number_of_outputs(to: &mut OpsetContext, mut node: Node) -> Adapted {
    if node.input_at(1).is_none() {
        node.set(Attribute::int("num_outputs", node.output.len() as i64));
    }
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Integers;
    use super::super::test_models::{PICTURE, int, refused};

    #[test]
    fn there_is_one_size_for_each_output() {
        let split = || int("Split", "axis", 1);
        let error = refused(split(), PICTURE, &[Integers(&[1, 3])]);
        assert!(
            error.contains("one size for each of its 1 outputs"),
            "{error}"
        );
        refused(split(), PICTURE, &[Integers(&[1, 9])]);
        refused(split(), PICTURE, &[Integers(&[-1, 5])]);
    }
}
