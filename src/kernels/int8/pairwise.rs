//! Sums, differences and products of two tensors, each with a scale of its own, and the greater or lesser of two with one scale.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use core::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, u8x16_splat, v128, v128_load};

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::convert::MANY;
use super::convert::Target;
use super::error::{Error, finite, product};
use super::moves;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::vector::{Begins, Ends, opaque, store_sixteen};

/// One of the two tensors. Output i sees value `(i / each) mod length`: with `each` = 1 a shorter tensor repeats
/// (channels last, one value a channel), with `each` = channels it has one value a pixel; a constant is one value.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Its bytes.
    pub values: &'a [u8],
    /// How many outputs in a run see the same value.
    pub each: usize,
    /// What stands for zero.
    pub zero_point: u8,
}

impl<'a> Operand<'a> {
    /// As long as the output, or repeating.
    pub fn new(values: &'a [u8], zero_point: u8) -> Operand<'a> {
        Operand {
            values,
            each: 1,
            zero_point,
        }
    }

    /// Whether its values, each and all repeated, make the output.
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
                what: "what remains of the output when an operand is repeated",
                expected: 0,
                found: rest,
            }),
        }
    }
}

/// `a_multiplier · (a - a_zero) + b_multiplier · (b - b_zero)` in steps of the output, where a multiplier is the
/// operand's scale over the output's; a negative one subtracts. Both products and the sum are rounded to f32.
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

/// `(a - a_zero) · (b - b_zero) · multiplier` in steps of the output: the multiplier is both scales over the output's.
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

/// The greatest of two bytes that mean the same, or the least.
pub fn extreme([a, b]: [&Operand; 2], least: bool, output: &mut [u8]) -> Result<(), Error> {
    // The least byte is the greatest of all with their bits turned.
    let turn = if least { u8::MAX } else { 0 };
    let greatest = |to: &mut u8, byte: u8| *to = (*to ^ turn).max(byte ^ turn) ^ turn;
    let length = run_of([a, b], output.len())?;
    for (at, output) in output.chunks_exact_mut(length).enumerate() {
        match a.part(at * length, length) {
            Part::Many(values) => moves::copy(values, output),
            Part::One(value) => output.fill(value),
        }
        match b.part(at * length, length) {
            Part::Many(values) => {
                for (to, &value) in output.iter_mut().zip(values) {
                    greatest(to, value);
                }
            }
            Part::One(value) => output.iter_mut().for_each(|to| greatest(to, value)),
        }
    }
    Ok(())
}

/// What two values, less their zero points, become in steps of the output.
trait Combine: Copy {
    fn one(self, values: [i32; 2]) -> f32;

    /// The same of four pairs of floats, with the multipliers in vectors.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn four(multipliers: [v128; 2], values: [v128; 2]) -> v128;

    /// What there is to multiply by.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn multipliers(self) -> [f32; 2];
}

/// Each times its multiplier.
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

/// Both times one multiplier.
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
        // The first product is below 2^24: exact, as that of integers.
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
    let length = run_of([a, b], output.len())?;
    let pairs = Pairs {
        zero_points: [a.zero_point, b.zero_point],
        to,
        combine,
    };
    for (turn, output) in output.chunks_exact_mut(length).enumerate() {
        let [a, b] = [a, b].map(|operand| operand.part(turn * length, length));
        match (a, b) {
            (Part::Many(a), Part::Many(b)) => pairs.run(a, b, output),
            (Part::Many(a), Part::One(b)) => pairs.run(a, b, output),
            (Part::One(a), Part::Many(b)) => pairs.run(a, b, output),
            (Part::One(a), Part::One(b)) => output.fill(pairs.one(a, b)),
        }
    }
    Ok(())
}

/// The length of runs of so many outputs in which an operand is a slice or a constant.
fn run_of([a, b]: [&Operand; 2], length: usize) -> Result<usize, Error> {
    a.check(length)?;
    b.check(length)?;
    Ok(common_divisor(common_divisor(length, a.run()), b.run()).max(1))
}

/// What becomes of pairs.
struct Pairs<C> {
    zero_points: [u8; 2],
    to: Target,
    combine: C,
}

impl<C: Combine> Pairs<C> {
    #[inline(always)]
    fn one(&self, a: u8, b: u8) -> u8 {
        let [a_zero, b_zero] = self.zero_points.map(i32::from);
        let values = [i32::from(a) - a_zero, i32::from(b) - b_zero];
        self.to.byte(self.combine.one(values))
    }

    #[inline(always)]
    fn run(&self, a: impl Values, b: impl Values, output: &mut [u8]) {
        let done = self.whole_vectors(a, b, output);
        // A plain loop, which becomes vector code natively.
        let values = a.from(done).zip(b.from(done));
        for (byte, (a, b)) in output[done..].iter_mut().zip(values) {
            *byte = self.one(a, b);
        }
    }

    /// Gives how many are done.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn whole_vectors(&self, a: impl Values, b: impl Values, output: &mut [u8]) -> usize {
        let multipliers = self.combine.multipliers();
        // Infinities of both signs would be no number together.
        if multipliers
            .iter()
            .any(|multiplier| !(multiplier * 255.0).is_finite())
        {
            return 0;
        }
        let multipliers = multipliers.map(|multiplier| opaque(f32x4_splat(multiplier)));
        let begins = self.zero_points.map(Begins::new);
        let ends = Ends::new(self.to.zero_point, self.to.low, self.to.high);
        let whole = output.as_chunks_mut().0;
        for (at, bytes) in whole.iter_mut().enumerate() {
            let a = begins[0].floats(a.sixteen(at * MANY));
            let b = begins[1].floats(b.sixteen(at * MANY));
            let four = |at: usize| C::four(multipliers, [a[at], b[at]]);
            store_sixteen(bytes, ends.sixteen([four(0), four(1), four(2), four(3)]));
        }
        whole.len() * MANY
    }

    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    #[inline(always)]
    fn whole_vectors(&self, _: impl Values, _: impl Values, _: &mut [u8]) -> usize {
        0
    }
}

/// What a run of outputs sees of an operand.
enum Part<'a> {
    One(u8),
    Many(&'a [u8]),
}

/// The same, known while compiling.
trait Values: Copy {
    /// From one of them on.
    fn from(self, at: usize) -> impl Iterator<Item = u8>;

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn sixteen(self, at: usize) -> v128;
}

impl Values for &[u8] {
    #[inline(always)]
    fn from(self, at: usize) -> impl Iterator<Item = u8> {
        self[at..].iter().copied()
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn sixteen(self, at: usize) -> v128 {
        // SAFETY: sixteen bytes.
        unsafe { v128_load(self[at..][..MANY].as_ptr().cast()) }
    }
}

impl Values for u8 {
    #[inline(always)]
    fn from(self, _: usize) -> impl Iterator<Item = u8> {
        core::iter::repeat(self)
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[inline(always)]
    fn sixteen(self, _: usize) -> v128 {
        u8x16_splat(self)
    }
}

impl<'a> Operand<'a> {
    /// Every run of so many outputs, from the first on, sees a slice or a single value; 0 stands for any length.
    fn run(&self) -> usize {
        match (self.values.len(), self.each) {
            (1, _) => 0,
            (length, 1) => length,
            (_, each) => each,
        }
    }

    /// What the run from `first` on sees.
    fn part(&self, first: usize, length: usize) -> Part<'a> {
        let at = first / self.each % self.values.len();
        match (self.values.len(), self.each) {
            (2.., 1) => Part::Many(&self.values[at..][..length]),
            _ => Part::One(self.values[at]),
        }
    }
}

/// The greatest common divisor; 0 divides like anything.
fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
