//! The numbers of small values, from which shapes are computed.

use super::shape_context::ShapeContext;
use crate::Node;
use crate::inferred_value::{InferredValue, LARGEST, count, sizes};
use octet_onnx::schema::DataType;

/// Computes one element from integers and bools, of which some may be unknown.
pub(super) type OfIntegers = fn(&Node, &[Option<i64>]) -> Option<i64>;

/// Computes one element from floats. Covers only operations that IEEE 754 defines to the last bit.
pub(super) type OfFloats = fn(&[f32]) -> Option<f32>;

/// The only operand, if it is known.
pub(super) fn one(row: &[Option<i64>]) -> Option<i64> {
    row.first().copied()?
}

/// The first two operands, if all are known.
pub(super) fn two(row: &[Option<i64>]) -> Option<(i64, i64)> {
    match row {
        [Some(first), Some(second), rest @ ..] if rest.iter().all(Option::is_some) => {
            Some((*first, *second))
        }
        _ => None,
    }
}

/// The first two operands.
pub(super) fn two_floats(row: &[f32]) -> Option<(f32, f32)> {
    match row {
        &[first, second, ..] => Some((first, second)),
        _ => None,
    }
}

/// True if a value fits the integer type.
pub(super) fn fits(element: DataType, value: i64) -> bool {
    match element {
        DataType::Int64 => true,
        DataType::Int32 => i32::try_from(value).is_ok(),
        DataType::Int16 => i16::try_from(value).is_ok(),
        DataType::Int8 => i8::try_from(value).is_ok(),
        DataType::Uint8 => u8::try_from(value).is_ok(),
        DataType::Uint16 => u16::try_from(value).is_ok(),
        DataType::Uint32 => u32::try_from(value).is_ok(),
        DataType::Uint64 => value >= 0,
        DataType::Bool => value == 0 || value == 1,
        _ => false,
    }
}

/// For each index of a row-major tensor, the position of its element in another one.
pub(super) fn positions_of(shape: &[usize], mut of: impl FnMut(&[usize]) -> usize) -> Vec<usize> {
    let count = count(shape);
    let mut index = vec![0; shape.len()];
    let mut positions = Vec::with_capacity(count.min(LARGEST));
    for _ in 0..count {
        positions.push(of(&index));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    positions
}

/// Row-major strides of a shape.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len())
        .map(|axis| count(&shape[axis + 1..]))
        .collect()
}

/// The positions in `from` that broadcast it to `to`; `None` if the result is too large.
pub(super) fn broadcast_positions(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    if count(to) > LARGEST || from.len() > to.len() {
        return None;
    }
    let steps = strides(from);
    let offset = to.len() - from.len();
    Some(positions_of(to, |index| {
        let axis = |(a, &step): (usize, &usize)| {
            if from[a] == 1 {
                0
            } else {
                index[a + offset] * step
            }
        };
        steps.iter().enumerate().map(axis).sum()
    }))
}

/// Computes an elementwise node into `result`, whose type and shape are set.
pub(super) fn elementwise(
    ctx: &ShapeContext,
    inputs: &[&InferredValue],
    mut result: InferredValue,
) -> InferredValue {
    let Some(shape) = result.shape.as_deref().and_then(sizes) else {
        return result;
    };
    let inputs: Option<Vec<InferredValue>> = inputs
        .iter()
        .map(|k| {
            let places = broadcast_positions(&k.sizes()?, &shape)?;
            Some(InferredValue::new(k.element, result.shape.clone()).with_elements_at(k, &places))
        })
        .collect();
    let Some(inputs) = inputs else { return result };
    let count = count(&shape);
    let (of_integers, of_floats) = ctx.operator.arithmetic;
    let integers: Option<Vec<_>> = inputs.iter().map(|k| k.integers.as_ref()).collect();
    let floats: Option<Vec<_>> = inputs.iter().map(|k| k.floats.as_ref()).collect();
    if let (Some(operands), Some(compute)) = (&integers, of_integers) {
        let at = |i: usize| {
            let row: Vec<Option<i64>> = operands.iter().map(|v| v[i]).collect();
            compute(ctx.node, &row).filter(|&v| fits(result.element, v))
        };
        let numbers: Vec<_> = (0..count).map(at).collect();
        if numbers.iter().any(Option::is_some) && result.element != DataType::Float {
            result.integers = Some(numbers);
        }
    } else if let (None, Some(operands), Some(compute), DataType::Float) =
        (&integers, &floats, of_floats, result.element)
    {
        let row = |i: usize| operands.iter().map(|v| v[i]).collect::<Vec<f32>>();
        result.floats = (0..count).map(|i| compute(&row(i))).collect();
    }
    result
}
