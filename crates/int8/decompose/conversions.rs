//! QuantizeLinear and DequantizeLinear of ONNX Runtime's domain, which are ONNX's own.

use super::{Decomposer, Decomposition};
use octet_graph::Node;

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["com.microsoft::QuantizeLinear"],
        rewrite: |to, node, _| {
            let plain = plain(node);
            to.remember(&plain);
            to.keep(plain)
        },
    },
    Decomposition {
        operators: &["com.microsoft::DequantizeLinear"],
        rewrite: |to, node, _| to.keep(plain(node)),
    },
];

fn plain(node: &Node) -> Node {
    Node {
        domain: None,
        ..node.clone()
    }
}

impl Decomposer {
    fn keep(&mut self, node: Node) -> Option<()> {
        self.steps.nodes.push(node);
        Some(())
    }
}
