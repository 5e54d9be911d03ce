//! A node of the graph: operator, names of inputs and outputs, attributes.

use std::collections::HashMap;

use octet_onnx::schema::{DataType, NodeProto, TensorProto};

use crate::markers::{BODY_INPUTS, BODY_OUTPUTS};
use crate::{Attribute, domain_named};

/// A use of an operator, with the names of its inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Name; ONNX allows nodes without one.
    pub name: Option<String>,
    /// Operator within its domain.
    pub op_type: String,
    /// Domain as the file spells it; ONNX's own has three spellings.
    pub domain: Option<String>,
    /// Names of the inputs; an empty name is an absent input.
    pub input: Vec<String>,
    /// Names of the outputs; an empty name is an absent output.
    pub output: Vec<String>,
    /// Attributes in the file's order.
    pub attributes: Vec<Attribute>,
    /// The message without these fields, if it has others.
    pub rest: Option<Box<NodeProto>>,
}

impl Node {
    /// A node of ONNX's own operator set.
    pub fn new(operator: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Node {
        Node {
            name: Some(name.to_owned()),
            op_type: operator.to_owned(),
            input: inputs.iter().map(|&s| s.to_owned()).collect(),
            output: outputs.iter().map(|&s| s.to_owned()).collect(),
            ..Node::default()
        }
    }

    /// A Cast of a value to another type.
    pub fn cast(name: &str, from: &str, to: &str, element: DataType) -> Node {
        Node::new("Cast", name, &[from], &[to]).with(Attribute::int("to", element as i64))
    }

    /// Reads a message.
    pub fn from_proto(mut message: NodeProto) -> Node {
        let attributes = std::mem::take(&mut message.attribute).into_iter();
        let mut node = Node {
            name: message.name.take(),
            op_type: message.op_type.take().unwrap_or_default(),
            domain: message.domain.take(),
            input: std::mem::take(&mut message.input),
            output: std::mem::take(&mut message.output),
            attributes: attributes.map(Attribute::from_proto).collect(),
            rest: None,
        };
        if message != NodeProto::default() {
            node.rest = Some(Box::new(message));
        }
        node
    }

    /// Writes the message; tensor bytes are shared.
    pub fn to_proto(&self) -> NodeProto {
        let rest = self.rest.as_deref().cloned().unwrap_or_default();
        NodeProto {
            name: self.name.clone(),
            op_type: Some(self.op_type.clone()),
            domain: self.domain.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            attribute: self.attributes.iter().map(Attribute::to_proto).collect(),
            ..rest
        }
    }

    /// The node with one more attribute.
    pub fn with(mut self, attribute: Attribute) -> Node {
        self.set(attribute);
        self
    }

    /// Sets an attribute, replacing one of the same name.
    pub fn set(&mut self, attribute: Attribute) {
        match self
            .attributes
            .iter_mut()
            .find(|a| a.name == attribute.name)
        {
            Some(old) => *old = attribute,
            None => self.attributes.push(attribute),
        }
    }

    /// Removes and returns an attribute.
    pub fn take(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|a| a.name == name)?;
        Some(self.attributes.remove(at))
    }

    /// Name of the operator; with other domains than ONNX's own it is `domain::Operator`.
    ///
    /// A marker of a flat model has the operator of its control node.
    pub fn operator(&self) -> String {
        if self.is(BODY_INPUTS) || self.is(BODY_OUTPUTS) {
            return self.text("operator").unwrap_or_default().to_owned();
        }
        match domain_named(self.domain.as_deref()) {
            "" => self.op_type.clone(),
            domain => format!("{domain}::{}", self.op_type),
        }
    }

    /// Returns true if this is the operator of that name in ONNX's own domain.
    pub fn is(&self, operator: &str) -> bool {
        self.op_type == operator && domain_named(self.domain.as_deref()).is_empty()
    }

    /// Display name: the node's name, or that of its first output that is not omitted.
    pub fn title(&self) -> &str {
        match self.name.as_deref() {
            Some(name) if !name.is_empty() => name,
            _ => {
                let mut outputs = self.output.iter().map(String::as_str);
                outputs.find(|name| !name.is_empty()).unwrap_or("")
            }
        }
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.as_int()
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name)?.as_float()
    }

    /// A list of integers, or `None` if the attribute is absent.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(Attribute::as_ints)
    }

    /// A string attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.attribute(name)?.as_bytes()?).ok()
    }

    /// A tensor attribute.
    pub fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.attribute(name)?.as_tensor()
    }

    /// The name in an input slot, or `None` if the slot is absent or empty.
    pub fn input_at(&self, slot: usize) -> Option<&str> {
        let name = self.input.get(slot).map(String::as_str);
        name.filter(|name| !name.is_empty())
    }

    /// Sets an input slot and fills missing slots before it with empty names.
    pub fn set_input(&mut self, slot: usize, name: String) {
        if self.input.len() <= slot {
            self.input.resize(slot + 1, String::new());
        }
        self.input[slot] = name;
    }

    /// Gives outputs other names.
    pub fn rename_outputs(&mut self, renamed: &HashMap<String, String>) {
        for output in &mut self.output {
            if let Some(name) = renamed.get(output) {
                output.clone_from(name);
            }
        }
    }
}
