//! Type information of a value: name, type and shape.

use prost::{Message, Oneof};

use super::StringStringEntryProto;

/// Name and type of a value.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct ValueInfoProto {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    #[prost(string, optional, tag = "3")]
    pub doc_string: Option<String>,
    #[prost(message, repeated, tag = "4")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// Type of a value.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct TypeProto {
    #[prost(string, optional, tag = "6")]
    pub denotation: Option<String>,
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 7, 8, 9")]
    pub value: Option<TypeValue>,
}

/// Kinds of [`TypeProto`].
#[derive(Clone, PartialEq, Oneof)]
#[allow(missing_docs)]
pub enum TypeValue {
    #[prost(message, tag = "1")]
    TensorType(TensorTypeProto),
    #[prost(message, tag = "4")]
    SequenceType(Box<SequenceTypeProto>),
    #[prost(message, tag = "5")]
    MapType(Box<MapTypeProto>),
    #[prost(message, tag = "7")]
    OpaqueType(OpaqueTypeProto),
    #[prost(message, tag = "8")]
    SparseTensorType(TensorTypeProto),
    #[prost(message, tag = "9")]
    OptionalType(Box<OptionalTypeProto>),
}

/// `TypeProto.Tensor` and `TypeProto.SparseTensor`, which have equal fields.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// `TypeProto.Sequence`
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct SequenceTypeProto {
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// `TypeProto.Map`
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct MapTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub key_type: Option<i32>,
    #[prost(message, optional, boxed, tag = "2")]
    pub value_type: Option<Box<TypeProto>>,
}

/// `TypeProto.Optional`
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct OptionalTypeProto {
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// `TypeProto.Opaque`
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct OpaqueTypeProto {
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A shape: each dimension is a number, a name or unknown.
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// One dimension of a [`TensorShapeProto`].
#[derive(Clone, PartialEq, Message)]
#[allow(missing_docs)]
pub struct Dimension {
    #[prost(string, optional, tag = "3")]
    pub denotation: Option<String>,
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// A known or a named dimension.
#[derive(Clone, PartialEq, Oneof)]
#[allow(missing_docs)]
pub enum DimensionValue {
    #[prost(int64, tag = "1")]
    DimValue(i64),
    #[prost(string, tag = "2")]
    DimParam(String),
}
