//! Mean, sum, maximum and minimum over adjacent axes.

use std::ops::Range;
use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Error, Image, Target};

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, ratio, target};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::axis;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of};
use crate::program::split_rows::split_rows;
use crate::values::IrOperand;
use octet_graph::Node;

pub(super) const MEAN: OperatorMatcher = OperatorMatcher {
    names: &["GlobalAveragePool", "ReduceMean", "ReduceSum"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(mean),
};

pub(super) const EXTREME: OperatorMatcher = OperatorMatcher {
    names: &["GlobalMaxPool", "ReduceMax", "ReduceMin"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(extreme),
};

/// Mean or sum over adjacent axes.
struct Mean {
    axes: Range<usize>,
    sum: bool,
}

/// Maximum or minimum over adjacent axes.
struct Extreme {
    axes: Range<usize>,
    least: bool,
}

fn mean(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let axes = axes(one)?;
    let sum = one.node.is("ReduceSum");
    Ok(Arc::new(Mean { axes, sum }))
}

fn extreme(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let axes = axes(one)?;
    let least = one.node.is("ReduceMin");
    Ok(Arc::new(Extreme { axes, least }))
}

fn axes(one: &OneOperand) -> Result<Range<usize>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let rank = shape.len();
    let axes = match node.is("GlobalAveragePool") || node.is("GlobalMaxPool") {
        true if rank >= 3 => 2..rank,
        true => return Err(FloatReason::OperatorNotImplemented(node.operator())),
        false => reduced_axes(node, one.reader, rank)?,
    };
    let outside = shape[..axes.start].iter().chain(&shape[axes.end..]);
    let count: usize = one.output.iter().product();
    one.require_output(outside.product::<usize>() == count)?;
    Ok(axes)
}

/// The adjacent axes that a node reduces.
fn reduced_axes(node: &Node, reader: &Reader, rank: usize) -> Result<Range<usize>, FloatReason> {
    let mut axes: Vec<usize> = match reader.list(node, "axes", 1) {
        Some(list) if !list.is_empty() => list
            .iter()
            .map(|&a| axis(a, rank))
            .collect::<Result<_, _>>()?,
        _ if node.input_at(1).is_some() => return Err(FloatReason::AxesNotConstant),
        _ if node.int("noop_with_empty_axes").unwrap_or(0) != 0 => {
            return Err(FloatReason::ReducesNothing);
        }
        _ => (0..rank).collect(),
    };
    axes.sort_unstable();
    axes.dedup();
    let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
        return Err(FloatReason::NoAxes);
    };
    if last - first + 1 != axes.len() {
        return Err(FloatReason::AxesNotAdjacent(axes));
    }
    Ok(first..last + 1)
}

/// Images are reduced channels-last.
fn preference(axes: &Range<usize>) -> MemoryLayout {
    match axes.start {
        2 => MemoryLayout::ChannelsLast,
        _ => MemoryLayout::Plain,
    }
}

/// The layout of a reduction of these axes, and the products of the sizes before, along and behind
/// them.
fn reduction(shape: &[usize], axes: &Range<usize>) -> (MemoryLayout, [usize; 3]) {
    let count = |range: Range<usize>| shape[range].iter().product::<usize>();
    if *axes == (2..shape.len()) && shape.len() >= 3 {
        let sizes = [shape[0], count(2..shape.len()), shape[1]];
        return (MemoryLayout::ChannelsLast, sizes);
    }
    let behind = count(axes.end..shape.len());
    (
        MemoryLayout::Plain,
        [count(0..axes.start), count(axes.clone()), behind],
    )
}

impl Operation for Mean {
    fn name(&self) -> &'static str {
        match self.sum {
            false => "mean",
            true => "sum",
        }
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        preference(&self.axes)
    }

    fn is_on_reals(&self, _inputs: &[IrOperand]) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (layout, [_, middle, inner]) = reduction(step.shape, &self.axes);
        if step.is_on_reals() {
            let sum = self.sum;
            let kernel = Box::new(MeanOfReals { middle, inner, sum });
            return compiler.lower_on_reals(step, kernel, [layout, MemoryLayout::Plain]);
        }
        let times = if self.sum { middle as f32 } else { 1.0 };
        let source = compiler.operand(step.first, layout)?;
        let (from, to) = (step.from()?, step.to()?);
        let kernel = Box::new(MeanOfBytes {
            middle,
            inner,
            zero_point: from.zero_point,
            factor: ratio(&[from.scale], to.scale) * times,
            to: target(to, step.values.bounds),
        });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.put(step, MemoryLayout::Plain, result);
        Ok(())
    }
}

impl Operation for Extreme {
    fn name(&self) -> &'static str {
        match self.least {
            false => "maximum",
            true => "minimum",
        }
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        preference(&self.axes)
    }

    fn is_on_reals(&self, inputs: &[IrOperand]) -> bool {
        inputs.iter().all(IrOperand::is_int16)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (layout, [_, middle, inner]) = reduction(step.shape, &self.axes);
        let least = self.least;
        let kernel = Box::new(ExtremeOver {
            middle,
            inner,
            least,
        });
        if step.is_on_reals() {
            return compiler.lower_on_reals(step, kernel, [layout, MemoryLayout::Plain]);
        }
        let source = compiler.operand(step.first, layout)?;
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.finish_movement(step, MemoryLayout::Plain, result)?;
        Ok(())
    }
}

/// Minimum number of channels per thread in a mean.
const MIN_CHANNELS: usize = 16;

/// Mean over the middle axis of [.., middle, inner].
struct MeanOfBytes {
    middle: usize,
    inner: usize,
    zero_point: u8,
    factor: f32,
    to: Target,
}

impl InstructionKernel for MeanOfBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (from, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let image = self.middle * self.inner;
        for (at, output) in output.chunks_exact_mut(self.inner.max(1)).enumerate() {
            let from = from.get(at * image..(at + 1) * image).unwrap_or_default();
            split_rows(output, MIN_CHANNELS, image, |part, output| {
                let image = Image {
                    values: from.get(part.start * MIN_CHANNELS..).unwrap_or_default(),
                    height: 1,
                    width: self.middle,
                    channels: output.len(),
                    stride: self.inner,
                    zero_point: self.zero_point,
                };
                kernels::global_average_pool(&image, self.factor, self.to, output)
            })?;
        }
        Ok(())
    }
}

/// Mean or sum over the middle axis of [.., middle, inner].
struct MeanOfReals {
    middle: usize,
    inner: usize,
    sum: bool,
}

impl InstructionKernel for MeanOfReals {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let MeanOfReals { middle, inner, sum } = *self;
        let (reals, output) = (floats_of(inputs, 0)?, output.floats()?);
        split_rows(output, inner, reals.len(), |part, output| {
            let block = middle * inner;
            let reals = &reals[part.start * block..part.end * block];
            kernels::mean(reals, [middle, inner], output)?;
            if sum {
                output.iter_mut().for_each(|mean| *mean *= middle as f32);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Maximum or minimum over the middle axis of [.., middle, inner].
struct ExtremeOver {
    middle: usize,
    inner: usize,
    least: bool,
}

impl InstructionKernel for ExtremeOver {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let sizes = [self.middle, self.inner];
        match output {
            OutputSlice::Bytes(output) => {
                extreme_over(bytes_of(inputs, 0)?, sizes, self.least, output)?;
            }
            output => {
                extreme_over(floats_of(inputs, 0)?, sizes, self.least, output.floats()?)?;
            }
        }
        Ok(())
    }
}

/// Maximum or minimum over the middle axis of [.., middle, inner]. It is split along the first
/// axis, or along the last if the first has size 1.
fn extreme_over<T: PartialOrd + Copy + Send + Sync>(
    values: &[T],
    [middle, inner]: [usize; 2],
    least: bool,
    output: &mut [T],
) -> Result<(), Error> {
    let cost = values.len();
    if output.len() > inner {
        let block = middle * inner;
        return split_rows(output, inner, cost, |part, output| {
            let values = values.get(part.start * block..).unwrap_or_default();
            kernels::extreme_over(values, [middle, inner], inner, least, output)
        });
    }
    split_rows(output, 1, cost, |part, output| {
        let values = values.get(part.start..).unwrap_or_default();
        kernels::extreme_over(values, [middle, output.len()], inner, least, output)
    })
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    fn tested(operator: &str, axes: &[i64], wide: bool, output: &[usize]) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(wide);
        let x = graph.input("x", &[2, 2, 2, 3]);
        let node = Node::new(operator, "n", &["x", "axes"], &["y"]);
        let node = node.with(Attribute::int("keepdims", 0));
        graph.integers("axes", axes);
        graph.tested(node, &[output]);
        (graph, x)
    }

    #[test]
    fn images_and_rows_are_reduced() {
        let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
        let sum = |values: &[f32]| values.iter().sum::<f32>();
        let greatest = |values: &[f32]| values.iter().copied().fold(f32::MIN, f32::max);
        let least = |values: &[f32]| values.iter().copied().fold(f32::MAX, f32::min);
        let cases: [(&str, &str, &dyn Fn(&[f32]) -> f32); 4] = [
            ("ReduceMean", "mean", &mean),
            ("ReduceSum", "sum", &sum),
            ("ReduceMax", "maximum", &greatest),
            ("ReduceMin", "minimum", &least),
        ];
        for (operator, name, of) in cases {
            for wide in [false, true] {
                for (axes, output) in [(&[2, 3][..], &[2, 2][..]), (&[-1], &[2, 2, 2])] {
                    let (graph, x) = tested(operator, axes, wide, output);
                    let run = graph.run();
                    assert_eq!(run.operation("n"), name);
                    let row = if axes.len() == 2 { 6 } else { 3 };
                    // The integers end at 8.
                    let within = |real: f32| real.clamp(-8.0, 7.9375);
                    let expected: Vec<f32> = x.chunks(row).map(|row| within(of(row))).collect();
                    run.assert_near(&expected, 1.0);
                }
            }
        }
    }

    #[test]
    fn a_global_pooling_reduces_the_image() {
        for (operator, name) in [("GlobalAveragePool", "mean"), ("GlobalMaxPool", "maximum")] {
            let mut graph = TestGraph::new(false);
            let x = graph.input("x", &[1, 3, 2, 2]);
            let node = Node::new(operator, "n", &["x"], &["y"]);
            graph.tested(node, &[&[1, 3, 1, 1]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), name);
            let of = |values: &[f32]| match name {
                "mean" => values.iter().sum::<f32>() / 4.0,
                _ => values.iter().copied().fold(f32::MIN, f32::max),
            };
            let expected: Vec<f32> = x.chunks(4).map(of).collect();
            run.assert_near(&expected, 0.5);
        }
    }

    #[test]
    fn axes_apart_are_a_reason() {
        let (graph, _) = tested("ReduceMean", &[1, 3], false, &[2, 2]);
        assert_eq!(graph.reason("n"), "its axes [1, 3] are not adjacent");
    }
}
