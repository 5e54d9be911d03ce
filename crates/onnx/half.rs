//! 16-bit floats. float16 has 1 sign bit, 5 exponent bits and 10 fraction bits; bfloat16 is the
//! upper half of a float32. Float32 represents all of their values.

use super::little_endian::append;
use super::schema::{DataType, StringStringEntryProto, TensorProto};
use super::tensor::TensorError;
use octet_kernels::half::widen_brain;

pub use octet_kernels::half::{
    LEAST_NORMAL_HALF, SMALLEST_HALF, TOO_LARGE_FOR_HALF, narrow_half, widen_half,
};

impl DataType {
    /// Returns true for 16-bit floats.
    #[inline]
    pub fn is_half(self) -> bool {
        matches!(self, DataType::Float16 | DataType::Bfloat16)
    }

    /// Returns true for floats of 16, 32 or 64 bits.
    #[inline]
    pub fn is_float(self) -> bool {
        self.is_half() || matches!(self, DataType::Float | DataType::Double)
    }

    /// The conversion from the bits of this 16-bit float type to f32, or `None` for other types.
    pub(super) fn widen(self) -> Option<fn(u16) -> f32> {
        match self {
            DataType::Float16 => Some(widen_half),
            DataType::Bfloat16 => Some(widen_brain),
            _ => None,
        }
    }

    /// Rounds to the nearest value of this 16-bit float type, ties to even; overflow gives
    /// infinity. Other types return the value unchanged.
    #[inline]
    pub fn rounded(self, value: f32) -> f32 {
        match self {
            DataType::Float16 => widen_half(narrow_half(value)),
            DataType::Bfloat16 if value.is_finite() => {
                let bits = value.to_bits();
                let even = (bits >> 16) & 1;
                // A fraction that rounds up to the next power of two correctly carries into the
                // exponent.
                f32::from_bits((bits + 0x7fff + even) & 0xffff_0000)
            }
            _ => value,
        }
    }
}

/// Key of the entry that tells the type from which a constant was widened.
const WIDENED_FROM: &str = "octet.widened_from";

impl TensorProto {
    /// The 16-bit type from which this float32 constant was widened, if a pass noted it. The data of
    /// an external constant still has that type.
    pub fn widened_from(&self) -> Option<DataType> {
        let mut entries = self.metadata_props.iter();
        let entry = entries.find(|entry| entry.key.as_deref() == Some(WIDENED_FROM))?;
        match entry.value.as_deref()? {
            "float16" => Some(DataType::Float16),
            "bfloat16" => Some(DataType::Bfloat16),
            _ => None,
        }
    }

    /// Notes the type from which this constant was widened; `None` removes the note.
    pub fn note_widened_from(&mut self, element: Option<DataType>) {
        let is_other = |entry: &StringStringEntryProto| entry.key.as_deref() != Some(WIDENED_FROM);
        self.metadata_props.retain(is_other);
        let value = match element {
            Some(DataType::Float16) => "float16",
            Some(DataType::Bfloat16) => "bfloat16",
            _ => return,
        };
        self.metadata_props.push(StringStringEntryProto {
            key: Some(WIDENED_FROM.to_owned()),
            value: Some(value.to_owned()),
        });
    }

    /// Converts 16-bit floats to float32 and keeps everything else. Returns `None` for other types.
    pub fn widened(&self) -> Result<Option<TensorProto>, TensorError> {
        let element = DataType::try_from(self.data_type.unwrap_or(0)).ok();
        let Some(widen) = element.and_then(DataType::widen) else {
            return Ok(None);
        };
        self.present()?;
        let mut raw = Vec::new();
        match &self.raw_data {
            Some(halves) => append(&mut raw, halves.as_chunks().0, |bits| {
                widen(u16::from_le_bytes(bits)).to_le_bytes()
            }),
            None => append(&mut raw, &self.int32_data, |bits| {
                widen(bits as u16).to_le_bytes()
            }),
        }
        Ok(Some(TensorProto {
            dims: self.dims.clone(),
            data_type: Some(DataType::Float as i32),
            raw_data: Some(raw.into()),
            name: self.name.clone(),
            doc_string: self.doc_string.clone(),
            metadata_props: self.metadata_props.clone(),
            ..TensorProto::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_to_the_nearest_value_of_their_type() {
        for (element, value, wanted) in [
            (DataType::Float16, 0.1, 0.099_975_586),
            (DataType::Float16, 65519.0, 65504.0),
            (DataType::Float16, 65520.0, f32::INFINITY),
            (DataType::Bfloat16, 1.003_906_3, 1.0),
            (DataType::Bfloat16, 1.011_718_8, 1.015_625),
            (DataType::Bfloat16, 0.1, 0.100_097_656),
            (DataType::Bfloat16, f32::MAX, f32::INFINITY),
            (DataType::Float, 0.1, 0.1),
        ] {
            assert_eq!(element.rounded(value), wanted, "{element:?}");
            assert_eq!(element.rounded(-value), -wanted, "{element:?}");
        }
        assert!(DataType::Bfloat16.rounded(f32::NAN).is_nan());
    }

    #[test]
    fn widening_works_for_both_fields_and_keeps_the_rest() {
        let halves = [0x3c00u16, 0xc000, 0x0001, 0x8000, 0x7c00];
        let numbers = [1.0, -2.0, SMALLEST_HALF, -0.0, f32::INFINITY];
        let raw: Vec<u8> = halves.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let packed = TensorProto {
            doc_string: Some("said".into()),
            ..TensorProto::from_raw("h", DataType::Float16, &[5], raw.into())
        };
        let spread = TensorProto {
            raw_data: None,
            int32_data: halves.iter().map(|&bits| bits.into()).collect(),
            ..packed.clone()
        };
        let wanted = TensorProto {
            doc_string: Some("said".into()),
            ..TensorProto::from_f32("h", &[5], &numbers)
        };
        for tensor in [packed, spread] {
            assert_eq!(tensor.widened().unwrap(), Some(wanted.clone()));
        }
        assert_eq!(wanted.widened().unwrap(), None);
    }
}
