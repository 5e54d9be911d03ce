//! Operators that read the shape of their input.

use super::Operator;
use super::Property::OfShapes;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, count, known_dims};
use octet_onnx::schema::DataType;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Shape")
        .infers(shape_of)
        .with(&[OfShapes])
        .stays_float(SHAPES),
    Operator::onnx("Size")
        .infers(size)
        .with(&[OfShapes])
        .stays_float(SHAPES),
];

fn shape_of(ctx: &ShapeContext) -> Option<InferredValue> {
    let shape = ctx.input(0)?.shape.as_ref()?;
    let rank = shape.len() as i64;
    let clamp = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank) as usize;
    let start = clamp(ctx.node.int("start").unwrap_or(0));
    let end = clamp(ctx.node.int("end").unwrap_or(rank)).max(start);
    let mut result = InferredValue::new(DataType::Int64, known_dims(&[end - start]));
    let size = |d: &Dim| {
        if let Dim::Known(size) = d {
            Some(*size as i64)
        } else {
            None
        }
    };
    result.integers = Some(shape[start..end].iter().map(size).collect());
    Some(result)
}

fn size(ctx: &ShapeContext) -> Option<InferredValue> {
    let count = count(&ctx.input(0)?.sizes()?);
    let mut result = InferredValue::new(DataType::Int64, Some(vec![]));
    result.integers = Some(vec![Some(count as i64)]);
    Some(result)
}
