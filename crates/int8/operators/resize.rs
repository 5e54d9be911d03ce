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
#[derive(Debug)]
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
