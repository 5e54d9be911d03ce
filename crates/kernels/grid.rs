//! Rounding of reals to an integer grid, as the quantizer does it.

use crate::dispatch::vectorized;

/// An affine quantization grid: real = scale · (integer − zero point).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntegerGrid {
    /// Distance between neighbouring reals of the grid.
    pub scale: f32,
    /// The integer that represents zero.
    pub zero_point: i32,
    /// Minimum and maximum integer.
    pub ends: [i32; 2],
}

impl IntegerGrid {
    /// Returns the nearest integer, ties to even. NaN gives 0.
    #[inline(always)]
    pub fn nearest(&self, value: f32) -> i32 {
        // Beyond the range of any integer type of up to 16 bits, for any zero point.
        const FAR: f32 = 4_194_304.0;
        let steps = (value / self.scale).clamp(-FAR, FAR);
        let integer = nearest_whole(steps) + self.zero_point as f32;
        let [low, high] = self.ends.map(|end| end as f32);
        // The cast maps NaN to 0, since no integer represents it.
        integer.clamp(low, high) as i32
    }

    /// Writes the reals of integers. Stops at the shorter slice.
    pub fn reals<T: Copy + Into<i32>>(&self, integers: &[T], reals: &mut [f32]) {
        vectorized!({
            for (real, &integer) in reals.iter_mut().zip(integers) {
                *real = (integer.into() - self.zero_point) as f32 * self.scale;
            }
        });
    }

    /// Returns the sum of squared rounding errors, accumulated in order.
    pub fn squared_error(&self, values: &[f32]) -> f64 {
        let cost = |&value: &f32| {
            let steps = self.nearest(value) - self.zero_point;
            let less = f64::from(value) - f64::from(self.scale) * f64::from(steps);
            less * less
        };
        values.iter().map(cost).sum()
    }

    /// Returns the expected shift of the output if the weights of some windows are rounded to these
    /// integers.
    ///
    /// It is `Σ mean · Σ share · error`: per window, the weighted rounding errors times the mean of
    /// its input. There is one mean per window.
    pub fn added(&self, values: &[f32], integers: &[i64], shares: &[f64], means: &[f64]) -> f64 {
        let error = |(&value, &integer): (&f32, &i64)| {
            f64::from(self.scale) * (integer - i64::from(self.zero_point)) as f64 - f64::from(value)
        };
        let taps = shares.len().max(1);
        let windows = values.chunks_exact(taps).zip(integers.chunks_exact(taps));
        let added = windows.zip(means).map(|((values, integers), mean)| {
            let errors = values.iter().zip(integers).map(error).zip(shares);
            errors.map(|(error, share)| error * share).sum::<f64>() * mean
        });
        added.sum()
    }
}

/// Writes the low byte of each value's nearest integer. `grids` holds one grid per value or a
/// single one. Stops at the shortest slice.
pub fn nearest_bytes(values: &[f32], grids: &[IntegerGrid], bytes: &mut [u8]) {
    vectorized!(match grids {
        [grid] => {
            for (byte, &value) in bytes.iter_mut().zip(values) {
                *byte = grid.nearest(value) as u8;
            }
        }
        _ => {
            for ((byte, &value), grid) in bytes.iter_mut().zip(values).zip(grids) {
                *byte = grid.nearest(value) as u8;
            }
        }
    });
}

/// Extends each range to include the value at its index. NaN is ignored. Stops at the shorter
/// slice.
pub fn widen(ranges: &mut [[f32; 2]], row: &[f32]) {
    for ([least, greatest], &value) in ranges.iter_mut().zip(row) {
        *least = if value < *least { value } else { *least };
        *greatest = if value > *greatest { value } else { *greatest };
    }
}

/// Adds the square of each value at its index. Stops at the shorter slice.
pub fn add_squares(squares: &mut [f64], row: &[f32]) {
    for (square, &value) in squares.iter_mut().zip(row) {
        *square += f64::from(value * value);
    }
}

/// Returns the nearest integer, ties to even, for magnitudes up to 2^22.
#[inline(always)]
pub fn nearest_whole(value: f32) -> f32 {
    (value + ROUNDING) - ROUNDING
}

/// One ulp of floats between 2^23 and 2^24 is 1, so this addition rounds half to even. It
/// vectorizes on every target; a call to a rounding function does not.
const ROUNDING: f32 = 12_582_912.0;

/// Decodes little-endian floats. Stops at the shorter slice.
pub fn decode(raw: &[[u8; 4]], floats: &mut [f32]) {
    for (float, &raw) in floats.iter_mut().zip(raw) {
        *float = f32::from_le_bytes(raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_to_even_and_clamped() {
        let grid = IntegerGrid {
            scale: 0.5,
            zero_point: 1,
            ends: [-128, 127],
        };
        let values = [-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, f32::NAN, 1e9, -1e9];
        let integers = values.map(|value| grid.nearest(value));
        assert_eq!(integers, [-1, -1, 1, 1, 3, 3, 0, 127, -128]);
        let (words, mut reals) = ([0u16, 1, 3, 65535], [9.0; 5]);
        grid.reals(&words, &mut reals);
        assert_eq!(reals, [-0.5, 0.0, 1.0, 32767.0, 9.0]);
        let mut bytes = [9; 10];
        nearest_bytes(&values, &[grid], &mut bytes);
        assert_eq!(bytes, [255, 255, 1, 1, 3, 3, 0, 127, 128, 9]);
        let other = IntegerGrid {
            scale: 0.25,
            ..grid
        };
        nearest_bytes(&values, &[grid, other], &mut bytes);
        assert_eq!(bytes[..3], [255, 254, 1]);
    }

    #[test]
    fn errors_are_rounded_minus_original() {
        let grid = IntegerGrid {
            scale: 0.5,
            zero_point: -3,
            ends: [-8, 7],
        };
        let values = [0.125, 0.75, 9.0, -0.375];
        let integers = values.map(|value| grid.nearest(value));
        assert_eq!(integers, [-3, -1, 7, -4]);
        // The results are 0, 1, 5 and -0.5.
        assert_eq!(
            grid.squared_error(&values),
            0.125f64.powi(2) * 2.0 + 0.0625 + 16.0
        );
        let integers = integers.map(i64::from);
        let added = grid.added(&values, &integers, &[1.0, 0.5], &[2.0, -1.0]);
        assert_eq!(added, 2.0 * (-0.125 + 0.5 * 0.25) - (-4.0 - 0.5 * 0.125));
    }

    #[test]
    fn rows_widen_ranges_and_add_squares_of_numbers() {
        for count in [0, 1, 15, 16, 17, 100] {
            let mut values: Vec<f32> = (0..count).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
            values.push(f32::NAN);
            let mut ranges = vec![[f32::INFINITY, f32::NEG_INFINITY]; values.len()];
            widen(&mut ranges, &values);
            let mut squares = vec![1.0; values.len()];
            add_squares(&mut squares, &values);
            for ((range, square), &value) in ranges.iter().zip(squares).zip(&values).take(count) {
                assert_eq!(
                    (*range, square),
                    ([value; 2], 1.0 + f64::from(value * value))
                );
            }
        }
    }
}
