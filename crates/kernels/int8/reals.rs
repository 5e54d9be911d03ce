//! Float arithmetic on dequantized 16-bit tensors.

use super::error::{Error, at_least, equal, product};
use super::int16::{Int16Grid, RUN};

/// Binary float operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a · b
    Multiply,
    /// a / b
    Divide,
    /// Maximum.
    Greatest,
    /// Minimum.
    Least,
}

impl Arithmetic {
    /// Applies the operator.
    #[inline(always)]
    pub fn of(self, a: f32, b: f32) -> f32 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
            Arithmetic::Greatest => max(a, b),
            Arithmetic::Least => min(a, b),
        }
    }
}

/// A comparison is a single instruction, whereas `f32::max` also handles NaN.
#[inline(always)]
fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// A broadcast operand. Each value applies to `each` consecutive outputs; the values repeat after
/// the last one.
#[derive(Clone, Copy, Debug)]
pub struct Reals<'a> {
    /// The values.
    pub values: &'a [f32],
    /// Consecutive outputs per value.
    pub each: usize,
}

impl Reals<'_> {
    fn check(&self) -> Result<(), Error> {
        at_least("the values of an operand", self.values.len(), 1)?;
        at_least("outputs per value", self.each, 1)?;
        product("the values of an operand", &[self.values.len(), self.each]).map(drop)
    }

    /// Writes the operand's values for the outputs from `first` on.
    #[inline]
    pub(super) fn fill(&self, first: usize, run: &mut [f32]) {
        if let [value] = *self.values {
            run.fill(value);
            return;
        }
        let mut done = 0;
        while done < run.len() {
            let at = first + done;
            let place = at / self.each % self.values.len();
            let rest = &mut run[done..];
            done += if self.each == 1 {
                let count = rest.len().min(self.values.len() - place);
                rest[..count].copy_from_slice(&self.values[place..][..count]);
                count
            } else {
                let count = rest.len().min(self.each - at % self.each);
                rest[..count].fill(self.values[place]);
                count
            };
        }
    }
}

/// Applies a binary operator to two operands, for the outputs from `first` on. Rounds to a
/// quantization grid if one is given.
pub fn arithmetic(
    operator: Arithmetic,
    [a, b]: [Reals; 2],
    first: usize,
    to: Option<Int16Grid>,
    output: &mut [f32],
) -> Result<(), Error> {
    a.check()?;
    b.check()?;
    let [mut left, mut right] = [[0.0; RUN]; 2];
    for (run, output) in output.chunks_mut(RUN).enumerate() {
        let (first, count) = (first + run * RUN, output.len());
        a.fill(first, &mut left[..count]);
        b.fill(first, &mut right[..count]);
        let pairs = output.iter_mut().zip(left.iter().zip(&right));
        match operator {
            Arithmetic::Add => pairs.for_each(|(to, (a, b))| *to = a + b),
            Arithmetic::Subtract => pairs.for_each(|(to, (a, b))| *to = a - b),
            Arithmetic::Multiply => pairs.for_each(|(to, (a, b))| *to = a * b),
            Arithmetic::Divide => pairs.for_each(|(to, (a, b))| *to = a / b),
            Arithmetic::Greatest => pairs.for_each(|(to, (a, b))| *to = max(*a, *b)),
            Arithmetic::Least => pairs.for_each(|(to, (a, b))| *to = min(*a, *b)),
        }
        if let Some(to) = to {
            output
                .iter_mut()
                .for_each(|value| *value = to.value(*value));
        }
    }
    Ok(())
}

/// Computes the mean over the middle of [outer, middle, inner], accumulated in f64 in memory order.
pub fn mean(values: &[f32], [middle, inner]: [usize; 2], output: &mut [f32]) -> Result<(), Error> {
    let block = product("the values", &[middle, inner])?;
    if block == 0 {
        return output.is_empty().then_some(()).ok_or(Error::Zero {
            what: "the values of a mean",
        });
    }
    let outer = output.len() / inner;
    equal(
        "the values",
        product("the values", &[outer, block])?,
        values.len(),
    )?;
    equal("the output", outer * inner, output.len())?;
    let mut sums = vec![0.0f64; inner];
    for (block, output) in values
        .chunks_exact(block)
        .zip(output.chunks_exact_mut(inner))
    {
        sums.fill(0.0);
        for row in block.chunks_exact(inner) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += f64::from(value);
            }
        }
        for (output, sum) in output.iter_mut().zip(&sums) {
            *output = (sum / middle as f64) as f32;
        }
    }
    Ok(())
}

/// Layer normalization of rows of `length` floats:
/// `(x - mean) / sqrt(variance + epsilon) · scale + bias`. Sums are f64.
pub fn layer_norm_reals(
    values: &[f32],
    length: usize,
    affine: super::Affine,
    epsilon: f32,
    output: &mut [f32],
) -> Result<(), Error> {
    equal("the output", values.len(), output.len())?;
    at_least("the length of a row", length, 1)?;
    equal("values beyond whole rows", 0, values.len() % length)?;
    affine.check(length)?;
    let count = length as f64;
    let rows = values
        .chunks_exact(length)
        .zip(output.chunks_exact_mut(length));
    for (place, (row, output)) in rows.enumerate() {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let squares = row.iter().map(|&x| (f64::from(x) - mean).powi(2));
        let step = 1.0 / (squares.sum::<f64>() / count + f64::from(epsilon)).sqrt();
        let parts = row.chunks(RUN).zip(output.chunks_mut(RUN));
        for (part, (row, output)) in parts.enumerate() {
            let [mut scales, mut shifts] = [[0.0; RUN]; 2];
            let both = [&mut scales[..row.len()], &mut shifts[..row.len()]];
            affine.fill(place * length + part * RUN, both);
            let affine = scales.iter().zip(&shifts);
            for ((output, &value), (scale, shift)) in output.iter_mut().zip(row).zip(affine) {
                *output = ((f64::from(value) - mean) * step) as f32 * scale + shift;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_broadcast_by_each() {
        let (a, b) = ([1.0, 2.0, 3.0], [10.0, 20.0]);
        let sides = [
            Reals {
                values: &a,
                each: 1,
            },
            Reals {
                values: &b,
                each: 3,
            },
        ];
        for first in 0..4 {
            let mut output = vec![0.0; 300];
            arithmetic(Arithmetic::Add, sides, first, None, &mut output).unwrap();
            for (at, value) in output.iter().enumerate() {
                let at = at + first;
                assert_eq!(*value, a[at % 3] + b[at / 3 % 2], "{at}");
            }
        }
        let none = Reals {
            values: &[],
            each: 1,
        };
        assert!(arithmetic(Arithmetic::Add, [none, none], 0, None, &mut [0.0]).is_err());
    }

    #[test]
    fn mean_and_layer_norm_match_the_definition() {
        let mut output = [0.0; 4];
        mean(
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            [2, 2],
            &mut output,
        )
        .unwrap();
        assert_eq!(output, [2.0, 3.0, 6.0, 7.0]);
        let affine = super::super::Affine {
            scale: &[2.0, 2.0],
            bias: Some(&[1.0, 0.0]),
            each: 1,
            first: 0,
        };
        let mut output = [0.0; 2];
        layer_norm_reals(&[3.0, 5.0], 2, affine, 0.0, &mut output).unwrap();
        assert_eq!(output, [-1.0, 2.0]);
        assert!(layer_norm_reals(&[3.0], 2, affine, 0.0, &mut [0.0]).is_err());
    }
}
