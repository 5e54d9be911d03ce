//! Integer forms of Conv, MatMul and Gemm.
//!
//! Their kernels sum integer products in int32, add an int32 bias and requantize to the output's
//! scale.

use super::IntegerNode;
use super::pairs::{QdqPairs, QuantizedValue};
use crate::QuantizeError;
use octet_graph::operators::QLinearForm;
use octet_graph::{Names, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// Converts Conv to QLinearConv.
pub(super) fn convolution(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    let (input, weight, output) = operands(node, pairs)?;
    if !matches!(weight.axis, None | Some(0)) || !has_kernel(&input, &weight, &output, pairs) {
        return None;
    }
    let mut inputs = [input.inputs(), weight.inputs()].concat();
    inputs.extend(output.parameters());
    if let Some(bias) = node.input_at(2) {
        let bias = pairs.integers(bias)?;
        if !is_accumulator_bias(&bias, &input, &weight, pairs) {
            return None;
        }
        inputs.push(bias.integers);
    }
    Some(IntegerNode::new(node, form, inputs))
}

/// Converts MatMul to QLinearMatMul. Per-channel scales must be one for each column of a 2-D
/// matrix.
pub(super) fn product(node: &Node, form: QLinearForm, pairs: &QdqPairs) -> Option<IntegerNode> {
    let (left, right, output) = operands(node, pairs)?;
    let columns = match right.axis {
        None => true,
        Some(axis) => {
            pairs.constant_shape(&right).is_some_and(|s| s.len() == 2) && matches!(axis, 1 | -1)
        }
    };
    if !columns || !has_kernel(&left, &right, &output, pairs) {
        return None;
    }
    let mut inputs = [left.inputs(), right.inputs()].concat();
    inputs.extend(output.parameters());
    Some(IntegerNode::new(node, form, inputs))
}

/// Converts Gemm to QGemm.
///
/// QGemm adds its bias before the factor `alpha`, Gemm after it, so the bias integers are divided
/// by `alpha` here. (ONNX Runtime's quantizer doesn't divide, so its bias is multiplied by
/// `alpha`.)
pub(super) fn gemm(
    node: &Node,
    form: QLinearForm,
    pairs: &QdqPairs,
    names: &mut Names,
) -> Result<Option<IntegerNode>, QuantizeError> {
    let Some((left, right, output)) = operands(node, pairs) else {
        return Ok(None);
    };
    let columns = 1 - i64::from(node.int("transB").unwrap_or(0) != 0);
    let by_column = right
        .axis
        .is_none_or(|axis| axis == columns || axis == columns - 2);
    if !by_column || !has_kernel(&left, &right, &output, pairs) {
        return Ok(None);
    }
    let mut inputs = [left.inputs(), right.inputs()].concat();
    let mut constants = Vec::new();
    match node.input_at(2) {
        None => inputs.push(String::new()),
        Some(bias) => {
            let alpha = node.float("alpha").unwrap_or(1.0);
            let once = node.float("beta").unwrap_or(1.0) == 1.0;
            let Some(bias) = pairs.integers(bias).filter(|_| once) else {
                return Ok(None);
            };
            if !is_accumulator_bias(&bias, &left, &right, pairs) {
                return Ok(None);
            }
            if alpha == 1.0 {
                inputs.push(bias.integers);
            } else {
                let integers = pairs.constant_integers(&bias)?;
                let (Some(shape), Some(divided)) =
                    (pairs.constant_shape(&bias), divide(&integers, alpha))
                else {
                    return Ok(None);
                };
                let name = names.fresh(&format!("{}_by_alpha", bias.integers));
                let shape: Vec<usize> = shape.iter().map(|&d| d.max(0) as usize).collect();
                constants.push(TensorProto::from_i32(&name, &shape, &divided));
                inputs.push(name);
            }
        }
    }
    inputs.extend(output.parameters());
    let mut converted = IntegerNode::new(node, form, inputs);
    converted.node.take("beta");
    converted.constants = constants;
    Ok(Some(converted))
}

/// The quantized left and right operand and output, if all three are integers.
fn operands(
    node: &Node,
    pairs: &QdqPairs,
) -> Option<(QuantizedValue, QuantizedValue, QuantizedValue)> {
    let left = pairs.bytes(node.input_at(0)?)?;
    let right = pairs
        .integers(node.input_at(1)?)
        .filter(QuantizedValue::is_byte)?;
    let output = pairs.quantized(node.output.first()?)?;
    Some((left, right, output))
}

/// True if ONNX Runtime has kernels for these types.
///
/// The left operand must have the output's type. The right one may be unsigned only if they are.
/// All zero points of a weight must be equal.
fn has_kernel(
    left: &QuantizedValue,
    right: &QuantizedValue,
    output: &QuantizedValue,
    pairs: &QdqPairs,
) -> bool {
    let signed = |linear: &QuantizedValue| linear.element == DataType::Int8;
    let one_zero_point = pairs
        .zero_points(right)
        .is_some_and(|values| values.iter().all(|z| *z == values[0]));
    left.element == output.element && (!signed(left) || signed(right)) && one_zero_point
}

/// True if a bias is an int32 constant with the accumulators' scale: input scale times weight
/// scale.
fn is_accumulator_bias(
    bias: &QuantizedValue,
    input: &QuantizedValue,
    weight: &QuantizedValue,
    pairs: &QdqPairs,
) -> bool {
    let (Some(bias_scales), Some(input), Some(weights)) = (
        pairs.scales(bias),
        pairs.scales(input),
        pairs.scales(weight),
    ) else {
        return false;
    };
    let zero = pairs
        .zero_points(bias)
        .is_some_and(|values| values.iter().all(|&z| z == 0));
    let wanted = weights.iter().map(|weight| input[0] * weight);
    bias.element == DataType::Int32
        && zero
        && pairs.constant_shape(bias).is_some()
        && bias_scales.iter().copied().eq(wanted)
}

/// Divides and rounds integers; `None` if a result overflows int32.
fn divide(integers: &[i64], by: f32) -> Option<Vec<i32>> {
    let one = |&integer: &i64| {
        let real = (integer as f64 / f64::from(by)).round_ties_even();
        let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&real);
        fits.then_some(real as i32)
    };
    integers.iter().map(one).collect()
}
