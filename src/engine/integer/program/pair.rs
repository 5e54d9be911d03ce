//! Lowers products of two values; one of them may have 16 bits.

use octet_kernels::int8::Error;

use super::compile::{Compiler, MISSING, target};
use super::instruction::{Element, Epilogue, Work};
use super::layout::Layout;
use super::weighted::{Factors, element_of};
use crate::engine::integer::pattern::{Operation, Step};

impl<'a> Compiler<'a> {
    pub(super) fn pair(&mut self, step: &'a Step, output: &'a [usize]) -> Result<(), Error> {
        let (
            Operation::Pair {
                stacks,
                turned,
                bias,
                factor,
            },
            [left, right],
        ) = (&step.operation, &step.inputs[..])
        else {
            return Err(MISSING);
        };
        let left = self.given(left, Layout::Plain, turned[0])?;
        let right = self.given(right, Layout::Plain, turned[1])?;
        let bias = || (!bias.is_empty()).then(|| bias.clone());
        let mut made = if let ([left], [right]) = (&left[..], &right[..]) {
            let factors = Factors {
                scales: &[right.scale],
                other: *factor,
                columns: stacks.sizes[2],
            };
            let to = step.quantization.map(|to| target(to, step.bounds));
            let work = Work::Pair {
                stacks: stacks.clone(),
                bias: bias(),
                zero_points: [left.zero_point, right.zero_point],
                epilogue: factors.epilogue(step, &[left.scale], to),
            };
            let sources = vec![left.source.clone(), right.source.clone()];
            self.add(work, sources, element_of(step), output)
        } else {
            // One product for each pair of bytes. The accumulators are exact and are combined in
            // f64.
            let (mut sums, mut weights) = (Vec::new(), Vec::new());
            for left in &left {
                for right in &right {
                    let weight = left.weight * right.weight;
                    let work = Work::Pair {
                        stacks: stacks.clone(),
                        // Added once, in the product whose unit is that of the accumulator.
                        bias: bias().filter(|_| weight == 1.0),
                        zero_points: [left.zero_point, right.zero_point],
                        epilogue: Epilogue::default(),
                    };
                    let sources = vec![left.source.clone(), right.source.clone()];
                    sums.push(self.add(work, sources, Element::Sum, output));
                    let steps = [left.scale, right.scale, *factor].map(f64::from);
                    weights.push(f64::from(weight) * steps[0] * steps[1] * steps[2]);
                }
            }
            let made = self.add(Work::JoinSums(weights), sums, Element::Float, output);
            self.ended(step, Layout::Plain, made, output);
            return Ok(());
        };
        if let Some(wide) = step.wide {
            made = self.add(Work::Snap(wide.grid), vec![made], Element::Float, output);
        }
        self.put(step, Layout::Plain, made);
        Ok(())
    }
}
