//! Split: each output is a selection of its own.

use std::sync::Arc;

use octet_kernels::int8::stepped;

use super::selection::{Selection, whole};
use crate::float_reason::FloatReason;
use crate::pattern::attributes::{axis, bounded, slot};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher, check_16_bits};
use crate::pattern::reader::Reader;
use octet_graph::Node;

pub(super) const SPLIT: OperatorMatcher = OperatorMatcher {
    names: &["Split"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(split),
};

fn split(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let reader = &matcher.reader;
    let operand = reader.operand_or_int16(slot(node, 0)?)?;
    let mut start = 0;
    let mut parts = Vec::new();
    for name in node.output.iter().filter(|name| !name.is_empty()) {
        let (operation, end) = part(node, reader, name, start)?;
        start = end;
        if reader.graph.consumers(name).is_empty() && !reader.is_observed(name) {
            continue;
        }
        let end = matcher.quantized_destination(name)?;
        check_16_bits(&operation, std::slice::from_ref(&operand), &end)?;
        parts.push((name, operation, end));
    }
    for (name, operation, end) in parts {
        matcher.push(index, Arc::new(operation), vec![operand.clone()], name, end)?;
    }
    Ok(())
}

/// One output, which begins at `start`, and the start of the next.
fn part(
    node: &Node,
    reader: &Reader,
    name: &str,
    start: usize,
) -> Result<(Selection, usize), FloatReason> {
    let shape = reader.shape(slot(node, 0)?)?;
    let output = reader.shape(name)?;
    let axis = axis(node.int("axis").unwrap_or(0), shape.len())?;
    let fits = output.len() == shape.len()
        && (0..shape.len()).all(|a| a == axis || shape[a] == output[a])
        && start + output[axis] <= shape[axis];
    if !fits {
        return Err(FloatReason::SplitShape(name.to_owned(), output, shape));
    }
    bounded(&shape)?;
    let mut positions = whole(&shape);
    positions[axis] = stepped(start, 1, output[axis]);
    let end = start + output[axis];
    Ok((Selection { positions, fill: 0 }, end))
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    #[test]
    fn each_output_is_a_selection() {
        for wide in [false, true] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[2, 3]);
            let node = Node::new("Split", "n", &["x"], &["y", "z"]);
            let node = node.with(Attribute::int("axis", 1));
            graph.tested(node, &[&[2, 1], &[2, 2]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "selection");
            assert_eq!(run.results[0], [x[0], x[3]]);
            assert_eq!(run.results[1], [x[1], x[2], x[4], x[5]]);
        }
    }

    #[test]
    fn outputs_that_are_too_large_are_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[2, 3]);
        let node = Node::new("Split", "n", &["x"], &["y", "z"]);
        let node = node.with(Attribute::int("axis", 1));
        graph.tested(node, &[&[2, 2], &[2, 2]]);
        let reason = "its output z of shape [2, 2] does not fit the input shape [2, 3]";
        assert_eq!(graph.reason("n"), reason);
    }
}
