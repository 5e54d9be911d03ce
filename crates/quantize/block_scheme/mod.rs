//! The scheme of block-wise weights.
//!
//! Only weights change. Activations stay float, so no samples are needed. The same integers have
//! two representations: ONNX Runtime's MatMulNBits multiplies them in packed form, and ONNX's
//! DequantizeLinear of opset 21 precedes the product.

mod dequantize;
mod four_bit_floats;
mod matmul_nbits;
mod matrix;
mod mixed;
mod roles;
mod streamed;

pub(crate) use four_bit_floats::entry as four_bit_floats_entry;
pub(crate) use mixed::MixedChoice;
pub(crate) use streamed::plan_blocks;

use crate::blocks::BlockSettings;
use crate::gptq::{WeightRows, decibels, input_gram};
use crate::planned_model::RefusedConstants;
use crate::recipe::{MatrixLayout, RecipeSummary};
use crate::rewrite::{NotQuantized, Rewriter};
use crate::scale::integer_bounds;
use crate::stays_float::StaysFloat;
use crate::{QuantizeError, Quantized, QuantizedTensor, TensorKind};
use matrix::{BlockMatrix, WeightBlocks};
use octet_graph::operators::Operator;
use octet_graph::prepare::raise_to_blocks;
use octet_graph::{Model, Node};
use octet_onnx::schema::DataType;
use octet_stats::CalibrationStatistics;

/// Quantizes the weights of a prepared model in blocks, in the form of DequantizeLinear.
///
/// `of` returns the settings of a node. Nodes in `keep_float` stay float, and so do other operators
/// than `operators`, if given. `seen` has the Gram matrices for the method `gptq`.
pub(crate) fn quantize_dequantized(
    model: &Model,
    of: &dyn Fn(&Node) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    seen: Option<&CalibrationStatistics>,
) -> Result<Quantized, QuantizeError> {
    let mut raised = model.clone();
    raise_to_blocks(&mut raised).map_err(|error| QuantizeError::Blocks {
        reason: error.to_string(),
    })?;
    let refused = RefusedConstants::default();
    let graph = Rewriter::new(&raised, keep_float, operators, &refused)?;
    let (quantized, _) = graph
        .run(|graph, node| dequantize::rewrite(graph, node, &own_settings(node, of)?, seen))?;
    Ok(quantized)
}

/// The settings of a node, checked.
fn own_settings(
    node: &Node,
    of: &dyn Fn(&Node) -> BlockSettings,
) -> Result<BlockSettings, QuantizeError> {
    let own = of(node);
    own.check().map_err(|error| QuantizeError::OfNode {
        node: node.title().into(),
        error: Box::new(error.into()),
    })?;
    Ok(own)
}

/// True if the weight of a MatMul or Gemm is `[columns, rows]`. Other operators stay float.
fn is_transposed(node: &Node) -> Result<bool, NotQuantized> {
    match node.operator().as_str() {
        "MatMul" => Ok(false),
        "Gemm" => Ok(node.int("transB").unwrap_or(0) != 0),
        operator => Err(reason(operator).into()),
    }
}

/// The name and matrix of a MatMul's or Gemm's weight.
fn matrix_of<'a>(
    graph: &Rewriter<'a>,
    node: &'a Node,
    seen: Option<&'a CalibrationStatistics>,
) -> Result<(&'a str, BlockMatrix<'a>), NotQuantized> {
    let transposed = is_transposed(node)?;
    let weight = graph.weight(node, 1)?;
    let &[first, second] = weight.shape.as_slice() else {
        return Err(StaysFloat::NotAMatrix.into());
    };
    let (rows, columns) = if transposed {
        (second, first)
    } else {
        (first, second)
    };
    let values = weight.tensor.to_f32()?;
    if values.iter().any(|value| !value.is_finite()) {
        return Err(StaysFloat::WeightNotFinite.into());
    }
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
fn reason(operator: &str) -> StaysFloat {
    match Operator::named(operator).weight_slots {
        [] => StaysFloat::NoWeight,
        _ => StaysFloat::NotInBlocks,
    }
}

/// The parameters of a block-wise weight that the report shows.
struct BlockSummary {
    /// Number of scales.
    scales: usize,
    /// The scale of largest magnitude.
    scale: f32,
    /// Its zero point.
    zero_point: f32,
    /// With GPTQ, the factor by which the output error is lower.
    error_reduction: Option<f64>,
}

impl BlockSummary {
    fn new(blocks: &WeightBlocks) -> BlockSummary {
        let largest = (0..blocks.scales.len())
            .max_by(|&a, &b| blocks.scales[a].abs().total_cmp(&blocks.scales[b].abs()))
            .unwrap_or(0);
        BlockSummary {
            scales: blocks.scales.len(),
            scale: blocks.scales.get(largest).copied().unwrap_or(1.0),
            zero_point: blocks.zero_points.get(largest).copied().unwrap_or(0.0),
            error_reduction: blocks.error_reduction,
        }
    }
}

/// The report's entry for a block-wise weight.
fn report_entry(
    name: &str,
    element: DataType,
    summary: &BlockSummary,
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
    let scale = summary.scale;
    let zero_point = summary.zero_point.round() as i32 - middle;
    let ends = [low, high].map(|integer: i32| (integer - zero_point) as f32 * scale);
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element,
        scales: summary.scales,
        scale,
        zero_point,
        min: ends[0].min(ends[1]),
        max: ends[0].max(ends[1]),
        block: Some(settings.size),
        corrected: None,
        compensated: summary.error_reduction.map(decibels),
    }
}

/// The report's entry for a weight in blocks that a recipe computed.
pub(crate) fn blocks_entry(
    name: &str,
    matrix: MatrixLayout,
    settings: &BlockSettings,
    outcome: &RecipeSummary,
) -> QuantizedTensor {
    let summary = BlockSummary {
        scales: matrix.columns * matrix.rows.div_ceil(settings.size),
        scale: outcome.scale,
        zero_point: outcome.zero_point,
        error_reduction: None,
    };
    report_entry(name, DataType::Uint8, &summary, settings)
}
