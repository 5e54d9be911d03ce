//! Values of a tensor message, from whichever field holds them.

use super::little_endian::{append, decoded};
use super::schema::{DataType, TensorProto};
use super::tensor::{NumberKind, TensorError};
use crate::in_memory::{Tensor, Values};

/// Floats decoded at a time.
const BLOCK: usize = 4096;

impl TensorProto {
    /// The values as `f32`, from any float type (16-bit floats are widened, doubles rounded).
    pub fn to_f32(&self) -> Result<Vec<f32>, TensorError> {
        self.present()?;
        let halves = |widen: fn(u16) -> f32| match &self.raw_data {
            Some(raw) => decoded(raw, |b| widen(u16::from_le_bytes(b))),
            None => self.int32_data.iter().map(|&v| widen(v as u16)).collect(),
        };
        match self.element()? {
            DataType::Float => Ok(match &self.raw_data {
                Some(raw) => decoded(raw, f32::from_le_bytes),
                None => self.float_data.clone(),
            }),
            DataType::Double => Ok(match &self.raw_data {
                Some(raw) => decoded(raw, |b| f64::from_le_bytes(b) as f32),
                None => self.double_data.iter().map(|&v| v as f32).collect(),
            }),
            actual => match actual.widen() {
                Some(widen) => Ok(halves(widen)),
                None => Err(self.unsupported(actual, NumberKind::Floats)),
            },
        }
    }

    /// Passes the values as `f32` block by block, without a second copy of a large tensor.
    pub fn each_f32_block(&self, mut each: impl FnMut(&[f32])) -> Result<(), TensorError> {
        let (Some(raw), DataType::Float) = (&self.raw_data, self.element()?) else {
            each(&self.to_f32()?);
            return Ok(());
        };
        self.present()?;
        let mut block = [0.0; BLOCK];
        for raw in raw.as_chunks().0.chunks(BLOCK) {
            let block = &mut block[..raw.len()];
            octet_kernels::decode(raw, block);
            each(block);
        }
        Ok(())
    }

    /// A tensor of this name and of the same shape with changed values. `change` gets each block of
    /// values and the index of its first.
    pub fn changed_f32(
        &self,
        name: &str,
        mut change: impl FnMut(usize, &mut [f32]),
    ) -> Result<TensorProto, TensorError> {
        self.present()?;
        let shape = self.shape()?;
        let mut raw = Vec::with_capacity(self.element_count()? * size_of::<f32>());
        let (mut first, mut floats) = (0, Vec::with_capacity(BLOCK));
        self.each_f32_block(|block| {
            floats.clear();
            floats.extend_from_slice(block);
            change(first, &mut floats);
            first += block.len();
            append(&mut raw, &floats, |float| float.to_le_bytes());
        })?;
        Ok(TensorProto::from_raw(
            name,
            DataType::Float,
            &shape,
            raw.into(),
        ))
    }

    /// The values as `i64`, from any integer type or bool.
    pub fn to_i64(&self) -> Result<Vec<i64>, TensorError> {
        self.present()?;
        let actual = self.element()?;
        use DataType::*;
        Ok(match (actual, &self.raw_data) {
            (Int64, Some(raw)) => decoded(raw, i64::from_le_bytes),
            (Uint64, Some(raw)) => decoded(raw, |b| u64::from_le_bytes(b) as i64),
            (Int32, Some(raw)) => decoded(raw, |b| i32::from_le_bytes(b).into()),
            (Uint32, Some(raw)) => decoded(raw, |b| u32::from_le_bytes(b).into()),
            (Int16, Some(raw)) => decoded(raw, |b| i16::from_le_bytes(b).into()),
            (Uint16, Some(raw)) => decoded(raw, |b| u16::from_le_bytes(b).into()),
            (Int8, Some(raw)) => raw.iter().map(|&b| (b as i8).into()).collect(),
            (Uint8 | Bool, Some(raw)) => raw.iter().map(|&b| b.into()).collect(),
            (Int4 | Uint4, Some(raw)) => self.nibbles(raw.iter().copied(), actual)?,
            (Int4 | Uint4, None) => {
                self.nibbles(self.int32_data.iter().map(|&v| v as u8), actual)?
            }
            (Int64, None) => self.int64_data.clone(),
            (Uint32 | Uint64, None) => self.uint64_data.iter().map(|&v| v as i64).collect(),
            (Int8 | Int16 | Int32 | Uint8 | Uint16 | Bool, None) => {
                self.int32_data.iter().map(|&v| v.into()).collect()
            }
            _ => return Err(self.unsupported(actual, NumberKind::Integers)),
        })
    }

    /// Unpacks two 4-bit integers per byte, the low half first.
    fn nibbles(
        &self,
        bytes: impl Iterator<Item = u8>,
        element: DataType,
    ) -> Result<Vec<i64>, TensorError> {
        let halves = bytes.flat_map(|byte| [byte & 15, byte >> 4]);
        let value = |half: u8| match element {
            // Two's complement: the top bit of four means -8.
            DataType::Int4 => i64::from(half ^ 8) - 8,
            _ => i64::from(half),
        };
        Ok(halves.map(value).take(self.element_count()?).collect())
    }

    pub(super) fn present(&self) -> Result<(), TensorError> {
        if self.is_external() {
            return Err(TensorError::External {
                tensor: self.title().to_owned(),
            });
        }
        self.check()
    }

    fn unsupported(&self, actual: DataType, expected: NumberKind) -> TensorError {
        TensorError::Unsupported {
            tensor: self.title().to_owned(),
            actual,
            expected,
        }
    }

    /// Decodes the tensor.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        let element = self.element()?;
        let integers = || self.to_i64();
        use DataType::*;
        let values = match element {
            Float | Float16 | Bfloat16 => Values::F32(self.to_f32()?),
            Double => {
                self.present()?;
                Values::F64(match &self.raw_data {
                    Some(raw) => decoded(raw, f64::from_le_bytes),
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
            actual => return Err(self.unsupported(actual, NumberKind::Plain)),
        };
        Tensor::new(self.shape()?, values).ok_or_else(|| self.impossible())
    }
}
