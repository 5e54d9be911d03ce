//! Resize: nearest pixels are a selection, linear ones a kernel of images.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Between, Target, linear_pixels};

use super::selection::Selection;
use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, ratio, target};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::bounded;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::program::image_size::ImageSize;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, images};
use crate::program::split_rows::split_rows;
use crate::resize_geometry::{ResizeSampling, ResizeTarget};

pub(super) const RESIZE: OperatorMatcher = OperatorMatcher {
    names: &["Resize", "Upsample"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(resize),
};

/// Linear resize of an image: source pixels and weights of each row and each column.
struct LinearResize {
    rows: Vec<Between>,
    columns: Vec<Between>,
}

fn resize(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape, output) = (one.node, &one.shape, &one.output);
    if shape.len() != output.len() || node.int("antialias").unwrap_or(0) != 0 {
        return Err(FloatReason::Antialiasing);
    }
    let sampling = ResizeSampling::parse(
        node.text("coordinate_transformation_mode"),
        node.text("nearest_mode"),
    )?;
    let scales = match node.input_at(2) {
        Some(name) => {
            let scales = one.reader.reals(name);
            scales.ok_or(FloatReason::ScalesNotConstant)?.1
        }
        None => Vec::new(),
    };
    let target = ResizeTarget {
        axes: node.ints("axes").map(<[i64]>::to_vec),
        scales,
        sizes: one.reader.list(node, "sizes", 3),
        policy: node.text("keep_aspect_ratio_policy").map(str::to_owned),
    };
    let scales = target.scales(shape, output)?;
    bounded(output)?;
    let along = |axis: usize| {
        let sizes = [shape[axis], output[axis]];
        linear_pixels(sampling.coordinates, sizes, scales[axis])
    };
    match node.text("mode").unwrap_or("nearest") {
        "nearest" => Selection::of_one(one, sampling.nearest(shape, output, &scales), 0),
        "linear" if shape.len() == 4 && shape[..2] == output[..2] => Ok(Arc::new(LinearResize {
            rows: along(2),
            columns: along(3),
        })),
        "linear" if shape.len() == 3 && shape[..2] == output[..2] => Ok(Arc::new(LinearResize {
            rows: vec![Between {
                first: 0,
                second: 0,
                share: 0.0,
            }],
            columns: along(2),
        })),
        other => Err(FloatReason::ResizeMode(other.to_owned())),
    }
}

impl Operation for LinearResize {
    fn name(&self) -> &'static str {
        "linear resize"
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
        let kernel = Box::new(LinearResizeKernel {
            from: ImageSize::of(step.shape),
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            zero_point: from.zero_point,
            factor: ratio(&[from.scale], to.scale),
            to: target(to, step.values.bounds),
        });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.put(step, layout, result);
        Ok(())
    }
}

struct LinearResizeKernel {
    from: ImageSize,
    rows: Vec<Between>,
    columns: Vec<Between>,
    zero_point: u8,
    factor: f32,
    to: Target,
}

impl InstructionKernel for LinearResizeKernel {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (input, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let (from, columns) = (&self.from, &self.columns);
        let row = columns.len() * from.channels;
        let image = self.rows.len() * row;
        for (input, output) in images(input, output, from.count(), image) {
            split_rows(output, row, image * 4, |part, output| {
                let image = from.view(input, self.zero_point);
                let rows = &self.rows[part];
                kernels::resize_linear(&image, rows, columns, self.factor, self.to, output)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    fn tested(mode: &str) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 2, 2, 3]);
        graph.constant("scales", &[4], &[1.0, 1.0, 2.0, 1.0]);
        let node = Node::new("Resize", "n", &["x", "", "scales"], &["y"]);
        let node = node.with(Attribute::text("mode", mode));
        graph.tested(node, &[&[1, 2, 4, 3]]);
        (graph, x)
    }

    #[test]
    fn nearest_rows_are_a_selection() {
        let (graph, x) = tested("nearest");
        let run = graph.run();
        assert_eq!(run.operation("n"), "selection");
        let rows: Vec<&[f32]> = x.chunks(3).collect();
        let expected = [0, 0, 1, 1, 2, 2, 3, 3].map(|row| rows[row]).concat();
        run.assert_near(&expected, 0.0);
    }

    #[test]
    fn linear_rows_are_between_two() {
        let (graph, x) = tested("linear");
        let run = graph.run();
        assert_eq!(run.operation("n"), "linear resize");
        let mut expected = Vec::new();
        for channel in x.chunks(6) {
            for share in [0.0, 0.25, 0.75, 1.0] {
                let between = |at: usize| channel[at] * (1.0 - share) + channel[at + 3] * share;
                expected.extend((0..3).map(between));
            }
        }
        run.assert_near(&expected, 0.5);
    }

    #[test]
    fn other_modes_are_reasons() {
        let (graph, _) = tested("cubic");
        let reason = "its mode cubic has no integer implementation";
        assert_eq!(graph.reason("n"), reason);
    }
}
