//! float16 numbers.

pub(crate) use octet_onnx::half::SMALLEST_HALF as SMALLEST;
pub(crate) use octet_onnx::half::TOO_LARGE_FOR_HALF as TOO_LARGE;
use octet_onnx::half::narrow_half;

/// The largest finite float16.
pub(crate) const LARGEST: f32 = 65504.0;

/// Numbers of this magnitude stand for infinity, such as those that masks add to scores.
pub(crate) const STANDS_FOR_INFINITY: f32 = 1e9;

/// float16 numbers, with counts of those that did not fit.
pub(crate) struct Float16Bytes {
    pub(crate) bytes: Vec<u8>,
    /// Numbers that float16 can't hold, and that don't stand for infinity.
    pub(crate) out_of_range: usize,
    /// Numbers that stand for infinity. Like those out of range, they became ±[`LARGEST`].
    pub(crate) too_large: usize,
    /// Numbers that became ±[`SMALLEST`] because rounding would have made them zero.
    pub(crate) too_small: usize,
}

/// Converts numbers to float16. Finite numbers stay finite, and nonzero numbers stay nonzero.
pub(crate) fn to_float16(values: &[f32]) -> Float16Bytes {
    let mut converted = Float16Bytes {
        bytes: Vec::with_capacity(values.len() * 2),
        out_of_range: 0,
        too_large: 0,
        too_small: 0,
    };
    for &value in values {
        let mut fitting = value;
        if value.is_finite() && value.abs() >= TOO_LARGE {
            match value.abs() < STANDS_FOR_INFINITY {
                true => converted.out_of_range += 1,
                false => converted.too_large += 1,
            }
            fitting = LARGEST.copysign(value);
        } else if value != 0.0 && value.abs() <= SMALLEST / 2.0 {
            converted.too_small += 1;
            fitting = SMALLEST.copysign(value);
        }
        converted.bytes.extend(narrow_half(fitting).to_le_bytes());
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::half::widen_half;

    #[test]
    fn numbers_out_of_range_become_its_ends_and_are_counted() {
        let converted = to_float16(&[
            65519.0,
            65520.0,
            -1e38,
            f32::NEG_INFINITY,
            1e-8,
            -3e-8,
            4e-8,
            0.0,
        ]);
        let numbers: Vec<f32> = converted
            .bytes
            .chunks(2)
            .map(|b| widen_half(u16::from_le_bytes([b[0], b[1]])))
            .collect();
        let (large, small) = (LARGEST, SMALLEST);
        let wanted = [
            large,
            large,
            -large,
            f32::NEG_INFINITY,
            small,
            -small,
            small,
            0.0,
        ];
        assert_eq!(numbers, wanted);
        assert_eq!((converted.too_large, converted.too_small), (1, 1));
        assert_eq!(converted.out_of_range, 1);
    }
}
