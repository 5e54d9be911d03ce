//! A tensor message: type, shape, validation and construction. See `numbers.rs` for its
//! values.

use std::fmt;

use bytes::Bytes;

use super::little_endian::append;
use super::schema::{DataLocation, DataType, TensorProto};
use crate::in_memory::{Tensor, Values};

/// Errors in a tensor message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TensorError {
    #[error("tensor {tensor} has the unknown element type {actual}: export the model again")]
    Element { tensor: String, actual: i32 },
    #[error(
        "tensor {tensor} has the impossible shape {dims:?}: the file is damaged; export it again"
    )]
    Shape { tensor: String, dims: Vec<i64> },
    #[error(
        "tensor {tensor} holds {actual} {unit}, but its shape and type require {expected}: the file is damaged; download or export it again"
    )]
    Length {
        tensor: String,
        actual: usize,
        expected: usize,
        unit: LengthUnit,
    },
    #[error(
        "tensor {tensor} is stored in another file, which is missing: add that file beside the model"
    )]
    External { tensor: String },
    #[error("tensor {tensor} has type {actual:?}, but {expected} are required")]
    Unsupported {
        tensor: String,
        actual: DataType,
        expected: NumberKind,
    },
    #[error(
        "tensor {tensor} is stored in segments, which no known tool writes: export the model again"
    )]
    Segment { tensor: String },
}

/// Unit of a tensor's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LengthUnit {
    Bytes,
    Numbers,
    Strings,
}

impl fmt::Display for LengthUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LengthUnit::Bytes => "bytes",
            LengthUnit::Numbers => "numbers",
            LengthUnit::Strings => "strings",
        })
    }
}

/// Kind of numbers that a caller requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// Floats of any size.
    Floats,
    /// Integers of any size, or bool.
    Integers,
    /// Numbers that a tensor in memory holds.
    Plain,
}

impl fmt::Display for NumberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberKind::Floats => "floats",
            NumberKind::Integers => "integers",
            NumberKind::Plain => "plain numbers",
        })
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DataType {
    /// The name of the type as ONNX users know it.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Undefined => "no type",
            DataType::Float => "float32",
            DataType::Uint8 => "uint8",
            DataType::Int8 => "int8",
            DataType::Uint16 => "uint16",
            DataType::Int16 => "int16",
            DataType::Int32 => "int32",
            DataType::Int64 => "int64",
            DataType::String => "string",
            DataType::Bool => "bool",
            DataType::Float16 => "float16",
            DataType::Double => "float64",
            DataType::Uint32 => "uint32",
            DataType::Uint64 => "uint64",
            DataType::Complex64 => "complex64",
            DataType::Complex128 => "complex128",
            DataType::Bfloat16 => "bfloat16",
            DataType::Float8e4m3fn => "float8e4m3fn",
            DataType::Float8e4m3fnuz => "float8e4m3fnuz",
            DataType::Float8e5m2 => "float8e5m2",
            DataType::Float8e5m2fnuz => "float8e5m2fnuz",
            DataType::Uint4 => "uint4",
            DataType::Int4 => "int4",
            DataType::Float4e2m1 => "float4e2m1",
            DataType::Float8e8m0 => "float8e8m0",
            DataType::Uint2 => "uint2",
            DataType::Int2 => "int2",
            DataType::Float6e2m3 => "float6e2m3",
            DataType::Float6e3m2 => "float6e3m2",
        }
    }

    /// Bits per element, or `None` for types without a fixed size.
    pub fn bits(self) -> Option<usize> {
        use DataType::*;
        Some(match self {
            Undefined | String => return None,
            Uint2 | Int2 => 2,
            Uint4 | Int4 | Float4e2m1 => 4,
            Float6e2m3 | Float6e3m2 => 6,
            Uint8 | Int8 | Bool | Float8e4m3fn | Float8e4m3fnuz | Float8e5m2 | Float8e5m2fnuz
            | Float8e8m0 => 8,
            Uint16 | Int16 | Float16 | Bfloat16 => 16,
            Float | Int32 | Uint32 => 32,
            Int64 | Uint64 | Double | Complex64 => 64,
            Complex128 => 128,
        })
    }
}

impl TensorProto {
    /// Display name; tensors in attributes often have no name.
    pub fn title(&self) -> &str {
        self.name
            .as_deref()
            .filter(|n| !n.is_empty())
            .unwrap_or("(without a name)")
    }

    /// Returns true if the bytes are in another file.
    pub fn is_external(&self) -> bool {
        self.data_location == Some(DataLocation::External as i32)
    }

    /// Element type.
    pub fn element(&self) -> Result<DataType, TensorError> {
        let actual = self.data_type.unwrap_or(0);
        DataType::try_from(actual)
            .ok()
            .filter(|&e| e != DataType::Undefined)
            .ok_or_else(|| TensorError::Element {
                tensor: self.title().to_owned(),
                actual,
            })
    }

    /// Size of each axis.
    pub fn shape(&self) -> Result<Vec<usize>, TensorError> {
        self.dims
            .iter()
            .map(|&d| usize::try_from(d))
            .collect::<Result<_, _>>()
            .map_err(|_| self.impossible())
    }

    /// Number of elements according to the shape.
    pub fn element_count(&self) -> Result<usize, TensorError> {
        let shape = self.shape()?;
        shape
            .iter()
            .try_fold(1usize, |a, &d| a.checked_mul(d))
            .filter(|&count| count <= usize::MAX / 128)
            .ok_or_else(|| self.impossible())
    }

    /// Number of bytes in ONNX's packing; 0 for strings.
    pub fn byte_len(&self) -> Result<usize, TensorError> {
        let bits = self.element()?.bits().unwrap_or(0) as u128;
        Ok((self.element_count()? as u128 * bits).div_ceil(8) as usize)
    }

    /// Number of bytes in ONNX's packing, also of tensors larger than the memory; 0 for strings.
    pub fn stored_bytes(&self) -> Result<u64, TensorError> {
        let bits = self.element()?.bits().unwrap_or(0) as u64;
        let mut sizes = self.shape()?.into_iter().map(|size| size as u64);
        let count = sizes.try_fold(1u64, |count, size| count.checked_mul(size));
        let bits = count.and_then(|count| count.checked_mul(bits));
        Ok(bits.ok_or_else(|| self.impossible())?.div_ceil(8))
    }

    pub(super) fn impossible(&self) -> TensorError {
        TensorError::Shape {
            tensor: self.title().to_owned(),
            dims: self.dims.clone(),
        }
    }

    /// Checks that the tensor holds as many values as its shape and type require.
    pub fn check(&self) -> Result<(), TensorError> {
        let element = self.element()?;
        let count = self.element_count()?;
        if self.segment.is_some() {
            return Err(TensorError::Segment {
                tensor: self.title().to_owned(),
            });
        }
        let length = |actual, expected, unit| {
            if actual == expected {
                return Ok(());
            }
            Err(TensorError::Length {
                tensor: self.title().to_owned(),
                actual,
                expected,
                unit,
            })
        };
        if let (Some(raw), true) = (&self.raw_data, element != DataType::String) {
            return length(raw.len(), self.byte_len()?, LengthUnit::Bytes);
        }
        use DataType::*;
        match element {
            String => length(self.string_data.len(), count, LengthUnit::Strings),
            Float => length(self.float_data.len(), count, LengthUnit::Numbers),
            Complex64 => length(self.float_data.len(), count * 2, LengthUnit::Numbers),
            Double => length(self.double_data.len(), count, LengthUnit::Numbers),
            Complex128 => length(self.double_data.len(), count * 2, LengthUnit::Numbers),
            Int64 => length(self.int64_data.len(), count, LengthUnit::Numbers),
            Uint32 | Uint64 => length(self.uint64_data.len(), count, LengthUnit::Numbers),
            // Several elements per entry.
            Uint4 | Int4 | Float4e2m1 | Uint2 | Int2 | Float6e2m3 | Float6e3m2 => {
                length(self.int32_data.len(), self.byte_len()?, LengthUnit::Bytes)
            }
            _ => length(self.int32_data.len(), count, LengthUnit::Numbers),
        }
    }

    /// A message of this name with the tensor's values as raw bytes.
    pub fn from_tensor(name: &str, tensor: &Tensor) -> TensorProto {
        let mut raw = Vec::new();
        macro_rules! all {
            ($values:expr) => {
                append(&mut raw, $values, |value| value.to_le_bytes())
            };
        }
        match tensor.values() {
            Values::F32(v) => all!(v),
            Values::F64(v) => all!(v),
            Values::I8(v) => all!(v),
            Values::I16(v) => all!(v),
            Values::I32(v) => all!(v),
            Values::I64(v) => all!(v),
            Values::U8(v) => all!(v),
            Values::U16(v) => all!(v),
            Values::U32(v) => all!(v),
            Values::U64(v) => all!(v),
            Values::Bool(v) => append(&mut raw, v, |value| [value.into()]),
        }
        TensorProto::from_raw(name, tensor.element_type(), tensor.shape(), raw.into())
    }

    /// The transpose of a float matrix, with the same name. Returns `None` for tensors of another
    /// rank.
    pub fn transposed(&self) -> Result<Option<TensorProto>, TensorError> {
        let &[rows, columns] = self.shape()?.as_slice() else {
            return Ok(None);
        };
        let values = self.to_f32()?;
        let transposed: Vec<f32> = (0..columns)
            .flat_map(|column| (0..rows).map(move |row| row * columns + column))
            .map(|index| values[index])
            .collect();
        let transposed = TensorProto::from_f32(self.title(), &[columns, rows], &transposed);
        Ok(Some(transposed))
    }

    /// A message of this name for bytes in ONNX's packing.
    pub fn from_raw(name: &str, element: DataType, shape: &[usize], raw: Bytes) -> TensorProto {
        TensorProto {
            name: Some(name.to_owned()),
            dims: shape.iter().map(|&d| d as i64).collect(),
            data_type: Some(element as i32),
            raw_data: Some(raw),
            ..TensorProto::default()
        }
    }
}

macro_rules! from_numbers {
    ($($function:ident, $number:ty, $element:ident;)*) => {
        impl TensorProto {
            $(
                #[doc = concat!("A tensor of `", stringify!($number), "`; the product of `shape` is the number of values.")]
                pub fn $function(name: &str, shape: &[usize], values: &[$number]) -> TensorProto {
                    debug_assert_eq!(shape.iter().product::<usize>(), values.len());
                    let mut raw = Vec::new();
                    append(&mut raw, values, |value| value.to_le_bytes());
                    TensorProto::from_raw(name, DataType::$element, shape, raw.into())
                }
            )*
        }
    };
}

from_numbers! {
    from_f32, f32, Float;
    from_f64, f64, Double;
    from_i64, i64, Int64;
    from_i32, i32, Int32;
    from_i16, i16, Int16;
    from_i8, i8, Int8;
    from_u8, u8, Uint8;
    from_u16, u16, Uint16;
}
