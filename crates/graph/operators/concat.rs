//! Concat.

use super::Property::{CarriesIntegers, IdleWithOneInput, MergesInputs, MovesData, PassesInfinity};
use super::descriptor::ALL_INPUTS;
use super::node_context::{NodeContext, Validation, ensure};
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, QLinearInputs, Treatment};
use crate::inferred_value::{InferredValue, LARGEST, position, sizes};
use crate::{Attribute, Dim};
use octet_onnx::schema::DataType;

pub(super) static OPERATORS: &[Operator] = &[Operator::onnx("Concat")
    .with(&[MergesInputs, CarriesIntegers])
    .changed(&[(4, |to, mut node| {
        if node.int("axis").is_none() {
            node.set(Attribute::int("axis", 1));
        }
        to.write(node);
        Ok(())
    })])
    .checks(|ctx| ctx.axis_in_range())
    .checks_shapes(equal_elsewhere)
    .infers(joined)
    .with(&[MovesData, PassesInfinity, IdleWithOneInput])
    .quantized(Treatment::Elementwise)
    .qlinear_microsoft("QLinearConcat", QLinearInputs::Concat)
    .same_type(ALL_INPUTS)
    .channels(ChannelRole::Joins)];

fn joined(ctx: &ShapeContext) -> Option<InferredValue> {
    let inputs: Option<Vec<&InferredValue>> =
        (0..ctx.node.input.len()).map(|i| ctx.input(i)).collect();
    let element = (0..ctx.node.input.len())
        .find_map(|i| ctx.input(i))?
        .element;
    let unknown = Some(InferredValue::new(element, None));
    let Some(inputs) = inputs else { return unknown };
    let Some(shapes) = inputs
        .iter()
        .map(|k| k.shape.as_ref())
        .collect::<Option<Vec<_>>>()
    else {
        return unknown;
    };
    let rank = shapes.first()?.len();
    if shapes.iter().any(|s| s.len() != rank) {
        return None;
    }
    let axis = position(ctx.node.int("axis").unwrap_or(1), rank)?;
    let along: Vec<Dim> = shapes.iter().map(|s| s[axis].clone()).collect();
    let dims = (0..rank).map(|a| {
        if a == axis {
            return sizes(&along).map_or(Dim::Unknown, |s| {
                Dim::Known(
                    s.iter()
                        .fold(0, |all: usize, &size| all.saturating_add(size)),
                )
            });
        }
        let known = shapes
            .iter()
            .map(|s| &s[a])
            .find(|d| matches!(d, Dim::Known(_)));
        known.unwrap_or(&shapes[0][a]).clone()
    });
    let mut result = InferredValue::new(element, Some(dims.collect()));
    // Numbers are joined only for lists, because shapes are computed from lists.
    if rank == 1 {
        let integers = inputs
            .iter()
            .zip(&shapes)
            .map(|(k, s)| match (&k.integers, &s[0]) {
                (Some(integers), _) => Some(integers.clone()),
                (None, Dim::Known(size)) if *size <= LARGEST => Some(vec![None; *size]),
                _ => None,
            });
        let integers: Option<Vec<_>> = integers.collect();
        let is_integer = !matches!(
            element,
            DataType::Float | DataType::Double | DataType::Float16
        );
        result.integers = integers
            .filter(|_| is_integer)
            .map(|v| v.concat())
            .filter(|v| v.len() <= LARGEST);
        let floats: Option<Vec<_>> = inputs.iter().map(|k| k.floats.clone()).collect();
        result.floats = floats.map(|v| v.concat()).filter(|v| v.len() <= LARGEST);
    }
    Some(result)
}

/// Checks that the inputs are equal along the other axes.
fn equal_elsewhere(ctx: &NodeContext) -> Validation {
    let slots = 0..ctx.node.input.len();
    let shapes: Vec<&[Dim]> = slots.filter_map(|slot| ctx.shape(slot)).collect();
    let Some(first) = shapes.first() else {
        return Ok(());
    };
    let axis = ctx.node.int("axis").unwrap_or(1);
    let axis = position(axis, first.len());
    for shape in &shapes[1..] {
        let alike = shape.len() == first.len()
            && (0..first.len()).all(|a| {
                Some(a) == axis
                    || match (&first[a], &shape[a]) {
                        (Dim::Known(one), Dim::Known(other)) => one == other,
                        _ => true,
                    }
            });
        let expected = "equal except along the concatenated axis";
        ensure(alike, "the shape of its inputs", &shapes, expected)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{PICTURE, int, refused, taken};

    #[test]
    fn inputs_are_equal_along_the_other_axes() {
        let concat = || int("Concat", "axis", 1);
        refused(concat(), PICTURE, &[Floats(&[1, 2, 6, 5], &[0.0; 60])]);
        refused(concat(), PICTURE, &[Floats(&[6], &[0.0; 6])]);
        taken(concat(), PICTURE, &[Floats(&[1, 1, 6, 6], &[0.0; 36])]);
        let error = refused(int("Concat", "axis", 9), PICTURE, &[]);
        assert!(error.contains("axis"), "{error}");
    }
}
