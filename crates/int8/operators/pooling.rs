//! MaxPool and AveragePool with one or two spatial axes.

use std::ops::Range;
use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Average, Error, Image, Window};

use super::windows;
use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, ratio, target};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::program::image_size::ImageSize;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of, images};
use crate::program::split_rows::split_rows;
use crate::values::IrOperand;

pub(super) const POOLING: OperatorMatcher = OperatorMatcher {
    names: &["MaxPool", "AveragePool"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(pooling),
};

struct MaxPool {
    window: Window,
}

struct AveragePool {
    window: Window,
    counts_padding: bool,
}

fn pooling(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape, output) = (one.node, &one.shape, &one.output);
    let window = windows::pooling_window(node, shape, output)?;
    let up = node.int("ceil_mode").unwrap_or(0) != 0;
    let channels = shape.get(1).copied().unwrap_or(0);
    if !windows::has_output(&window, shape, channels, output, false, up) {
        return Err(FloatReason::PoolingOutput(shape.clone(), output.clone()));
    }
    if node.is("AveragePool") {
        let counts_padding = node.int("count_include_pad").unwrap_or(0) != 0;
        return Ok(Arc::new(AveragePool {
            window,
            counts_padding,
        }));
    }
    if node.output.get(1).is_some_and(|name| !name.is_empty()) {
        return Err(FloatReason::IndicesUsed);
    }
    Ok(Arc::new(MaxPool { window }))
}

impl Operation for MaxPool {
    fn name(&self) -> &'static str {
        "maximum pooling"
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        MemoryLayout::ChannelsLast
    }

    fn is_on_reals(&self, inputs: &[IrOperand]) -> bool {
        inputs.iter().all(IrOperand::is_int16)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = MemoryLayout::ChannelsLast;
        let kernel = Box::new(MaxPoolKernel(PooledImages::new(&self.window, step)));
        if step.is_on_reals() {
            return compiler.lower_on_reals(step, kernel, [layout; 2]);
        }
        let source = compiler.operand(step.first, layout)?;
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.finish_movement(step, layout, result)?;
        Ok(())
    }
}

impl Operation for AveragePool {
    fn name(&self) -> &'static str {
        "average pooling"
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        MemoryLayout::ChannelsLast
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = MemoryLayout::ChannelsLast;
        let source = compiler.operand(step.first, layout)?;
        let (from, to) = (step.from()?, step.to()?);
        let kernel = Box::new(AveragePoolKernel {
            images: PooledImages::new(&self.window, step),
            average: Average {
                multiplier: ratio(&[from.scale], to.scale),
                to: target(to, step.values.bounds),
                count_pads: self.counts_padding,
            },
            zero_point: from.zero_point,
        });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.put(step, layout, result);
        Ok(())
    }
}

/// Images with a window that slides over each.
struct PooledImages {
    window: Window,
    from: ImageSize,
    to: ImageSize,
}

impl PooledImages {
    fn new(window: &Window, step: &LoweredStep) -> PooledImages {
        PooledImages {
            window: window.clone(),
            from: ImageSize::of(step.shape),
            to: ImageSize::of(step.output),
        }
    }

    /// Calls `pool` with each image, some rows of its result, and their output.
    fn split_rows<T: Sync, R: Send>(
        &self,
        values: &[T],
        output: &mut [R],
        zero_point: u8,
        pool: impl Fn(&Image<T>, Range<usize>, &mut [R]) -> Result<(), Error> + Sync,
    ) -> Result<(), ProgramError> {
        let PooledImages { window, from, to } = self;
        for (values, output) in images(values, output, from.count(), to.count()) {
            let row = to.width * to.channels;
            let cost = to.count() * window.kernel[0] * window.kernel[1];
            split_rows(output, row, cost, |rows, output| {
                pool(&from.view(values, zero_point), rows, output)
            })?;
        }
        Ok(())
    }

    fn output_size(&self) -> [usize; 2] {
        [self.to.height, self.to.width]
    }
}

struct MaxPoolKernel(PooledImages);

impl InstructionKernel for MaxPoolKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let MaxPoolKernel(pooled) = self;
        let (window, size, channels) = (&pooled.window, pooled.output_size(), pooled.to.channels);
        match output {
            OutputSlice::Bytes(output) => {
                let input = bytes_of(inputs, 0)?;
                pooled.split_rows(input, output, 0, |image, rows, output| {
                    kernels::max_pool(image, window, size, rows, output, channels)
                })
            }
            output => {
                let (input, output) = (floats_of(inputs, 0)?, output.floats()?);
                pooled.split_rows(input, output, 0, |image, rows, output| {
                    kernels::max_pool_reals(image, window, size, rows, output, channels)
                })
            }
        }
    }
}

struct AveragePoolKernel {
    images: PooledImages,
    average: Average,
    zero_point: u8,
}

impl InstructionKernel for AveragePoolKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (pooled, average) = (&self.images, self.average);
        let (window, size, channels) = (&pooled.window, pooled.output_size(), pooled.to.channels);
        let (input, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        pooled.split_rows(input, output, self.zero_point, |image, rows, output| {
            kernels::average_pool(image, window, size, rows, average, output, channels)
        })
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    fn node(operator: &str) -> Node {
        Node::new(operator, "n", &["x"], &["y"])
            .with(Attribute::ints("kernel_shape", &[2, 2]))
            .with(Attribute::ints("strides", &[2, 2]))
    }

    /// The values of each window of two by two, of images of four by four.
    fn windows(x: &[f32]) -> Vec<[f32; 4]> {
        let corner = |at: usize| at / 4 * 16 + at / 2 % 2 * 8 + at % 2 * 2;
        let window = |at: usize| [0, 1, 4, 5].map(|more| x[corner(at) + more]);
        (0..x.len() / 4).map(window).collect()
    }

    #[test]
    fn the_maximum_of_each_window() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[2, 3, 4, 4]);
            graph.tested(node("MaxPool"), &[&[2, 3, 2, 2]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "maximum pooling");
            let greatest = |window: &[f32; 4]| window.iter().copied().fold(f32::MIN, f32::max);
            let expected: Vec<f32> = windows(&x).iter().map(greatest).collect();
            run.assert_near(&expected, 0.0);
        }
    }

    #[test]
    fn the_average_of_each_window() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[2, 3, 4, 4]);
        graph.tested(node("AveragePool"), &[&[2, 3, 2, 2]]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "average pooling");
        let average = |window: &[f32; 4]| window.iter().sum::<f32>() / 4.0;
        let expected: Vec<f32> = windows(&x).iter().map(average).collect();
        run.assert_near(&expected, 0.5);
    }

    #[test]
    fn an_average_of_16_bits_and_a_wrong_output_are_reasons() {
        let mut graph = TestGraph::new(true);
        graph.input("x", &[1, 1, 4, 4]);
        graph.tested(node("AveragePool"), &[&[1, 1, 2, 2]]);
        let reason = "a average pooling with 16 bits has no integer implementation";
        assert_eq!(graph.reason("n"), reason);

        let mut graph = TestGraph::new(false);
        graph.input("x", &[1, 1, 4, 4]);
        graph.tested(node("MaxPool"), &[&[1, 2, 2, 2]]);
        let reason = "its window does not map [1, 1, 4, 4] to [1, 2, 2, 2]";
        assert_eq!(graph.reason("n"), reason);
    }
}
