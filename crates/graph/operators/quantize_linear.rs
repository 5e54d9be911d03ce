//! Conversions between floats and integers with a scale.

use super::Operator;
use super::Property::OnlyQuantized;
use super::shape_context::ShapeContext;
use crate::inferred_value::InferredValue;
use octet_onnx::schema::DataType;

const fn conversion(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[OnlyQuantized])
}

pub(super) static OPERATORS: &[Operator] = &[
    conversion("DequantizeLinear").infers(|ctx| {
        let element = ctx.input(1).map_or(DataType::Float, |scale| scale.element);
        Some(InferredValue::new(element, ctx.input(0)?.shape.clone()))
    }),
    conversion("DynamicQuantizeLinear"),
    conversion("QuantizeLinear").infers(quantized),
    Operator::microsoft("DequantizeLinear").with(&[OnlyQuantized]),
    Operator::microsoft("QuantizeLinear").with(&[OnlyQuantized]),
];

fn quantized(ctx: &ShapeContext) -> Option<InferredValue> {
    let target = ctx.node.int("output_dtype").filter(|&target| target != 0);
    let target = target.and_then(|t| DataType::try_from(i32::try_from(t).ok()?).ok());
    let element = ctx.input(2).map(|zero_point| zero_point.element);
    let element = element.or(target).unwrap_or(DataType::Uint8);
    Some(InferredValue::new(element, ctx.input(0)?.shape.clone()))
}
