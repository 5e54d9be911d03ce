//! Batched matrix products of two values; one of them may have 16 bits.

use octet_kernels::int8::{self as kernels, Error, Layout, Rows, Weights};

use super::matrix_batch::MatrixBatch;
use super::packing::{AccumulatorScales, byte_planes, output_element};
use super::weighted::{OutputConstructor, ProductEpilogue, floats, requantized, sums};
use crate::error::{CompilerBug, ProgramError};
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, target};
use crate::lowering::conversions::RoundToGrid;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::program::costs::cost_of_product;
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, sums_of};
use crate::program::split_rows::split_rows;
use crate::quantization::SIGN;

/// A batched matrix product of two values.
pub(super) struct BatchedProduct {
    pub(super) batch: MatrixBatch,
    /// True for each factor that is transposed.
    pub(super) transposed: [bool; 2],
    /// In units of the product of both scales; may be empty.
    pub(super) bias: Vec<i32>,
    /// Gemm's alpha.
    pub(super) factor: f32,
}

impl Operation for BatchedProduct {
    fn name(&self) -> &'static str {
        "product of two values"
    }

    fn has_float_output(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let BatchedProduct {
            batch,
            transposed,
            bias,
            factor,
        } = self;
        let [left, right] = &step.values.inputs[..] else {
            return Err(CompilerBug::MissingOperand.into());
        };
        let (layout, output) = (MemoryLayout::Plain, step.output);
        let left = byte_planes(compiler, left, layout, transposed[0])?;
        let right = byte_planes(compiler, right, layout, transposed[1])?;
        let bias = || (!bias.is_empty()).then(|| bias.clone());
        if let ([left], [right]) = (&left[..], &right[..]) {
            let factors = AccumulatorScales {
                scales: &[right.scale],
                other: *factor,
                columns: batch.sizes[2],
            };
            let values = step.values;
            let to = values.quantization.map(|to| target(to, values.bounds));
            let kernel = Box::new(BatchedProductKernel {
                batch: batch.clone(),
                bias: bias(),
                zero_points: [left.zero_point, right.zero_point],
                epilogue: factors.epilogue(values, &[left.scale], to),
            });
            let sources = vec![left.source.clone(), right.source.clone()];
            let mut result = compiler.add(kernel, sources, output_element(values), output);
            if let Some(int16) = values.int16 {
                let kernel = Box::new(RoundToGrid(int16.grid));
                result = compiler.add(kernel, vec![result], BufferElement::Float, output);
            }
            compiler.put(step, layout, result);
            return Ok(());
        }
        // One product for each pair of bytes. The accumulators are exact and are combined in f64.
        let (mut sums, mut weights) = (Vec::new(), Vec::new());
        for left in &left {
            for right in &right {
                let weight = left.weight * right.weight;
                let kernel = Box::new(BatchedProductKernel {
                    batch: batch.clone(),
                    // Added once, in the product whose unit is that of the accumulator.
                    bias: bias().filter(|_| weight == 1.0),
                    zero_points: [left.zero_point, right.zero_point],
                    epilogue: ProductEpilogue::default(),
                });
                let sources = vec![left.source.clone(), right.source.clone()];
                sums.push(compiler.add(kernel, sources, BufferElement::Accumulator, output));
                let steps = [left.scale, right.scale, *factor].map(f64::from);
                weights.push(f64::from(weight) * steps[0] * steps[1] * steps[2]);
            }
        }
        let kernel = Box::new(CombineAccumulators(weights));
        let result = compiler.add(kernel, sums, BufferElement::Float, output);
        compiler.finish_reals(step, layout, result);
        Ok(())
    }
}

struct BatchedProductKernel {
    batch: MatrixBatch,
    bias: Option<Vec<i32>>,
    zero_points: [u8; 2],
    epilogue: ProductEpilogue,
}

impl InstructionKernel for BatchedProductKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let BatchedProductKernel {
            batch,
            zero_points,
            epilogue,
            ..
        } = self;
        let input = [bytes_of(inputs, 0)?, bytes_of(inputs, 1)?];
        let (bias, zeros) = (self.bias.as_deref(), *zero_points);
        match output {
            OutputSlice::Bytes(output) => {
                let output = (output, epilogue);
                matrix_products(batch, input, zeros, bias, output, requantized)?;
            }
            OutputSlice::Floats(output) => {
                let output = (output, epilogue);
                matrix_products(batch, input, zeros, bias, output, floats)?;
            }
            OutputSlice::Accumulators(output) => {
                let output = (output, epilogue);
                matrix_products(batch, input, zeros, bias, output, sums)?;
            }
        }
        Ok(())
    }

    fn form(&self) -> Option<String> {
        Some(kernels::Form::best().name().to_owned())
    }
}

/// Sum of accumulators, each times its factor.
struct CombineAccumulators(Vec<f64>);

impl InstructionKernel for CombineAccumulators {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let CombineAccumulators(factors) = self;
        let sums = (0..factors.len()).map(|at| sums_of(inputs, at));
        let (sums, output) = (sums.collect::<Result<Vec<_>, _>>()?, output.floats()?);
        let cost = output.len() * factors.len();
        split_rows(output, 1, cost, |part, output| {
            let parts = sums.iter().map(|sums| &sums[part.clone()]);
            let parts: Vec<_> = parts.zip(factors.iter().copied()).collect();
            kernels::join_sums(&parts, output)
        })?;
        Ok(())
    }
}

/// The products of all pairs of matrices.
pub(super) fn matrix_products<T: Send>(
    batch: &MatrixBatch,
    [left, right]: [&[u8]; 2],
    zero_points: [u8; 2],
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [T], &ProductEpilogue),
    sink: OutputConstructor<T>,
) -> Result<(), Error> {
    let [rows, depth, columns] = batch.sizes;
    // The second factor takes the role of weights, which are signed.
    let zeros = vec![(zero_points[1] ^ SIGN) as i8; columns];
    let each = rows * columns;
    let cost = cost_of_product(batch.places.len() * each * depth);
    split_rows(output, each, cost, |part, output| {
        let places = batch.places.get(part).unwrap_or_default();
        for (&[a, b], output) in places.iter().zip(output.chunks_exact_mut(each.max(1))) {
            let signed: Vec<i8> = matrix(right, b, depth * columns)
                .iter()
                .map(|&v| (v ^ SIGN) as i8)
                .collect();
            let form = kernels::Form::best();
            let weights =
                Weights::pack(form, &signed, Layout::DepthFirst, [depth, columns], &zeros)?;
            let rows = Rows {
                values: matrix(left, a, rows * depth),
                count: rows,
                stride: depth,
                zero_point: zero_points[0],
            };
            kernels::gemm(&rows, &weights, bias, sink(output, 0..columns, epilogue))?;
        }
        Ok(())
    })
}

/// A matrix of a batch; empty if the index is out of range.
fn matrix(values: &[u8], place: usize, size: usize) -> &[u8] {
    values
        .get(place * size..(place + 1) * size)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::{TestGraph, rounded};

    #[test]
    fn each_pair_of_matrices() {
        let mut graph = TestGraph::new(false);
        let [a, b] = [("a", [2, 2, 3]), ("b", [2, 3, 2])].map(|(n, shape)| graph.input(n, &shape));
        let node = Node::new("MatMul", "n", &["a", "b"], &["y"]);
        graph.tested(node, &[&[2, 2, 2]]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "product of two values");
        let of = |at: usize| {
            let (matrix, row, column) = (at / 4, at / 2 % 2, at % 2);
            let term = |k: usize| a[matrix * 6 + row * 3 + k] * b[matrix * 6 + k * 2 + column];
            (0..3).map(term).sum()
        };
        run.assert_near(&rounded((0..8).map(of)), 1.0);
    }

    #[test]
    fn one_factor_may_have_16_bits() {
        let mut graph = TestGraph::new(false);
        let a = graph.input("a", &[2, 2]);
        let mut graph = graph.on_16_bits();
        let b = graph.input("b", &[2, 2]);
        graph.tested(Node::new("MatMul", "n", &["a", "b"], &["y"]), &[&[2, 2]]);
        let of = |at: usize| {
            let (row, column) = (at / 2, at % 2);
            a[row * 2] * b[column] + a[row * 2 + 1] * b[2 + column]
        };
        let expected: Vec<f32> = (0..4).map(|at| of(at).clamp(-8.0, 7.9999)).collect();
        graph.run().assert_near(&expected, 0.01);
    }

    #[test]
    fn two_factors_of_16_bits_are_a_reason() {
        let mut graph = TestGraph::new(true);
        graph.input("a", &[2, 2]);
        graph.input("b", &[2, 2]);
        graph.tested(Node::new("MatMul", "n", &["a", "b"], &["y"]), &[&[2, 2]]);
        let reason = "a product of two 16-bit values is faster in float";
        assert_eq!(graph.reason("n"), reason);
    }
}
