//! Epilogues of GEMM and convolutions: from i32 accumulators to the output, with its size checks.

use super::error::{Error, at_least, equal, finite, span};

/// Requantization of accumulators to u8: `clamp(round_half_even(accumulator · multiplier) +
/// zero_point, low, high)`.
///
/// All steps are f32: the accumulator is rounded to f32, then the product is.
#[derive(Clone, Copy, Debug)]
pub struct Requantize<'a> {
    /// `input scale · weight scale / output scale` per column.
    pub multipliers: &'a [f32],
    /// Zero point of the output.
    pub zero_point: u8,
    /// Minimum output: fused Relu and Clip.
    pub low: u8,
    /// Maximum output.
    pub high: u8,
}

impl Requantize<'_> {
    /// Requantizes one accumulator of a column.
    #[inline]
    pub fn value(&self, column: usize, accumulator: i32) -> u8 {
        requantize(
            accumulator as f32 * self.multipliers[column],
            self.zero_point,
            self.low,
            self.high,
        )
    }
}

/// Converts a value in steps of the output's scale to u8: rounded half to even, zero point added,
/// clamped.
///
/// The clamp precedes the rounding. This changes nothing, because its bounds are integers, and it
/// makes the cast safe. `steps` is not NaN: factors are finite, and
/// [`Target::byte`](super::Target::byte) filters other sources.
#[inline]
pub(super) fn requantize(steps: f32, zero_point: u8, low: u8, high: u8) -> u8 {
    let zero_point = f32::from(zero_point);
    let (low, high) = (f32::from(low) - zero_point, f32::from(high) - zero_point);
    let steps = if steps > low { steps } else { low };
    let steps = if steps < high { steps } else { high };
    (round_half_even(steps) + zero_point as i32) as u8
}

/// Rounds half to even, for magnitudes up to 2^22. Between 2^23 and 2^24 one ulp of an f32 is 1.
/// Adding 1.5 · 2^23 therefore rounds, and the bits of the sum count from those of the constant.
#[inline]
pub(super) fn round_half_even(value: f32) -> i32 {
    (value + MAGIC).to_bits() as i32 - MAGIC.to_bits() as i32
}

/// 1.5 · 2^23.
pub(super) const MAGIC: f32 = 12_582_912.0;

/// Destination of the accumulators. A row is a row of a matrix or a pixel of an image. `stride` is
/// the distance between rows; an output can thus be part of a wider one, such as a Concat's.
#[derive(Debug)]
pub enum Output<'a> {
    /// Requantized to u8.
    Requantized {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [u8],
        /// At least the number of columns.
        stride: usize,
        /// Multipliers, zero point and clamp.
        by: Requantize<'a>,
    },
    /// Unchanged accumulators: MatMulInteger, ConvInteger.
    Accumulators {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [i32],
        /// At least the number of columns.
        stride: usize,
    },
    /// Dequantized to floats: `accumulator · scale + bias`, each operation rounded.
    Floats {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [f32],
        /// At least the number of columns.
        stride: usize,
        /// `input scale · weight scale` per column.
        scales: &'a [f32],
        /// One float bias per column.
        bias: Option<&'a [f32]>,
    },
}

impl Output<'_> {
    /// Checks that `rows × columns` values fit and every column has its factors.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<(), Error> {
        let (length, stride) = match self {
            Output::Requantized { values, stride, by } => {
                equal("multipliers", columns, by.multipliers.len())?;
                finite("multipliers", by.multipliers)?;
                (values.len(), *stride)
            }
            Output::Accumulators { values, stride } => (values.len(), *stride),
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => {
                // These floats are never compared, so they may be infinite or NaN.
                equal("scales", columns, scales.len())?;
                if let Some(bias) = bias {
                    equal("float bias", columns, bias.len())?;
                }
                (values.len(), *stride)
            }
        };
        let needed = span("the output", rows, stride, columns)?;
        at_least("the output", length, needed)
    }

    /// Writes one accumulator by the definition. The reference uses it, and vector code is tested
    /// against it.
    #[inline]
    pub(super) fn put(&mut self, row: usize, column: usize, accumulator: i32) {
        match self {
            Output::Requantized { values, stride, by } => {
                values[row * *stride + column] = by.value(column, accumulator);
            }
            Output::Accumulators { values, stride } => {
                values[row * *stride + column] = accumulator;
            }
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => {
                let value = accumulator as f32 * scales[column];
                values[row * *stride + column] = match bias {
                    Some(bias) => value + bias[column],
                    None => value,
                };
            }
        }
    }

    /// Writes the first columns of a tile of accumulators, at a row and column.
    #[inline(always)]
    pub(super) fn put_tile<const NR: usize>(
        &mut self,
        [row, column]: [usize; 2],
        tile: &[[i32; NR]],
        columns: usize,
    ) {
        for (at, sums) in tile.iter().enumerate() {
            // Mostly a full tile, whose length is known at compile time.
            match columns == NR {
                true => self.put_run([row + at, column], sums),
                false => self.put_run([row + at, column], &sums[..columns]),
            }
        }
    }

    /// Writes a row of accumulators, one per column.
    #[inline(always)]
    pub(super) fn put_row(&mut self, row: usize, sums: &[i32]) {
        self.put_run([row, 0], sums);
    }

    /// Writes consecutive accumulators of a row. It equals `put` in loops that vectorize.
    #[inline(always)]
    fn put_run(&mut self, [row, column]: [usize; 2], sums: &[i32]) {
        match self {
            Output::Requantized { values, stride, by } => {
                let values = &mut values[row * *stride + column..][..sums.len()];
                let multipliers = &by.multipliers[column..][..sums.len()];
                for ((byte, &sum), &multiplier) in values.iter_mut().zip(sums).zip(multipliers) {
                    *byte = requantize(sum as f32 * multiplier, by.zero_point, by.low, by.high);
                }
            }
            Output::Accumulators { values, stride } => {
                values[row * *stride + column..][..sums.len()].copy_from_slice(sums);
            }
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => {
                let values = &mut values[row * *stride + column..][..sums.len()];
                let scales = &scales[column..][..sums.len()];
                for ((value, &sum), &scale) in values.iter_mut().zip(sums).zip(scales) {
                    *value = sum as f32 * scale;
                }
                if let Some(bias) = bias {
                    for (value, &bias) in values.iter_mut().zip(&bias[column..]) {
                        *value += bias;
                    }
                }
            }
        }
    }

    /// Returns the sub-matrix that begins at a row and a column, with this many columns.
    pub(super) fn part(&mut self, row: usize, column: usize, columns: usize) -> Output<'_> {
        match self {
            Output::Requantized { values, stride, by } => Output::Requantized {
                values: tail(values, row * *stride + column),
                stride: *stride,
                by: Requantize {
                    multipliers: &by.multipliers[column..column + columns],
                    ..*by
                },
            },
            Output::Accumulators { values, stride } => Output::Accumulators {
                values: tail(values, row * *stride + column),
                stride: *stride,
            },
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => Output::Floats {
                values: tail(values, row * *stride + column),
                stride: *stride,
                scales: &scales[column..column + columns],
                bias: bias.map(|bias| &bias[column..column + columns]),
            },
        }
    }

    /// Returns every `step`-th row: the pixels of one phase of a transposed convolution.
    pub(super) fn strided(self, step: usize) -> Self {
        match self {
            Output::Requantized { values, stride, by } => Output::Requantized {
                values,
                stride: stride.saturating_mul(step),
                by,
            },
            Output::Accumulators { values, stride } => Output::Accumulators {
                values,
                stride: stride.saturating_mul(step),
            },
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => Output::Floats {
                values,
                stride: stride.saturating_mul(step),
                scales,
                bias,
            },
        }
    }
}

/// Returns the rest of a slice. It is empty if `start` lies beyond the end (a part without rows).
fn tail<T>(values: &mut [T], start: usize) -> &mut [T] {
    values.get_mut(start..).unwrap_or_default()
}
