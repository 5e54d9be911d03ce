//! Fake quantization in a program, with QDrop: some values of a step are not rounded.

use super::add_passed;
use crate::{QuantizationGrid, fake_quantize, mask_len};

/// Values that are not rounded in a step, drawn by a hash of the seed and the place. So nothing is
/// stored for them.
#[derive(Clone, Copy, Debug)]
pub struct Mixture {
    /// The seed of the step.
    pub seed: u64,
    /// Of 256 values, those that are rounded.
    pub rounded: u32,
}

impl Mixture {
    /// One byte a value, for the eight values from a multiple of eight on.
    fn bytes(&self, eight: usize) -> [u8; 8] {
        let mut state = self.seed ^ (eight as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (state ^ (state >> 31)).to_le_bytes()
    }

    /// The mixture of another place of the program.
    pub fn at(&self, place: usize) -> Mixture {
        Mixture {
            seed: self.seed ^ (place as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95),
            ..*self
        }
    }

    /// Replaces the values that are not rounded by what `float` gives for their place.
    pub fn mix(&self, values: &mut [f32], float: impl Fn(usize) -> f32) {
        if self.rounded >= 256 {
            return;
        }
        for (eight, values) in values.chunks_mut(8).enumerate() {
            let drawn = self.bytes(eight).into_iter().zip(values).enumerate();
            for (place, (byte, value)) in drawn {
                if u32::from(byte) >= self.rounded {
                    *value = float(8 * eight + place);
                }
            }
        }
    }
}

/// Fake quantization to integers from `low` to `high`, less the zero point.
///
/// Values that the mixture does not round are still clamped: the range of a quantized value also
/// stands for a Relu or Clip that was folded into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FakeQuantize {
    /// The lowest integer.
    pub low: i32,
    /// The highest integer.
    pub high: i32,
}

impl FakeQuantize {
    pub(super) fn forward(
        &self,
        (x, scale): (&[f32], f32),
        mixture: Option<Mixture>,
        y: &mut [f32],
        passed: &mut Vec<u32>,
    ) {
        passed.clear();
        passed.resize(mask_len(x.len()), 0);
        let Some(grid) = QuantizationGrid::new(scale, self.low, self.high) else {
            return y.copy_from_slice(x);
        };
        let _fits = fake_quantize(x, grid, y, passed);
        if let Some(mixture) = mixture {
            let ends = [self.low, self.high].map(|end| end as f32 * scale);
            mixture.mix(y, |place| x[place].max(ends[0]).min(ends[1]));
        }
    }

    /// Adds the gradients of value and scale. `values` are x and y, which only the scale needs.
    pub(super) fn backward(
        &self,
        ([x, y], scale): ([&[f32]; 2], f32),
        passed: &[u32],
        slope: &[f32],
        [by_x, by_scale]: [Option<&mut [f32]>; 2],
    ) {
        let inside = |place: usize| passed[place / 32] >> (place % 32) & 1 == 1;
        if let Some(by_x) = by_x {
            add_passed(by_x, slope, passed);
        }
        // As in LSQ: the rounding error inside of the range, the end of the range outside.
        if let Some([by_scale]) = by_scale {
            let mut sum = 0.0f64;
            for (place, ((x, y), slope)) in x.iter().zip(y).zip(slope).enumerate() {
                let steps = (y - if inside(place) { *x } else { 0.0 }) / scale;
                sum += f64::from(slope * steps);
            }
            *by_scale += sum as f32;
        }
    }
}
