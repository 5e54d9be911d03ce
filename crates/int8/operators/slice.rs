//! Slice with constant bounds and steps.

use std::sync::Arc;

use octet_graph::prepare::slice_bounds;
use octet_kernels::int8::stepped;

use super::selection::{Selection, whole};
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, bounded};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};

pub(super) const SLICE: OperatorMatcher = OperatorMatcher {
    names: &["Slice"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(slice),
};

fn slice(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let list = |key: &'static str, slot: usize| {
        let values = one.reader.list(node, key, slot);
        if values.is_none() && node.input_at(slot).is_some() {
            return Err(FloatReason::SliceNotConstant(key));
        }
        Ok(values)
    };
    let starts = list("starts", 1)?.ok_or(FloatReason::NoStarts)?;
    let ends = list("ends", 2)?.ok_or(FloatReason::NoEnds)?;
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(FloatReason::SliceLengths);
    }
    bounded(shape)?;
    let mut positions = whole(shape);
    for at in 0..starts.len() {
        let axis = axis(axes[at], shape.len())?;
        let step = steps[at];
        if step == 0 {
            return Err(FloatReason::StepOfZero);
        }
        let (first, count) = slice_bounds(shape[axis] as i64, starts[at], ends[at], step);
        let first = usize::try_from(first).unwrap_or(0);
        let step = isize::try_from(step).map_err(|_| FloatReason::StepTooLarge)?;
        positions[axis] = stepped(first, step, count);
    }
    Selection::of_one(one, positions, 0)
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    fn tested(wide: bool, step: i64) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(wide);
        let x = graph.input("x", &[2, 5]);
        let lists = [("starts", -1), ("ends", 0), ("axes", 1), ("steps", step)];
        for (name, integer) in lists {
            graph.integers(name, &[integer]);
        }
        let inputs = ["x", "starts", "ends", "axes", "steps"];
        let node = Node::new("Slice", "n", &inputs, &["y"]);
        graph.tested(node, &[&[2, 2]]);
        (graph, x)
    }

    #[test]
    fn rows_are_read_backwards() {
        for wide in [false, true] {
            let (graph, x) = tested(wide, -2);
            let run = graph.run();
            assert_eq!(run.operation("n"), "selection");
            run.assert_near(&[x[4], x[2], x[9], x[7]], 0.0);
        }
    }

    #[test]
    fn a_step_of_zero_is_a_reason() {
        let (graph, _) = tested(false, 0);
        assert_eq!(graph.reason("n"), "one of its steps is 0");
    }
}
