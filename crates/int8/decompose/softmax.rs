//! Decomposition of QLinearSoftmax.

use super::{Decomposer, Decomposition};
use octet_graph::{Attribute, Node};

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[Decomposition {
    operators: &["com.microsoft::QLinearSoftmax"],
    rewrite: |to, node, _| to.softmax(node),
}];

impl Decomposer {
    /// QLinearSoftmax. Before opset 13 it normalizes over all axes from `axis` on, which is a
    /// softmax of matrix rows.
    fn softmax(&mut self, node: &Node) -> Option<()> {
        if node.int("opset").unwrap_or(13) >= 13 {
            return self.quantized_operator(node, "Softmax", &[0], 3, None);
        }
        let (integers, output) = (node.input_at(0)?, node.output.first()?);
        let (scale, zero_point) = (node.input_at(3)?, node.input_at(4).unwrap_or_default());
        let input_zero_point = node.input_at(2).unwrap_or_default();
        let real = self.dequantized(integers, node.input_at(1)?, input_zero_point, 1);
        let [shape, flat, rows] = ["shape", "flat", "rows"]
            .map(|word| self.steps.names.fresh(&format!("{output}_{word}")));
        let axis = |axis| Attribute::int("axis", axis);
        let from = node.int("axis").unwrap_or(1);
        self.steps.nodes.extend([
            Node::new("Shape", &shape, &[integers], &[&shape]),
            Node::new("Flatten", &flat, &[&real], &[&flat]).with(axis(from)),
            // For two axes, all opsets agree on the second.
            Node::new("Softmax", node.title(), &[&flat], &[&rows]).with(axis(1)),
        ]);
        let name = self.steps.names.fresh(&format!("{output}_Reshape"));
        let back = Node::new("Reshape", &name, &[], &[output]);
        self.push_quantized(&back, "Reshape", vec![rows, shape], (scale, zero_point))
    }
}
