//! Changes of operators between opsets.
//!
//! A change takes a node of the old opset and writes equivalent nodes of the new one. A node without
//! an exact equivalent is an error; nothing is approximated.

use crate::inferred_value::Types;
use crate::{Attribute, Dim, Names, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// A change of an operator, applied to a node.
pub(super) type Change = fn(&mut OpsetContext, Node) -> Adapted;

/// State of the change of one node to a later opset.
pub(crate) struct OpsetContext<'a> {
    /// The opset that the model had.
    pub(crate) from: i64,
    pub(crate) names: &'a mut Names,
    pub(crate) types: &'a Types,
    /// Nodes written so far for this node, constants first.
    pub(crate) written: Vec<Node>,
}

/// Result of a change; the error is the reason why a node can't be raised.
pub(crate) type Adapted = Result<(), String>;

impl OpsetContext<'_> {
    /// Adds a constant list of integers as a Constant node, which subgraphs allow too. Returns its
    /// name.
    pub(super) fn integers(&mut self, node: &Node, role: &str, values: &[i64]) -> String {
        self.constant(
            node,
            role,
            TensorProto::from_i64("", &[values.len()], values),
        )
    }

    pub(super) fn constant(&mut self, node: &Node, role: &str, tensor: TensorProto) -> String {
        let name = self.names.fresh(&format!("{}_{role}", node.title()));
        let constant = Node::new("Constant", &name, &[], &[&name]);
        self.written
            .push(constant.with(Attribute::tensor("value", tensor)));
        name
    }

    /// A new name for an intermediate value.
    pub(super) fn value(&mut self, node: &Node, role: &str) -> String {
        self.names.fresh(&format!("{}_{role}", node.title()))
    }

    pub(super) fn shape(&self, value: Option<&str>) -> Option<&[Dim]> {
        self.types.get(value?)?.shape.as_deref()
    }

    pub(super) fn write(&mut self, node: Node) {
        self.written.push(node);
    }
}

/// Moves a list attribute to the second input.
pub(super) fn as_input(to: &mut OpsetContext, mut node: Node, key: &str) -> Adapted {
    if let Some(attribute) = node.take(key) {
        let name = to.integers(&node, key, attribute.as_ints());
        node.set_input(1, name);
    }
    to.write(node);
    Ok(())
}

/// A scalar of the element type of the node's input; f32 if the type is unknown.
pub(super) fn limit_like(
    to: &OpsetContext,
    node: &Node,
    value: f32,
) -> Result<TensorProto, String> {
    let element = node
        .input_at(0)
        .and_then(|x| to.types.get(x))
        .map(|t| t.element);
    match element {
        None | Some(DataType::Float) => Ok(TensorProto::from_f32("", &[], &[value])),
        Some(DataType::Double) => Ok(TensorProto::from_f64("", &[], &[value.into()])),
        Some(other) => Err(format!(
            "its constant would have type {other:?}, which is not supported"
        )),
    }
}
