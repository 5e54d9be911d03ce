//! Constants and ranges.

use super::Operator;
use super::float16::{NO_KERNEL, NOT_CONVERTED, NOT_IN_EVERY_OPSET};
use super::node_context::{MAX_ELEMENTS, NodeContext, Validation, ensure};
use super::properties::OutputType;
use super::quantization::SHAPES;
use super::shape_context::ShapeContext;
use crate::inferred_value::{InferredValue, LARGEST, count, known_dims};
use crate::{AttributeValue, Dim, Node};
use octet_onnx::schema::{DataType, TensorProto};
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
pub(crate) fn constant_value(node: &Node) -> Result<Option<TensorProto>, TensorError> {
    if !node.is("Constant") {
        return Ok(None);
    }
    let (Some(attribute), Some(name)) = (node.attributes.first(), node.output.first()) else {
        return Ok(None);
    };
    let tensor = match (attribute.name.as_str(), &attribute.value) {
        ("value", AttributeValue::Tensor(tensor)) => {
            tensor.element()?;
            TensorProto {
                name: Some(name.clone()),
                ..TensorProto::clone(tensor)
            }
        }
        ("value_float", value) => match value {
            AttributeValue::Float(value) => TensorProto::from_f32(name, &[], &[*value]),
            _ => TensorProto::from_f32(name, &[], &[0.0]),
        },
        ("value_int", value) => match value {
            AttributeValue::Int(value) => TensorProto::from_i64(name, &[], &[*value]),
            _ => TensorProto::from_i64(name, &[], &[0]),
        },
        ("value_floats", _) => {
            let values = attribute.as_floats();
            TensorProto::from_f32(name, &[values.len()], values)
        }
        ("value_ints", _) => {
            let values = attribute.as_ints();
            TensorProto::from_i64(name, &[values.len()], values)
        }
        ("value_string" | "value_strings", AttributeValue::Text(value)) => TensorProto {
            string_data: vec![value.clone()],
            ..strings(name, Vec::new())
        },
        ("value_string" | "value_strings", AttributeValue::Texts(values)) => TensorProto {
            string_data: values.clone(),
            ..strings(name, vec![values.len() as i64])
        },
        _ => return Ok(None),
    };
    Ok(Some(tensor))
}

/// A tensor of strings without its data.
fn strings(name: &str, dims: Vec<i64>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims,
        data_type: Some(DataType::String as i32),
        ..TensorProto::default()
    }
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
