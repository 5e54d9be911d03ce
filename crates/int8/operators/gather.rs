//! Gather with constant indices of any shape, selected in a row.

use std::sync::Arc;

use octet_graph::prepare::position;

use super::selection::{Selection, whole};
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, bounded, slot};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};

pub(super) const GATHER: OperatorMatcher = OperatorMatcher {
    names: &["Gather"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(gather),
};

fn gather(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, shape) = (one.node, &one.shape);
    let axis = axis(node.int("axis").unwrap_or(0), shape.len())?;
    let name = slot(node, 1)?;
    let places = one.reader.constant(name);
    let places = places.ok_or_else(|| FloatReason::IndicesNotConstant(name.to_owned()))?;
    let result = [&shape[..axis], &places.shape()?, &shape[axis + 1..]].concat();
    if result != one.output {
        return Err(FloatReason::DeclaredShape(result, one.output.clone()));
    }
    bounded(shape)?;
    let size = shape[axis];
    let place = |at: i64| position(at, size).ok_or(FloatReason::IndexOutOfRange(at, size));
    let mut positions = whole(shape);
    let picked = places.to_i64()?.into_iter().map(place);
    positions[axis] = picked
        .map(|place| place.map(Some))
        .collect::<Result<_, _>>()?;
    bounded(&[positions[axis].len()])?;
    Ok(Arc::new(Selection { positions, fill: 0 }))
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};

    use crate::test_graph::TestGraph;

    fn tested(indices: &[i64]) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[2, 3]);
        graph.integers("indices", indices);
        let node = Node::new("Gather", "n", &["x", "indices"], &["y"]);
        let node = node.with(Attribute::int("axis", 1));
        graph.tested(node, &[&[2, indices.len()]]);
        (graph, x)
    }

    #[test]
    fn columns_are_picked() {
        let (graph, x) = tested(&[2, -3, 2, 1]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "selection");
        let expected = [x[2], x[0], x[2], x[1], x[5], x[3], x[5], x[4]];
        run.assert_near(&expected, 0.0);
    }

    #[test]
    fn an_index_out_of_range_is_a_reason() {
        let (graph, _) = tested(&[3]);
        assert_eq!(graph.reason("n"), "its index 3 is out of range for size 3");
    }
}
