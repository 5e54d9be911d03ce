//! An exact sum of f32 numbers. It does not depend on their order or on their division into parts.
//!
//! Every finite f32 is an integer multiple of 2^-149, below 2^277 of them. The sum is this
//! multiple, in digits of 32 bits. Each number is split into digits independently, and digits are
//! added without carry. Integer addition is associative and commutative, so merging is as well. An
//! i64 holds the sum of 2^31 digits, more than any number of samples.

mod stored;

use serde::{Deserialize, Serialize};

const DIGITS: usize = 9;
const DIGIT: f64 = 4_294_967_296.0; // 2^32

/// The exact sum of finite f32 numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExactSum {
    /// Digits, the lowest first. Each is the sum of the digits of all numbers, without carries.
    digits: [i64; DIGITS],
}

impl ExactSum {
    /// Adds a finite number.
    pub(super) fn add(&mut self, value: f32) {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 23) & 0xff, u64::from(bits & 0x7f_ffff));
        // Subnormals have the exponent of the smallest normal numbers, without the leading one.
        let (mantissa, place) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << 23, exponent - 1),
        };
        let wide = mantissa << (place % 32);
        let sign = if value < 0.0 { -1 } else { 1 };
        let lowest = (place / 32) as usize;
        self.digits[lowest] += sign * (wide & 0xffff_ffff) as i64;
        self.digits[lowest + 1] += sign * (wide >> 32) as i64;
    }

    /// Adds the sum of `other`.
    pub(super) fn merge(&mut self, other: &ExactSum) {
        for (all, &more) in self.digits.iter_mut().zip(&other.digits) {
            *all += more;
        }
    }

    /// The sum as an f64.
    pub(super) fn value(&self) -> f64 {
        let mut digits = carried(self.digits);
        let negative = digits[DIGITS - 1] < 0;
        if negative {
            digits = carried(digits.map(|digit| -digit));
        }
        let units = digits
            .iter()
            .rev()
            .fold(0.0, |sum, &digit| sum * DIGIT + digit as f64);
        // 2^-149, exactly.
        let value = units * f64::from(f32::from_bits(1));
        if negative { -value } else { value }
    }
}

/// Propagates the carries: every digit but the highest is then in 0..2^32.
fn carried(mut digits: [i64; DIGITS]) -> [i64; DIGITS] {
    for place in 0..DIGITS - 1 {
        digits[place + 1] += digits[place] >> 32;
        digits[place] &= 0xffff_ffff;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f32]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    #[test]
    fn the_sum_is_exact() {
        for (values, expected) in [
            (&[][..], 0.0),
            (&[1.0, 2.0, 3.5], 6.5),
            (&[-1.0, -2.0, 0.25], -2.75),
            (&[3e38, 1.0, -3e38], 1.0),
            (&[-3e38, 1e-45, 3e38], f64::from(1e-45f32)),
            (&[f32::MAX, f32::MAX], 2.0 * f64::from(f32::MAX)),
            (&[f32::MIN], f64::from(f32::MIN)),
        ] {
            assert_eq!(sum(values).value(), expected, "{values:?}");
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_order() {
        let values = [1e30, -7.25, 1e-40, 0.1, -1e30, 5.5e5];
        let mut turned = values;
        turned.reverse();
        let mut merged = sum(&values[..2]);
        merged.merge(&sum(&values[2..]));
        assert_eq!(sum(&values), sum(&turned));
        assert_eq!(sum(&values), merged);
    }
}
