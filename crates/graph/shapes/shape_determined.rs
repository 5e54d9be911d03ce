//! Shape-determined values: they follow from constants and shapes alone. They are equal in every
//! run over samples of equal shapes.

use std::collections::HashSet;

use crate::operators::{Operator, Property};
use crate::{Graph, Node};

/// Returns true if the node's output differs from run to run.
pub fn is_random(node: &Node) -> bool {
    let name = node.op_type.as_str();
    Operator::in_any_domain(name).has(Property::Random)
}

/// Returns true if the node's output follows from shapes and from values in `shape_determined`.
pub fn is_shape_determined(node: &Node, shape_determined: &HashSet<&str>) -> bool {
    let known = |name: &String| name.is_empty() || shape_determined.contains(name.as_str());
    let of_shapes = Operator::of(node).has(Property::OfShapes);
    let computes = !is_random(node) && node.subgraphs().next().is_none();
    of_shapes || computes && node.input.iter().all(known)
}

impl Graph {
    /// Names of the shape-determined values, including constants.
    pub fn shape_determined(&self) -> HashSet<&str> {
        let constants = self.initializers.iter();
        let mut shape_determined: HashSet<&str> = constants.map(|tensor| tensor.title()).collect();
        for node in self.nodes() {
            if is_shape_determined(node, &shape_determined) {
                shape_determined.extend(node.output.iter().map(String::as_str));
            }
        }
        shape_determined
    }
}
