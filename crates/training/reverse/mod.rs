//! Reverse mode: operations with their products of a vector and the Jacobian, and programs of them.
//!
//! An operation knows slices and sizes only. It keeps for its gradient one bit a value where that
//! is enough, and names the values that it reads again; a program keeps no others.

mod along;
mod elementwise;
mod linear;
mod moving;
mod pooling;
mod program;
mod rounding;
#[cfg(test)]
mod tests;
mod windows;

pub use along::{Normalization, SoftmaxRows};
pub use elementwise::{Pairwise, ScalarFunction};
pub use linear::{MatrixProducts, PlaneConvolution, RowProducts};
pub use moving::{GroupedSums, NOWHERE, ValueGather};
pub use pooling::Pooling;
pub use program::{ProgramRun, ProgramStep, ReverseProgram};
pub use rounding::{FakeQuantize, Mixture};
pub use windows::{PlaneWindows, WindowAxis};

use crate::mask_len;

/// An operation of a program, with its inputs in order.
#[derive(Clone, Debug)]
pub enum ReverseOperation {
    /// Values, weights and an optional bias.
    Convolution(PlaneConvolution),
    /// Values, weights and an optional bias.
    Rows(RowProducts),
    /// Two values.
    Matrices(MatrixProducts),
    /// Two values of the same size.
    Pairwise(Pairwise),
    /// A value.
    Curve(ScalarFunction),
    /// A value between two bounds.
    Clamp(f32, f32),
    /// A value, times the slope where it is negative.
    Leaky(f32),
    /// A value.
    Softmax(SoftmaxRows),
    /// A value.
    Normalization(Normalization),
    /// A value.
    Pooling(Pooling),
    /// Any number of values.
    Gather(ValueGather),
    /// A value.
    Sums(GroupedSums),
    /// A value and its scale.
    FakeQuantize(FakeQuantize),
}

/// An operation keeps these besides values: a bit a value, or the tap of each maximum.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    bits: Vec<u32>,
    taps: Vec<u16>,
}

impl Kept {
    pub(self) fn bytes(&self) -> usize {
        size_of_val(self.bits.as_slice()) + size_of_val(self.taps.as_slice())
    }
}

/// The bit of each of 32 values. With a table instead of shifts, loops are vectorized.
const BITS: [u32; 32] = {
    let mut bits = [1; 32];
    let mut at = 1;
    while at < 32 {
        bits[at] = bits[at - 1] << 1;
        at += 1;
    }
    bits
};

/// Sets the bits of the values for which a condition holds.
fn set_bits(x: &[f32], kept: &mut Kept, holds: impl Fn(f32) -> bool) {
    kept.bits.clear();
    kept.bits.resize(mask_len(x.len()), 0);
    for (word, x) in kept.bits.iter_mut().zip(x.chunks(32)) {
        let bits = x.iter().zip(BITS);
        *word = bits.fold(0, |word, (&x, bit)| word | if holds(x) { bit } else { 0 });
    }
}

/// Adds the gradients whose bit is set.
fn add_passed(by: &mut [f32], slope: &[f32], bits: &[u32]) {
    for ((by, slope), &word) in by.chunks_mut(32).zip(slope.chunks(32)).zip(bits) {
        for ((by, slope), bit) in by.iter_mut().zip(slope).zip(BITS) {
            *by += if word & bit != 0 { *slope } else { 0.0 };
        }
    }
}

impl ReverseOperation {
    /// The inputs, and the output, whose values the gradient reads.
    fn reads(&self, wanted: &[bool]) -> (Vec<usize>, bool) {
        let want = |slot: usize| wanted.get(slot).copied().unwrap_or(false);
        let crossed = || {
            let slots = [(0, want(1)), (1, want(0))];
            let read = slots.into_iter().filter(|(_, read)| *read);
            read.map(|(slot, _)| slot).collect()
        };
        match self {
            ReverseOperation::Convolution(_)
            | ReverseOperation::Rows(_)
            | ReverseOperation::Matrices(_) => (crossed(), false),
            ReverseOperation::Pairwise(Pairwise::Multiply) => (crossed(), false),
            ReverseOperation::Pairwise(Pairwise::Divide) => (vec![0, 1], false),
            ReverseOperation::Curve(_) | ReverseOperation::Normalization(_) => (vec![0], false),
            ReverseOperation::Softmax(_) => (Vec::new(), true),
            ReverseOperation::FakeQuantize(_) if want(1) => (vec![0, 1], true),
            ReverseOperation::FakeQuantize(_) => (vec![1], false),
            ReverseOperation::Pairwise(_)
            | ReverseOperation::Clamp(..)
            | ReverseOperation::Leaky(_)
            | ReverseOperation::Pooling(_)
            | ReverseOperation::Gather(_)
            | ReverseOperation::Sums(_) => (Vec::new(), false),
        }
    }

    /// True if the sizes of inputs and output belong together.
    fn fits(&self, lens: &[usize], output: usize) -> bool {
        let weighted = |x: usize, weights: usize, y: usize, outputs: usize| {
            let bias = lens.len() < 3 || lens[2] == outputs;
            lens.len() >= 2 && lens[0] == x && lens[1] == weights && output == y && bias
        };
        let one = |len: usize| lens == [len];
        match self {
            ReverseOperation::Convolution(of) => {
                let outputs = of.groups * of.outputs;
                weighted(of.input_len(), of.weights_len(), of.output_len(), outputs)
            }
            ReverseOperation::Rows(of) => weighted(
                of.count * of.inputs,
                of.inputs * of.outputs,
                of.count * of.outputs,
                of.outputs,
            ),
            ReverseOperation::Matrices(of) => {
                let sizes = of.lens();
                let inside = |slot: usize| {
                    lens.get(slot).is_some_and(|len| {
                        let last = of.pairs.iter().map(|pair| pair[slot] + 1).max();
                        last.unwrap_or(0) * sizes[slot] <= *len
                    })
                };
                inside(0) && inside(1) && output == of.pairs.len() * sizes[2]
            }
            ReverseOperation::Pairwise(_) => lens == [output, output],
            ReverseOperation::Softmax(of) => {
                one(output) && output.is_multiple_of(of.count * of.inner)
            }
            ReverseOperation::Normalization(of) => one(output) && output.is_multiple_of(of.count),
            ReverseOperation::Pooling(of) => {
                let places = of.windows.places();
                let taps = of.windows.taps() <= usize::from(u16::MAX);
                let counted = of.counts.is_empty() || of.counts.len() == places;
                one(of.planes * of.windows.plane())
                    && output == of.planes * places
                    && taps
                    && counted
            }
            ReverseOperation::Gather(of) => match &of.places {
                None => lens.iter().sum::<usize>() == output,
                Some(places) => places.len() == output,
            },
            ReverseOperation::Sums(of) => {
                one(of.places.len()) && of.places.iter().all(|&place| (place as usize) < output)
            }
            ReverseOperation::FakeQuantize(_) => lens == [output, 1],
            ReverseOperation::Curve(_)
            | ReverseOperation::Clamp(..)
            | ReverseOperation::Leaky(_) => one(output),
        }
    }

    fn forward(&self, x: &[&[f32]], y: &mut [f32], kept: &mut Kept, mixture: Option<Mixture>) {
        match self {
            ReverseOperation::Convolution(of) => of.forward(x[0], x[1], x.get(2).copied(), y),
            ReverseOperation::Rows(of) => of.forward(x[0], x[1], x.get(2).copied(), y),
            ReverseOperation::Matrices(of) => of.forward(x[0], x[1], y),
            ReverseOperation::Pairwise(of) => of.forward([x[0], x[1]], y),
            ReverseOperation::Curve(of) => of.forward(x[0], y),
            &ReverseOperation::Clamp(low, high) => {
                set_bits(x[0], kept, |x| x > low && x < high);
                let pairs = y.iter_mut().zip(x[0]);
                pairs.for_each(|(y, x)| *y = x.max(low).min(high));
            }
            ReverseOperation::Leaky(slope) => {
                set_bits(x[0], kept, |x| x >= 0.0);
                let pairs = y.iter_mut().zip(x[0]);
                pairs.for_each(|(y, &x)| *y = if x < 0.0 { slope * x } else { x });
            }
            ReverseOperation::Softmax(of) => of.forward(x[0], y),
            ReverseOperation::Normalization(of) => of.forward(x[0], y),
            ReverseOperation::Pooling(of) => of.forward(x[0], y, &mut kept.taps),
            ReverseOperation::Gather(of) => of.forward(x, y),
            ReverseOperation::Sums(of) => of.forward(x[0], y),
            ReverseOperation::FakeQuantize(of) => {
                of.forward((x[0], x[1][0]), mixture, y, &mut kept.bits);
            }
        }
    }

    /// Adds to the gradients that are wanted. Values that are not kept are empty.
    fn backward(
        &self,
        (x, y, kept): (&[&[f32]], &[f32], &Kept),
        lens: &[usize],
        slope: &[f32],
        gradients: &mut [Option<Vec<f32>>],
    ) {
        if let ReverseOperation::Gather(of) = self {
            return of.backward(lens, slope, gradients);
        }
        let mut slots = gradients.iter_mut();
        let mut next = || slots.next().and_then(|one| one.as_deref_mut());
        let mut by = [next(), next(), next()];
        if let ReverseOperation::Convolution(of) = self {
            return of.backward((x[0], x[1]), slope, by);
        }
        if let ReverseOperation::Rows(of) = self {
            return of.backward((x[0], x[1]), slope, by);
        }
        let [first, second, _] = &mut by;
        let (first, second) = (first.as_deref_mut(), second.as_deref_mut());
        match (self, first) {
            (ReverseOperation::Matrices(of), first) => {
                of.backward((x[0], x[1]), slope, [first, second])
            }
            (ReverseOperation::FakeQuantize(of), first) => {
                of.backward(([x[0], y], x[1][0]), &kept.bits, slope, [first, second]);
            }
            (ReverseOperation::Pairwise(of), first) => {
                of.backward([x[0], x[1]], slope, [first, second]);
            }
            (_, None) => {}
            (ReverseOperation::Curve(of), Some(by)) => of.backward(x[0], slope, by),
            (ReverseOperation::Clamp(..), Some(by)) => add_passed(by, slope, &kept.bits),
            (ReverseOperation::Leaky(negative), Some(by)) => {
                for (at, (by, slope)) in by.iter_mut().zip(slope).enumerate() {
                    let positive = kept.bits[at / 32] >> (at % 32) & 1 == 1;
                    *by += slope * if positive { 1.0 } else { *negative };
                }
            }
            (ReverseOperation::Softmax(of), Some(by)) => of.backward(y, slope, by),
            (ReverseOperation::Normalization(of), Some(by)) => of.backward(x[0], slope, by),
            (ReverseOperation::Pooling(of), Some(by)) => of.backward(&kept.taps, slope, by),
            (ReverseOperation::Sums(of), Some(by)) => of.backward(slope, by),
            _ => {}
        }
    }
}
