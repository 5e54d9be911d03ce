//! Transpose. It moves no data if a layout of the output has the order of the input in memory.

use std::sync::Arc;

use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::{MemoryLayout, is_still};
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::lowering::moves::Permute;
use crate::operation::Operation;
use crate::pattern::attributes::permutation;
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};
use crate::values::IrOperand;

pub(super) const TRANSPOSE: OperatorMatcher = OperatorMatcher {
    names: &["Transpose"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(transpose),
};

/// For each output axis, its input axis.
struct Transpose {
    order: Vec<usize>,
}

fn transpose(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let order = permutation(one.node, one.shape.len())?;
    let sizes = order.iter().map(|&a| one.shape[a]);
    one.require_output(sizes.eq(one.output.iter().copied()))?;
    Ok(Arc::new(Transpose { order }))
}

impl Operation for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn is_on_reals(&self, inputs: &[IrOperand]) -> bool {
        inputs.iter().all(IrOperand::is_int16)
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (shape, first, preference) = (step.shape, step.first, step.preference);
        if step.is_on_reals() {
            let (sizes, order) = (shape.to_vec(), self.order.clone());
            let kernel = Box::new(Permute { sizes, order });
            return compiler.lower_on_reals(step, kernel, [MemoryLayout::Plain; 2]);
        }
        let from = compiler.current_layout(first, preference);
        let source = compiler.operand(first, from)?;
        let sizes = from.sizes(shape);
        // For each output axis in memory order, its position in the input's memory order.
        let places = |to: MemoryLayout| -> Vec<usize> {
            let axes = to.order(step.output.len());
            axes.iter()
                .map(|&axis| from.place(self.order[axis], shape.len()))
                .collect()
        };
        // A layout without data movement is preferred.
        let still = [preference, MemoryLayout::Plain, MemoryLayout::ChannelsLast]
            .into_iter()
            .find(|&to| is_still(&sizes, &places(to)));
        let to = still.unwrap_or(preference);
        let result = match still {
            Some(_) => source,
            None => {
                let order = places(to);
                let kernel = Box::new(Permute { sizes, order });
                compiler.bytes(kernel, vec![source], step.output)
            }
        };
        compiler.finish_movement(step, to, result)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    fn tested(wide: bool, perm: &[i64], output: &[usize]) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(wide);
        let x = graph.input("x", &[2, 3, 4]);
        let node = Node::new("Transpose", "n", &["x"], &["y"]);
        graph.tested(node.with(Attribute::ints("perm", perm)), &[output]);
        (graph, x)
    }

    #[test]
    fn axes_are_permuted() {
        for wide in [false, true] {
            let (graph, x) = tested(wide, &[2, 0, 1], &[4, 2, 3]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "transpose");
            let from = |at: usize| x[at / 3 % 2 * 12 + at % 3 * 4 + at / 6];
            run.assert_near(&(0..24).map(from).collect::<Vec<f32>>(), 0.0);
        }
    }

    #[test]
    fn a_list_with_an_axis_twice_is_a_reason() {
        let (graph, _) = tested(false, &[0, 1, 1], &[2, 3, 3]);
        let reason = "its perm [0, 1, 1] is not a permutation of 3 axes";
        assert_eq!(graph.reason("n"), reason);
    }
}
