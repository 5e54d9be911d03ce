//! DynamicQuantizeLinear: integers, and the scale and zero point that follow from the range of a
//! run.

use std::sync::Arc;

use octet_kernels::Extrema;
use octet_kernels::int8::{self as kernels, Scale};
use octet_onnx::schema::DataType;

use crate::error::{CompilerBug, ProgramError};
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::slot;
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, floats_of};
use crate::program::split_rows::split_rows;
use crate::values::{ElementKind, IrOperand};

pub(super) const DYNAMIC_QUANTIZE: OperatorMatcher = OperatorMatcher {
    names: &["DynamicQuantizeLinear"],
    pass: MatchPass::Defined,
    node: NodeMatcher::Steps(dynamic_quantize),
};

/// The outputs are integers, scale and zero point.
struct DynamicQuantize;

fn dynamic_quantize(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let input = slot(node, 0)?;
    let reader = &matcher.reader;
    let shape = reader.shape(input)?;
    if reader.element(input) != Some(DataType::Float) {
        return Err(FloatReason::NotFloat32(input.to_owned()));
    }
    if reader.constant(input).is_some() || shape.contains(&0) {
        return Err(FloatReason::ConstantOrEmptyInput);
    }
    let [integers, scale, zero_point] = node.output.as_slice() else {
        return Err(FloatReason::UnnamedOutput);
    };
    if node.output.iter().any(String::is_empty) {
        return Err(FloatReason::UnnamedOutput);
    }
    let byte = ElementKind::Byte { signed: false };
    matcher.value(input, &shape, ElementKind::Float);
    matcher.value(integers, &shape, byte);
    matcher.value(scale, &[], ElementKind::Float);
    matcher.value(zero_point, &[], byte);
    let inputs = vec![IrOperand::Floats(input.to_owned())];
    let step = matcher.step(vec![index], Arc::new(DynamicQuantize), inputs, integers);
    step.values.more_outputs = vec![scale.clone(), zero_point.clone()];
    Ok(())
}

impl Operation for DynamicQuantize {
    fn name(&self) -> &'static str {
        "dynamic quantization"
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let [scale, zero_point] = &step.values.more_outputs[..] else {
            return Err(CompilerBug::MissingValue.into());
        };
        let plain = MemoryLayout::Plain;
        let layout = compiler.current_layout(step.first, plain);
        let floats = compiler.operand(step.first, layout)?;
        let float = BufferElement::Float;
        let ends = compiler.add(
            Box::new(EndsOfParts),
            vec![floats.clone()],
            float,
            &[2 * PARTS],
        );
        let of_scale = compiler.add(Box::new(ScaleOfEnds), vec![ends.clone()], float, &[]);
        let of_zero = compiler.bytes(Box::new(ZeroOfEnds), vec![ends], &[]);
        compiler.locations.insert((scale, plain), of_scale.clone());
        compiler
            .locations
            .insert((zero_point, plain), of_zero.clone());
        compiler.quantize(step, None, (layout, vec![floats, of_scale, of_zero]));
        Ok(())
    }
}

/// Number of parts in the search for minimum and maximum.
const PARTS: usize = 16;

/// Minimum and maximum of each of [`PARTS`] parts of floats.
struct EndsOfParts;

impl InstructionKernel for EndsOfParts {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let (floats, output) = (floats_of(inputs, 0)?, output.floats()?);
        let first = |part: usize| part * floats.len() / PARTS;
        split_rows(output, 2, floats.len(), |parts, output| {
            for (part, ends) in parts.zip(output.chunks_exact_mut(2)) {
                let [least, greatest, _] = Extrema::of(&floats[first(part)..first(part + 1)]).reach;
                ends.copy_from_slice(&[least, greatest]);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The scale of these ranges.
struct ScaleOfEnds;

impl InstructionKernel for ScaleOfEnds {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let scale = scale_of_ends(floats_of(inputs, 0)?).scale;
        output.floats()?.fill(scale);
        Ok(())
    }
}

/// The zero point of these ranges.
struct ZeroOfEnds;

impl InstructionKernel for ZeroOfEnds {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let zero_point = scale_of_ends(floats_of(inputs, 0)?).zero_point;
        output.bytes()?.fill(zero_point);
        Ok(())
    }
}

/// Combines the ranges of all parts to a scale.
fn scale_of_ends(ends: &[f32]) -> Scale {
    let parts = ends.chunks_exact(2);
    let (least, greatest) = parts.fold((0.0f32, 0.0f32), |(least, greatest), part| {
        (least.min(part[0]), greatest.max(part[1]))
    });
    kernels::scale_between(least, greatest)
}
