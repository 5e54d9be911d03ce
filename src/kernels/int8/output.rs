//! What becomes of the i32 accumulators of a gemm or convolution, and how large the outputs must be.

use super::error::{Error, at_least, equal, finite, span};

/// From accumulators to u8: `clamp(round_half_even(accumulator · multiplier) + zero_point, low, high)`.
///
/// All of it in f32: the accumulator is rounded to f32, then the product is.
#[derive(Clone, Copy, Debug)]
pub struct Requantize<'a> {
    /// `scale of x · scale of the column's weights / scale of y`, for each column.
    pub multipliers: &'a [f32],
    /// The output's.
    pub zero_point: u8,
    /// The least value that comes out: fused Relu and Clip.
    pub low: u8,
    /// The greatest value that comes out.
    pub high: u8,
}

impl Requantize<'_> {
    /// One accumulator of one column.
    #[inline]
    pub fn value(&self, column: usize, accumulator: i32) -> u8 {
        requantized(
            accumulator as f32 * self.multipliers[column],
            self.zero_point,
            self.low,
            self.high,
        )
    }
}

/// A value in steps of the output's scale to u8: rounded half to even, the zero point added, clamped.
///
/// The clamp stands before the rounding, which changes nothing because its ends are whole numbers, and makes
/// the cast safe. No step is NaN: factors are finite, and [`Target::byte`](super::Target::byte) sees to what else there is.
#[inline]
pub(super) fn requantized(steps: f32, zero_point: u8, low: u8, high: u8) -> u8 {
    let zero_point = f32::from(zero_point);
    let (low, high) = (f32::from(low) - zero_point, f32::from(high) - zero_point);
    let steps = if steps > low { steps } else { low };
    let steps = if steps < high { steps } else { high };
    (rounded(steps) + zero_point as i32) as u8
}

/// Half to even, for magnitudes up to 2^22: between 2^23 and 2^24 the last bit of an f32 is worth one, so
/// adding 1.5 · 2^23 rounds, and the sum's bits count up from the magic number's.
#[inline]
pub(super) fn rounded(value: f32) -> i32 {
    (value + MAGIC).to_bits() as i32 - MAGIC.to_bits() as i32
}

/// 1.5 · 2^23.
pub(super) const MAGIC: f32 = 12_582_912.0;

/// Where accumulators go. A row is one row of a matrix, or one pixel of an image; `stride` is the distance
/// between the beginnings of two rows, so that an output may be a part of a wider one (a Concat's).
#[derive(Debug)]
pub enum Output<'a> {
    /// To u8, in the output's own scale.
    Requantized {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [u8],
        /// At least the number of columns.
        stride: usize,
        /// How.
        by: Requantize<'a>,
    },
    /// As they are: MatMulInteger, ConvInteger.
    Accumulators {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [i32],
        /// At least the number of columns.
        stride: usize,
    },
    /// To floats: `accumulator · scale + bias`, each operation rounded.
    Floats {
        /// Row r, column c is at `r · stride + c`.
        values: &'a mut [f32],
        /// At least the number of columns.
        stride: usize,
        /// `scale of x · scale of the column's weights`.
        scales: &'a [f32],
        /// One a column.
        bias: Option<&'a [f32]>,
    },
}

impl Output<'_> {
    /// Whether `rows × columns` values have room, and every column has its factors.
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
                // Nothing is compared with these floats, so they may be infinite, or no numbers.
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

    /// Writes one accumulator, in plain words: what the reference does, and runs are held to.
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

    /// Writes the first columns of rows of accumulators, from a row and column on.
    #[inline(always)]
    pub(super) fn put_tile<const WIDE: usize>(
        &mut self,
        [row, column]: [usize; 2],
        tile: &[[i32; WIDE]],
        columns: usize,
    ) {
        for (at, sums) in tile.iter().enumerate() {
            // Of a length that is known while compiling, mostly.
            match columns == WIDE {
                true => self.put_run([row + at, column], sums),
                false => self.put_run([row + at, column], &sums[..columns]),
            }
        }
    }

    /// Writes a row of accumulators, one a column.
    #[inline(always)]
    pub(super) fn put_row(&mut self, row: usize, sums: &[i32]) {
        self.put_run([row, 0], sums);
    }

    /// Writes neighbours of a row, from a column on: `put` in loops that become vector code.
    #[inline(always)]
    fn put_run(&mut self, [row, column]: [usize; 2], sums: &[i32]) {
        match self {
            Output::Requantized { values, stride, by } => {
                let values = &mut values[row * *stride + column..][..sums.len()];
                let multipliers = &by.multipliers[column..][..sums.len()];
                for ((byte, &sum), &multiplier) in values.iter_mut().zip(sums).zip(multipliers) {
                    *byte = requantized(sum as f32 * multiplier, by.zero_point, by.low, by.high);
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

    /// The part that begins at a row and a column and has that many columns.
    pub(super) fn part(&mut self, row: usize, column: usize, columns: usize) -> Output<'_> {
        match self {
            Output::Requantized { values, stride, by } => Output::Requantized {
                values: from(values, row * *stride + column),
                stride: *stride,
                by: Requantize {
                    multipliers: &by.multipliers[column..column + columns],
                    ..*by
                },
            },
            Output::Accumulators { values, stride } => Output::Accumulators {
                values: from(values, row * *stride + column),
                stride: *stride,
            },
            Output::Floats {
                values,
                stride,
                scales,
                bias,
            } => Output::Floats {
                values: from(values, row * *stride + column),
                stride: *stride,
                scales: &scales[column..column + columns],
                bias: bias.map(|bias| &bias[column..column + columns]),
            },
        }
    }

    /// Every how manieth row: what a phase of a transposed convolution writes.
    pub(super) fn every(self, step: usize) -> Self {
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

/// The rest of a slice; nothing where it begins beyond the end (a part of no rows).
fn from<T>(values: &mut [T], start: usize) -> &mut [T] {
    values.get_mut(start..).unwrap_or_default()
}
