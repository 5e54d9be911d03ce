//! An exact sum of f64 numbers. It does not depend on their order or on their division into parts,
//! so the figures of shards merge to those of one run.
//!
//! Every finite f64 is an integer multiple of 2^-1074, below 2^2098 of them. The sum is this
//! multiple, in digits of 32 bits that are added without carry. An i64 holds the sum of 2^31 digits,
//! more than any number of samples.

use serde::{Deserialize, Serialize};

const DIGITS: usize = 67;
const DIGIT: f64 = 4_294_967_296.0; // 2^32
/// Exponent of the lowest digit's unit.
const FINEST: i32 = -1074;

/// The exact sum of f64 numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTotal", into = "StoredTotal")]
pub(super) struct ExactTotal {
    /// Digits, the lowest first, without carries. Empty before the first number.
    digits: Vec<i64>,
    /// Numbers that are not finite: positive and negative infinities, and NaN.
    others: [u64; 3],
}

/// The stored form: the digits from the first to the last that is not zero, with carries.
#[derive(Serialize, Deserialize)]
struct StoredTotal(usize, Vec<i64>, [u64; 3]);

impl From<ExactTotal> for StoredTotal {
    fn from(total: ExactTotal) -> StoredTotal {
        let digits = carried(total.digits);
        let first = digits.iter().position(|&digit| digit != 0);
        let last = digits.iter().rposition(|&digit| digit != 0);
        let digits = match (first, last) {
            (Some(first), Some(last)) => digits[first..=last].to_vec(),
            _ => Vec::new(),
        };
        StoredTotal(first.unwrap_or(0), digits, total.others)
    }
}

impl From<StoredTotal> for ExactTotal {
    fn from(StoredTotal(first, stored, others): StoredTotal) -> ExactTotal {
        let mut digits = vec![0; DIGITS];
        // Digits out of place come from a damaged file; they count as nothing.
        for (at, digit) in stored.into_iter().enumerate() {
            if let Some(place) = first.checked_add(at).and_then(|at| digits.get_mut(at)) {
                *place = digit.clamp(-(1 << 47), 1 << 47);
            }
        }
        ExactTotal { digits, others }
    }
}

impl ExactTotal {
    /// Adds a number.
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            let kind = match value {
                f64::INFINITY => 0,
                f64::NEG_INFINITY => 1,
                _ => 2,
            };
            self.others[kind] += 1;
            return;
        }
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        // Subnormals have the exponent of the smallest normal numbers, without the leading one.
        let (mantissa, place) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << 52, exponent as usize - 1),
        };
        if mantissa == 0 {
            return;
        }
        self.digits.resize(DIGITS, 0);
        let wide = u128::from(mantissa) << (place % 32);
        let sign = if value < 0.0 { -1 } else { 1 };
        for (at, digit) in self.digits[place / 32..].iter_mut().take(3).enumerate() {
            *digit += sign * ((wide >> (32 * at)) & 0xffff_ffff) as i64;
        }
    }

    /// Adds the sum of `other`.
    pub(super) fn merge(&mut self, other: &ExactTotal) {
        if !other.digits.is_empty() {
            self.digits.resize(DIGITS, 0);
        }
        for (all, &more) in self.digits.iter_mut().zip(&other.digits) {
            *all = all.saturating_add(more);
        }
        for (all, more) in self.others.iter_mut().zip(other.others) {
            *all = all.saturating_add(more);
        }
    }

    /// The sum as an f64.
    pub(super) fn value(&self) -> f64 {
        match self.others {
            [0, 0, 0] => {}
            [_, 0, 0] => return f64::INFINITY,
            [0, _, 0] => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        let mut digits = carried(self.digits.clone());
        let negative = digits.last().is_some_and(|&digit| digit < 0);
        if negative {
            digits = carried(digits.into_iter().map(|digit| -digit).collect());
        }
        // The three highest digits that are not zero hold more bits than an f64.
        let Some(top) = digits.iter().rposition(|&digit| digit != 0) else {
            return 0.0;
        };
        let lowest = top.saturating_sub(2);
        let units = digits[lowest..=top].iter().rev();
        let units = units.fold(0.0, |sum, &digit| sum * DIGIT + digit as f64);
        let exponent = FINEST + 32 * lowest as i32;
        // In two steps, since the whole power may be below the smallest normal number.
        let half = exponent / 2;
        let value = units * 2f64.powi(half) * 2f64.powi(exponent - half);
        if negative { -value } else { value }
    }
}

/// Propagates the carries: every digit but the highest is then in 0..2^32.
fn carried(mut digits: Vec<i64>) -> Vec<i64> {
    for place in 1..digits.len() {
        let carry = digits[place - 1] >> 32;
        digits[place] = digits[place].saturating_add(carry);
        digits[place - 1] &= 0xffff_ffff;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(values: &[f64]) -> ExactTotal {
        let mut total = ExactTotal::default();
        values.iter().for_each(|&value| total.add(value));
        total
    }

    #[test]
    fn the_sum_is_exact() {
        for (values, expected) in [
            (&[][..], 0.0),
            (&[1.0, 2.0, 3.5], 6.5),
            (&[-1.0, -2.0, 0.25], -2.75),
            (&[1e300, 1.0, -1e300], 1.0),
            (&[-1e300, 5e-324, 1e300], 5e-324),
            (&[f64::MAX, f64::MIN, 0.1], 0.1),
            (&[f64::MAX], f64::MAX),
            (
                &[-2.2250738585072014e-308, 1e-310],
                -2.2250738585072014e-308 + 1e-310,
            ),
        ] {
            assert_eq!(total(values).value(), expected, "{values:?}");
        }
        assert_eq!(total(&[f64::INFINITY, 1.0]).value(), f64::INFINITY);
        assert!(total(&[f64::INFINITY, f64::NEG_INFINITY]).value().is_nan());
    }

    #[test]
    fn the_result_does_not_depend_on_the_order_or_the_parts() {
        let values = [1e300, -7.25, 1e-320, 0.1, -1e300, 5.5e5];
        let mut turned = values;
        turned.reverse();
        let mut merged = total(&values[..2]);
        merged.merge(&total(&values[2..]));
        let text = |total: &ExactTotal| serde_json::to_string(total).unwrap();
        for other in [&total(&turned), &merged] {
            assert_eq!(text(other), text(&total(&values)));
            assert_eq!(other.value(), total(&values).value());
        }
        let again: ExactTotal = serde_json::from_str(&text(&merged)).unwrap();
        assert_eq!(text(&again), text(&merged));
    }
}
