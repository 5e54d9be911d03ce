//! Scale and zero point: the map between reals and integers.
//!
//! real = scale · (integer − zero point). All roundings are half to even. Scale and zero point are
//! computed in f64, then the scale becomes f32. ONNX Runtime does the same, so that the integers
//! agree.

use octet_kernels::{IntegerGrid, nearest_bytes};

use octet_onnx::schema::DataType;

/// The lowest and highest integer that a quantization uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerBounds {
    pub(super) low: i32,
    pub(super) high: i32,
}

impl IntegerBounds {
    /// The quantization grid of these integers.
    pub(super) fn grid(self, scale: f32, zero_point: i32) -> IntegerGrid {
        IntegerGrid {
            scale,
            zero_point,
            ends: [self.low, self.high],
        }
    }
}

/// The integers of `element` that a quantization uses.
///
/// All of them; without the lowest for signed symmetric types; half of them with `reduce_range`.
/// Symmetric 4-bit types keep their lowest, as in ONNX Runtime.
pub(super) fn integer_bounds(
    element: DataType,
    symmetric: bool,
    reduce_range: bool,
) -> IntegerBounds {
    let (low, high) = match (element, reduce_range, symmetric) {
        (DataType::Int8, true, _) => (-64, 64),
        (DataType::Int8, false, true) => (-127, 127),
        (DataType::Int8, false, false) => (-128, 127),
        (DataType::Int16, true, _) => (-16384, 16384),
        (DataType::Int16, false, true) => (-32767, 32767),
        (DataType::Int16, false, false) => (-32768, 32767),
        (DataType::Int4, true, _) => (-4, 3),
        (DataType::Int4, false, _) => (-8, 7),
        (DataType::Uint16, true, _) => (0, 32767),
        (DataType::Uint16, false, _) => (0, 65535),
        (DataType::Uint4, true, _) => (0, 7),
        (DataType::Uint4, false, _) => (0, 15),
        (_, true, _) => (0, 127),
        (_, false, _) => (0, 255),
    };
    IntegerBounds { low, high }
}

/// Encodes integers as the bytes of a tensor of `element`.
pub fn encoded(element: DataType, integers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    let mut encoder = Encoder::new(element, 0);
    encoder.extend(integers);
    encoder.finish()
}

/// Encodes integers as tensor bytes: little-endian, 4-bit integers two to a byte, the first in the
/// low half.
pub(super) struct Encoder {
    element: DataType,
    bytes: Vec<u8>,
    /// True if the high half of the last byte is free.
    half_is_open: bool,
}

impl Encoder {
    /// Makes an encoder with capacity for `count` integers.
    pub(super) fn new(element: DataType, count: usize) -> Encoder {
        let bits = element.bits().unwrap_or(8);
        Encoder {
            element,
            bytes: Vec::with_capacity((count * bits).div_ceil(8)),
            half_is_open: false,
        }
    }

    /// Appends integers.
    pub(super) fn extend(&mut self, integers: impl IntoIterator<Item = i32>) {
        let integers = integers.into_iter();
        let bytes = &mut self.bytes;
        match self.element {
            DataType::Int16 | DataType::Uint16 => {
                bytes.extend(integers.flat_map(|i| (i as u16).to_le_bytes()));
            }
            DataType::Int4 | DataType::Uint4 => {
                let mut halves = integers.map(|integer| (integer as u8) & 15);
                if self.half_is_open
                    && let (Some(byte), Some(half)) = (bytes.last_mut(), halves.next())
                {
                    *byte |= half << 4;
                    self.half_is_open = false;
                }
                while let Some(low) = halves.next() {
                    let high = halves.next();
                    bytes.push(low | high.unwrap_or(0) << 4);
                    self.half_is_open = high.is_none();
                }
            }
            // The cast keeps the low byte of the two's complement for both signs.
            _ => bytes.extend(integers.map(|i| i as u8)),
        }
    }

    /// Quantizes and appends values; the grids repeat cyclically over them.
    pub(super) fn round(&mut self, values: &[f32], grids: &[IntegerGrid]) {
        let bits = self.element.bits().unwrap_or(8);
        if bits == 8 {
            let from = self.bytes.len();
            self.bytes.resize(from + values.len(), 0);
            return nearest_bytes(values, grids, &mut self.bytes[from..]);
        }
        let grids = grids.iter().cycle();
        self.extend(
            values
                .iter()
                .zip(grids)
                .map(|(&value, grid)| grid.nearest(value)),
        );
    }

    /// The encoded bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// The smallest power of two that is at least `scale`. A scale above it only by rounding error
/// counts as equal.
pub(super) fn power_of_two(scale: f32) -> f32 {
    const FRACTION: u32 = 0x007f_ffff;
    let bits = (scale * (1.0 - 4.0 * f32::EPSILON)).to_bits();
    f32::from_bits(if bits & FRACTION == 0 {
        bits
    } else {
        (bits & !FRACTION) + FRACTION + 1
    })
}

/// The power of two nearest to a scale on a logarithmic axis.
pub(super) fn nearest_power_of_two(scale: f32) -> f32 {
    f64::from(scale).log2().round_ties_even().exp2() as f32
}

/// Scales and zero points of a tensor, per-tensor or per-channel.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizationParameters {
    /// The integer type.
    pub element: DataType,
    /// The channel axis; `None` for per-tensor.
    pub axis: Option<usize>,
    /// The scales.
    pub scales: Vec<f32>,
    /// The zero points, one for each scale.
    pub zero_points: Vec<i32>,
}

impl QuantizationParameters {
    /// The quantization grid of each channel, over all integers of the type.
    pub(super) fn grids(&self) -> impl Iterator<Item = IntegerGrid> {
        let whole = integer_bounds(self.element, false, false);
        let each = self.scales.iter().zip(&self.zero_points);
        each.map(move |(&scale, &zero_point)| whole.grid(scale, zero_point))
    }
}

/// Scale and zero point for reals from `min` to `max`, with the zero point at the lowest or the
/// middle integer.
///
/// The middle is used where `min` is negative. `minimum` is the least width of the range.
pub(super) fn anchored_scale_and_zero_point(
    min: f32,
    max: f32,
    span: IntegerBounds,
    minimum: f32,
) -> (f32, i32) {
    let (min, minimum) = (f64::from(min.min(0.0)), f64::from(minimum));
    let max = f64::from(max.max(0.0)).max(min + minimum);
    let all = f64::from(span.high - span.low);
    let middle = (span.low + span.high + 1) / 2;
    let (scale, zero_point) = if min < 0.0 {
        let below = -min / f64::from(middle - span.low);
        let above = max / f64::from(span.high - middle);
        (below.max(above), middle)
    } else {
        (if max > 0.0 { max / all } else { 1.0 / all }, span.low)
    };
    (scale.max(minimum / all) as f32, zero_point)
}

/// Scale and zero point for reals from `min` to `max`. The range is extended to contain zero, so
/// zero is represented exactly.
pub(super) fn scale_and_zero_point(
    min: f32,
    max: f32,
    span: IntegerBounds,
    symmetric: bool,
) -> (f32, i32) {
    let (mut min, mut max) = (min.min(0.0), max.max(0.0));
    if symmetric {
        max = min.abs().max(max);
        min = -max;
    }
    let (low, high) = (f64::from(span.low), f64::from(span.high));
    let scale = (f64::from(max) - f64::from(min)) / (high - low);
    if scale < f64::from(f32::MIN_POSITIVE) {
        return (1.0, 0);
    }
    let zero_point = if symmetric {
        ((low + high) / 2.0).round_ties_even()
    } else {
        (low - f64::from(min) / scale).round_ties_even()
    };
    (scale as f32, zero_point as i32)
}

/// Quantizes a real to the nearest integer, saturated to `whole`.
pub(super) fn quantize_value(value: f32, scale: f32, zero_point: i32, whole: IntegerBounds) -> i32 {
    whole.grid(scale, zero_point).nearest(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const U8: DataType = DataType::Uint8;
    const I8: DataType = DataType::Int8;

    #[test]
    fn scales_and_zero_points_are_those_of_onnx_runtime() {
        // Values from ONNX Runtime 1.31.1: element, symmetric, reduced, range, scale, zero point.
        for (element, symmetric, reduced, (min, max), scale, zero_point) in [
            (U8, false, false, (-1.0, 2.0), 0.011_764_706, 85),
            (I8, false, false, (-1.0, 2.0), 0.011_764_706, -43),
            (U8, false, false, (0.5, 2.0), 0.007_843_138, 0),
            (U8, false, false, (-3.0, -1.0), 0.011_764_706, 255),
            (U8, true, false, (-1.0, 2.0), 0.015_686_275, 128),
            (I8, true, false, (-1.0, 1.0), 0.007_874_016, 0),
            (I8, true, true, (-1.0, 1.0), 0.015_625, 0),
            (U8, false, true, (-1.0, 2.0), 0.023_622_047, 42),
            (U8, false, false, (0.0, 0.0), 1.0, 0),
            (I8, false, false, (0.0, 0.0), 1.0, 0),
            (U8, false, false, (0.0, 1e-44), 1.0, 0),
        ] {
            let actual = scale_and_zero_point(
                min,
                max,
                integer_bounds(element, symmetric, reduced),
                symmetric,
            );
            assert_eq!(
                actual,
                (scale, zero_point),
                "{element:?} {symmetric} {reduced} {min} {max}"
            );
        }
    }

    #[test]
    fn powers_of_two_are_the_next_above() {
        for (scale, wanted) in [
            (1.0, 1.0),
            (1.01, 2.0),
            (0.25, 0.25),
            (0.250_000_03, 0.25),
            (0.3, 0.5),
            (3e-38, 4.701_977_4e-38),
        ] {
            assert_eq!(power_of_two(scale), wanted, "{scale}");
        }
    }

    #[test]
    fn integers_are_encoded_by_type() {
        assert_eq!(encoded(DataType::Int8, [-1, 2]), [255, 2]);
        assert_eq!(encoded(DataType::Uint16, [1, 65535]), [1, 0, 255, 255]);
        assert_eq!(encoded(DataType::Int16, [-2]), [254, 255]);
        assert_eq!(encoded(DataType::Int4, [-1, 7, -8]), [0x7f, 0x08]);
        let mut encoder = Encoder::new(DataType::Uint4, 4);
        for integers in [&[1][..], &[], &[2, 3], &[4]] {
            encoder.extend(integers.iter().copied());
        }
        assert_eq!(encoder.finish(), [0x21, 0x43]);
    }

    #[test]
    fn ties_round_to_even() {
        let whole = integer_bounds(I8, false, false);
        let integers = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, f32::NAN, 1e9, -1e9]
            .map(|v| quantize_value(v, 1.0, 0, whole));
        assert_eq!(integers, [-2, -2, 0, 0, 2, 2, 0, 127, -128]);
    }

    proptest! {
        #[test]
        fn values_in_range_return_within_a_step(
            min in -1e6f32..0.0, max in 1e-6f32..1e6, part in 0f32..=1.0, signed: bool, symmetric: bool,
        ) {
            let element = if signed { I8 } else { U8 };
            let used = integer_bounds(element, symmetric, false);
            let (scale, zero_point) = scale_and_zero_point(min, max, used, symmetric);
            prop_assert!(scale > 0.0 && (used.low..=used.high).contains(&zero_point));
            let value = min + (max - min) * part;
            let integer = quantize_value(value, scale, zero_point, integer_bounds(element, false, false));
            let back = scale * (integer - zero_point) as f32;
            // Rounding the zero point moves the ends by up to half a step.
            prop_assert!((back - value).abs() <= scale * 1.001, "{value} came back as {back}, step {scale}");
            prop_assert_eq!(quantize_value(0.0, scale, zero_point, integer_bounds(element, false, false)), zero_point);
        }
    }
}
