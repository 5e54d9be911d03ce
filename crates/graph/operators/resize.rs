//! Resize, and Upsample before it.

use super::float16::POSITIONS;
use super::properties::ChannelRole;
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::Dim;
use crate::inferred_value::InferredValue;

pub(super) static OPERATORS: &[Operator] = &[
    // Scales and sizes.
    Operator::onnx("Resize")
        .infers(resized)
        .quantized(Treatment::Share)
        .shape_from(&[2, 3])
        .integers_since(10)
        .float16(POSITIONS)
        .channels(ChannelRole::Commutes),
    Operator::onnx("Upsample")
        .infers(resized)
        .shape_from(&[1])
        .float16(POSITIONS),
];

fn resized(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let shape = input.shape.as_ref()?;
    let unknown = Some(InferredValue::new(
        input.element,
        Some(vec![Dim::Unknown; shape.len()]),
    ));
    if ctx.node.attribute("axes").is_some()
        || ctx
            .node
            .text("keep_aspect_ratio_policy")
            .is_some_and(|p| p != "stretch")
        || ctx.node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
    {
        return unknown;
    }
    if let Some(dims) = ctx.shape_from_input(3).filter(|d| d.len() == shape.len()) {
        return Some(InferredValue::new(input.element, Some(dims)));
    }
    let slot = if ctx.node.input.len() <= 2 { 1 } else { 2 };
    let scales = match ctx.node.attribute("scales") {
        Some(attribute) => Some(attribute.floats.clone()),
        None => ctx.input(slot).and_then(|k| k.floats.clone()),
    };
    let Some(scales) = scales.filter(|s| s.len() == shape.len()) else {
        return unknown;
    };
    let size = |(dim, &scale): (&Dim, &f32)| match dim {
        Dim::Known(size) => Dim::Known((*size as f32 * scale).floor() as usize),
        dim if scale == 1.0 => dim.clone(),
        _ => Dim::Unknown,
    };
    Some(InferredValue::new(
        input.element,
        Some(shape.iter().zip(&scales).map(size).collect()),
    ))
}
