//! Weights in blocks: a few neighbours share a scale, so that 2, 4 or 8 bits a number are enough.
//!
//! Only weights change; activations stay float, so no samples are needed. Two forms of the same
//! integers: ONNX Runtime's MatMulNBits, which multiplies them as they are packed, and ONNX's own
//! DequantizeLinear of opset 21 before the product. Blocks lie along the axis that is summed over.

mod dequantize;
mod half_quadratic;
mod matmul_nbits;
mod matrix;
mod rounding;
mod search;
mod settings;

pub use settings::{BlockChoice, BlockForm, BlockMethod, BlockSettings};

use matrix::{Blocks, Matrix};

use super::compensate::{Rows, decibels, moments};
use super::rewrite::{NO_WEIGHT, Rewriter, Stop};
use super::scale::integer_bounds;
use super::{QuantizeError, Quantized, QuantizedTensor, TensorKind};
use crate::calibrate::Observations;
use crate::graph::Model;
use crate::onnx::schema::{DataType, NodeProto};
use crate::prepare::raise_to_blocks;

/// The form of a prepared model whose weights are quantized in blocks, but for nodes of these names; only of these
/// operators, where there are any. All have the form of the settings; `of` says what else those of a node have. `seen` tells what they
/// are multiplied with, where the method wants that.
pub fn quantize_blocks(
    model: &Model,
    settings: &BlockSettings,
    of: &dyn Fn(&NodeProto) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    seen: Option<&Observations>,
) -> Result<Quantized, QuantizeError> {
    settings.check()?;
    let own = |node: &NodeProto| {
        let own = of(node);
        own.check().map_err(|error| QuantizeError::OfNode {
            node: node.title().into(),
            error: Box::new(error),
        })?;
        Ok::<_, QuantizeError>(own)
    };
    match settings.form {
        BlockForm::MatMulNBits => Rewriter::new(model, keep_float, operators)?
            .run(|graph, node| matmul_nbits::rewrite(graph, node, &own(node)?, seen)),
        BlockForm::Dequantize => {
            let mut raised = model.clone();
            raise_to_blocks(&mut raised).map_err(|error| QuantizeError::Blocks {
                reason: error.to_string(),
            })?;
            Rewriter::new(&raised, keep_float, operators)?
                .run(|graph, node| dequantize::rewrite(graph, node, &own(node)?, seen))
        }
    }
}

/// The matrix a MatMul or Gemm multiplies with, and whether it lies turned over.
fn matrix_of<'a>(
    graph: &Rewriter<'a>,
    node: &'a NodeProto,
    seen: Option<&'a Observations>,
) -> Result<(&'a str, Matrix<'a>), Stop> {
    let turned = match node.operator().as_str() {
        "MatMul" => false,
        "Gemm" => node.int("transB").unwrap_or(0) != 0,
        operator => return Err(reason(operator).into()),
    };
    let weight = graph.weight(node, 1)?;
    let &[first, second] = weight.shape.as_slice() else {
        return Err("its weight is no matrix".into());
    };
    let (rows, columns) = if turned {
        (second, first)
    } else {
        (first, second)
    };
    let values = weight.tensor.to_f32()?;
    let met = Rows::of(node, &weight.shape);
    let matrix = Matrix {
        values,
        rows,
        columns,
        turned,
        moments: met.and_then(|met| moments(seen?, node, &met)),
    };
    Ok((weight.name, matrix))
}

/// The form that a weight has in blocks like these, as nodes that share it want it.
fn tag(matrix: &Matrix, settings: &BlockSettings) -> String {
    let turned = if matrix.turned { "turned " } else { "" };
    format!("{turned}{settings:?}")
}

/// Why nodes of an operator stay as they are.
fn reason(operator: &str) -> &'static str {
    match operator {
        "Conv" | "ConvTranspose" | "LSTM" | "GRU" | "RNN" | "Gather" => {
            "only the weights of MatMul and Gemm are quantized in blocks"
        }
        _ => NO_WEIGHT,
    }
}

/// A line of the report for a weight in blocks.
fn reported(
    name: &str,
    element: DataType,
    blocks: &Blocks,
    settings: &BlockSettings,
) -> QuantizedTensor {
    let (low, high) = match element {
        DataType::Int4 => (-8, 7),
        DataType::Int8 | DataType::Uint8 => {
            let whole = integer_bounds(element, false, false);
            (whole.low, whole.high)
        }
        _ => (0, (1 << settings.bits) - 1),
    };
    // Signed integers are written with their middle as zero.
    let middle = if low < 0 { 1 << (settings.bits - 1) } else { 0 };
    let largest = (0..blocks.scales.len())
        .max_by(|&a, &b| blocks.scales[a].abs().total_cmp(&blocks.scales[b].abs()))
        .unwrap_or(0);
    let scale = blocks.scales.get(largest).copied().unwrap_or(1.0);
    let zero_point = blocks.zero_points.get(largest).copied().unwrap_or(0.0);
    let zero_point = zero_point.round() as i32 - middle;
    let ends = [low, high].map(|integer: i32| (integer - zero_point) as f32 * scale);
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element: element.name(),
        scales: blocks.scales.len(),
        scale,
        zero_point,
        min: ends[0].min(ends[1]),
        max: ends[0].max(ends[1]),
        block: Some(settings.size),
        corrected: None,
        compensated: blocks.gained.map(decibels),
    }
}
