//! Block-wise weights: consecutive weights along the reduction axis share a scale, so 2, 4 or 8
//! bits are enough.
//!
//! Only weights change. Activations stay float, so no samples are needed. The same integers have
//! two representations: ONNX Runtime's MatMulNBits multiplies them in packed form, and ONNX's
//! DequantizeLinear of opset 21 precedes the product.

mod dequantize;
mod grid;
mod half_quadratic;
mod k_quant;
mod matmul_nbits;
mod matrix;
mod mixed;
mod role_operators;
mod roles;
mod search;
mod settings;
mod streamed;

pub use mixed::MixedBits;
pub use settings::{BlockChoice, BlockForm, BlockMethod, BlockSettings};
pub use streamed::plan_blocks;

pub(crate) use grid::{BlockGrid, Levels};
pub(crate) use matrix::packed;
use matrix::{BlockMatrix, WeightBlocks};
pub(crate) use mixed::MixedChoice;

use super::gptq::{WeightRows, decibels, input_gram};
use super::rewrite::{NO_WEIGHT, NotQuantized, Rewriter};
use super::scale::integer_bounds;
use super::{QuantizeError, Quantized, QuantizedTensor, TensorKind};
use octet_graph::Model;
use octet_graph::prepare::raise_to_blocks;
use octet_onnx::schema::{DataType, NodeProto};
use octet_stats::CalibrationStatistics;

/// Scale and zero point of a block, by a method without samples, with a scale of this type.
pub(crate) fn block_grid(
    block: &[f32],
    levels: Levels,
    settings: &BlockSettings,
    scales: DataType,
) -> BlockGrid {
    let grid = match settings.method {
        BlockMethod::Rtn => return grid::from_ends_in(block, levels, scales),
        // Like ONNX Runtime, it computes the integers from the exact scale.
        BlockMethod::KQuant => return k_quant::grid(block, settings.size, levels),
        BlockMethod::Hqq => half_quadratic::grid(block, levels),
        BlockMethod::Search | BlockMethod::Gptq => search::grid(block, levels),
    };
    BlockGrid {
        scale: scales.rounded(grid.scale),
        ..grid
    }
}

/// The integer of a number in a block with this grid.
pub(crate) fn block_integer(
    grid: BlockGrid,
    value: f32,
    levels: Levels,
    method: BlockMethod,
) -> u8 {
    match method {
        BlockMethod::KQuant => k_quant::integer(grid, value, levels),
        _ => grid.integer(value, levels),
    }
}

/// Quantizes the weights of a prepared model in blocks.
///
/// `settings` decide the representation; `of` returns the other settings of a node. Nodes in
/// `keep_float` stay float, and so do other operators than `operators`, if given. `seen` has the
/// Gram matrices for the method `gptq`.
pub fn quantize_blocks(
    model: &Model,
    settings: &BlockSettings,
    of: &dyn Fn(&NodeProto) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    seen: Option<&CalibrationStatistics>,
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

/// The name and matrix of a MatMul's or Gemm's weight.
fn matrix_of<'a>(
    graph: &Rewriter<'a>,
    node: &'a NodeProto,
    seen: Option<&'a CalibrationStatistics>,
) -> Result<(&'a str, BlockMatrix<'a>), NotQuantized> {
    let transposed = match node.operator().as_str() {
        "MatMul" => false,
        "Gemm" => node.int("transB").unwrap_or(0) != 0,
        operator => return Err(reason(operator).into()),
    };
    let weight = graph.weight(node, 1)?;
    let &[first, second] = weight.shape.as_slice() else {
        return Err("its weight is not a matrix".into());
    };
    let (rows, columns) = if transposed {
        (second, first)
    } else {
        (first, second)
    };
    let values = weight.tensor.to_f32()?;
    let rows_of_weight = WeightRows::from_node(node, &weight.shape);
    let matrix = BlockMatrix {
        values,
        rows,
        columns,
        transposed,
        gram: rows_of_weight.and_then(|rows| input_gram(seen?, node, &rows)),
    };
    Ok((weight.name, matrix))
}

/// The key under which nodes share a weight with these settings.
fn tag(matrix: &BlockMatrix, settings: &BlockSettings) -> String {
    let transposed = if matrix.transposed { "transposed " } else { "" };
    format!("{transposed}{settings:?}")
}

/// The reason why nodes of an operator stay float.
fn reason(operator: &str) -> &'static str {
    match operator {
        "Conv" | "ConvTranspose" | "LSTM" | "GRU" | "RNN" | "Gather" => {
            "only the weights of MatMul and Gemm are quantized in blocks"
        }
        _ => NO_WEIGHT,
    }
}

/// The report's entry for a block-wise weight.
fn report_entry(
    name: &str,
    element: DataType,
    blocks: &WeightBlocks,
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
    // Signed integers are stored with the middle subtracted.
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
        compensated: blocks.error_reduction.map(decibels),
    }
}
