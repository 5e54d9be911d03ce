//! A tensor in memory: a decoded sample, or an output of a run.

use crate::schema::DataType;

/// Elements of a [`Tensor`] in row-major order.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
}

impl Values {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
            Values::I8(v) => v.len(),
            Values::I16(v) => v.len(),
            Values::I32(v) => v.len(),
            Values::I64(v) => v.len(),
            Values::U8(v) => v.len(),
            Values::U16(v) => v.len(),
            Values::U32(v) => v.len(),
            Values::U64(v) => v.len(),
            Values::Bool(v) => v.len(),
        }
    }

    /// Returns true if there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// ONNX element type.
    #[inline]
    pub fn element_type(&self) -> DataType {
        match self {
            Values::F32(_) => DataType::Float,
            Values::F64(_) => DataType::Double,
            Values::I8(_) => DataType::Int8,
            Values::I16(_) => DataType::Int16,
            Values::I32(_) => DataType::Int32,
            Values::I64(_) => DataType::Int64,
            Values::U8(_) => DataType::Uint8,
            Values::U16(_) => DataType::Uint16,
            Values::U32(_) => DataType::Uint32,
            Values::U64(_) => DataType::Uint64,
            Values::Bool(_) => DataType::Bool,
        }
    }
}

/// Elements and their shape; the product of `shape` is the number of elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// A tensor, or `None` if the shape and the number of elements disagree.
    #[inline]
    pub fn new(shape: Vec<usize>, values: Values) -> Option<Tensor> {
        let count = shape.iter().try_fold(1usize, |a, &d| a.checked_mul(d))?;
        (count == values.len()).then_some(Tensor { shape, values })
    }

    /// Size of each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    #[inline]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Takes the elements.
    #[inline]
    pub fn into_values(self) -> Values {
        self.values
    }

    /// ONNX element type.
    #[inline]
    pub fn element_type(&self) -> DataType {
        self.values.element_type()
    }

    /// The elements as `f32`, if this is their type.
    #[inline]
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.values {
            Values::F32(v) => Some(v),
            _ => None,
        }
    }
}
