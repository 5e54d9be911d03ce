//! DepthToSpace and SpaceToDepth.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, BlockOrder, Error};

use crate::error::{CompilerBug, ProgramError};
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::program::image_size::ImageSize;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of, images};
use crate::program::split_rows::split_rows;

pub(super) const DEPTH_SPACE: OperatorMatcher = OperatorMatcher {
    names: &["DepthToSpace", "SpaceToDepth"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(depth_space),
};

struct DepthSpace {
    block: usize,
    /// Channel order of DepthToSpace; `None` for SpaceToDepth.
    to_space: Option<BlockOrder>,
}

fn depth_space(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let block = usize::try_from(node.int("blocksize").unwrap_or(0)).unwrap_or(0);
    let to_space = node.is("DepthToSpace");
    let &[_, channels, height, width] = &shape[..] else {
        return Err(FloatReason::InputShape(shape.clone()));
    };
    let area = block.saturating_mul(block);
    let fits = block > 0
        && match to_space {
            true => channels.is_multiple_of(area),
            false => height.is_multiple_of(block) && width.is_multiple_of(block),
        };
    if !fits {
        return Err(FloatReason::Blocks(block, shape.clone()));
    }
    let order = match node.text("mode").unwrap_or("DCR") {
        "CRD" => BlockOrder::ChannelFirst,
        _ => BlockOrder::BlockFirst,
    };
    one.require_output(one.output.len() == 4 && one.is_as_large())?;
    Ok(Arc::new(DepthSpace {
        block,
        to_space: to_space.then_some(order),
    }))
}

impl Operation for DepthSpace {
    fn name(&self) -> &'static str {
        "depth/space"
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
        let kernel = Box::new(Blocks {
            from: ImageSize::of(step.shape),
            block: self.block,
            to_space: self.to_space,
        });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.finish_movement(step, layout, result)?;
        Ok(())
    }
}

/// Moves blocks of pixels into channels, or back. Floats become pixels in the order
/// [`BlockOrder::BlockFirst`] only.
pub(super) struct Blocks {
    pub(super) from: ImageSize,
    pub(super) block: usize,
    pub(super) to_space: Option<BlockOrder>,
}

impl InstructionKernel for Blocks {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let block = self.block;
        match (output, self.to_space) {
            (OutputSlice::Bytes(output), Some(order)) => {
                self.in_rows(bytes_of(inputs, 0)?, output, |input, sizes, output| {
                    kernels::depth_to_space(input, sizes, block, order, output)
                })
            }
            (OutputSlice::Bytes(output), None) => {
                self.in_rows(bytes_of(inputs, 0)?, output, |input, sizes, output| {
                    kernels::space_to_depth(input, sizes, block, output)
                })
            }
            (OutputSlice::Floats(output), Some(BlockOrder::BlockFirst)) => {
                self.in_rows(floats_of(inputs, 0)?, output, |input, _, output| {
                    floats_to_space(input, &self.from, block, output);
                    Ok(())
                })
            }
            _ => Err(CompilerBug::InstructionOutput.into()),
        }
    }
}

impl Blocks {
    /// Splits the rows of each image between threads. `part` gets input rows, their sizes and their
    /// output.
    fn in_rows<T: Send + Sync>(
        &self,
        input: &[T],
        output: &mut [T],
        part: impl Fn(&[T], [usize; 3], &mut [T]) -> Result<(), Error> + Sync,
    ) -> Result<(), ProgramError> {
        let from = &self.from;
        let length = output.len();
        // Number of input rows that form whole rows of the output.
        let at_once = if self.to_space.is_some() {
            1
        } else {
            self.block
        };
        let row = at_once * from.width * from.channels;
        for (input, output) in images(input, output, from.count(), from.count()) {
            split_rows(output, row, length, |rows, output| {
                let input = &input[rows.start * row..rows.end * row];
                let sizes = [rows.len() * at_once, from.width, from.channels];
                part(input, sizes, output)
            })?;
        }
        Ok(())
    }
}

/// Writes rows of pixels whose channels are blocks, row by row of a block.
fn floats_to_space(input: &[f32], from: &ImageSize, block: usize, output: &mut [f32]) {
    let (row, run) = (from.width * from.channels, from.channels / block);
    if run == 0 {
        return;
    }
    let rows = input.chunks_exact(row).zip(output.chunks_exact_mut(row));
    for (input, output) in rows {
        let lines = output.chunks_exact_mut(from.width * run).enumerate();
        for (line, output) in lines {
            let pixels = input.chunks_exact(from.channels);
            for (to, pixel) in output.chunks_exact_mut(run).zip(pixels) {
                to.copy_from_slice(&pixel[line * run..][..run]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    fn tested(operator: &str, input: &[usize], output: &[usize]) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", input);
        let node = Node::new(operator, "n", &["x"], &["y"]);
        graph.tested(node.with(Attribute::int("blocksize", 2)), &[output]);
        (graph, x)
    }

    #[test]
    fn blocks_move_between_channels_and_pixels() {
        // One block: the channels are its pixels, row by row.
        for (operator, input, output) in [
            ("DepthToSpace", [1, 4, 1, 1], [1, 1, 2, 2]),
            ("SpaceToDepth", [1, 1, 2, 2], [1, 4, 1, 1]),
        ] {
            let (graph, x) = tested(operator, &input, &output);
            let run = graph.run();
            assert_eq!(run.operation("n"), "depth/space");
            run.assert_near(&x, 0.0);
        }
        let (graph, x) = tested("DepthToSpace", &[1, 8, 1, 2], &[1, 2, 2, 4]);
        // Output [channel, row, column] is input [(row, column) in the block, channel, block].
        let from = |at: usize| {
            let (channel, row, column) = (at / 8, at / 4 % 2, at % 4);
            x[(row * 2 + column % 2) * 4 + channel * 2 + column / 2]
        };
        let expected: Vec<f32> = (0..16).map(from).collect();
        graph.run().assert_near(&expected, 0.0);
    }

    #[test]
    fn blocks_that_do_not_fit_are_a_reason() {
        let (graph, _) = tested("DepthToSpace", &[1, 6, 1, 1], &[1, 1, 2, 3]);
        let reason = "blocks of size 2 do not fit the shape [1, 6, 1, 1]";
        assert_eq!(graph.reason("n"), reason);
    }
}
