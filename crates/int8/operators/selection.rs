//! Positions selected along each axis: Slice, Split, Pad, Gather and nearest Resize.

use std::sync::Arc;

use octet_kernels::int8::stepped;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::lowering::moves::Select;
use crate::operation::Operation;
use crate::pattern::matcher::OneOperand;
use crate::values::IrOperand;

/// Positions along each axis, `None` for the fill value.
pub(super) struct Selection {
    pub(super) positions: Vec<Vec<Option<usize>>>,
    pub(super) fill: u8,
}

impl Selection {
    /// The selection of a node, whose output shape must be that of the positions.
    pub(super) fn of_one(
        one: &OneOperand,
        positions: Vec<Vec<Option<usize>>>,
        fill: u8,
    ) -> Result<Arc<dyn Operation>, FloatReason> {
        let sizes = positions.iter().map(Vec::len);
        one.require_output(sizes.eq(one.output.iter().copied()))?;
        Ok(Arc::new(Selection { positions, fill }))
    }
}

/// All positions of a value of this shape.
pub(super) fn whole(shape: &[usize]) -> Vec<Vec<Option<usize>>> {
    shape.iter().map(|&size| stepped(0, 1, size)).collect()
}

impl Operation for Selection {
    fn name(&self) -> &'static str {
        "selection"
    }

    fn preference(&self, own: MemoryLayout) -> MemoryLayout {
        own
    }

    fn is_on_reals(&self, inputs: &[IrOperand]) -> bool {
        // Fill values are bytes.
        inputs.iter().all(IrOperand::is_int16)
            && self.positions.iter().flatten().all(Option::is_some)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (shape, first) = (step.shape, step.first);
        // A Gather may change the rank; its axes then refer to ONNX's layout.
        let layout = match shape.len() == step.output.len() {
            true => compiler.current_layout(first, step.preference),
            false => MemoryLayout::Plain,
        };
        let order = layout.order(shape.len()).into_iter();
        let kernel = Box::new(Select {
            sizes: layout.sizes(shape),
            positions: order.map(|axis| self.positions[axis].clone()).collect(),
            fill: self.fill,
        });
        if step.is_on_reals() {
            return compiler.lower_on_reals(step, kernel, [layout; 2]);
        }
        let source = compiler.operand(first, layout)?;
        let result = compiler.bytes(kernel, vec![source], step.output);
        compiler.finish_movement(step, layout, result)?;
        Ok(())
    }
}
