//! The numbers of a tensor message, whichever of its fields holds them.

use bytes::Bytes;

use super::schema::{DataLocation, DataType, TensorProto};
use crate::tensor::{Tensor, Values};

/// What is wrong with a tensor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TensorError {
    #[error(
        "tensor {tensor} is of element type {given}, which is not known: export the model again"
    )]
    Element { tensor: String, given: i32 },
    #[error(
        "tensor {tensor} has the impossible shape {dims:?}: the file is damaged; export it again"
    )]
    Shape { tensor: String, dims: Vec<i64> },
    #[error(
        "tensor {tensor} holds {given} {unit}, its shape and type want {wanted}: the file is damaged; download or export it again"
    )]
    Length {
        tensor: String,
        given: usize,
        wanted: usize,
        unit: &'static str,
    },
    #[error(
        "tensor {tensor} is kept in another file that is not here: add the file beside the model"
    )]
    External { tensor: String },
    #[error("tensor {tensor} is {given:?}, where {wanted} were needed")]
    Unsupported {
        tensor: String,
        given: DataType,
        wanted: &'static str,
    },
    #[error(
        "tensor {tensor} is stored in segments, which no known tool writes: export the model again"
    )]
    Segment { tensor: String },
}

impl DataType {
    /// The name ONNX's users know the type by.
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

    /// Bits of one element; `None` where they have no fixed size or can't be elements.
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
    /// The name, for a person: nameless ones (attributes have them) say so.
    pub fn title(&self) -> &str {
        self.name
            .as_deref()
            .filter(|n| !n.is_empty())
            .unwrap_or("(without a name)")
    }

    /// Whether the bytes are in another file.
    pub fn is_external(&self) -> bool {
        self.data_location == Some(DataLocation::External as i32)
    }

    /// The element type.
    pub fn element(&self) -> Result<DataType, TensorError> {
        let given = self.data_type.unwrap_or(0);
        DataType::try_from(given)
            .ok()
            .filter(|&e| e != DataType::Undefined)
            .ok_or_else(|| TensorError::Element {
                tensor: self.title().to_owned(),
                given,
            })
    }

    /// The size of each axis.
    pub fn shape(&self) -> Result<Vec<usize>, TensorError> {
        self.dims
            .iter()
            .map(|&d| usize::try_from(d))
            .collect::<Result<_, _>>()
            .map_err(|_| self.impossible())
    }

    /// How many elements the shape says there are.
    pub fn element_count(&self) -> Result<usize, TensorError> {
        let shape = self.shape()?;
        shape
            .iter()
            .try_fold(1usize, |a, &d| a.checked_mul(d))
            .filter(|&count| count <= usize::MAX / 128)
            .ok_or_else(|| self.impossible())
    }

    /// How many bytes that is, packed as ONNX packs them; 0 for strings.
    pub fn byte_len(&self) -> Result<usize, TensorError> {
        let bits = self.element()?.bits().unwrap_or(0) as u128;
        Ok((self.element_count()? as u128 * bits).div_ceil(8) as usize)
    }

    fn impossible(&self) -> TensorError {
        TensorError::Shape {
            tensor: self.title().to_owned(),
            dims: self.dims.clone(),
        }
    }

    /// That the tensor holds as much as its shape and type say.
    pub fn check(&self) -> Result<(), TensorError> {
        let element = self.element()?;
        let count = self.element_count()?;
        if self.segment.is_some() {
            return Err(TensorError::Segment {
                tensor: self.title().to_owned(),
            });
        }
        let length = |given, wanted, unit| {
            if given == wanted {
                return Ok(());
            }
            Err(TensorError::Length {
                tensor: self.title().to_owned(),
                given,
                wanted,
                unit,
            })
        };
        if let (Some(raw), true) = (&self.raw_data, element != DataType::String) {
            return length(raw.len(), self.byte_len()?, "bytes");
        }
        use DataType::*;
        match element {
            String => length(self.string_data.len(), count, "strings"),
            Float => length(self.float_data.len(), count, "numbers"),
            Complex64 => length(self.float_data.len(), count * 2, "numbers"),
            Double => length(self.double_data.len(), count, "numbers"),
            Complex128 => length(self.double_data.len(), count * 2, "numbers"),
            Int64 => length(self.int64_data.len(), count, "numbers"),
            Uint32 | Uint64 => length(self.uint64_data.len(), count, "numbers"),
            // Several to one entry.
            Uint4 | Int4 | Float4e2m1 | Uint2 | Int2 | Float6e2m3 | Float6e3m2 => {
                length(self.int32_data.len(), self.byte_len()?, "bytes")
            }
            _ => length(self.int32_data.len(), count, "numbers"),
        }
    }

    /// The numbers as `f32`, from any float type (halves are widened, doubles rounded).
    pub fn to_f32(&self) -> Result<Vec<f32>, TensorError> {
        self.present()?;
        let halves = |widen: fn(u16) -> f32| match &self.raw_data {
            Some(raw) => little(raw, |b| widen(u16::from_le_bytes(b))),
            None => self.int32_data.iter().map(|&v| widen(v as u16)).collect(),
        };
        match self.element()? {
            DataType::Float => Ok(match &self.raw_data {
                Some(raw) => little(raw, f32::from_le_bytes),
                None => self.float_data.clone(),
            }),
            DataType::Double => Ok(match &self.raw_data {
                Some(raw) => little(raw, |b| f64::from_le_bytes(b) as f32),
                None => self.double_data.iter().map(|&v| v as f32).collect(),
            }),
            DataType::Float16 => Ok(halves(widen_half)),
            DataType::Bfloat16 => Ok(halves(|v| f32::from_bits(u32::from(v) << 16))),
            given => Err(self.unsupported(given, "floats")),
        }
    }

    /// The numbers as `i64`, from any integer type or bool.
    pub fn to_i64(&self) -> Result<Vec<i64>, TensorError> {
        self.present()?;
        let given = self.element()?;
        use DataType::*;
        Ok(match (given, &self.raw_data) {
            (Int64, Some(raw)) => little(raw, i64::from_le_bytes),
            (Uint64, Some(raw)) => little(raw, |b| u64::from_le_bytes(b) as i64),
            (Int32, Some(raw)) => little(raw, |b| i32::from_le_bytes(b).into()),
            (Uint32, Some(raw)) => little(raw, |b| u32::from_le_bytes(b).into()),
            (Int16, Some(raw)) => little(raw, |b| i16::from_le_bytes(b).into()),
            (Uint16, Some(raw)) => little(raw, |b| u16::from_le_bytes(b).into()),
            (Int8, Some(raw)) => raw.iter().map(|&b| (b as i8).into()).collect(),
            (Uint8 | Bool, Some(raw)) => raw.iter().map(|&b| b.into()).collect(),
            (Int4 | Uint4, Some(raw)) => self.nibbles(raw.iter().copied(), given)?,
            (Int4 | Uint4, None) => {
                self.nibbles(self.int32_data.iter().map(|&v| v as u8), given)?
            }
            (Int64, None) => self.int64_data.clone(),
            (Uint32 | Uint64, None) => self.uint64_data.iter().map(|&v| v as i64).collect(),
            (Int8 | Int16 | Int32 | Uint8 | Uint16 | Bool, None) => {
                self.int32_data.iter().map(|&v| v.into()).collect()
            }
            _ => return Err(self.unsupported(given, "integers")),
        })
    }

    /// Two integers of four bits a byte, the low half first.
    fn nibbles(
        &self,
        bytes: impl Iterator<Item = u8>,
        element: DataType,
    ) -> Result<Vec<i64>, TensorError> {
        let halves = bytes.flat_map(|byte| [byte & 15, byte >> 4]);
        let value = |half: u8| match element {
            // Two's complement: the top bit of four counts -8.
            DataType::Int4 => i64::from(half ^ 8) - 8,
            _ => i64::from(half),
        };
        Ok(halves.map(value).take(self.element_count()?).collect())
    }

    fn present(&self) -> Result<(), TensorError> {
        if self.is_external() {
            return Err(TensorError::External {
                tensor: self.title().to_owned(),
            });
        }
        self.check()
    }

    fn unsupported(&self, given: DataType, wanted: &'static str) -> TensorError {
        TensorError::Unsupported {
            tensor: self.title().to_owned(),
            given,
            wanted,
        }
    }

    /// The tensor as numbers in memory.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        let element = self.element()?;
        let integers = || self.to_i64();
        use DataType::*;
        let values = match element {
            Float | Float16 | Bfloat16 => Values::F32(self.to_f32()?),
            Double => {
                self.present()?;
                Values::F64(match &self.raw_data {
                    Some(raw) => little(raw, f64::from_le_bytes),
                    None => self.double_data.clone(),
                })
            }
            Int64 => Values::I64(integers()?),
            Int32 => Values::I32(integers()?.into_iter().map(|v| v as i32).collect()),
            Int16 => Values::I16(integers()?.into_iter().map(|v| v as i16).collect()),
            Int8 => Values::I8(integers()?.into_iter().map(|v| v as i8).collect()),
            Uint64 => Values::U64(integers()?.into_iter().map(|v| v as u64).collect()),
            Uint32 => Values::U32(integers()?.into_iter().map(|v| v as u32).collect()),
            Uint16 => Values::U16(integers()?.into_iter().map(|v| v as u16).collect()),
            Uint8 => Values::U8(integers()?.into_iter().map(|v| v as u8).collect()),
            Bool => Values::Bool(integers()?.into_iter().map(|v| v != 0).collect()),
            given => return Err(self.unsupported(given, "plain numbers")),
        };
        Tensor::new(self.shape()?, values).ok_or_else(|| self.impossible())
    }

    /// A message of that name with the tensor's numbers as raw bytes.
    pub fn from_tensor(name: &str, tensor: &Tensor) -> TensorProto {
        let raw: Vec<u8> = match tensor.values() {
            Values::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I8(v) => v.iter().map(|&v| v as u8).collect(),
            Values::I16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::U8(v) => v.clone(),
            Values::U16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::U32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::U64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Bool(v) => v.iter().map(|&v| v.into()).collect(),
        };
        TensorProto::from_raw(name, tensor.element_type(), tensor.shape(), raw.into())
    }

    /// A message of that name around bytes as ONNX packs them.
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
                    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
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

/// Every `N` bytes as one number.
fn little<const N: usize, T>(raw: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    raw.as_chunks::<N>()
        .0
        .iter()
        .map(|&chunk| number(chunk))
        .collect()
}

/// IEEE half precision to single, exactly.
fn widen_half(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    // Move exponent and fraction into place, then correct the exponent's bias (127 - 15 = 112) by
    // a multiplication, which also normalises subnormals; infinities and NaNs need the full exponent.
    let widened = if magnitude >= 0x7c00 {
        f32::from_bits(magnitude << 13 | 0x7f80_0000)
    } else {
        f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23)
    };
    f32::from_bits(widened.to_bits() | sign)
}
