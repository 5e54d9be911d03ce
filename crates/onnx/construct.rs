//! Construction of models, nodes and attributes.

use super::schema::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto,
};

impl ModelProto {
    /// A model of ONNX's own operators in this opset.
    pub fn from_graph(graph: GraphProto, opset: i64) -> ModelProto {
        let opset = OperatorSetIdProto {
            domain: None,
            version: Some(opset),
        };
        ModelProto {
            ir_version: Some(8),
            opset_import: vec![opset],
            graph: Some(graph),
            ..Default::default()
        }
    }
}

impl NodeProto {
    /// A node of ONNX's own operator set.
    pub fn new(operator: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        NodeProto {
            op_type: Some(operator.to_owned()),
            name: Some(name.to_owned()),
            input: inputs.iter().map(|&s| s.to_owned()).collect(),
            output: outputs.iter().map(|&s| s.to_owned()).collect(),
            ..NodeProto::default()
        }
    }

    /// A Cast of a value to another type.
    pub fn cast(name: &str, from: &str, to: &str, element: DataType) -> NodeProto {
        NodeProto::new("Cast", name, &[from], &[to]).with(AttributeProto::int("to", element as i64))
    }

    /// The node with one more attribute.
    pub fn with(mut self, attribute: AttributeProto) -> NodeProto {
        self.set(attribute);
        self
    }

    /// Sets an attribute, replacing one of the same name.
    pub fn set(&mut self, attribute: AttributeProto) {
        match self.attribute.iter_mut().find(|a| a.name == attribute.name) {
            Some(old) => *old = attribute,
            None => self.attribute.push(attribute),
        }
    }

    /// Removes and returns an attribute.
    pub fn take(&mut self, name: &str) -> Option<AttributeProto> {
        let at = self
            .attribute
            .iter()
            .position(|a| a.name.as_deref() == Some(name))?;
        Some(self.attribute.remove(at))
    }
}

impl AttributeProto {
    fn new(name: &str, kind: AttributeType) -> AttributeProto {
        AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(kind as i32),
            ..AttributeProto::default()
        }
    }

    /// An integer.
    pub fn int(name: &str, value: i64) -> AttributeProto {
        AttributeProto {
            i: Some(value),
            ..AttributeProto::new(name, AttributeType::Int)
        }
    }

    /// A float.
    pub fn float(name: &str, value: f32) -> AttributeProto {
        AttributeProto {
            f: Some(value),
            ..AttributeProto::new(name, AttributeType::Float)
        }
    }

    /// A list of integers.
    pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
        AttributeProto {
            ints: values.to_vec(),
            ..AttributeProto::new(name, AttributeType::Ints)
        }
    }

    /// A string.
    pub fn text(name: &str, value: &str) -> AttributeProto {
        AttributeProto {
            s: Some(value.as_bytes().to_vec().into()),
            ..AttributeProto::new(name, AttributeType::String)
        }
    }

    /// A tensor.
    pub fn tensor(name: &str, value: TensorProto) -> AttributeProto {
        AttributeProto {
            t: Some(value),
            ..AttributeProto::new(name, AttributeType::Tensor)
        }
    }
}
