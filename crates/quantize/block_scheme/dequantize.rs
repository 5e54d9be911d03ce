//! ONNX's own representation: a DequantizeLinear with `block_size` before the product, since opset
//! 21.

use super::matrix::{BlockMatrix, quantize_matrix};
use super::{BlockSummary, matrix_of, report_entry, tag};
use crate::blocks::{BlockSettings, Levels, packed};
use crate::quantized_names::QuantizedNames;
use crate::rewrite::{NotQuantized, Rewriter};
use octet_graph::{Attribute, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_stats::CalibrationStatistics;

/// Makes a MatMul or Gemm read its weight through a DequantizeLinear.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    settings: &BlockSettings,
    seen: Option<&'a CalibrationStatistics>,
) -> Result<(), NotQuantized> {
    let (name, matrix) = matrix_of(graph, node, seen)?;
    let weight = graph.shared(name, &tag(&matrix, settings), |graph| {
        write(graph, name, &matrix, settings)
    })?;
    let mut node = node.clone();
    // `write` returns the dequantized name in the field of the integers.
    node.input[1] = weight.integers;
    graph.push(node);
    Ok(())
}

/// Writes the constants and the DequantizeLinear. Returns their names; the field `integers` has the
/// name of the dequantized weight.
fn write(
    graph: &mut Rewriter,
    name: &str,
    matrix: &BlockMatrix,
    settings: &BlockSettings,
) -> Result<QuantizedNames, NotQuantized> {
    let blocks = quantize_matrix(matrix, settings)?;
    let bits = settings.bits;
    let element = match (bits, settings.is_symmetric()) {
        (8, true) => DataType::Int8,
        (8, false) => DataType::Uint8,
        (_, true) => DataType::Int4,
        (_, false) => DataType::Uint4,
    };
    let integers = graph.fresh(&format!("{name}_DQ_Q{bits}"));
    let names = QuantizedNames {
        integers: graph.fresh(&format!("{integers}_output")),
        scale: graph.fresh(&format!("{name}_DQ_scales")),
        zero_point: graph.fresh(&format!("{name}_DQ_zero_points")),
    };
    let middle = match settings.is_symmetric() {
        true => Levels {
            bits,
            symmetric: true,
        }
        .middle(),
        false => 0,
    };
    let mask = u8::MAX >> (8 - bits);
    // Signed integers are the unsigned ones minus the middle, in two's complement.
    let signed = |integer: u8| integer.wrapping_sub(middle) & mask;
    let bytes = |integers: Vec<u8>| packed(&integers, bits);

    let shape = shape(matrix.rows, matrix);
    let stored = in_original_layout(&blocks.integers, matrix.rows, matrix);
    let stored = bytes(stored.into_iter().map(signed).collect());
    graph.constant(TensorProto::from_raw(
        &integers,
        element,
        &shape,
        stored.into(),
    ));
    let shape = self::shape(blocks.per_column, matrix);
    let scales = in_original_layout(&blocks.scales, blocks.per_column, matrix);
    graph.constant(TensorProto::from_f32(&names.scale, &shape, &scales));
    let mut inputs = vec![integers.as_str(), &names.scale];
    if !settings.is_symmetric() {
        let zero_points = bytes(in_original_layout(
            &blocks.whole_zero_points(),
            blocks.per_column,
            matrix,
        ));
        graph.constant(TensorProto::from_raw(
            &names.zero_point,
            element,
            &shape,
            zero_points.into(),
        ));
        inputs.push(&names.zero_point);
    }
    let title = graph.fresh(&format!("{name}_DQ_Q{bits}_DequantizeLinear"));
    let dequantize = Node::new("DequantizeLinear", &title, &inputs, &[&names.integers])
        .with(Attribute::int("axis", matrix.transposed.into()))
        .with(Attribute::int("block_size", settings.size as i64));
    graph.push(dequantize);
    graph.report(report_entry(
        name,
        element,
        &BlockSummary::new(&blocks),
        settings,
    ));
    Ok(names)
}

/// The shape in the weight's original layout, with `rows` rows.
fn shape(rows: usize, matrix: &BlockMatrix) -> [usize; 2] {
    match matrix.transposed {
        true => [matrix.columns, rows],
        false => [rows, matrix.columns],
    }
}

/// Reorders column-major values into the weight's original layout.
fn in_original_layout<T: Copy>(by_column: &[T], rows: usize, matrix: &BlockMatrix) -> Vec<T> {
    if matrix.transposed {
        return by_column.to_vec();
    }
    (0..rows)
        .flat_map(|row| by_column.iter().skip(row).step_by(rows).copied())
        .collect()
}
