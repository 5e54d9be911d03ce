//! Products with weights: Conv, ConvTranspose, Gemm, MatMul.

use super::super::quantization::Int8Quantization;
use super::ir::{Operand, Operation};
use super::matrix_batch::matrix_batch;
use super::reader::{Reader, Reason};
use super::{overflow, windows};
use octet_kernels::int8::Window;
use octet_onnx::schema::NodeProto;

/// An operation and its inputs, or the reason for the fallback.
pub(super) type Matched = Result<(Operation, Vec<Operand>), Reason>;

/// Conv and ConvTranspose of images with one or two spatial axes.
pub(super) fn convolution(node: &NodeProto, reader: &Reader) -> Matched {
    let transposed = node.is("ConvTranspose");
    let (input, real) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand_or_int16(input)?;
    let groups = groups(node)?;
    let mut weights = reader.weights(real, usize::from(transposed))?;
    let (window, channels) = window(node, reader, &weights.shape, groups)?;
    if transposed && groups > 1 {
        // The weights' output axis covers one group; its parameters are repeated for every group.
        weights.zero_points = weights.zero_points.repeat(groups);
        if weights.scales.len() > 1 {
            weights.scales = weights.scales.repeat(groups);
        }
    }
    let bias = match node.input_at(2) {
        Some(real) => bias(real, reader, &operand, &weights.scales, channels, 1.0)?,
        None => Vec::new(),
    };
    let operation = Operation::Convolution {
        weights,
        bias,
        window,
        groups,
        transposed,
    };
    Ok((operation, vec![operand]))
}

/// Number of groups of a convolution.
pub(super) fn groups(node: &NodeProto) -> Result<usize, Reason> {
    usize::try_from(node.int("group").unwrap_or(1))
        .ok()
        .filter(|&groups| groups > 0)
        .ok_or_else(|| "its number of groups is not positive".into())
}

/// Window and number of output channels of a convolution.
pub(super) fn window(
    node: &NodeProto,
    reader: &Reader,
    weight: &[usize],
    groups: usize,
) -> Result<(Window, usize), Reason> {
    let transposed = node.is("ConvTranspose");
    let image = reader.shape(slot(node, 0)?)?;
    if weight.len() != image.len() || !matches!(image.len(), 3 | 4) {
        return Err(format!(
            "its image has {} axes and its weight {}; only 3 or 4 are supported",
            image.len(),
            weight.len()
        ));
    }
    let output = reader.shape(slot_out(node)?)?;
    let window = windows::convolution_window(node, &weight[2..], &image, &output, transposed)?;
    let (inputs, channels) = match transposed {
        true => (weight[0], weight[1].saturating_mul(groups)),
        false => (weight[1].saturating_mul(groups), weight[0]),
    };
    let whole = channels.is_multiple_of(groups) && inputs.is_multiple_of(groups);
    if inputs != image[1] || !whole || groups > inputs.max(1) {
        return Err(format!(
            "its weight {weight:?} with {groups} groups does not fit its image {image:?}"
        ));
    }
    if !windows::has_output(&window, &image, channels, &output, transposed, false) {
        return Err(format!(
            "its output shape {output:?} does not follow from its window"
        ));
    }
    Ok((window, channels))
}

/// Gemm with a constant matrix, or of two values.
pub(super) fn gemm(node: &NodeProto, reader: &Reader) -> Matched {
    let [transposed, columns_first] =
        ["transA", "transB"].map(|key| node.int(key).unwrap_or(0) != 0);
    let (input, real) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand_or_int16(input)?;
    let matrix = |name: &str, transposed: bool| match reader.shape(name)?[..] {
        [a, b] if transposed => Ok([b, a]),
        [a, b] => Ok([a, b]),
        _ => Err(format!("its factor {name} is not a matrix")),
    };
    let (rows, columns) = (matrix(input, transposed)?, matrix(real, columns_first)?);
    if rows[1] != columns[0] {
        return Err(format!(
            "its factors {rows:?} and {columns:?} do not fit together"
        ));
    }
    let factor = node.float("alpha").unwrap_or(1.0);
    if !factor.is_normal() {
        return Err(format!("its alpha {factor} is not supported"));
    }
    let by = f64::from(node.float("beta").unwrap_or(1.0)) / f64::from(factor);
    let bias = |scales: &[f32]| match node.input_at(2) {
        Some(real) => bias(real, reader, &operand, scales, columns[1], by),
        None => Ok(Vec::new()),
    };
    let weights = match reader.weights(real, usize::from(!columns_first)) {
        Ok(weights) => weights,
        Err(reason) => {
            let other = reader.operand_or_int16(real).map_err(|_| reason)?;
            let batch = matrix_batch(&rows, &columns, &reader.shape(slot_out(node)?)?)?;
            let bias = bias(&[other.scale()])?;
            overflow::check_pair([&operand, &other], rows[1], &bias)?;
            let transposed = [transposed, columns_first];
            let operation = Operation::BatchedProduct {
                batch,
                transposed,
                bias,
                factor,
            };
            return Ok((operation, vec![operand, other]));
        }
    };
    let bias = bias(&weights.scales)?;
    let operation = Operation::Product {
        weights,
        transposed,
        columns_first,
        bias,
        factor,
    };
    Ok((operation, vec![operand]))
}

/// MatMul with a constant matrix, or of two values.
pub(super) fn product(node: &NodeProto, reader: &Reader) -> Matched {
    let (left, right) = (slot(node, 0)?, slot(node, 1)?);
    let first = reader.operand_or_int16(left)?;
    let (rows, shape) = (reader.shape(left)?, reader.shape(right)?);
    let matrix = matches!(shape.len(), 1 | 2) && !rows.is_empty();
    if let Some(weights) = reader.weights(right, 1).ok().filter(|_| matrix) {
        if rows.last() != Some(&weights.shape[0]) {
            return Err(format!(
                "its factors {rows:?} and {shape:?} do not fit together"
            ));
        }
        let operation = Operation::Product {
            weights,
            transposed: false,
            columns_first: false,
            bias: Vec::new(),
            factor: 1.0,
        };
        return Ok((operation, vec![first]));
    }
    let second = reader.operand_or_int16(right)?;
    let batch = matrix_batch(&rows, &shape, &reader.shape(slot_out(node)?)?)?;
    overflow::check_pair([&first, &second], batch.sizes[1], &[])?;
    let operation = Operation::BatchedProduct {
        batch,
        transposed: [false; 2],
        bias: Vec::new(),
        factor: 1.0,
    };
    Ok((operation, vec![first, second]))
}

/// Sizes without leading ones.
pub(super) fn without_leading_ones(sizes: &[usize]) -> &[usize] {
    let first = sizes.iter().position(|&size| size != 1);
    &sizes[first.unwrap_or(sizes.len())..]
}

/// BatchNormalization: each channel is a function of one integer.
pub(super) fn normalization(
    node: &NodeProto,
    to: Int8Quantization,
    [low, high]: [u8; 2],
    reader: &Reader,
) -> Matched {
    let input = slot(node, 0)?;
    let operand = reader.operand(input)?;
    let from = operand.quantization().ok_or("its input is float")?;
    let shape = reader.shape(input)?;
    let channels = *shape.get(1).ok_or("its input has no channels")?;
    let numbers = |at: usize| -> Result<Vec<f32>, Reason> {
        let name = slot(node, at)?;
        let found = reader.reals(name).map(|(_, values)| values);
        found
            .filter(|values| values.len() == channels)
            .ok_or_else(|| format!("{name} is not a constant of {channels} values"))
    };
    let (scale, shift, mean, variance) = (numbers(1)?, numbers(2)?, numbers(3)?, numbers(4)?);
    let training = node.int("training_mode").unwrap_or(0) != 0;
    if training || node.output.iter().skip(1).any(|name| !name.is_empty()) {
        return Err("it is in training mode".into());
    }
    let epsilon = node.float("epsilon").unwrap_or(1e-5);
    let table = |channel: usize| {
        let factor = scale[channel] / (variance[channel] + epsilon).sqrt();
        let mut table = [0; 256];
        for (integer, entry) in (0..=255u8).zip(&mut table) {
            let real = (from.real(integer) - mean[channel]) * factor + shift[channel];
            *entry = to.integer(real).clamp(low, high.max(low));
        }
        table
    };
    let table_merging = (0..channels).map(table).collect();
    Ok((Operation::ChannelTables(table_merging), vec![operand]))
}

/// A bias in units of the operand's scale times the weight scale.
pub(super) fn bias(
    real: &str,
    reader: &Reader,
    operand: &Operand,
    scales: &[f32],
    channels: usize,
    factor: f64,
) -> Result<Vec<i32>, Reason> {
    let scales: Vec<f32> = scales.iter().map(|s| s * operand.scale()).collect();
    reader.bias(real, &scales, channels, factor)
}

/// Name of an input, or a reason if absent.
pub(super) fn slot(node: &NodeProto, slot: usize) -> Result<&str, Reason> {
    node.input_at(slot)
        .ok_or_else(|| format!("it has no input {}", slot + 1))
}

/// Name of the first output.
pub(super) fn slot_out(node: &NodeProto) -> Result<&str, Reason> {
    node.output
        .first()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| "it has no output".into())
}
