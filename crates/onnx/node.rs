//! Access to a node: operator, attributes by name, captured values.

use super::schema::{AttributeProto, GraphProto, NodeProto, TensorProto};

impl NodeProto {
    /// Name of the operator; with other domains than ONNX's own it is `domain::Operator`.
    pub fn operator(&self) -> String {
        match self.domain.as_deref() {
            None | Some("" | "ai.onnx") => self.op_type.clone().unwrap_or_default(),
            Some(domain) => format!("{domain}::{}", self.op_type.as_deref().unwrap_or_default()),
        }
    }

    /// Returns true if this is the operator of that name in ONNX's own domain.
    pub fn is(&self, operator: &str) -> bool {
        matches!(self.domain.as_deref(), None | Some("" | "ai.onnx"))
            && self.op_type.as_deref() == Some(operator)
    }

    /// Display name: the node's name, or that of its first output.
    pub fn title(&self) -> &str {
        match self.name.as_deref() {
            Some(name) if !name.is_empty() => name,
            _ => self.output.first().map_or("", String::as_str),
        }
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attribute
            .iter()
            .find(|a| a.name.as_deref() == Some(name))
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name)?.f
    }

    /// A list of integers, or `None` if the attribute is absent.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    /// A string attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.attribute(name)?.s.as_ref()?).ok()
    }

    /// A tensor attribute.
    pub fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.attribute(name)?.t.as_ref()
    }

    /// The name in an input slot, or `None` if the slot is absent or empty.
    pub fn input_at(&self, slot: usize) -> Option<&str> {
        self.input
            .get(slot)
            .map(String::as_str)
            .filter(|n| !n.is_empty())
    }

    /// Subgraphs in the attributes.
    pub fn subgraphs(&self) -> impl Iterator<Item = &GraphProto> {
        self.attribute
            .iter()
            .flat_map(|a| a.g.iter().chain(&a.graphs))
    }
}
