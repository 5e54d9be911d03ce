//! Lowers products of two values; one of them may have 16 bits.

use octet_kernels::int8::Error;

use super::compiler::{Compiler, MISSING, target};
use super::instruction::{BufferElement, ProductEpilogue, Work};
use super::layout::MemoryLayout;
use super::weighted_products::{AccumulatorScales, output_element};
use crate::pattern::{Operation, Step};

impl<'a> Compiler<'a> {
    pub(super) fn batched_product(
        &mut self,
        step: &'a Step,
        output: &'a [usize],
    ) -> Result<(), Error> {
        let (
            Operation::BatchedProduct {
                batch,
                transposed,
                bias,
                factor,
            },
            [left, right],
        ) = (&step.operation, &step.inputs[..])
        else {
            return Err(MISSING);
        };
        let left = self.byte_planes(left, MemoryLayout::Plain, transposed[0])?;
        let right = self.byte_planes(right, MemoryLayout::Plain, transposed[1])?;
        let bias = || (!bias.is_empty()).then(|| bias.clone());
        let mut result = if let ([left], [right]) = (&left[..], &right[..]) {
            let factors = AccumulatorScales {
                scales: &[right.scale],
                other: *factor,
                columns: batch.sizes[2],
            };
            let to = step.quantization.map(|to| target(to, step.bounds));
            let work = Work::BatchedProduct {
                batch: batch.clone(),
                bias: bias(),
                zero_points: [left.zero_point, right.zero_point],
                epilogue: factors.epilogue(step, &[left.scale], to),
            };
            let sources = vec![left.source.clone(), right.source.clone()];
            self.add(work, sources, output_element(step), output)
        } else {
            // One product for each pair of bytes. The accumulators are exact and are combined in
            // f64.
            let (mut sums, mut weights) = (Vec::new(), Vec::new());
            for left in &left {
                for right in &right {
                    let weight = left.weight * right.weight;
                    let work = Work::BatchedProduct {
                        batch: batch.clone(),
                        // Added once, in the product whose unit is that of the accumulator.
                        bias: bias().filter(|_| weight == 1.0),
                        zero_points: [left.zero_point, right.zero_point],
                        epilogue: ProductEpilogue::default(),
                    };
                    let sources = vec![left.source.clone(), right.source.clone()];
                    sums.push(self.add(work, sources, BufferElement::Accumulator, output));
                    let steps = [left.scale, right.scale, *factor].map(f64::from);
                    weights.push(f64::from(weight) * steps[0] * steps[1] * steps[2]);
                }
            }
            let result = self.add(
                Work::CombineAccumulators(weights),
                sums,
                BufferElement::Float,
                output,
            );
            self.finish_reals(step, MemoryLayout::Plain, result, output);
            return Ok(());
        };
        if let Some(int16) = step.int16 {
            result = self.add(
                Work::RoundToGrid(int16.grid),
                vec![result],
                BufferElement::Float,
                output,
            );
        }
        self.put(step, MemoryLayout::Plain, result);
        Ok(())
    }
}
