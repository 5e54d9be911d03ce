//! An attribute of a node: its name and its value as a type of Rust.
//!
//! A value is read from the file's message once, when the model is. Fields that no operator reads
//! are kept as they are, so the written attribute equals the one that was read.

use octet_onnx::schema::{AttributeProto, AttributeType, TensorProto};
use prost::bytes::Bytes;

use crate::Subgraph;

/// A named constant of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Name, which the operator defines.
    pub name: String,
    /// Value.
    pub value: AttributeValue,
    /// The message without name and value, if it has more or less than a plain one.
    rest: Option<Box<AttributeProto>>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AttributeValue {
    Float(f32),
    Int(i64),
    Text(Bytes),
    Tensor(Box<TensorProto>),
    Graph(Box<Subgraph>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<Bytes>),
    Tensors(Vec<TensorProto>),
    Graphs(Vec<Subgraph>),
    /// A sparse tensor, a type, a reference to an attribute of a function, or nothing.
    Other,
}

impl AttributeValue {
    /// Takes the value of this type out of a message; `None` if the message has none.
    fn take(message: &mut AttributeProto, kind: AttributeType) -> Option<AttributeValue> {
        use AttributeType as Kind;
        Some(match kind {
            Kind::Float => AttributeValue::Float(message.f.take()?),
            Kind::Int => AttributeValue::Int(message.i.take()?),
            Kind::String => AttributeValue::Text(message.s.take()?),
            Kind::Tensor => AttributeValue::Tensor(Box::new(message.t.take()?)),
            Kind::Graph => AttributeValue::Graph(Box::new(Subgraph::from_proto(message.g.take()?))),
            Kind::Floats => AttributeValue::Floats(std::mem::take(&mut message.floats)),
            Kind::Ints => AttributeValue::Ints(std::mem::take(&mut message.ints)),
            Kind::Strings => AttributeValue::Texts(std::mem::take(&mut message.strings)),
            Kind::Tensors => AttributeValue::Tensors(std::mem::take(&mut message.tensors)),
            Kind::Graphs => {
                let graphs = std::mem::take(&mut message.graphs).into_iter();
                AttributeValue::Graphs(graphs.map(Subgraph::from_proto).collect())
            }
            _ => return None,
        })
    }

    /// The type that the file names for this value.
    fn kind(&self) -> AttributeType {
        match self {
            AttributeValue::Float(_) => AttributeType::Float,
            AttributeValue::Int(_) => AttributeType::Int,
            AttributeValue::Text(_) => AttributeType::String,
            AttributeValue::Tensor(_) => AttributeType::Tensor,
            AttributeValue::Graph(_) => AttributeType::Graph,
            AttributeValue::Floats(_) => AttributeType::Floats,
            AttributeValue::Ints(_) => AttributeType::Ints,
            AttributeValue::Texts(_) => AttributeType::Strings,
            AttributeValue::Tensors(_) => AttributeType::Tensors,
            AttributeValue::Graphs(_) => AttributeType::Graphs,
            AttributeValue::Other => AttributeType::Undefined,
        }
    }
}

/// The type of a message: the one that it names, or that of the only field with a value. Files of
/// IR version 1 name none.
fn kind_of(message: &AttributeProto) -> Option<AttributeType> {
    use AttributeType as Kind;
    let fields = [
        (Kind::Graph, message.g.is_some()),
        (Kind::Graphs, !message.graphs.is_empty()),
        (Kind::Tensor, message.t.is_some()),
        (Kind::Tensors, !message.tensors.is_empty()),
        (Kind::Ints, !message.ints.is_empty()),
        (Kind::Floats, !message.floats.is_empty()),
        (Kind::Strings, !message.strings.is_empty()),
        (Kind::Int, message.i.is_some()),
        (Kind::Float, message.f.is_some()),
        (Kind::String, message.s.is_some()),
    ];
    let named = AttributeType::try_from(message.r#type.unwrap_or_default()).ok();
    let has = |kind| fields.contains(&(kind, true));
    let list = |kind| {
        matches!(
            kind,
            Kind::Ints | Kind::Floats | Kind::Strings | Kind::Tensors
        )
    };
    let first = fields.iter().find(|(_, set)| *set).map(|(kind, _)| *kind);
    // A graph counts wherever it stands, because its nodes read values of the outer graph.
    let graph = first.filter(|kind| matches!(kind, Kind::Graph | Kind::Graphs));
    match named {
        Some(kind) if has(kind) && graph.is_none() => Some(kind),
        Some(kind) if list(kind) && first.is_none() && message.ref_attr_name.is_none() => {
            Some(kind)
        }
        _ => first,
    }
}

impl Attribute {
    /// An attribute of this name and value.
    pub fn new(name: &str, value: AttributeValue) -> Attribute {
        Attribute {
            name: name.to_owned(),
            value,
            rest: None,
        }
    }

    /// An integer.
    pub fn int(name: &str, value: i64) -> Attribute {
        Attribute::new(name, AttributeValue::Int(value))
    }

    /// A float.
    pub fn float(name: &str, value: f32) -> Attribute {
        Attribute::new(name, AttributeValue::Float(value))
    }

    /// A list of integers.
    pub fn ints(name: &str, values: &[i64]) -> Attribute {
        Attribute::new(name, AttributeValue::Ints(values.to_vec()))
    }

    /// A string.
    pub fn text(name: &str, value: &str) -> Attribute {
        Attribute::new(name, AttributeValue::Text(value.as_bytes().to_vec().into()))
    }

    /// A tensor.
    pub fn tensor(name: &str, value: TensorProto) -> Attribute {
        Attribute::new(name, AttributeValue::Tensor(Box::new(value)))
    }

    /// Reads a message.
    pub(crate) fn from_proto(mut message: AttributeProto) -> Attribute {
        let value = kind_of(&message).and_then(|kind| AttributeValue::take(&mut message, kind));
        let value = value.unwrap_or(AttributeValue::Other);
        let name = message.name.take();
        let plain = AttributeProto {
            r#type: Some(value.kind() as i32),
            ..AttributeProto::default()
        };
        let whole = message == plain && name.is_some();
        if name.is_none() {
            // An absent name and an empty one differ in the file.
            message.name = None;
        } else {
            message.name = Some(String::new());
        }
        Attribute {
            name: name.unwrap_or_default(),
            value,
            rest: (!whole).then(|| Box::new(message)),
        }
    }

    /// Writes the message.
    pub(crate) fn to_proto(&self) -> AttributeProto {
        let mut message = match &self.rest {
            Some(rest) => AttributeProto::clone(rest),
            None => AttributeProto {
                name: Some(String::new()),
                r#type: Some(self.value.kind() as i32),
                ..AttributeProto::default()
            },
        };
        if message.name.is_some() {
            message.name = Some(self.name.clone());
        }
        match self.value.clone() {
            AttributeValue::Float(value) => message.f = Some(value),
            AttributeValue::Int(value) => message.i = Some(value),
            AttributeValue::Text(value) => message.s = Some(value),
            AttributeValue::Tensor(value) => message.t = Some(*value),
            AttributeValue::Graph(value) => message.g = Some(value.to_proto()),
            AttributeValue::Floats(values) => message.floats = values,
            AttributeValue::Ints(values) => message.ints = values,
            AttributeValue::Texts(values) => message.strings = values,
            AttributeValue::Tensors(values) => message.tensors = values,
            AttributeValue::Graphs(values) => {
                message.graphs = values.iter().map(Subgraph::to_proto).collect();
            }
            AttributeValue::Other => {}
        }
        message
    }

    /// Fields of the message that no operator reads, for passes over all that a file holds.
    pub(crate) fn rest_mut(&mut self) -> Option<&mut AttributeProto> {
        self.rest.as_deref_mut()
    }

    /// The integer; `None` for another type.
    pub fn as_int(&self) -> Option<i64> {
        match self.value {
            AttributeValue::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The float; `None` for another type.
    pub fn as_float(&self) -> Option<f32> {
        match self.value {
            AttributeValue::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The integers; empty for another type.
    pub fn as_ints(&self) -> &[i64] {
        match &self.value {
            AttributeValue::Ints(values) => values,
            _ => &[],
        }
    }

    /// The floats; empty for another type.
    pub fn as_floats(&self) -> &[f32] {
        match &self.value {
            AttributeValue::Floats(values) => values,
            _ => &[],
        }
    }

    /// The bytes of the string; `None` for another type.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.value {
            AttributeValue::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The strings; empty for another type.
    pub fn as_texts(&self) -> &[Bytes] {
        match &self.value {
            AttributeValue::Texts(values) => values,
            _ => &[],
        }
    }

    /// The tensor; `None` for another type.
    pub fn as_tensor(&self) -> Option<&TensorProto> {
        match &self.value {
            AttributeValue::Tensor(value) => Some(value),
            _ => None,
        }
    }

    /// The tensors of a value: one, several or none.
    pub(crate) fn tensors_mut(&mut self) -> &mut [TensorProto] {
        match &mut self.value {
            AttributeValue::Tensor(value) => std::slice::from_mut(value),
            AttributeValue::Tensors(values) => values,
            _ => &mut [],
        }
    }

    /// The graphs of a value: one, several or none.
    pub fn graphs(&self) -> &[Subgraph] {
        match &self.value {
            AttributeValue::Graph(value) => std::slice::from_ref(value),
            AttributeValue::Graphs(values) => values,
            _ => &[],
        }
    }

    /// The graph; `None` for another type.
    pub(crate) fn into_graph(self) -> Option<Subgraph> {
        match self.value {
            AttributeValue::Graph(graph) => Some(*graph),
            _ => None,
        }
    }

    /// The graphs of a value, for edits.
    pub(crate) fn graphs_mut(&mut self) -> &mut [Subgraph] {
        match &mut self.value {
            AttributeValue::Graph(value) => std::slice::from_mut(value),
            AttributeValue::Graphs(values) => values,
            _ => &mut [],
        }
    }
}
