//! ONNX Runtime's MatMulBnb4: a matrix of 4-bit floats, with the largest magnitude of each block.

use super::matmul_nbits::add_bias;
use crate::blocks::{BlockSettings, FloatType};
use crate::recipe::{MatrixLayout, RecipeKind, RecipeSummary};
use crate::rewrite::Rewriter;
use crate::{MICROSOFT, QuantizedTensor, TensorKind};
use octet_graph::{Attribute, Node};
use octet_kernels::block_weights::FourBitFloat;
use octet_onnx::schema::DataType;

/// The recipe of a weight, and the endings of its constants' names.
pub(super) fn recipe(layout: MatrixLayout, settings: &BlockSettings) -> (RecipeKind, Vec<String>) {
    let kind = match settings.float_type {
        FloatType::Nf4 => FourBitFloat::Normal,
        FloatType::Fp4 => FourBitFloat::Float,
    };
    let endings = ["Bnb4", "absmax"].map(str::to_owned).to_vec();
    let recipe = RecipeKind::FourBitFloats(layout, kind, settings.size);
    (recipe, endings)
}

/// Adds a MatMulBnb4 by a weight of this many rows and columns, and the Add of a Gemm's bias.
pub(super) fn multiply<'n>(
    graph: &mut Rewriter,
    node: &'n Node,
    weight: impl Iterator<Item = &'n str>,
    [rows, columns]: [usize; 2],
    settings: &BlockSettings,
) {
    let mut inputs = vec![node.input_at(0).unwrap_or_default()];
    inputs.extend(weight);
    let title = graph.fresh(&format!("{}_Bnb4", node.title()));
    let quant_type = match settings.float_type {
        FloatType::Fp4 => 0,
        FloatType::Nf4 => 1,
    };
    add_bias(graph, node, |product| {
        let mut multiply = Node {
            domain: Some(MICROSOFT.to_owned()),
            ..Node::new("MatMulBnb4", &title, &inputs, &[product])
        };
        for (key, value) in [
            ("K", rows),
            ("N", columns),
            ("block_size", settings.size),
            ("quant_type", quant_type),
        ] {
            multiply.set(Attribute::int(key, value as i64));
        }
        multiply
    });
}

/// The report's entry for a weight.
pub(crate) fn entry(
    name: &str,
    matrix: MatrixLayout,
    block: usize,
    summary: &RecipeSummary,
) -> QuantizedTensor {
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element: DataType::Uint8,
        scales: (matrix.rows * matrix.columns).div_ceil(block),
        scale: summary.scale,
        zero_point: 0,
        min: -summary.scale,
        max: summary.scale,
        block: Some(block),
        corrected: None,
        compensated: None,
    }
}
