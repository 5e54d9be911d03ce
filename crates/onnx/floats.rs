//! Bytes of floats of any type as f32, and back.

use bytes::Bytes;
use octet_kernels::LittleEndianFloats;

use super::half::narrow_half;
use super::schema::{DataType, TensorProto};
use super::tensor::TensorError;

impl DataType {
    /// The numbers in these bytes; `None` for other types than floats.
    pub fn float_bytes(self, bytes: &[u8]) -> Option<LittleEndianFloats<'_>> {
        Some(match self {
            DataType::Float => LittleEndianFloats::Float(bytes.as_chunks().0),
            DataType::Float16 => LittleEndianFloats::Half(bytes.as_chunks().0),
            DataType::Bfloat16 => LittleEndianFloats::Brain(bytes.as_chunks().0),
            DataType::Double => LittleEndianFloats::Double(bytes.as_chunks().0),
            _ => return None,
        })
    }

    /// The numbers in these bytes as f32. Doubles are rounded; other types than floats give none.
    pub fn floats(self, bytes: &[u8]) -> Vec<f32> {
        let Some(numbers) = self.float_bytes(bytes) else {
            return Vec::new();
        };
        let mut floats = vec![0.0; numbers.len()];
        numbers.read_all(&mut floats);
        floats
    }

    /// The bytes of these numbers in a float type, each rounded to the nearest. Other types than
    /// floats give none.
    pub fn bytes_of(self, floats: impl Iterator<Item = f32>) -> Vec<u8> {
        match self {
            DataType::Float => flat(floats.map(f32::to_le_bytes)),
            DataType::Float16 => flat(floats.map(|f| narrow_half(f).to_le_bytes())),
            DataType::Bfloat16 => {
                let high = |f: f32| (self.rounded(f).to_bits() >> 16) as u16;
                flat(floats.map(|f| high(f).to_le_bytes()))
            }
            DataType::Double => flat(floats.map(|f| f64::from(f).to_le_bytes())),
            _ => Vec::new(),
        }
    }
}

impl TensorProto {
    /// The bytes of a tensor of floats, in its own type.
    pub fn float_bytes(&self) -> Result<Bytes, TensorError> {
        match &self.raw_data {
            Some(raw) => Ok(raw.clone()),
            None => {
                let floats = self.to_f32()?.into_iter();
                Ok(self.element()?.bytes_of(floats).into())
            }
        }
    }
}

fn flat<const SIZE: usize>(numbers: impl Iterator<Item = [u8; SIZE]>) -> Vec<u8> {
    Vec::from_iter(numbers).into_flattened()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_type_round_trip() {
        let numbers = [0.0, -0.0, 1.0, -2.5, 0.15625, 65504.0];
        for element in [
            DataType::Float,
            DataType::Float16,
            DataType::Bfloat16,
            DataType::Double,
        ] {
            let bytes = element.bytes_of(numbers.into_iter());
            assert_eq!(bytes.len() * 8, numbers.len() * element.bits().unwrap());
            let rounded = numbers.map(|number| element.rounded(number));
            assert_eq!(element.floats(&bytes), rounded, "{element:?}");
        }
        assert_eq!(DataType::Int8.floats(&[1, 2, 3, 4]), []);
    }
}
