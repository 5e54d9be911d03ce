//! 16-bit floats. float16 has 1 sign bit, 5 exponent bits and 10 fraction bits; bfloat16 is the
//! upper half of a float32.

use crate::LittleEndianFloats;
use crate::dispatch::vectorized;

/// The least normal float16, 2^-14.
pub const LEAST_NORMAL_HALF: f32 = 6.103_515_6e-5;
/// The least positive float16, 2^-24.
pub const SMALLEST_HALF: f32 = 5.960_464_5e-8;
/// The greatest float16 plus half a step: from here on, rounding gives infinity.
pub const TOO_LARGE_FOR_HALF: f32 = 65520.0;
/// Numbers of this magnitude stand for infinity, such as those that masks add to scores.
pub const STANDS_FOR_INFINITY: f32 = 1e9;

/// Bits of the greatest float16 and of infinity.
const GREATEST: u32 = 0x7bff;
const INFINITE: u32 = 0x7c00;
/// Bits of infinity in float32.
const INFINITE_FLOAT: u32 = 0x7f80_0000;

/// Floats that are converted at a time.
const PORTION: usize = 512;

/// Converts IEEE half precision to single precision, exactly.
#[inline(always)]
pub fn widen_half(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    // Shift exponent and fraction into place. A multiplication then corrects the exponent bias (127
    // - 15 = 112) and normalises subnormals. Infinities and NaNs need the full exponent.
    let finite = f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23);
    let widened = if magnitude >= INFINITE {
        magnitude << 13 | INFINITE_FLOAT
    } else {
        finite.to_bits()
    };
    f32::from_bits(widened | sign)
}

/// Converts bfloat16 to single precision, exactly.
#[inline(always)]
pub fn widen_brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Bits of the float16 nearest to a value, ties to even; overflow gives infinity.
#[inline(always)]
pub fn narrow_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // From 2^-14 on: drop 13 bits of the fraction, and change the exponent bias from 127 to 15. A
    // fraction that rounds up to the next power of two correctly carries into the exponent.
    let even = (magnitude >> 13) & 1;
    let normal = (magnitude.wrapping_add(0xfff + even) >> 13).wrapping_sub(112 << 10);
    // Below, float16 values are integer multiples of 2^-24, the distance of floats from 1/2 on. So
    // an addition rounds, ties to even.
    let moved = f32::from_bits(magnitude) + 0.5;
    let subnormal = moved.to_bits().wrapping_sub(0.5f32.to_bits());
    let mut half = if magnitude >= LEAST_NORMAL_HALF.to_bits() {
        normal
    } else {
        subnormal
    };
    if magnitude >= TOO_LARGE_FOR_HALF.to_bits() {
        half = INFINITE;
    }
    if magnitude > INFINITE_FLOAT {
        half = 0x7e00;
    }
    (half | (bits >> 16 & 0x8000)) as u16
}

/// Numbers that float16 does not hold as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfCounts {
    /// Numbers out of range that don't stand for infinity; they become the ends of the range.
    pub out_of_range: u64,
    /// Numbers that stand for infinity; they become the ends of the range.
    pub too_large: u64,
    /// Numbers that rounding would make zero; they become the least float16.
    pub too_small: u64,
}

impl std::ops::AddAssign for HalfCounts {
    fn add_assign(&mut self, other: HalfCounts) {
        self.out_of_range += other.out_of_range;
        self.too_large += other.too_large;
        self.too_small += other.too_small;
    }
}

/// Converts numbers to float16, so that finite numbers stay finite and nonzero ones nonzero. Stops
/// at the shorter slice.
pub fn narrow_fitting(numbers: LittleEndianFloats<'_>, halves: &mut [[u8; 2]]) -> HalfCounts {
    vectorized!({
        let mut counts = HalfCounts::default();
        let mut floats = [0.0; PORTION];
        let count = halves.len().min(numbers.len());
        for (portion, halves) in halves[..count].chunks_mut(PORTION).enumerate() {
            let floats = &mut floats[..halves.len()];
            numbers.read(portion * PORTION, floats);
            counts += narrow_portion(floats, halves);
        }
        counts
    })
}

#[inline(always)]
fn narrow_portion(floats: &[f32], halves: &mut [[u8; 2]]) -> HalfCounts {
    let [mut out_of_range, mut too_large, mut too_small] = [0u32; 3];
    for (half, &value) in halves.iter_mut().zip(floats) {
        let magnitude = value.to_bits() & 0x7fff_ffff;
        let finite = magnitude < INFINITE_FLOAT;
        let large = finite & (magnitude >= TOO_LARGE_FOR_HALF.to_bits());
        let mask = large & (magnitude >= STANDS_FOR_INFINITY.to_bits());
        let small = (magnitude != 0) & (magnitude <= (SMALLEST_HALF / 2.0).to_bits());
        out_of_range += u32::from(large & !mask);
        too_large += u32::from(mask);
        too_small += u32::from(small);
        let narrowed = u32::from(narrow_half(value));
        let mut bits = narrowed & 0x7fff;
        bits = if large { GREATEST } else { bits };
        bits = if small { 1 } else { bits };
        *half = ((bits | narrowed & 0x8000) as u16).to_le_bytes();
    }
    HalfCounts {
        out_of_range: out_of_range.into(),
        too_large: too_large.into(),
        too_small: too_small.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float16_values_round_trip_and_ties_go_to_even() {
        for half in 0..0x7c00u16 {
            let value = widen_half(half);
            assert_eq!(narrow_half(value), half);
            assert_eq!(narrow_half(-value), half | 0x8000);
            if half + 1 < 0x7c00 {
                let between = (value + widen_half(half + 1)) / 2.0;
                assert_eq!(narrow_half(between), half + half % 2, "{between}");
                assert_eq!(narrow_half(between.next_down()), half);
                assert_eq!(narrow_half(between.next_up()), half + 1);
            }
        }
        assert_eq!(narrow_half(f32::INFINITY), 0x7c00);
        assert!(widen_half(narrow_half(f32::NAN)).is_nan());
        assert_eq!(narrow_half(f32::MIN_POSITIVE), 0);
    }

    #[test]
    fn numbers_out_of_range_become_its_ends_and_are_counted() {
        let (large, small) = (65504.0, SMALLEST_HALF);
        let cases = [
            (65519.0, large),
            (65520.0, large),
            (-1e38, -large),
            (f32::NEG_INFINITY, f32::NEG_INFINITY),
            (1e-8, small),
            (-3e-8, -small), // rounds to the least float16 by itself
            (4e-8, small),
            (0.0, 0.0),
            (-1.5, -1.5),
        ];
        // More than a portion.
        let values: Vec<f32> = cases.iter().map(|(value, _)| *value).collect();
        let bytes: Vec<[u8; 4]> = values.repeat(100).iter().map(|v| v.to_le_bytes()).collect();
        let mut halves = vec![[0; 2]; bytes.len()];
        let counts = narrow_fitting(LittleEndianFloats::Float(&bytes), &mut halves);
        for (half, (value, wanted)) in halves.iter().zip(cases.iter().cycle()) {
            assert_eq!(widen_half(u16::from_le_bytes(*half)), *wanted, "{value}");
        }
        let wanted = HalfCounts {
            out_of_range: 100,
            too_large: 100,
            too_small: 100,
        };
        assert_eq!(counts, wanted);
    }
}
