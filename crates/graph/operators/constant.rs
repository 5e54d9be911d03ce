//! Constants and ranges.

use super::Operator;
use super::float16::{NO_KERNEL, NOT_CONVERTED, NOT_IN_EVERY_OPSET};
use super::node_context::{MAX_ELEMENTS, NodeContext, Validation, ensure};
use super::properties::OutputType;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::Dim;
use crate::inferred_value::{InferredValue, LARGEST, count, known_dims};
use octet_onnx::schema::{AttributeType, DataType, NodeProto, TensorProto};
use octet_onnx::tensor::TensorError;

/// Differences of numbers below this limit fit into 64 bits.
const MAX_DIFFERENCE: i64 = 1 << 62;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("Constant")
        .requires(0)
        .infers(constant)
        .stays_float(SHAPES)
        .float16(NOT_CONVERTED),
    Operator::onnx("ConstantOfShape")
        .checks(|ctx| ctx.output_sizes(0))
        .infers(constant_of_shape)
        .stays_float(SHAPES)
        .shape_from(&[0])
        .output_type(OutputType::Value),
    Operator::onnx("EyeLike").float16(NO_KERNEL),
    Operator::onnx("Range")
        .requires(3)
        .scalars(&[0, 1, 2])
        .checks(length)
        .infers(range)
        .stays_float(SHAPES)
        .shape_from(&[0, 1, 2])
        .float16(NOT_IN_EVERY_OPSET),
];

fn constant(ctx: &ShapeContext) -> Option<InferredValue> {
    InferredValue::from_constant(&constant_value(ctx.node).ok()??)
}

/// The tensor of a Constant node, named after its output; `None` for sparse tensors and other
/// nodes.
pub(crate) fn constant_value(node: &NodeProto) -> Result<Option<TensorProto>, TensorError> {
    if !node.is("Constant") {
        return Ok(None);
    }
    let (Some(attribute), Some(name)) = (node.attribute.first(), node.output.first()) else {
        return Ok(None);
    };
    let kind = attribute
        .r#type
        .and_then(|t| AttributeType::try_from(t).ok());
    Ok(match (attribute.name.as_deref(), kind) {
        (Some("value"), _) => match attribute.t.clone() {
            Some(mut tensor) => {
                tensor.element()?;
                tensor.name = Some(name.clone());
                Some(tensor)
            }
            None => None,
        },
        (Some("value_float"), _) => Some(TensorProto::from_f32(
            name,
            &[],
            &[attribute.f.unwrap_or_default()],
        )),
        (Some("value_int"), _) => Some(TensorProto::from_i64(
            name,
            &[],
            &[attribute.i.unwrap_or_default()],
        )),
        (Some("value_floats"), _) => Some(TensorProto::from_f32(
            name,
            &[attribute.floats.len()],
            &attribute.floats,
        )),
        (Some("value_ints"), _) => Some(TensorProto::from_i64(
            name,
            &[attribute.ints.len()],
            &attribute.ints,
        )),
        (Some("value_string" | "value_strings"), Some(kind)) => {
            let one = kind == AttributeType::String;
            Some(TensorProto {
                name: Some(name.clone()),
                dims: if one {
                    vec![]
                } else {
                    vec![attribute.strings.len() as i64]
                },
                data_type: Some(DataType::String as i32),
                string_data: if one {
                    vec![attribute.s.clone().unwrap_or_default()]
                } else {
                    attribute.strings.clone()
                },
                ..TensorProto::default()
            })
        }
        _ => None,
    })
}

fn constant_of_shape(ctx: &ShapeContext) -> Option<InferredValue> {
    let value = ctx.node.tensor("value");
    let constant = match value {
        Some(tensor) => InferredValue::from_constant(tensor)?,
        None => {
            let mut zero = InferredValue::new(DataType::Float, None);
            zero.floats = Some(vec![0.0]);
            zero
        }
    };
    let result = InferredValue::new(constant.element, ctx.shape_from_input(0));
    let Some(shape) = result.sizes() else {
        return Some(result);
    };
    let count = count(&shape);
    if count > LARGEST {
        return Some(result);
    }
    Some(result.with_elements_at(&constant, &vec![0; count]))
}

fn range(ctx: &ShapeContext) -> Option<InferredValue> {
    let number = |slot: usize| ctx.input(slot)?.all_integers()?.first().copied();
    let element = ctx.input(0).or(ctx.input(1)).or(ctx.input(2))?.element;
    let mut result = InferredValue::new(element, Some(vec![Dim::Unknown]));
    let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), number(2)) else {
        result.shape = range_of_floats(ctx).map_or(result.shape, |count| known_dims(&[count]));
        return Some(result);
    };
    let mut numbers = Vec::new();
    let mut at = start;
    while delta != 0 && (if delta > 0 { at < limit } else { at > limit }) {
        if numbers.len() == LARGEST {
            return Some(result);
        }
        numbers.push(Some(at));
        let Some(next) = at.checked_add(delta) else {
            break;
        };
        at = next;
    }
    result.shape = known_dims(&[numbers.len()]);
    result.integers = Some(numbers);
    Some(result)
}

/// Length of a Range of known floats.
fn range_of_floats(ctx: &ShapeContext) -> Option<usize> {
    let number = |slot: usize| ctx.input(slot)?.floats.as_ref()?.first().copied();
    let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
    let count = ((limit - start) / delta).ceil();
    (count.is_finite() && count < (1 << 24) as f32).then_some(count.max(0.0) as usize)
}

fn length(ctx: &NodeContext) -> Validation {
    let number = |slot: usize| ctx.list("", slot)?.first().copied();
    let delta = number(2);
    ensure(delta != Some(0), "its delta", 0, "no zero")?;
    let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), delta) else {
        return Ok(());
    };
    let count = (i128::from(limit) - i128::from(start)) / i128::from(delta);
    let expected = format!("at most {MAX_ELEMENTS} numbers");
    ensure(
        count <= MAX_ELEMENTS as i128
            && [start, limit, delta]
                .iter()
                .all(|n| (-MAX_DIFFERENCE..MAX_DIFFERENCE).contains(n)),
        "its way",
        format_args!("from {start} to {limit} by {delta}"),
        expected,
    )
}
