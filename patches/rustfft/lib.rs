//! A small implementation of the discrete Fourier transform for any length.
//!
//! All types are computed in f64, so there is one instance of the code. Lengths of small prime
//! factors use the mixed-radix algorithm. All others become a convolution whose length is a power
//! of two (Bluestein's algorithm).

use std::f64::consts::PI;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

pub use num_complex;
pub use num_traits;

use num_complex::Complex;
use num_traits::{FromPrimitive, ToPrimitive};

/// A number type that can be transformed.
pub trait FftNum: Copy + FromPrimitive + ToPrimitive + Debug + Send + Sync + 'static {}

impl<T: Copy + FromPrimitive + ToPrimitive + Debug + Send + Sync + 'static> FftNum for T {}

/// Sign of the exponent. Neither direction scales the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftDirection {
    /// exp(−2πi·jk/n).
    Forward,
    /// exp(+2πi·jk/n).
    Inverse,
}

/// A transform of one length and direction.
pub trait Fft<T: FftNum>: Send + Sync + Debug {
    /// Transforms each block of the planned length in place; an incomplete block at the end is
    /// unchanged.
    fn process(&self, buffer: &mut [Complex<T>]);
}

/// Creates transforms.
#[derive(Debug)]
pub struct FftPlanner<T>(PhantomData<T>);

impl<T: FftNum> FftPlanner<T> {
    /// Creates a planner. It has no cache.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// Creates the transform of `length` values.
    pub fn plan_fft(&mut self, length: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
        Arc::new(Dft::new(length, direction))
    }

    /// Creates the forward transform of `length` values.
    pub fn plan_fft_forward(&mut self, length: usize) -> Arc<dyn Fft<T>> {
        self.plan_fft(length, FftDirection::Forward)
    }

    /// Creates the inverse transform of `length` values.
    pub fn plan_fft_inverse(&mut self, length: usize) -> Arc<dyn Fft<T>> {
        self.plan_fft(length, FftDirection::Inverse)
    }
}

impl<T: FftNum> Fft<T> for Dft {
    fn process(&self, buffer: &mut [Complex<T>]) {
        let widen = |value: T| value.to_f64().unwrap_or(f64::NAN);
        let into = |value: f64| T::from_f64(value).expect("a float takes any f64");
        for block in buffer.chunks_exact_mut(self.length.max(1)) {
            let values: Vec<_> = block
                .iter()
                .map(|value| Complex::new(widen(value.re), widen(value.im)))
                .collect();
            for (place, value) in block.iter_mut().zip(self.transform(&values)) {
                *place = Complex::new(into(value.re), into(value.im));
            }
        }
    }
}

/// The greatest prime factor for the mixed-radix algorithm, whose cost per value is proportional to
/// it.
const LARGEST_FACTOR: usize = 31;

#[derive(Debug)]
struct Dft {
    length: usize,
    algorithm: DftAlgorithm,
}

#[derive(Debug)]
enum DftAlgorithm {
    /// Mixed radix: the prime factors of the length, and the roots of unity of the whole length.
    Factors {
        factors: Vec<usize>,
        roots: Vec<Complex<f64>>,
    },
    /// Bluestein: a convolution with a chirp, since jk = (j² + k² − (k − j)²) / 2.
    Chirp {
        chirp: Vec<Complex<f64>>,
        spectrum: Vec<Complex<f64>>,
        longer: Box<Dft>,
    },
}

impl Dft {
    fn new(length: usize, direction: FftDirection) -> Self {
        let sign = match direction {
            FftDirection::Forward => -1.0,
            FftDirection::Inverse => 1.0,
        };
        let factors = factors(length);
        let algorithm = if factors.iter().all(|&factor| factor <= LARGEST_FACTOR) {
            let roots = (0..length)
                .map(|k| Complex::cis(sign * 2.0 * PI * k as f64 / length as f64))
                .collect();
            DftAlgorithm::Factors { factors, roots }
        } else {
            // k² modulo 2n keeps the angle small and therefore exact.
            let angle = |k: usize| {
                (k as u128 * k as u128 % (2 * length as u128)) as f64 * PI / length as f64
            };
            let chirp: Vec<_> = (0..length).map(|k| Complex::cis(sign * angle(k))).collect();
            let longer = Box::new(Dft::new(
                (2 * length - 1).next_power_of_two(),
                FftDirection::Forward,
            ));
            let mut kernel = vec![Complex::new(0.0, 0.0); longer.length];
            for (k, factor) in chirp.iter().enumerate() {
                kernel[k] = factor.conj();
                kernel[(longer.length - k) % longer.length] = factor.conj();
            }
            DftAlgorithm::Chirp {
                spectrum: longer.transform(&kernel),
                chirp,
                longer,
            }
        };
        Self { length, algorithm }
    }

    fn transform(&self, values: &[Complex<f64>]) -> Vec<Complex<f64>> {
        match &self.algorithm {
            DftAlgorithm::Factors { factors, roots } => {
                let mut out = vec![Complex::new(0.0, 0.0); self.length];
                mixed_radix(values, 1, &mut out, factors, roots);
                out
            }
            DftAlgorithm::Chirp {
                chirp,
                spectrum,
                longer,
            } => {
                let mut modulated: Vec<_> = values
                    .iter()
                    .zip(chirp)
                    .map(|(value, factor)| value * factor)
                    .collect();
                modulated.resize(longer.length, Complex::new(0.0, 0.0));
                // The inverse of the longer transform is its forward transform between two
                // conjugations.
                let product: Vec<_> = longer
                    .transform(&modulated)
                    .iter()
                    .zip(spectrum)
                    .map(|(a, b)| (a * b).conj())
                    .collect();
                let scale = 1.0 / longer.length as f64;
                longer
                    .transform(&product)
                    .iter()
                    .zip(chirp)
                    .map(|(value, factor)| value.conj() * factor * scale)
                    .collect()
            }
        }
    }
}

/// Transforms every `step`-th of `values`, as many as `out` holds. It makes one transform per
/// remainder modulo the first factor, then combines them. `roots` are those of the whole length.
fn mixed_radix(
    values: &[Complex<f64>],
    step: usize,
    out: &mut [Complex<f64>],
    factors: &[usize],
    roots: &[Complex<f64>],
) {
    let Some((&factor, others)) = factors.split_first() else {
        if let Some(place) = out.first_mut() {
            *place = values[0];
        }
        return;
    };
    let part = out.len() / factor;
    for (remainder, out) in out.chunks_exact_mut(part).enumerate() {
        mixed_radix(
            &values[remainder * step..],
            step * factor,
            out,
            others,
            roots,
        );
    }
    let mut terms = [Complex::new(0.0, 0.0); LARGEST_FACTOR];
    for k in 0..part {
        for (remainder, term) in terms[..factor].iter_mut().enumerate() {
            *term = out[remainder * part + k] * roots[remainder * k * step];
        }
        for quotient in 0..factor {
            let root = |remainder: usize| roots[quotient * remainder % factor * part * step];
            out[quotient * part + k] = terms[..factor]
                .iter()
                .enumerate()
                .map(|(remainder, term)| term * root(remainder))
                .sum();
        }
    }
}

/// Prime factors of a number in ascending order.
fn factors(mut number: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut candidate = 2;
    while number > 1 {
        if candidate * candidate > number {
            candidate = number;
        }
        while number.is_multiple_of(candidate) {
            factors.push(candidate);
            number /= candidate;
        }
        candidate += 1;
    }
    factors
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_definition(values: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = values.len();
        let root = |jk: usize| Complex::cis(sign * 2.0 * PI * (jk % n) as f64 / n as f64);
        (0..n)
            .map(|k| {
                values
                    .iter()
                    .enumerate()
                    .map(|(j, value)| value * root(j * k))
                    .sum()
            })
            .collect()
    }

    fn distance(actual: &[Complex<f64>], expected: &[Complex<f64>]) -> f64 {
        actual
            .iter()
            .zip(expected)
            .map(|(a, b)| (a - b).norm())
            .fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn the_transform_matches_its_definition(values in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 1..300)) {
            let values: Vec<_> = values.into_iter().map(|(re, im)| Complex::new(re, im)).collect();
            for (direction, sign) in [(FftDirection::Forward, -1.0), (FftDirection::Inverse, 1.0)] {
                let mut actual = values.clone();
                FftPlanner::new().plan_fft(values.len(), direction).process(&mut actual);
                prop_assert!(distance(&actual, &by_definition(&values, sign)) < 1e-10);
            }
        }
    }

    #[test]
    fn forward_and_inverse_multiply_by_the_length() {
        // A power of two, a product of small primes, a prime, and twice a prime.
        for length in [1, 1024, 1000, 997, 2 * 401] {
            let values: Vec<_> = (0..length)
                .map(|k| Complex::new((k as f32 * 0.37).sin(), (k as f32 * 0.11).cos()))
                .collect();
            let mut actual = values.clone();
            FftPlanner::new()
                .plan_fft_forward(length)
                .process(&mut actual);
            FftPlanner::new()
                .plan_fft_inverse(length)
                .process(&mut actual);
            for (actual, value) in actual.iter().zip(&values) {
                assert!((actual / length as f32 - value).norm() < 1e-6, "{length}");
            }
        }
    }

    #[test]
    fn consecutive_blocks_are_transformed_and_an_empty_buffer_is_valid() {
        let mut two = [1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0].map(|re| Complex::new(re, 0.0));
        FftPlanner::new().plan_fft_forward(3).process(&mut two);
        assert!(
            two[..3]
                .iter()
                .all(|value| (value - Complex::new(1.0, 0.0)).norm() < 1e-6)
        );
        assert!((two[4] - Complex::cis(-2.0 * std::f32::consts::PI / 3.0)).norm() < 1e-6);
        FftPlanner::<f32>::new()
            .plan_fft_forward(0)
            .process(&mut []);
    }
}
