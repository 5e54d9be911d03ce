//! Sums, dot products and row updates.

use std::iter::Sum;
use std::ops::{Add, Mul};

use crate::dispatch::vectorized;

/// Returns the sum, accumulated in lanes so that it vectorizes. The order is fixed, so results are
/// bit-exact across platforms.
pub fn sum(values: &[f32]) -> f64 {
    sum_of(values, |value| value)
}

/// Returns the sum of squares, in the order of [`sum`].
pub fn sum_of_squares(values: &[f32]) -> f64 {
    sum_of(values, |value| value * value)
}

/// Returns the dot product up to the shorter slice, in lanes and in a fixed order: the same bits on
/// every platform.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    dot_in_lanes::<f64, 8>(a, b)
}

/// Like [`dot`], of floats, with their rounding.
pub fn dot_of_floats(a: &[f32], b: &[f32]) -> f32 {
    vectorized!(dot_in_lanes::<f32, 16>(a, b))
}

/// Partial sums of each lane, then their sum in order, then that of the rest.
#[inline(always)]
pub(crate) fn dot_in_lanes<T, const LANES: usize>(a: &[T], b: &[T]) -> T
where
    T: Copy + Default + Add<Output = T> + Mul<Output = T> + Sum,
{
    let length = a.len().min(b.len());
    let (a, a_rest) = a[..length].as_chunks::<LANES>();
    let (b, b_rest) = b[..length].as_chunks::<LANES>();
    let mut lanes = [T::default(); LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane] + a[lane] * b[lane];
        }
    }
    let rest: T = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b).sum();
    lanes.into_iter().sum::<T>() + rest
}

/// Subtracts `times · others` from the values, up to the shorter slice.
pub fn take_off(values: &mut [f64], times: f64, others: &[f64]) {
    for (value, &other) in values.iter_mut().zip(others) {
        *value -= times * other;
    }
}

#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f64 {
    // Four vectors. With eight, some accumulators spill.
    const LANES: usize = 16;
    // Values per lane before it is flushed to f64, which bounds the rounding error.
    const PORTION: usize = LANES * 512;
    let mut all = 0.0;
    for portion in values.chunks(PORTION) {
        let mut lanes = [0.0f32; LANES];
        let (blocks, rest) = portion.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                lanes[lane] += of(block[lane]);
            }
        }
        let rest: f64 = rest.iter().map(|&value| f64::from(of(value))).sum();
        all += rest + lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_for_any_length() {
        for count in [0, 1, 31, 32, 33, 8191, 8192, 8193, 100_000] {
            let values: Vec<f32> = (0..count).map(|i| (i % 64) as f32 - 20.0).collect();
            // Integers this small add without rounding.
            let slowly: f64 = values.iter().map(|&value| f64::from(value)).sum();
            assert_eq!(sum(&values), slowly, "{count}");
            let squares: f64 = values.iter().map(|&value| f64::from(value * value)).sum();
            assert_eq!(sum_of_squares(&values), squares, "{count}");
        }
        assert!(sum(&[1.0, f32::NAN]).is_nan());
    }

    #[test]
    fn dot_and_take_off_match_the_definition() {
        for count in [0, 1, 7, 8, 9, 40] {
            let a: Vec<f64> = (0..count).map(|i| (i % 7) as f64 - 3.0).collect();
            let b: Vec<f64> = (0..count).map(|i| (i % 5) as f64).collect();
            let slowly: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let floats = [&a, &b].map(|all| all.iter().map(|&v| v as f32).collect::<Vec<_>>());
            assert_eq!(f64::from(dot_of_floats(&floats[0], &floats[1])), slowly);
            assert_eq!(dot(&a, &b), slowly, "{count}");
            let longer: Vec<f64> = b.iter().copied().chain([9.0; 20]).collect();
            assert_eq!(dot(&a, &longer), slowly, "{count}");
            let mut less = a.clone();
            take_off(&mut less, 2.0, &b);
            assert!((0..count).all(|i| less[i] == a[i] - 2.0 * b[i]), "{count}");
        }
    }
}
