//! Reshape and its relatives: they move no data.

use std::sync::Arc;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::values::IrOperand;

pub(super) const RESHAPE: OperatorMatcher = OperatorMatcher {
    names: &["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(reshape),
};

struct Reshape;

fn reshape(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    one.require_output(one.is_as_large())?;
    Ok(Arc::new(Reshape))
}

impl Operation for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn is_on_reals(&self, inputs: &[IrOperand]) -> bool {
        inputs.iter().all(IrOperand::is_int16)
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

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    #[test]
    fn values_keep_their_order() {
        for wide in [false, true] {
            for operator in ["Reshape", "Flatten", "Identity"] {
                let mut graph = TestGraph::new(wide);
                let x = graph.input("x", &[2, 3, 2]);
                let node = Node::new(operator, "n", &["x"], &["y"]);
                graph.tested(node, &[&[2, 6]]);
                let run = graph.run();
                assert_eq!(run.operation("n"), "reshape");
                run.assert_near(&x, 0.0);
            }
        }
    }

    #[test]
    fn a_wrong_count_is_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[2, 3]);
        graph.tested(Node::new("Reshape", "n", &["x"], &["y"]), &[&[5]]);
        let reason = "its output shape [5] does not follow from its input shape [2, 3]";
        assert_eq!(graph.reason("n"), reason);
    }
}
