//! A power with the same bits on every platform, for loops that are vectorized.
//!
//! `f32::powf` calls the platform's math library, one number at a time, and libraries differ in the
//! last bits. This version uses only additions, multiplications, divisions and bits of floats.

use std::f32::consts::LN_2;

/// `2 / ln 2`
const TWO_OVER_LN_2: f32 = 2.885_39;

/// The bits of √½, the lowest mantissa.
const LOWEST_MANTISSA: i32 = 0x3f35_04f3;

/// `base` to the power of `exponent`, to about 1e-5 of it. `base` is zero or positive, and zero
/// counts as 2⁻¹²⁷.
#[inline(always)]
pub fn power(base: f32, exponent: f32) -> f32 {
    exp2(exponent * log2(base))
}

/// The base-2 logarithm by the series of `crate::log2`, with fewer terms.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let bits = x.to_bits() as i32;
    let exponent = bits.wrapping_sub(LOWEST_MANTISSA) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = 1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0)));
    exponent as f32 + TWO_OVER_LN_2 * (t * series)
}

/// 2^x for x from -126 to 127, which other numbers become.
#[inline(always)]
fn exp2(x: f32) -> f32 {
    // Above 2^23, floats are integers: adding a number of this size rounds.
    const TO_INTEGER: f32 = 12_582_912.0;
    let x = if x > -126.0 { x } else { -126.0 };
    let x = if x < 127.0 { x } else { 127.0 };
    let sum = x + TO_INTEGER;
    let whole = (sum.to_bits() as i32).wrapping_sub(TO_INTEGER.to_bits() as i32);
    let z = (x - (sum - TO_INTEGER)) * LN_2;
    let high = 1.0 / 24.0 + z * (1.0 / 120.0 + z * (1.0 / 720.0));
    let series = 1.0 + z * (1.0 + z * (0.5 + z * (1.0 / 6.0 + z * high)));
    series * f32::from_bits((whole.wrapping_add(127) << 23) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_match_the_library() {
        for exponent in [0.7, -0.3, 0.5, 1.0, -1.0] {
            let mut base = 1e-30f32;
            while base < 1e30 {
                let wanted = f64::from(base).powf(f64::from(exponent));
                let off = (f64::from(power(base, exponent)) - wanted).abs();
                assert!(off <= 2e-5 * wanted, "{base}^{exponent}: {off}");
                base *= 1.0137;
            }
        }
    }

    #[test]
    fn numbers_near_one_are_exact_to_a_few_ulps() {
        for step in -1000..=1000 {
            let base = 1.0 + step as f32 / 4000.0;
            let wanted = f64::from(base).powf(0.7);
            let off = (f64::from(power(base, 0.7)) - wanted).abs();
            assert!(off <= 3e-7, "{base}: {off}");
        }
    }

    #[test]
    fn zero_is_nearly_zero_and_nothing_overflows() {
        assert!(power(0.0, 0.7) < 1e-26);
        assert!(power(1e-44, 0.7) < 1e-25);
        for base in [0.0, f32::MAX, f32::INFINITY, f32::NAN] {
            for exponent in [0.7, -0.3, 9.0] {
                let _ = power(base, exponent); // no panic in a debug build
            }
        }
    }
}
