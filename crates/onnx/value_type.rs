//! Element type and shape of a value, as its message declares them.

use std::fmt;

use super::schema::{
    DataType, Dimension, DimensionValue, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue,
    ValueInfoProto,
};

/// One dimension of a shape.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// A name. Equal names mean equal sizes throughout the model.
    Named(String),
    /// Unknown.
    Unknown,
}

/// Formats the dimension as part of a shape: `[1, 3, height, ?]`.
impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(size) => write!(f, "{size}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// Element type and, if known, shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// ONNX element type.
    pub element: DataType,
    /// Shape, or `None` if even the rank is unknown.
    pub shape: Option<Vec<Dim>>,
}

impl ValueInfoProto {
    /// A value with its type. Unknown dimensions have no value.
    pub fn new(name: &str, tensor: &TensorType) -> ValueInfoProto {
        let dimension = |d: &Dim| Dimension {
            value: match d {
                Dim::Known(size) => Some(DimensionValue::DimValue(*size as i64)),
                Dim::Named(name) => Some(DimensionValue::DimParam(name.clone())),
                Dim::Unknown => None,
            },
            denotation: None,
        };
        let shape = tensor.shape.as_ref().map(|dims| TensorShapeProto {
            dim: dims.iter().map(dimension).collect(),
        });
        let value = TensorTypeProto {
            elem_type: Some(tensor.element as i32),
            shape,
        };
        ValueInfoProto {
            name: Some(name.to_owned()),
            r#type: Some(TypeProto {
                value: Some(TypeValue::TensorType(value)),
                denotation: None,
            }),
            ..ValueInfoProto::default()
        }
    }

    /// Sets the element type of a tensor.
    pub fn set_element(&mut self, element: DataType) {
        let kind = self.r#type.as_mut().and_then(|kind| kind.value.as_mut());
        if let Some(TypeValue::TensorType(tensor)) = kind {
            tensor.elem_type = Some(element as i32);
        }
    }
}

/// The tensor type that a `ValueInfoProto` declares, or `None` for sequences, maps and others.
pub fn tensor_type_of(value: &ValueInfoProto) -> Option<TensorType> {
    let Some(TypeValue::TensorType(t)) = value.r#type.as_ref()?.value.as_ref() else {
        return None;
    };
    let element = DataType::try_from(t.elem_type?).ok()?;
    let shape = t.shape.as_ref().map(|s| {
        let dim = |d: &Dimension| match &d.value {
            Some(DimensionValue::DimValue(v)) if *v >= 0 => Dim::Known(*v as usize),
            Some(DimensionValue::DimParam(p)) if !p.is_empty() => Dim::Named(p.clone()),
            _ => Dim::Unknown,
        };
        s.dim.iter().map(dim).collect()
    });
    Some(TensorType { element, shape })
}
