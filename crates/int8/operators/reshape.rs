//! Reshape and its relatives: they move no data.

use std::sync::Arc;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::values::Operand;

pub(super) const RESHAPE: OperatorMatcher = OperatorMatcher {
    names: &["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(reshape),
};

#[derive(Debug)]
struct Reshape;

fn reshape(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    one.require_output(one.is_as_large())?;
    Ok(Arc::new(Reshape))
}

impl Operation for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn is_on_reals(&self, inputs: &[Operand]) -> bool {
        inputs.iter().all(Operand::is_int16)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (shape, output, first) = (step.shape, step.output, step.first);
        if step.is_on_reals() {
            let source = compiler.operand(first, MemoryLayout::Plain)?;
            compiler.finish_reals(step, MemoryLayout::Plain, source);
            return Ok(());
        }
        // A reshape of the pixels only keeps the channels last.
        let pixels = shape.len() >= 3
            && output.len() >= 3
            && shape[..2] == output[..2]
            && compiler.current_layout(first, step.preference) == MemoryLayout::ChannelsLast;
        let layout = if pixels {
            MemoryLayout::ChannelsLast
        } else {
            MemoryLayout::Plain
        };
        let source = compiler.operand(first, layout)?;
        compiler.finish_movement(step, layout, source)?;
        Ok(())
    }
}
