//! ONNX Runtime's MatMulBnb4: a matrix of 4-bit floats, with the largest magnitude of each block.

use super::matmul_nbits::add_product;
use crate::blocks::{BlockSettings, FloatType};
use crate::recipe::{MatrixLayout, RecipeKind, RecipeSummary};
use crate::rewrite::Rewriter;
use crate::{QuantizedTensor, TensorKind};
use octet_graph::Node;
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
    let quant_type = match settings.float_type {
        FloatType::Fp4 => 0,
        FloatType::Nf4 => 1,
    };
    let attributes = [
        ("K", rows),
        ("N", columns),
        ("block_size", settings.size),
        ("quant_type", quant_type),
    ];
    add_product(graph, node, ("MatMulBnb4", "Bnb4"), weight, &attributes);
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
