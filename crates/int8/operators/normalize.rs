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
use crate::values::Operand;

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
#[derive(Clone, Debug)]
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

    fn is_on_reals(&self, _inputs: &[Operand]) -> bool {
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
