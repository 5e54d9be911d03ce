//! Fake quantization of floats, with the gradient mask in one bit per value.
//!
//! With scale `s` and integers from `low` to `high` (zero point subtracted), `x` becomes
//! `clamp(round(x / s), low, high) · s`. Rounding is half to even.
//!
//! In training, the straight-through estimator treats this as the identity where nothing is
//! clamped, and as a constant elsewhere. The gradient therefore passes or is zero. The backward
//! pass needs only one bit per value: [`mask_len`] words, 1/32 of the floats' memory.

use octet_kernels::nearest_whole;

/// Values per mask word. The first value is the lowest bit.
const WORD: usize = u32::BITS as usize;

/// Quantization grid of fake quantization: a scale and an integer range without zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizationGrid {
    scale: f32,
    low: f32,
    high: f32,
}

impl QuantizationGrid {
    /// Creates a grid of the integers from `low` to `high` with this scale.
    ///
    /// Returns `None` unless the scale is positive and finite, `low <= high`, and both fit 17 bits.
    pub fn new(scale: f32, low: i32, high: i32) -> Option<QuantizationGrid> {
        const MAX: i32 = 1 << 17;
        let ends = -MAX <= low && low <= high && high <= MAX;
        (scale.is_finite() && scale > 0.0 && ends).then_some(QuantizationGrid {
            scale,
            low: low as f32,
            high: high as f32,
        })
    }

    /// Returns the rounded value, and true if it was not clamped. NaN stays NaN and counts as
    /// clamped.
    fn round(self, value: f32) -> (f32, bool) {
        // Clamping to one step beyond the range first keeps the addition below exact. The
        // comparisons let NaN pass.
        let steps = value / self.scale;
        let steps = if steps < self.low - 1.0 {
            self.low - 1.0
        } else {
            steps
        };
        let steps = if steps > self.high + 1.0 {
            self.high + 1.0
        } else {
            steps
        };
        let integer = nearest_whole(steps);
        let passed = integer >= self.low && integer <= self.high;
        let clamped = if integer < self.low {
            self.low
        } else {
            integer
        };
        let clamped = if clamped > self.high {
            self.high
        } else {
            clamped
        };
        (clamped * self.scale, passed)
    }
}

/// Number of mask words for this many values.
pub fn mask_len(values: usize) -> usize {
    values.div_ceil(WORD)
}

/// Writes the fake-quantized values to `out` and the mask to `passed`. A bit is 1 if its value was
/// not clamped; unused bits are 0.
///
/// Returns false and writes nothing if the lengths do not match.
#[must_use]
pub fn fake_quantize(
    values: &[f32],
    grid: QuantizationGrid,
    out: &mut [f32],
    passed: &mut [u32],
) -> bool {
    if out.len() != values.len() || passed.len() != mask_len(values.len()) {
        return false;
    }
    for ((values, out), word) in values.chunks(WORD).zip(out.chunks_mut(WORD)).zip(passed) {
        // All values first, then all bits: two simple loops vectorize, one combined loop does not.
        let mut bits = [0u32; WORD];
        for ((&value, out), bit) in values.iter().zip(out).zip(&mut bits) {
            let (clamped, passed) = grid.round(value);
            *out = clamped;
            *bit = u32::from(passed);
        }
        *word = bits.iter().rev().fold(0, |word, bit| word << 1 | bit);
    }
    true
}

/// Computes the gradient of the input from the gradient of the output. It passes where the mask bit
/// is 1 and is zero elsewhere.
///
/// Returns false and writes nothing if the lengths do not match.
#[must_use]
pub fn fake_quantize_gradient(gradient: &[f32], passed: &[u32], out: &mut [f32]) -> bool {
    if out.len() != gradient.len() || passed.len() != mask_len(gradient.len()) {
        return false;
    }
    for ((gradient, out), &word) in gradient.chunks(WORD).zip(out.chunks_mut(WORD)).zip(passed) {
        for (at, (&gradient, out)) in gradient.iter().zip(out).enumerate() {
            // All ones if the bit is set. Multiplying by 0 instead would keep NaN and the sign.
            let keep = 0u32.wrapping_sub(word >> at & 1);
            *out = f32::from_bits(gradient.to_bits() & keep);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula in f64, one value at a time.
    fn reference(value: f32, scale: f32, low: i32, high: i32) -> (f32, bool) {
        let integer = f64::from(value / scale).round_ties_even();
        let passed = integer >= f64::from(low) && integer <= f64::from(high);
        let clamped = integer.clamp(f64::from(low), f64::from(high));
        (clamped as f32 * scale, passed)
    }

    #[test]
    fn masks_are_a_thirty_second_of_the_floats() {
        let floats = 1 << 20;
        assert_eq!(
            mask_len(floats) * size_of::<u32>() * 32,
            floats * size_of::<f32>()
        );
        assert_eq!([0, 1, 32, 33].map(mask_len), [0, 1, 1, 2]);
    }

    #[test]
    fn ties_round_to_even_and_range_is_clamped() {
        let grid = QuantizationGrid::new(0.5, -2, 3).unwrap();
        let values = [
            0.25,
            0.75,
            -0.25,
            -1.25,
            -1.24,
            1.74,
            1.75,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e30,
        ];
        let mut out = [9.0; 10];
        let mut mask = [u32::MAX];
        assert!(fake_quantize(&values, grid, &mut out, &mut mask));
        assert_eq!(out, [0.0, 1.0, 0.0, -1.0, -1.0, 1.5, 1.5, 1.5, -1.0, 1.5]);
        assert_eq!(mask[0], 0b00_0011_1111);
    }

    #[test]
    fn nan_stays_nan_and_passes_no_gradient() {
        let grid = QuantizationGrid::new(1.0, 0, 255).unwrap();
        let (mut out, mut mask) = ([0.0; 2], [0]);
        assert!(fake_quantize(&[f32::NAN, 3.0], grid, &mut out, &mut mask));
        assert!(out[0].is_nan());
        assert_eq!(mask, [0b10]);
        let mut back = [1.0; 2];
        assert!(fake_quantize_gradient(&[f32::NAN, -0.5], &mask, &mut back));
        assert_eq!(back.map(f32::to_bits), [0, (-0.5f32).to_bits()]);
    }

    #[test]
    fn invalid_grids_and_lengths_are_refused() {
        for (scale, low, high) in [
            (0.0, 0, 1),
            (f32::NAN, 0, 1),
            (-1.0, 0, 1),
            (1.0, 2, 1),
            (1.0, 0, 1 << 18),
        ] {
            assert!(
                QuantizationGrid::new(scale, low, high).is_none(),
                "{scale} {low} {high}"
            );
        }
        let grid = QuantizationGrid::new(1.0, 0, 1).unwrap();
        assert!(!fake_quantize(&[0.0; 33], grid, &mut [0.0; 33], &mut [0]));
        assert!(!fake_quantize(&[0.0; 2], grid, &mut [0.0; 3], &mut [0]));
        assert!(!fake_quantize_gradient(&[0.0; 2], &[], &mut [0.0; 2]));
    }

    #[cfg(not(target_family = "wasm"))]
    proptest::proptest! {
        #[test]
        fn fake_quantization_matches_the_formula(
            bits in proptest::collection::vec(proptest::num::u32::ANY, 0..100),
            exponent in -20i32..20,
            mantissa in 1.0f32..2.0,
            low in -70_000i32..70_000,
            width in 0i32..60_000,
        ) {
            // Half of the values lie near the grid, the others are any floats.
            let scale = mantissa * 2f32.powi(exponent);
            let high = low + width;
            let near = |bits: u32| (low as f32 + (bits % 1000) as f32 / 999.0 * width as f32 * 1.2) * scale;
            let value = |(at, bits): (usize, &u32)| if at % 2 == 0 { near(*bits) } else { f32::from_bits(*bits) };
            let values: Vec<f32> = bits.iter().enumerate().map(value).collect();
            let mut out = vec![0.0; values.len()];
            let mut mask = vec![0; mask_len(values.len())];
            let grid = QuantizationGrid::new(scale, low, high).unwrap();
            proptest::prop_assert!(fake_quantize(&values, grid, &mut out, &mut mask));
            for (at, &value) in values.iter().enumerate() {
                let passed = mask[at / 32] >> (at % 32) & 1 == 1;
                if value.is_nan() {
                    proptest::prop_assert!(out[at].is_nan() && !passed);
                } else {
                    let (clamped, stayed) = reference(value, scale, low, high);
                    proptest::prop_assert_eq!((out[at], passed), (clamped, stayed), "{}", value);
                }
            }
            let mut back = vec![7.0; values.len()];
            let ones = vec![1.0; values.len()];
            proptest::prop_assert!(fake_quantize_gradient(&ones, &mask, &mut back));
            let kept = back.iter().filter(|&&one| one == 1.0).count() as u32;
            proptest::prop_assert_eq!(kept, mask.iter().map(|word| word.count_ones()).sum::<u32>());
        }
    }
}
