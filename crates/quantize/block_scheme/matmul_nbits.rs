//! ONNX Runtime's MatMulNBits: integers [columns, blocks, bytes of a block], scales [columns, blocks].

use super::matrix::{WeightBlocks, quantize_matrix};
use super::{BlockSummary, matrix_of, report_entry, tag};
use crate::MICROSOFT;
use crate::blocks::{BlockSettings, packed};
use crate::dynamic::plain_gemm;
use crate::quantized_names::QuantizedNames;
use crate::rewrite::{NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use octet_graph::{Attribute, Node};
use octet_kernels::block_weights::packed_zero_points;
use octet_onnx::schema::{DataType, TensorProto};
use octet_stats::CalibrationStatistics;

/// Rewrites a MatMul or Gemm with GPTQ's integers.
pub(super) fn rewrite<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    settings: &BlockSettings,
    seen: Option<&'a CalibrationStatistics>,
) -> Result<(), NotQuantized> {
    let (name, matrix) = matrix_of(graph, node, seen)?;
    graph.float_activations(node)?;
    plain_gemm(node)?;
    let padded = matrix.rows.next_multiple_of(settings.size) * matrix.columns;
    if padded * usize::from(settings.bits) / 8 >= matrix.values.len() * size_of::<f32>() {
        return Err(StaysFloat::ShortColumns.into());
    }
    let weight = graph.shared(name, &tag(&matrix, settings), |graph| {
        let blocks = quantize_matrix(&matrix, settings)?;
        Ok(write(graph, name, &blocks, matrix.columns, settings))
    })?;
    let zero_point = (!settings.is_symmetric()).then_some(&weight.zero_point);
    let weight = [&weight.integers, &weight.scale]
        .into_iter()
        .chain(zero_point);
    multiply(
        graph,
        node,
        weight.map(String::as_str),
        [matrix.rows, matrix.columns],
        settings,
    );
    Ok(())
}

/// Adds a MatMulNBits by a weight of this many rows and columns, whose parts are values of these
/// names, and the Add of a Gemm's bias.
pub(super) fn multiply<'n>(
    graph: &mut Rewriter,
    node: &'n Node,
    weight: impl Iterator<Item = &'n str>,
    [rows, columns]: [usize; 2],
    settings: &BlockSettings,
) {
    let mut attributes = vec![
        ("K", rows),
        ("N", columns),
        ("bits", settings.bits.into()),
        ("block_size", settings.size),
    ];
    // Some runtimes reject the accuracy level, so 0 leaves it out.
    if settings.accuracy_level > 0 {
        attributes.push(("accuracy_level", settings.accuracy_level.into()));
    }
    let suffix = format!("Q{}", settings.bits);
    add_product(graph, node, ("MatMulNBits", &suffix), weight, &attributes);
}

/// Adds a product of ONNX Runtime's by a weight in blocks, and the Add of a Gemm's bias. The
/// operator has a suffix for the name of the node.
pub(super) fn add_product<'n>(
    graph: &mut Rewriter,
    node: &'n Node,
    (operator, suffix): (&str, &str),
    weight: impl Iterator<Item = &'n str>,
    attributes: &[(&str, usize)],
) {
    let mut inputs = vec![node.input_at(0).unwrap_or_default()];
    inputs.extend(weight);
    let title = graph.fresh(&format!("{}_{suffix}", node.title()));
    let output = node.output.first().map_or("", String::as_str);
    let product = match node.input_at(2) {
        Some(_) => graph.fresh(&format!("{output}_MatMul")),
        None => output.to_owned(),
    };
    let mut multiply = Node {
        domain: Some(MICROSOFT.to_owned()),
        ..Node::new(operator, &title, &inputs, &[&product])
    };
    for &(key, value) in attributes {
        multiply.set(Attribute::int(key, value as i64));
    }
    graph.push(multiply);
    if let Some(bias) = node.input_at(2) {
        let title = graph.fresh(&format!("{}_Add", node.title()));
        graph.push(Node::new("Add", &title, &[&product, bias], &[output]));
    }
}

fn write(
    graph: &mut Rewriter,
    name: &str,
    blocks: &WeightBlocks,
    columns: usize,
    settings: &BlockSettings,
) -> QuantizedNames {
    let bits = settings.bits;
    let names = QuantizedNames {
        integers: graph.fresh(&format!("{name}_Q{bits}")),
        scale: graph.fresh(&format!("{name}_scales")),
        zero_point: graph.fresh(&format!("{name}_zero_points")),
    };
    let rows = blocks.integers.len() / columns;
    let bytes_of_block = settings.size * usize::from(bits) / 8;
    let mut bytes = Vec::with_capacity(blocks.scales.len() * bytes_of_block);
    for column in blocks.integers.chunks(rows) {
        for block in column.chunks(settings.size) {
            let end = bytes.len() + bytes_of_block;
            bytes.extend(packed(block, bits));
            bytes.resize(end, 0);
        }
    }
    let shape = [columns, blocks.per_column, bytes_of_block];
    graph.constant(TensorProto::from_raw(
        &names.integers,
        DataType::Uint8,
        &shape,
        bytes.into(),
    ));
    graph.constant(TensorProto::from_f32(
        &names.scale,
        &shape[..2],
        &blocks.scales,
    ));
    if !settings.is_symmetric() {
        let zero_points = blocks.zero_points.iter().copied();
        let packed = packed_zero_points(zero_points, blocks.per_column, bits);
        let shape = [columns, blocks.per_column.div_ceil(usize::from(8 / bits))];
        let zero_points = TensorProto::from_u8(&names.zero_point, &shape, &packed);
        graph.constant(zero_points);
    }
    graph.report(report_entry(
        name,
        DataType::Uint8,
        &BlockSummary::new(blocks),
        settings,
    ));
    names
}
