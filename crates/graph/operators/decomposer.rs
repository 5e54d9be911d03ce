//! FusedDecomposition of fused operators into those they stand for.

use std::collections::{HashMap, HashSet};

use super::Operator;
use crate::inferred_value::{InferredValue, Types};
use crate::{Dim, Graph, Node, Steps};
use octet_onnx::schema::DataType;

/// Decomposes a node. `None` if its variant is unsupported; nothing is written then.
pub(super) type FusedDecomposition = fn(&mut FusedOperatorDecomposer, &Node) -> Option<()>;

/// Writes the nodes that fused operators stand for.
pub(crate) struct FusedOperatorDecomposer<'a> {
    pub(crate) opset: i64,
    pub(crate) types: &'a Types,
    /// Read for its constants; its nodes were moved out.
    pub(crate) graph: &'a Graph,
    /// Values that hold the number of valid tokens in each sequence.
    pub(crate) token_counts: HashSet<String>,
    /// Transposed constant matrices by their original names.
    pub(crate) transposed: HashMap<String, String>,
    pub(crate) steps: Steps,
}

impl FusedOperatorDecomposer<'_> {
    /// Decomposes a node. `None` if its variant is unsupported; nothing is written then.
    pub(crate) fn write(&mut self, node: &Node) -> Option<()> {
        node.output.first()?;
        let of_floats = match self.known(Some(node.input_at(0)?)) {
            Some(known) => known.element == DataType::Float,
            None => true,
        };
        let decomposition = Operator::of(node).decomposition.filter(|_| of_floats)?;
        decomposition(self, node)
    }

    /// Inferred type and shape of a value.
    pub(super) fn known(&self, name: Option<&str>) -> Option<&InferredValue> {
        self.types.get(name?)
    }

    pub(super) fn shape(&self, name: Option<&str>) -> Option<&[Dim]> {
        self.known(name)?.shape.as_deref()
    }
}
