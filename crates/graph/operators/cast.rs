//! Changes of the element type.

use super::Operator;
use super::Property::{ChangesForm, ChangesType, KeepsIndices};
use super::elements::{elementwise, fits, one};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::{Float16, OutputType};
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::inferred_value::{InferredValue, LARGEST, count};
use crate::{Attribute, Node};
use octet_onnx::schema::DataType;

const BOOL: i64 = DataType::Bool as i64;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("BitCast").float16(Float16::Stays("it reads the bits of its input")),
    Operator::onnx("Cast")
        .changed(&[(6, number_type)])
        .infers(cast)
        .integers(|node, row| match node.int("to") {
            Some(BOOL) => Some((one(row)? != 0).into()),
            _ => one(row),
        })
        .floats(|row| row.first().copied())
        .with(&[ChangesType, ChangesForm, KeepsIndices])
        .stays_float(SHAPES)
        .output_type(OutputType::Attribute("to")),
    Operator::onnx("CastLike").with(&[ChangesType]),
];

fn cast(ctx: &ShapeContext) -> Option<InferredValue> {
    let element = DataType::try_from(i32::try_from(ctx.node.int("to")?).ok()?).ok()?;
    let input = ctx.input(0)?;
    let result = InferredValue::new(element, input.shape.clone());
    let mut result = elementwise(ctx, &[input], result);
    if result.sizes().is_none_or(|sizes| count(&sizes) > LARGEST) {
        return Some(result);
    }
    match (&input.integers, &input.floats) {
        (Some(integers), _) if element == DataType::Float => {
            let widen = |v: &Option<i64>| v.map(|v| v as f32);
            result.floats = integers.iter().map(widen).collect();
        }
        (None, Some(floats)) if !matches!(element, DataType::Float | DataType::Bool) => {
            let whole = |&v: &f32| Some(v as i64).filter(|&v| fits(element, v));
            let finite = floats.iter().all(|v| v.is_finite() && v.abs() < 9e18);
            result.integers = finite.then(|| floats.iter().map(whole).collect());
        }
        _ => {}
    }
    Some(result)
}

/// Changes to opset 6: before the type was a string.
fn number_type(to: &mut OpsetContext, mut node: Node) -> Adapted {
    if let Some(name) = node.text("to") {
        let upper = name.to_ascii_uppercase();
        let element = match upper.as_str() {
            "BFLOAT16" => Some(DataType::Bfloat16),
            _ => (1..=15)
                .filter_map(|i| DataType::try_from(i).ok())
                .find(|e| format!("{e:?}").to_ascii_uppercase() == upper),
        };
        let element = element.ok_or_else(|| format!("its type {name} is unknown"))?;
        node.set(Attribute::int("to", element as i64));
    }
    to.write(node);
    Ok(())
}
