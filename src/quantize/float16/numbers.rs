//! Numbers in half precision: 1 bit of sign, 5 of exponent, 10 of fraction.

/// The largest finite number.
pub(super) const LARGEST: f32 = 65504.0;
/// Half of the step between the largest numbers further: from here on rounding would give infinity.
const TOO_LARGE: f32 = 65520.0;
/// The smallest number above zero, 2^-24.
pub(super) const SMALLEST: f32 = 5.960_464_5e-8;

/// Constants in half precision, and how many numbers did not fit.
pub(super) struct Halves {
    pub(super) bytes: Vec<u8>,
    /// Finite numbers that became ±[`LARGEST`].
    pub(super) too_large: usize,
    /// Numbers that became ±[`SMALLEST`], as they would have become zero.
    pub(super) too_small: usize,
}

/// The numbers in half precision; none becomes infinite or zero that was not.
pub(super) fn halves(values: &[f32]) -> Halves {
    let mut made = Halves {
        bytes: Vec::with_capacity(values.len() * 2),
        too_large: 0,
        too_small: 0,
    };
    for &value in values {
        let mut fitting = value;
        if value.is_finite() && value.abs() >= TOO_LARGE {
            made.too_large += 1;
            fitting = LARGEST.copysign(value);
        } else if value != 0.0 && value.abs() <= SMALLEST / 2.0 {
            made.too_small += 1;
            fitting = SMALLEST.copysign(value);
        }
        made.bytes.extend(narrowed(fitting).to_le_bytes());
    }
    made
}

/// The bits of the half nearest to a number, ties to even; what is too large becomes infinite.
fn narrowed(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let half = if magnitude > 0x7f80_0000 {
        0x7e00
    } else if magnitude >= TOO_LARGE.to_bits() {
        0x7c00
    } else if magnitude >= 0x3880_0000 {
        // From 2^-14 on: 13 bits of the fraction go, an exponent's bias of 127 becomes 15. A fraction
        // that rounds up to the next power of two carries into the exponent, as it should.
        let even = (magnitude >> 13) & 1;
        (((magnitude + 0xfff + even) >> 13) - (112 << 10)) as u16
    } else {
        // Below, halves are whole multiples of 2^-24.
        (f32::from_bits(magnitude) / SMALLEST).round_ties_even() as u16
    };
    sign | half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{DataType, TensorProto};

    fn widened(half: u16) -> f32 {
        let bytes = half.to_le_bytes().to_vec();
        let tensor = TensorProto::from_raw("h", DataType::Float16, &[1], bytes.into());
        tensor.to_f32().unwrap()[0]
    }

    #[test]
    fn every_half_comes_back_and_what_lies_between_goes_to_the_even_one() {
        for half in 0..0x7c00u16 {
            let value = widened(half);
            assert_eq!(narrowed(value), half);
            assert_eq!(narrowed(-value), half | 0x8000);
            if half + 1 < 0x7c00 {
                let between = (value + widened(half + 1)) / 2.0;
                assert_eq!(narrowed(between), half + half % 2, "{between}");
                assert_eq!(narrowed(between.next_down()), half);
                assert_eq!(narrowed(between.next_up()), half + 1);
            }
        }
        assert_eq!(narrowed(f32::INFINITY), 0x7c00);
        assert!(widened(narrowed(f32::NAN)).is_nan());
    }

    #[test]
    fn numbers_that_do_not_fit_become_the_ends_and_are_counted() {
        let made = halves(&[
            65519.0,
            65520.0,
            -1e38,
            f32::NEG_INFINITY,
            1e-8,
            -3e-8,
            4e-8,
            0.0,
        ]);
        let numbers: Vec<f32> = made
            .bytes
            .chunks(2)
            .map(|b| widened(u16::from_le_bytes([b[0], b[1]])))
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
        assert_eq!((made.too_large, made.too_small), (2, 1));
    }
}
