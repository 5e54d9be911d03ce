//! Sums, differences and products of two tensors, each with a scale of its own.

use super::convert::Target;
use super::error::{Error, finite, product};

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
    finite("multipliers", &[a_multiplier, b_multiplier])?;
    pairwise(a, b, output, |a, b| {
        to.byte(a as f32 * a_multiplier + b as f32 * b_multiplier)
    })
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
    pairwise(a, b, output, |a, b| to.byte((a * b) as f32 * multiplier))
}

fn pairwise(
    a: &Operand,
    b: &Operand,
    output: &mut [u8],
    of: impl Fn(i32, i32) -> u8,
) -> Result<(), Error> {
    a.check(output.len())?;
    b.check(output.len())?;
    if output.is_empty() {
        return Ok(());
    }
    // Runs in which an operand is a slice or a constant: plain loops, which become vector code.
    let length = common_divisor(common_divisor(output.len(), a.run()), b.run());
    let [a_zero, b_zero] = [a, b].map(|operand| i32::from(operand.zero_point));
    for (turn, output) in output.chunks_exact_mut(length).enumerate() {
        let [a, b] = [a, b].map(|operand| operand.part(turn * length, length));
        match (a, b) {
            (Part::Many(a), Part::Many(b)) => {
                for ((byte, &a), &b) in output.iter_mut().zip(a).zip(b) {
                    *byte = of(i32::from(a) - a_zero, i32::from(b) - b_zero);
                }
            }
            (Part::Many(a), Part::One(b)) => {
                for (byte, &a) in output.iter_mut().zip(a) {
                    *byte = of(i32::from(a) - a_zero, i32::from(b) - b_zero);
                }
            }
            (Part::One(a), Part::Many(b)) => {
                for (byte, &b) in output.iter_mut().zip(b) {
                    *byte = of(i32::from(a) - a_zero, i32::from(b) - b_zero);
                }
            }
            (Part::One(a), Part::One(b)) => {
                output.fill(of(i32::from(a) - a_zero, i32::from(b) - b_zero));
            }
        }
    }
    Ok(())
}

/// What a run of outputs sees of an operand.
enum Part<'a> {
    One(u8),
    Many(&'a [u8]),
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
