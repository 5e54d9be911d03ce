//! Softmax and normalizations of byte tensors.
//!
//! Internally they compute with floats, using operations with IEEE 754 rounding in a fixed order.
//! Results are the same bytes on every machine and in every build.

use super::error::{Error, at_least, equal, product};
use super::int16::RUN;
use super::reals::Reals;
use super::scale::{Scale, Target};

/// Returns `e^x` for `x ≤ 0` with a relative error of about 10^-15, by additions and
/// multiplications only. Library versions differ between platforms.
///
/// `x = -(n · ln 2 + r)` with `0 ≤ r < ln 2`, so `e^x = 2^-n · e^-r`. The series of `e^-r` has
/// terms below `0.7^k / k!`, under 10^-17 for k = 16.
fn exponential(x: f64) -> f64 {
    let x = -x;
    if x > 700.0 || x.is_nan() {
        return 0.0;
    }
    let whole = (x / core::f64::consts::LN_2).floor();
    let rest = x - whole * core::f64::consts::LN_2;
    // Horner: 1 - r/1 · (1 - r/2 · (1 - r/3 …
    let mut sum = 1.0;
    for term in (1..=18).rev() {
        sum = 1.0 - rest / f64::from(term) * sum;
    }
    sum * f64::from_bits((1023 - whole as u64) << 52)
}

/// Softmax of rows of `length` values. `from` is the input's scale; its zero point cancels.
///
/// For bytes, `e^(scale · (x - max))` takes at most 256 values: a table.
pub fn softmax(
    values: &[u8],
    length: usize,
    from: f32,
    to: Scale,
    output: &mut [u8],
) -> Result<(), Error> {
    rows(values.len(), length, output.len())?;
    if length == 0 {
        return Ok(());
    }
    let mut powers = [0.0f64; 256];
    for (below, power) in powers.iter_mut().enumerate() {
        *power = exponential(-(f64::from(from.abs()) * below as f64));
    }
    let target = Target::whole(to.zero_point);
    for (row, output) in values
        .chunks_exact(length)
        .zip(output.chunks_exact_mut(length))
    {
        // A negative scale would reverse the order. ONNX has none; the magnitude is used.
        let greatest = row.iter().copied().max().unwrap_or(0);
        let power = |&value: &u8| powers[usize::from(greatest - value)];
        // Four partial sums hide the latency of an addition.
        let mut sums = [0.0f64; 4];
        for (at, value) in row.iter().enumerate() {
            sums[at % 4] += power(value);
        }
        let sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        let share = 1.0 / (sum * f64::from(to.scale));
        let byte = |power: f64| target.byte((power * share) as f32);
        if length < powers.len() {
            for (to, value) in output.iter_mut().zip(row) {
                *to = byte(power(value));
            }
            continue;
        }
        let bytes = powers.map(byte);
        for (to, &value) in output.iter_mut().zip(row) {
            *to = bytes[usize::from(greatest - value)];
        }
    }
    Ok(())
}

/// Partial results per loop, so that it vectorizes.
const LANES: usize = 8;

/// Softmax of rows of `length` floats.
pub fn softmax_reals(values: &[f32], length: usize, output: &mut [f32]) -> Result<(), Error> {
    rows(values.len(), length, output.len())?;
    let whole = values.chunks_exact(length.max(1));
    for (row, output) in whole.zip(output.chunks_exact_mut(length.max(1))) {
        let (many, rest) = row.as_chunks::<LANES>();
        let mut greatest = [f32::NEG_INFINITY; LANES];
        for values in many {
            for (greatest, &value) in greatest.iter_mut().zip(values) {
                *greatest = if value > *greatest { value } else { *greatest };
            }
        }
        let greatest = greatest.iter().chain(rest);
        let greatest = greatest.fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        for (power, &value) in output.iter_mut().zip(row) {
            *power = short_exponential(value - greatest);
        }
        let (many, rest) = output.as_chunks::<LANES>();
        let mut sums = [0.0f64; LANES];
        for powers in many {
            for (sum, &power) in sums.iter_mut().zip(powers) {
                *sum += f64::from(power);
            }
        }
        let sum =
            sums.iter().sum::<f64>() + rest.iter().map(|&power| f64::from(power)).sum::<f64>();
        let share = (1.0 / sum) as f32;
        for power in output {
            *power *= share;
        }
    }
    Ok(())
}

/// Returns `e^x` for `x ≤ 0` in f32 with a relative error of a few 10^-7, far below a 16-bit step.
///
/// `x = n · ln 2 + r` with integer n and `|r| ≤ ln 2 / 2`, so `e^x = 2^n · e^r`. `ln 2` is split
/// into two parts, such that n times the first is exact. The series' remainder is below
/// `0.35^8 / 8!`. There is no branch, so that loops vectorize.
#[inline(always)]
fn short_exponential(x: f32) -> f32 {
    const ROUNDING_MAGIC: f32 = 12_582_912.0;
    /// `1/k!` from k = 7 down to 1.
    const TERMS: [f32; 7] = [
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
    ];
    const PARTS: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    // Below this lies 2^-127, whose exponent bits are not those of a normal number.
    let x = if x >= -88.0 { x } else { -88.0 };
    let magic_steps = x * core::f32::consts::LOG2_E + ROUNDING_MAGIC;
    let whole = magic_steps - ROUNDING_MAGIC;
    let rest = x - whole * PARTS[0] - whole * PARTS[1];
    let mut sum = 0.0;
    for term in TERMS {
        sum = (sum + term) * rest;
    }
    (1.0 + sum) * f32::from_bits(magic_steps.to_bits().wrapping_add(127) << 23)
}

/// Scale and bias of a normalization. Each entry applies to `each` consecutive values; the entries
/// repeat from the start after the last one.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// One entry per value of a row for layer normalization, otherwise one per channel.
    pub scale: &'a [f32],
    /// Entries in the same number, or none.
    pub bias: Option<&'a [f32]>,
    /// Consecutive values per entry.
    pub each: usize,
    /// Index of the first value within the whole tensor.
    pub first: usize,
}

impl Affine<'_> {
    /// Checks that the entries repeat in whole rows. Rows are not empty.
    pub(super) fn check(&self, length: usize) -> Result<(), Error> {
        let count = product(
            "the scale of a normalization",
            &[self.scale.len(), self.each],
        )?;
        at_least("the scale of a normalization", count, 1)?;
        equal("scales beyond whole rows", 0, count % length)?;
        self.bias.map_or(Ok(()), |bias| {
            equal("the bias of a normalization", self.scale.len(), bias.len())
        })
    }

    /// Writes scales and biases of the values from an index on.
    pub(super) fn fill(&self, at: usize, [scales, biases]: [&mut [f32]; 2]) {
        let of = |values| Reals {
            values,
            each: self.each,
        };
        of(self.scale).fill(self.first + at, scales);
        of(self.bias.unwrap_or(&[0.0])).fill(self.first + at, biases);
    }
}

/// Layer normalization of rows of `length` values:
/// `(x - mean) / sqrt(variance + epsilon) · scale + bias`. For images, rows are channels or groups
/// of them.
///
/// Sums of bytes and of their squares are exact integers: `variance = (n · Σx² - (Σx)²) / n²`.
pub fn layer_norm(
    values: &[u8],
    length: usize,
    from: Scale,
    affine: Affine,
    epsilon: f32,
    to: Scale,
    output: &mut [u8],
) -> Result<(), Error> {
    rows(values.len(), length, output.len())?;
    if length == 0 {
        return Ok(());
    }
    affine.check(length)?;
    // Below this, n · Σx² fits u64.
    if length > u32::MAX as usize / 256 {
        return Err(Error::TooLarge {
            what: "a row of the layer normalization",
        });
    }
    let target = Target::whole(to.zero_point);
    let count = length as f64;
    let rows = values
        .chunks_exact(length)
        .zip(output.chunks_exact_mut(length));
    for (place, (row, output)) in rows.enumerate() {
        let (mut sum, mut squares) = (0u64, 0u64);
        // Sums of a portion fit u32.
        for portion in row.chunks(1 << 16) {
            let (mut part, mut part_squares) = (0u32, 0u32);
            for &value in portion {
                part += u32::from(value);
                part_squares += u32::from(value) * u32::from(value);
            }
            sum += u64::from(part);
            squares += u64::from(part_squares);
        }
        let spread = (length as u64 * squares - sum * sum) as f64 / (count * count);
        let scale = f64::from(from.scale);
        let deviation = (spread * scale * scale + f64::from(epsilon)).sqrt();
        let step = (scale / (deviation * f64::from(to.scale))) as f32;
        let mean = (sum as f64 / count) as f32;
        let parts = row.chunks(RUN).zip(output.chunks_mut(RUN));
        for (part, (row, output)) in parts.enumerate() {
            let at = place * length + part * RUN;
            let [mut scales, mut shifts] = [[0.0; RUN]; 2];
            affine.fill(at, [&mut scales[..row.len()], &mut shifts[..row.len()]]);
            let affine = scales.iter().zip(&shifts);
            for ((byte, &value), (scale, shift)) in output.iter_mut().zip(row).zip(affine) {
                let normal = (f32::from(value) - mean) * step * scale;
                *byte = target.byte(normal + shift / to.scale);
            }
        }
    }
    Ok(())
}

fn rows(values: usize, length: usize, output: usize) -> Result<(), Error> {
    equal("the output", values, output)?;
    match values.checked_rem(length) {
        None if values > 0 => Err(Error::Zero {
            what: "the length of a row",
        }),
        Some(rest) if rest > 0 => Err(Error::Mismatch {
            what: "values beyond whole rows",
            expected: 0,
            actual: rest,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_matches_the_library_to_a_few_bits() {
        for step in 0..7000 {
            let x = -f64::from(step) * 0.1;
            let (ours, theirs) = (exponential(x), x.exp());
            assert!(
                (ours - theirs).abs() <= theirs * 1e-12,
                "{x}: {ours} {theirs}"
            );
        }
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(f64::NEG_INFINITY), 0.0);
        assert_eq!(exponential(f64::NAN), 0.0);
        for step in 0..9000 {
            let x = -(step as f32) * 0.01;
            let (ours, theirs) = (short_exponential(x), f64::from(x).exp());
            assert!(
                (f64::from(ours) - theirs).abs() <= theirs * 3e-7 + 1e-38,
                "{x}: {ours} {theirs}"
            );
        }
        assert_eq!(short_exponential(0.0), 1.0);
        for nothing in [-88.0, -1e30, f32::NEG_INFINITY, f32::NAN] {
            assert_eq!(short_exponential(nothing), 0.0);
        }
    }
}
