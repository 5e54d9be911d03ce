//! LayerNormalization, InstanceNormalization and GroupNormalization: normalizations of rows. For
//! images, a row is a channel or a group of channels.

use std::sync::Arc;

use octet_kernels::int8::{self as kernels, Affine, Scale};

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::{Compiler, scale};
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, slot, without_leading_ones};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::pattern::reader::is_row;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of};
use crate::program::split_rows::split_rows;
use crate::values::IrOperand;

pub(super) const LAYERS: OperatorMatcher = OperatorMatcher {
    names: &["LayerNormalization"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(of_layers),
};

pub(super) const IMAGES: OperatorMatcher = OperatorMatcher {
    names: &["InstanceNormalization", "GroupNormalization"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(of_images),
};

/// A normalization of rows.
#[derive(Clone)]
struct RowNormalization {
    /// Values per row.
    length: usize,
    /// Number of adjacent values that share one scale.
    each: usize,
    epsilon: f32,
    scale: Vec<f32>,
    shift: Option<Vec<f32>>,
}

/// LayerNormalization over all axes from `axis` on.
fn of_layers(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let axis = axis(node.int("axis").unwrap_or(-1), shape.len())?;
    if node.output.iter().skip(1).any(|name| !name.is_empty()) {
        return Err(FloatReason::StatisticsUsed);
    }
    let length: usize = shape[axis..].iter().product();
    // An equal count of values could also belong to another axis.
    let along = &shape[axis..];
    let fits = |sizes: &[usize]| {
        is_row(sizes, length) || without_leading_ones(sizes) == without_leading_ones(along)
    };
    normalized(one, (length, 1), &fits)
}

/// InstanceNormalization and GroupNormalization of channels-first images.
fn of_images(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let node = one.node;
    let [_, channels, plane @ ..] = &one.shape[..] else {
        return Err(FloatReason::InputShape(one.shape.clone()));
    };
    let groups = match node.is("GroupNormalization") {
        true => node.int("num_groups").unwrap_or(0),
        false => *channels as i64,
    };
    let groups = usize::try_from(groups).ok();
    let groups = groups.filter(|&groups| groups > 0 && channels.is_multiple_of(groups));
    let groups = groups.ok_or(FloatReason::GroupsOfChannels(*channels))?;
    let pixels: usize = plane.iter().product();
    let length = channels / groups * pixels;
    if length == 0 {
        return Err(FloatReason::EmptyInput);
    }
    // Before opset 21 there was one scale per group.
    let (count, each) = match node.is("GroupNormalization") && one.reader.opset < 21 {
        true => (groups, length),
        false => (*channels, pixels),
    };
    normalized(one, (length, each), &|sizes| sizes == [count])
}

/// A normalization of rows of `length` values, with one scale for each run of `each` values. `fits`
/// checks the shape of the scales.
fn normalized(
    one: &OneOperand,
    (length, each): (usize, usize),
    fits: &dyn Fn(&[usize]) -> bool,
) -> Result<Arc<dyn Operation>, FloatReason> {
    let node = one.node;
    let numbers = |at: usize, what: &'static str| -> Result<Vec<f32>, FloatReason> {
        let reals = one.reader.reals(slot(node, at)?);
        let (sizes, values) = reals.ok_or(FloatReason::AffineNotConstant(what))?;
        match fits(&sizes) {
            true => Ok(values),
            false => Err(FloatReason::AffineShape(what, sizes)),
        }
    };
    let norm = RowNormalization {
        length,
        each,
        epsilon: node.float("epsilon").unwrap_or(1e-5),
        scale: numbers(1, "scale")?,
        shift: match node.input_at(2) {
            Some(_) => Some(numbers(2, "shift")?),
            None => None,
        },
    };
    one.require_output(one.shape == one.output)?;
    Ok(Arc::new(norm))
}

impl RowNormalization {
    /// Scale and shift from this row on.
    fn affine(&self, row: usize) -> Affine<'_> {
        Affine {
            scale: &self.scale,
            bias: self.shift.as_deref(),
            each: self.each,
            first: row * self.length,
        }
    }
}

impl Operation for RowNormalization {
    fn name(&self) -> &'static str {
        "normalization"
    }

    fn is_on_reals(&self, _inputs: &[IrOperand]) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let layout = MemoryLayout::Plain;
        let norm = self.clone();
        if step.is_on_reals() {
            let kernel = Box::new(NormalizeReals(norm));
            return compiler.lower_on_reals(step, kernel, [layout; 2]);
        }
        let source = compiler.operand(step.first, layout)?;
        let kernel = Box::new(NormalizeBytes {
            norm,
            from: scale(step.from()?),
            to: scale(step.to()?),
        });
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.finish_clamped(step, layout, result);
        Ok(())
    }
}

struct NormalizeBytes {
    norm: RowNormalization,
    from: Scale,
    to: Scale,
}

impl InstructionKernel for NormalizeBytes {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (input, output) = (bytes_of(inputs, 0)?, output.bytes()?);
        let NormalizeBytes { norm, from, to } = self;
        let (row, cost) = (norm.length, output.len() * 4);
        split_rows(output, row, cost, |rows, output| {
            let input = &input[rows.start * row..rows.end * row];
            let (affine, epsilon) = (norm.affine(rows.start), norm.epsilon);
            kernels::layer_norm(input, row, *from, affine, epsilon, *to, output)
        })?;
        Ok(())
    }
}

struct NormalizeReals(RowNormalization);

impl InstructionKernel for NormalizeReals {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let NormalizeReals(norm) = self;
        let (reals, output) = (floats_of(inputs, 0)?, output.floats()?);
        let (row, cost) = (norm.length, output.len() * 4);
        split_rows(output, row, cost, |part, output| {
            let reals = &reals[part.start * row..part.end * row];
            let affine = norm.affine(part.start);
            kernels::layer_norm_reals(reals, row, affine, norm.epsilon, output)
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    /// Rows without their mean, over their deviation.
    fn normalized(x: &[f32], length: usize) -> Vec<f32> {
        let rows = x.chunks(length).map(|row| {
            let mean = row.iter().sum::<f32>() / length as f32;
            let variance = row.iter().map(|real| (real - mean).powi(2)).sum::<f32>();
            let deviation = (variance / length as f32 + 1e-5).sqrt();
            row.iter().map(move |real| (real - mean) / deviation)
        });
        rows.flatten().collect()
    }

    #[test]
    fn layers_have_a_scale_per_value() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[2, 4]);
            let (scale, shift) = ([1.0, 2.0, 0.5, -1.0], [0.0, 1.0, -1.0, 0.5]);
            graph.constant("scale", &[4], &scale);
            graph.constant("shift", &[4], &shift);
            let node = Node::new("LayerNormalization", "n", &["x", "scale", "shift"], &["y"]);
            graph.tested(node, &[&[2, 4]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "normalization");
            let rows = normalized(&x, 4).into_iter().enumerate();
            let expected = rows.map(|(at, real)| real * scale[at % 4] + shift[at % 4]);
            run.assert_near(&expected.collect::<Vec<f32>>(), 0.51);
        }
    }

    #[test]
    fn images_have_a_scale_per_channel() {
        for (operator, length) in [("InstanceNormalization", 4), ("GroupNormalization", 8)] {
            let mut graph = TestGraph::new(false);
            let x = graph.input("x", &[1, 2, 2, 2]);
            graph.constant("scale", &[2], &[1.0, 2.0]);
            graph.constant("shift", &[2], &[0.5, -0.5]);
            let node = Node::new(operator, "n", &["x", "scale", "shift"], &["y"]);
            let node = node.with(Attribute::int("num_groups", 1));
            graph.tested(node, &[&[1, 2, 2, 2]]);
            let rows = normalized(&x, length).into_iter().enumerate();
            let affine = |(at, real)| if at < 4 { real + 0.5 } else { 2.0 * real - 0.5 };
            let expected: Vec<f32> = rows.map(affine).collect();
            graph.run().assert_near(&expected, 0.51);
        }
    }

    #[test]
    fn groups_that_do_not_divide_the_channels_are_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[1, 3, 2, 2]);
        graph.constant("scale", &[3], &[1.0; 3]);
        graph.constant("shift", &[3], &[0.0; 3]);
        let inputs = ["x", "scale", "shift"];
        let node = Node::new("GroupNormalization", "n", &inputs, &["y"]);
        let node = node.with(Attribute::int("num_groups", 2));
        graph.tested(node, &[&[1, 3, 2, 2]]);
        assert_eq!(graph.reason("n"), "its groups don't divide 3 channels");
    }
}
