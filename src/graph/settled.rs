//! Values that follow from constants and the shapes of others: the same in every run with samples of the same shapes.

use std::collections::HashSet;

use super::Graph;
use crate::onnx::schema::NodeProto;

impl NodeProto {
    /// Whether it makes other numbers in each run.
    pub(crate) fn is_random(&self) -> bool {
        let operator = self.op_type.as_deref().unwrap_or_default();
        ["Random", "Bernoulli", "Multinomial"]
            .iter()
            .any(|start| operator.starts_with(start))
    }

    /// Whether what it makes follows from shapes and from values of which that is so.
    pub(crate) fn is_settled(&self, settled: &HashSet<&str>) -> bool {
        let known = |name: &String| name.is_empty() || settled.contains(name.as_str());
        let of_shapes = ["Shape", "Size"].iter().any(|one| self.is(one));
        let computes = !self.is_random() && self.subgraphs().next().is_none();
        of_shapes || computes && self.input.iter().all(known)
    }
}

impl Graph {
    /// The names of such values, constants among them.
    pub(crate) fn settled(&self) -> HashSet<&str> {
        let constants = self.initializers.iter();
        let mut settled: HashSet<&str> = constants.map(|tensor| tensor.title()).collect();
        for node in &self.nodes {
            if node.is_settled(&settled) {
                settled.extend(node.output.iter().map(String::as_str));
            }
        }
        settled
    }
}
