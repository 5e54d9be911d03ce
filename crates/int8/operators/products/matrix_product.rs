//! Gemm and MatMul: rows times a constant matrix, or products of two values.

use std::sync::Arc;

use octet_kernels::int8::Layout as MatrixLayout;

use super::batched::BatchedProduct;
use super::matrix_batch::matrix_batch;
use super::overflow;
use super::packing::{AccumulatorScales, byte_planes, product_of_planes, rows};
use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{slot, slot_out};
use crate::pattern::destination::Destination;
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::pattern::weights::SignedWeights;
use crate::values::IrOperand;
use octet_graph::Node;

pub(in crate::operators) const GEMM: OperatorMatcher = OperatorMatcher {
    names: &["Gemm"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(|matcher, index| product(matcher, index, gemm)),
};

pub(in crate::operators) const MAT_MUL: OperatorMatcher = OperatorMatcher {
    names: &["MatMul"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(|matcher, index| product(matcher, index, mat_mul)),
};

/// Rows times a constant matrix.
struct MatrixProduct {
    weights: SignedWeights,
    /// True if the left factor is transposed (Gemm's transA).
    transposed: bool,
    /// True if the weights are stored column by column (Gemm's transB).
    columns_first: bool,
    bias: Vec<i32>,
    /// Gemm's alpha.
    factor: f32,
}

/// A product by a constant matrix, or of two values.
enum Factors {
    Weighted(MatrixProduct, IrOperand),
    Batched(BatchedProduct, [IrOperand; 2]),
}

/// The result may stay float.
fn product(
    matcher: &mut Matcher,
    index: usize,
    read: fn(&Node, &Reader) -> Result<Factors, FloatReason>,
) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let factors = read(node, &matcher.reader)?;
    let mut output = slot_out(node)?;
    let mut end = matcher.any_destination(output);
    let (mut operation, operand) = match factors {
        Factors::Weighted(operation, operand) => (operation, operand),
        Factors::Batched(operation, operands) => {
            matcher.push(index, Arc::new(operation), operands.into(), output, end)?;
            return Ok(());
        }
    };
    let axis = operation.column_axis();
    let columns = (&operation.weights, axis, 1);
    overflow::fit_bias(
        columns,
        operation.factor,
        &mut operation.bias,
        &operand,
        &end,
    )?;
    let mut added = None;
    if matches!(end, Destination::Floats(_)) {
        added = fused_bias(matcher, output, &mut operation, &operand);
    }
    if let Some(add) = added {
        output = slot_out(matcher.node(add))?;
        end = matcher.destination(output);
    }
    matcher.push(index, Arc::new(operation), vec![operand], output, end)?;
    if let Some(add) = added {
        matcher.extend_step(&[add]);
    }
    Ok(())
}

/// Gemm with a constant matrix, or of two values.
fn gemm(node: &Node, reader: &Reader) -> Result<Factors, FloatReason> {
    let [transposed, columns_first] =
        ["transA", "transB"].map(|key| node.int(key).unwrap_or(0) != 0);
    let (input, real) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand_or_int16(input)?;
    let matrix = |name: &str, transposed: bool| match reader.shape(name)?[..] {
        [a, b] if transposed => Ok([b, a]),
        [a, b] => Ok([a, b]),
        _ => Err(FloatReason::NotMatrix(name.to_owned())),
    };
    let (rows, columns) = (matrix(input, transposed)?, matrix(real, columns_first)?);
    if rows[1] != columns[0] {
        return Err(FloatReason::Factors(rows.to_vec(), columns.to_vec()));
    }
    let factor = node.float("alpha").unwrap_or(1.0);
    if !factor.is_normal() {
        return Err(FloatReason::Alpha(factor));
    }
    let by = f64::from(node.float("beta").unwrap_or(1.0)) / f64::from(factor);
    let bias = |scales: &[f32]| match node.input_at(2) {
        Some(real) => reader.product_bias(real, &operand, scales, columns[1], by),
        None => Ok(Vec::new()),
    };
    let weights = match reader.weights(real, usize::from(!columns_first)) {
        Ok(weights) => weights,
        Err(reason) => {
            let other = reader.operand_or_int16(real).map_err(|_| reason)?;
            let batch = matrix_batch(&rows, &columns, &reader.shape(slot_out(node)?)?)?;
            let bias = bias(&[other.scale()])?;
            overflow::check_pair([&operand, &other], rows[1], &bias)?;
            let operation = BatchedProduct {
                batch,
                transposed: [transposed, columns_first],
                bias,
                factor,
            };
            return Ok(Factors::Batched(operation, [operand, other]));
        }
    };
    let bias = bias(&weights.scales)?;
    let operation = MatrixProduct {
        weights,
        transposed,
        columns_first,
        bias,
        factor,
    };
    Ok(Factors::Weighted(operation, operand))
}

/// MatMul with a constant matrix, or of two values.
fn mat_mul(node: &Node, reader: &Reader) -> Result<Factors, FloatReason> {
    let (left, right) = (slot(node, 0)?, slot(node, 1)?);
    let first = reader.operand_or_int16(left)?;
    let (rows, shape) = (reader.shape(left)?, reader.shape(right)?);
    let matrix = matches!(shape.len(), 1 | 2) && !rows.is_empty();
    if let Some(weights) = reader.weights(right, 1).ok().filter(|_| matrix) {
        if rows.last() != Some(&weights.shape[0]) {
            return Err(FloatReason::Factors(rows, shape));
        }
        let operation = MatrixProduct {
            weights,
            transposed: false,
            columns_first: false,
            bias: Vec::new(),
            factor: 1.0,
        };
        return Ok(Factors::Weighted(operation, first));
    }
    let second = reader.operand_or_int16(right)?;
    let batch = matrix_batch(&rows, &shape, &reader.shape(slot_out(node)?)?)?;
    overflow::check_pair([&first, &second], batch.sizes[1], &[])?;
    let operation = BatchedProduct {
        batch,
        transposed: [false; 2],
        bias: Vec::new(),
        factor: 1.0,
    };
    Ok(Factors::Batched(operation, [first, second]))
}

/// Fuses the Add of a per-column constant as the product's bias. The Add must be the only reader of
/// the product, and its sum must be quantized.
fn fused_bias(
    matcher: &Matcher,
    real: &str,
    operation: &mut MatrixProduct,
    operand: &IrOperand,
) -> Option<usize> {
    let axis = operation.column_axis();
    let MatrixProduct { weights, bias, .. } = operation;
    let (add, other) = matcher.partner(real, "Add").filter(|_| bias.is_empty())?;
    let reader = &matcher.reader;
    let shape = reader.shape(real).ok()?;
    let columns = shape.len().checked_sub(1)?;
    // The output of a product with a vector ends in the row axis.
    if shape[columns] != weights.shape[axis] {
        return None;
    }
    reader.per_channel(other, &shape, columns)?;
    let sum = matcher.node(add).output.first()?;
    if reader.shape(sum).ok()? != shape
        || matches!(matcher.destination(sum), Destination::Floats(_))
    {
        return None;
    }
    let scales = &weights.scales;
    let fused = reader.product_bias(other, operand, scales, shape[columns], 1.0);
    let fused = fused.ok()?;
    overflow::check_weights(operand, weights, axis, 1, &fused).ok()?;
    *bias = fused;
    Some(add)
}

impl MatrixProduct {
    /// The axis of the weights along which the columns lie.
    fn column_axis(&self) -> usize {
        usize::from(!self.columns_first)
    }
}

impl Operation for MatrixProduct {
    fn name(&self) -> &'static str {
        "product with weights"
    }

    fn has_float_output(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let weights = &self.weights;
        let layout = match self.columns_first {
            true => MatrixLayout::ColumnAfterColumn,
            false => MatrixLayout::DepthFirst,
        };
        let form = compiler.form_of(step.first, weights);
        let weighted = rows(compiler, form, weights, layout, step.shape)?;
        let factors = AccumulatorScales {
            scales: &weights.scales,
            other: self.factor,
            columns: weights.shape[self.column_axis()],
        };
        let plain = MemoryLayout::Plain;
        let planes = byte_planes(compiler, step.first, plain, self.transposed)?;
        let product = (&self.bias[..], factors);
        let (values, output) = (step.values, step.output);
        let result = product_of_planes(compiler, values, planes, output, product, weighted)?;
        compiler.put(step, plain, result);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;
    use octet_onnx::schema::DataType;

    use crate::test_graph::{TestGraph, rounded};

    /// The product of matrices, with columns of the second.
    fn expected(left: &[f32], right: &[f32], [rows, depth, columns]: [usize; 3]) -> Vec<f32> {
        let of = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            let terms = (0..depth).map(|k| left[row * depth + k] * right[k * columns + column]);
            terms.sum()
        };
        (0..rows * columns).map(of).collect()
    }

    #[test]
    fn rows_times_weights() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[3, 4]);
            let w = graph.weight("w", &[4, 2]);
            graph.tested(Node::new("MatMul", "n", &["x", "w"], &["y"]), &[&[3, 2]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "product with weights");
            run.assert_near(&rounded(expected(&x, &w, [3, 4, 2])), 1.0);
        }
    }

    #[test]
    fn a_constant_behind_the_product_is_its_bias() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[3, 4]);
        let w = graph.weight("w", &[4, 2]);
        graph.constant("b", &[2], &[1.0, -0.5]);
        let product = Node::new("MatMul", "n", &["x", "w"], &["p"]);
        graph.node(product, DataType::Float, &[&[3, 2]]);
        graph.tested(Node::new("Add", "add", &["p", "b"], &["y"]), &[&[3, 2]]);
        let run = graph.run();
        let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
        assert!(node.fused.iter().any(|title| title == "add"), "{node:?}");
        let sums = expected(&x, &w, [3, 4, 2]).into_iter().enumerate();
        let biased = sums.map(|(at, sum)| sum + [1.0, -0.5][at % 2]);
        run.assert_near(&rounded(biased), 1.0);
    }

    #[test]
    fn a_gemm_scales_its_product() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[3, 4]);
        let w = graph.weight("w", &[2, 4]);
        graph.constant("b", &[2], &[1.0, -0.5]);
        let node = Node::new("Gemm", "n", &["x", "w", "b"], &["y"])
            .with(Attribute::int("transB", 1))
            .with(Attribute::float("alpha", 0.5))
            .with(Attribute::float("beta", 2.0));
        graph.tested(node, &[&[3, 2]]);
        let columns: Vec<f32> = (0..8).map(|at| w[at % 2 * 4 + at / 2]).collect();
        let sums = expected(&x, &columns, [3, 4, 2]).into_iter().enumerate();
        let result = sums.map(|(at, sum)| 0.5 * sum + 2.0 * [1.0, -0.5][at % 2]);
        graph.run().assert_near(&rounded(result), 1.0);
    }

    #[test]
    fn factors_that_do_not_fit_are_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[3, 4]);
        graph.weight("w", &[3, 2]);
        graph.tested(Node::new("MatMul", "n", &["x", "w"], &["y"]), &[&[3, 2]]);
        let reason = "its factors [3, 4] and [3, 2] do not fit together";
        assert_eq!(graph.reason("n"), reason);
    }
}
