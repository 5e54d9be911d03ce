//! Binary operators on bytes: sums, differences and products of two scales; maximum and minimum of
//! one scale.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use core::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, u8x16_splat, v128, v128_load};

use super::byte_copy;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::convert::LANES;
use super::error::{Error, finite, product};
use super::scale::Target;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::vector::{CenteredBytes, Requantizer, opaque, store_sixteen};

/// One operand. Output i reads value `(i / each) mod length`.
///
/// With `each` = 1 a shorter tensor repeats (NHWC, one value per channel). With `each` = channels
/// there is one value per pixel. A constant is a single value.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The bytes.
    pub values: &'a [u8],
    /// Consecutive outputs that read the same value.
    pub each: usize,
    /// Zero point.
    pub zero_point: u8,
}

impl<'a> Operand<'a> {
    /// An operand as long as the output, or repeating.
    pub fn new(values: &'a [u8], zero_point: u8) -> Operand<'a> {
        Operand {
            values,
            each: 1,
            zero_point,
        }
    }

    /// Checks that the repeated values fill the output exactly.
    fn check(&self, length: usize) -> Result<(), Error> {
        let unit = product("an operand", &[self.values.len(), self.each])?;
        if length == 0 {
            return Ok(());
        }
        if unit == 0 {
            return Err(Error::Zero {
                what: "the length of an operand",
            });
        }
        match length % unit {
            0 => Ok(()),
            rest => Err(Error::Mismatch {
                what: "outputs beyond whole repetitions of an operand",
                expected: 0,
                actual: rest,
            }),
        }
    }
}

/// Computes `a_multiplier · (a - a₀) + b_multiplier · (b - b₀)` in steps of the output. A
/// multiplier is the operand's scale divided by the output's; a negative one subtracts. Both
/// products and the sum are rounded to f32.
pub fn add(
    (a, a_multiplier): (&Operand, f32),
    (b, b_multiplier): (&Operand, f32),
    to: Target,
    output: &mut [u8],
) -> Result<(), Error> {
    let multipliers = [a_multiplier, b_multiplier];
    finite("multipliers", &multipliers)?;
    pairwise([a, b], to, output, Sum(multipliers))
}

/// Computes `(a - a₀) · (b - b₀) · multiplier` in steps of the output. The multiplier is the
/// product of both scales divided by the output's.
pub fn multiply(
    a: &Operand,
    b: &Operand,
    multiplier: f32,
    to: Target,
    output: &mut [u8],
) -> Result<(), Error> {
    finite("multipliers", &[multiplier])?;
    pairwise([a, b], to, output, Product(multiplier))
}

/// Computes the maximum, or the minimum, of two tensors with the same scale.
pub fn extreme([a, b]: [&Operand; 2], least: bool, output: &mut [u8]) -> Result<(), Error> {
    // The minimum is the maximum of the inverted bits, inverted back.
    let flip = if least { u8::MAX } else { 0 };
    let greatest = |to: &mut u8, byte: u8| *to = (*to ^ flip).max(byte ^ flip) ^ flip;
    let length = common_run([a, b], output.len())?;
    for (at, output) in output.chunks_exact_mut(length).enumerate() {
        match a.run_values(at * length, length) {
            RunValues::Many(values) => byte_copy::copy(values, output),
            RunValues::One(value) => output.fill(value),
        }
        match b.run_values(at * length, length) {
            RunValues::Many(values) => {
                for (to, &value) in output.iter_mut().zip(values) {
                    greatest(to, value);
                }
            }
            RunValues::One(value) => output.iter_mut().for_each(|to| greatest(to, value)),
        }
    }
    Ok(())
}

/// A binary function of two centred values, in steps of the output.
trait Combine: Copy {
    fn one(self, values: [i32; 2]) -> f32;

    /// Combines four float pairs, with the multipliers broadcast.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn four(multipliers: [v128; 2], values: [v128; 2]) -> v128;

    /// Multipliers to broadcast.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn multipliers(self) -> [f32; 2];
}

/// `a · multiplier + b · multiplier`.
#[derive(Clone, Copy)]
struct Sum([f32; 2]);

impl Combine for Sum {
    #[inline(always)]
    fn one(self, [a, b]: [i32; 2]) -> f32 {
        a as f32 * self.0[0] + b as f32 * self.0[1]
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn four(multipliers: [v128; 2], [a, b]: [v128; 2]) -> v128 {
        f32x4_add(f32x4_mul(a, multipliers[0]), f32x4_mul(b, multipliers[1]))
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn multipliers(self) -> [f32; 2] {
        self.0
    }
}

/// `a · b · multiplier`.
#[derive(Clone, Copy)]
struct Product(f32);

impl Combine for Product {
    #[inline(always)]
    fn one(self, [a, b]: [i32; 2]) -> f32 {
        (a * b) as f32 * self.0
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn four(multipliers: [v128; 2], [a, b]: [v128; 2]) -> v128 {
        // The first product is below 2^24, so it is exact like the integer product.
        f32x4_mul(f32x4_mul(a, b), multipliers[0])
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn multipliers(self) -> [f32; 2] {
        [self.0, 0.0]
    }
}

fn pairwise(
    [a, b]: [&Operand; 2],
    to: Target,
    output: &mut [u8],
    combine: impl Combine,
) -> Result<(), Error> {
    let length = common_run([a, b], output.len())?;
    let pairs = PairLoop {
        zero_points: [a.zero_point, b.zero_point],
        to,
        combine,
    };
    for (run, output) in output.chunks_exact_mut(length).enumerate() {
        let [a, b] = [a, b].map(|operand| operand.run_values(run * length, length));
        match (a, b) {
            (RunValues::Many(a), RunValues::Many(b)) => pairs.run(a, b, output),
            (RunValues::Many(a), RunValues::One(b)) => pairs.run(a, b, output),
            (RunValues::One(a), RunValues::Many(b)) => pairs.run(a, b, output),
            (RunValues::One(a), RunValues::One(b)) => output.fill(pairs.one(a, b)),
        }
    }
    Ok(())
}

/// Returns the run length in which each operand is a slice or a constant.
fn common_run([a, b]: [&Operand; 2], length: usize) -> Result<usize, Error> {
    a.check(length)?;
    b.check(length)?;
    Ok(common_divisor(common_divisor(length, a.run_length()), b.run_length()).max(1))
}

/// The loop over pairs of bytes.
struct PairLoop<C> {
    zero_points: [u8; 2],
    to: Target,
    combine: C,
}

impl<C: Combine> PairLoop<C> {
    #[inline(always)]
    fn one(&self, a: u8, b: u8) -> u8 {
        let [a_zero, b_zero] = self.zero_points.map(i32::from);
        let values = [i32::from(a) - a_zero, i32::from(b) - b_zero];
        self.to.byte(self.combine.one(values))
    }

    #[inline(always)]
    fn run(&self, a: impl RunSource, b: impl RunSource, output: &mut [u8]) {
        let done = self.whole_vectors(a, b, output);
        // A scalar loop, which vectorizes natively.
        let values = a.iter_from(done).zip(b.iter_from(done));
        for (byte, (a, b)) in output[done..].iter_mut().zip(values) {
            *byte = self.one(a, b);
        }
    }

    /// Computes whole vectors. Returns the number of outputs written.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn whole_vectors(&self, a: impl RunSource, b: impl RunSource, output: &mut [u8]) -> usize {
        let multipliers = self.combine.multipliers();
        // Infinities of opposite sign would add to NaN.
        if multipliers
            .iter()
            .any(|multiplier| !(multiplier * 255.0).is_finite())
        {
            return 0;
        }
        let multipliers = multipliers.map(|multiplier| opaque(f32x4_splat(multiplier)));
        let centered = self.zero_points.map(CenteredBytes::new);
        let requantizer = Requantizer::new(self.to.zero_point, self.to.low, self.to.high);
        let whole = output.as_chunks_mut().0;
        for (at, bytes) in whole.iter_mut().enumerate() {
            let a = centered[0].floats(a.sixteen(at * LANES));
            let b = centered[1].floats(b.sixteen(at * LANES));
            let four = |at: usize| C::four(multipliers, [a[at], b[at]]);
            store_sixteen(
                bytes,
                requantizer.sixteen([four(0), four(1), four(2), four(3)]),
            );
        }
        whole.len() * LANES
    }

    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    #[inline(always)]
    fn whole_vectors(&self, _: impl RunSource, _: impl RunSource, _: &mut [u8]) -> usize {
        0
    }
}

/// Values of an operand in one run of outputs.
enum RunValues<'a> {
    One(u8),
    Many(&'a [u8]),
}

/// Values of a run, with the kind known at compile time.
trait RunSource: Copy {
    /// Iterates from an index on.
    fn iter_from(self, at: usize) -> impl Iterator<Item = u8>;

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn sixteen(self, at: usize) -> v128;
}

impl RunSource for &[u8] {
    #[inline(always)]
    fn iter_from(self, at: usize) -> impl Iterator<Item = u8> {
        self[at..].iter().copied()
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn sixteen(self, at: usize) -> v128 {
        // SAFETY: sixteen bytes.
        unsafe { v128_load(self[at..][..LANES].as_ptr().cast()) }
    }
}

impl RunSource for u8 {
    #[inline(always)]
    fn iter_from(self, _: usize) -> impl Iterator<Item = u8> {
        core::iter::repeat(self)
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn sixteen(self, _: usize) -> v128 {
        u8x16_splat(self)
    }
}

impl<'a> Operand<'a> {
    /// Returns the run length in which this operand is a slice or a constant. 0 means any length.
    fn run_length(&self) -> usize {
        match (self.values.len(), self.each) {
            (1, _) => 0,
            (length, 1) => length,
            (_, each) => each,
        }
    }

    /// Returns the values of the run that begins at `first`.
    fn run_values(&self, first: usize, length: usize) -> RunValues<'a> {
        let at = first / self.each % self.values.len();
        match (self.values.len(), self.each) {
            (2.., 1) => RunValues::Many(&self.values[at..][..length]),
            _ => RunValues::One(self.values[at]),
        }
    }
}

/// Greatest common divisor. 0 is a multiple of everything.
fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
