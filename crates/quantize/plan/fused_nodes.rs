//! Nodes that integers compute together.

use super::Plan;
use super::visit::Planner;
use crate::operator_patterns::OperatorPattern;

/// Nodes that compute as one where the tensors around them are integers: an operator pattern, or a
/// clamp folded into the node before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusedNodes {
    /// The node whose place the fused operator takes; none for a folded clamp.
    pub last: Option<usize>,
    /// The other nodes. They take no time of their own in integers.
    pub others: Vec<usize>,
    /// The tensors around them that must be integers.
    pub tensors: Vec<String>,
}

impl Planner<'_> {
    /// The operator patterns that are quantized.
    pub(super) fn quantized_patterns(&self) -> Vec<FusedNodes> {
        let graph = &self.model.graph;
        let of = |chain: &OperatorPattern| {
            let last = chain.last();
            let output = graph.nodes()[last].output.first().cloned();
            FusedNodes {
                last: Some(last),
                others: chain
                    .nodes
                    .iter()
                    .copied()
                    .filter(|&node| node != last)
                    .collect(),
                tensors: std::iter::once(chain.input.clone()).chain(output).collect(),
            }
        };
        let chains = self.chains.iter();
        chains
            .filter(|chain| self.quantized.contains(&chain.last()))
            .map(of)
            .collect()
    }
}

impl Plan {
    /// Operator patterns and folded clamps.
    pub(crate) fn fused_nodes(&self) -> Vec<FusedNodes> {
        let clamps = self.renamed.values().map(|folded| FusedNodes {
            last: None,
            others: vec![folded.node],
            tensors: vec![folded.output.clone()],
        });
        let mut fused: Vec<FusedNodes> = self.patterns.iter().cloned().chain(clamps).collect();
        fused.sort_unstable_by(|a, b| a.others.cmp(&b.others));
        fused
    }
}
