//! Removes sequences and optional values whose elements are known: a reader of an element reads the
//! tensor itself.
//!
//! Nodes that depend on the run stay: a computed position, or a sequence that a loop carries.

use std::collections::{HashMap, HashSet};

use crate::operators::{Operator, Property, SequenceRewriter};
use crate::{Graph, Node, Steps, shapes};

/// Rewrites the readers of such values. Returns the number of rewritten nodes.
pub(super) fn rewrite(graph: &mut Graph) -> usize {
    let is_one = |node: &Node| Operator::of(node).has(Property::OfSequences);
    if !graph.nodes().iter().any(is_one) {
        return 0;
    }
    let types = shapes::infer(graph);
    let steps = Steps::new(graph.names());
    let mut rewriter = SequenceRewriter {
        types: &types,
        sequences: HashMap::new(),
        tensors: HashSet::new(),
        steps,
    };
    let mut written = 0;
    for node in graph.take_nodes() {
        let wanted = is_one(&node) || node.is("Identity");
        if wanted && rewriter.write(&node).is_some() {
            written += usize::from(is_one(&node));
        }
        // A node that only builds a sequence stays; the sweep drops it when nothing reads it.
        let last = rewriter.steps.nodes.last().map(|last| last.output.first());
        if last != Some(node.output.first()) {
            rewriter.steps.nodes.push(node);
        }
    }
    rewriter.steps.into_graph(graph);
    written
}
