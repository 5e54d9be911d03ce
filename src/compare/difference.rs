//! Measures of the difference between two values, accumulated over samples.

use serde::{Deserialize, Serialize};

use super::exact_total::ExactTotal;

/// Sums over all elements of all samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    count: u64,
    signal: ExactTotal,
    other: ExactTotal,
    product: ExactTotal,
    noise: ExactTotal,
    absolute: ExactTotal,
    /// Bits of the largest difference: those of positive numbers are in their order.
    largest: u64,
}

/// Measures derived from a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceMetrics {
    /// SQNR in decibels; 200 if there is no difference.
    pub sqnr: f64,
    /// Cosine of the angle between both values.
    pub cosine: f64,
    /// Largest absolute difference of two elements.
    pub max: f64,
    /// Mean absolute difference.
    pub mean: f64,
}

/// SQNR of equal values, beyond the resolution of float32.
pub const EQUAL_SQNR: f64 = 200.0;

impl Difference {
    /// Adds the elements of a sample; their sums are exact over all samples. Elements that are not finite in `first` are skipped; in
    /// `second` they count as zero.
    pub fn add(&mut self, first: &[f32], second: &[f32]) {
        let [mut signal, mut other, mut product, mut noise, mut absolute] = [0.0; 5];
        let mut largest = 0.0f64;
        for (&a, &b) in first.iter().zip(second) {
            let (a, b) = (f64::from(a), f64::from(b));
            if !a.is_finite() {
                continue;
            }
            let b = if b.is_finite() { b } else { 0.0 };
            let apart = a - b;
            self.count += 1;
            signal += a * a;
            other += b * b;
            product += a * b;
            noise += apart * apart;
            absolute += apart.abs();
            largest = largest.max(apart.abs());
        }
        self.signal.add(signal);
        self.other.add(other);
        self.product.add(product);
        self.noise.add(noise);
        self.absolute.add(absolute);
        self.largest = self.largest.max(largest.to_bits());
    }

    /// Adds the sums over other samples.
    pub(super) fn merge(&mut self, other: &Difference) {
        self.count = self.count.saturating_add(other.count);
        self.signal.merge(&other.signal);
        self.other.merge(&other.other);
        self.product.merge(&other.product);
        self.noise.merge(&other.noise);
        self.absolute.merge(&other.absolute);
        self.largest = self.largest.max(other.largest);
    }

    /// Squared difference over squared signal.
    pub fn noise_share(&self) -> f64 {
        let (noise, signal) = (self.noise.value(), self.signal.value());
        match (noise > 0.0, signal > 0.0) {
            (false, _) => 0.0,
            (true, false) => f64::INFINITY,
            (true, true) => noise / signal,
        }
    }

    /// Computes the measures.
    pub fn metrics(&self) -> DifferenceMetrics {
        let lengths = (self.signal.value() * self.other.value()).sqrt();
        let share = self.noise_share();
        DifferenceMetrics {
            sqnr: if share > 0.0 {
                (-10.0 * share.log10()).clamp(-EQUAL_SQNR, EQUAL_SQNR)
            } else {
                EQUAL_SQNR
            },
            cosine: match (lengths > 0.0, self.noise.value() > 0.0) {
                (true, _) => (self.product.value() / lengths).clamp(-1.0, 1.0),
                (false, true) => 0.0,
                (false, false) => 1.0,
            },
            max: f64::from_bits(self.largest),
            mean: self.absolute.value() / self.count.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_all_elements_however_they_were_cut() {
        let (a, b) = ([3.0f32, -4.0, 0.0, 12.0], [3.0f32, -4.5, 0.5, 12.0]);
        let mut whole = Difference::default();
        whole.add(&a, &b);
        let mut parts = Difference::default();
        parts.add(&a[..1], &b[..1]);
        parts.add(&a[1..], &b[1..]);
        assert_eq!(whole.metrics(), parts.metrics());
        let apart = whole.metrics();
        assert!((apart.sqnr - 10.0 * (169.0f64 / 0.5).log10()).abs() < 1e-9);
        assert_eq!((apart.max, apart.mean), (0.5, 0.25));
        let (product, other) = (9.0 + 18.0 + 144.0, 9.0 + 20.25 + 0.25 + 144.0);
        assert!((apart.cosine - product / (169.0f64 * other).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_leaves_the_figures_numbers() {
        let mut lost = Difference::default();
        lost.add(&[f32::NAN, 2.0, 1.0], &[1.0, f32::NAN, 1.0]);
        let apart = lost.metrics();
        assert_eq!((apart.max, apart.mean), (2.0, 1.0));
        assert!((apart.cosine - 1.0 / 5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn equal_values_and_silence_have_figures_too() {
        let mut same = Difference::default();
        same.add(&[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!(
            (same.metrics().sqnr, same.metrics().cosine),
            (EQUAL_SQNR, 1.0)
        );
        let mut silent = Difference::default();
        silent.add(&[0.0], &[1.0]);
        assert_eq!(
            (silent.metrics().sqnr, silent.metrics().cosine),
            (-EQUAL_SQNR, 0.0)
        );
        assert_eq!(Difference::default().metrics().sqnr, EQUAL_SQNR);
    }
}
