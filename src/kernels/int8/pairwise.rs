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
    for (at, byte) in output.iter_mut().enumerate() {
        let [a, b] = [a, b].map(|operand| {
            let value = operand.values[at / operand.each % operand.values.len()];
            i32::from(value) - i32::from(operand.zero_point)
        });
        *byte = of(a, b);
    }
    Ok(())
}
