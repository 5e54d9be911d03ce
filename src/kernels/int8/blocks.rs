//! Floats times a matrix of small integers in blocks: ONNX Runtime's MatMulNBits.

use super::error::{Error, at_least, equal, product, span};

/// What stands for zero in each block.
#[derive(Clone, Copy, Debug)]
pub enum ZeroPoints<'a> {
    /// The middle of the range, `2^(bits - 1)`.
    Middle,
    /// Integers of the weights' own size, each column's in whole bytes.
    Packed(&'a [u8]),
    /// A float a block.
    Floats(&'a [f32]),
}

/// A matrix of `depth × columns` integers of 2, 4 or 8 bits.
///
/// `integers` is [columns, blocks, block · bits / 8], low bits first; `scales` is [columns, blocks].
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// 2, 4 or 8.
    pub bits: usize,
    /// How many values of a column share a scale.
    pub block: usize,
    /// Values of a column.
    pub depth: usize,
    /// Columns.
    pub columns: usize,
    /// The integers.
    pub integers: &'a [u8],
    /// The scales.
    pub scales: &'a [f32],
    /// The zero points.
    pub zero_points: ZeroPoints<'a>,
}

impl Blocks<'_> {
    fn check(&self) -> Result<(), Error> {
        if !matches!(self.bits, 2 | 4 | 8) {
            return Err(Error::Mismatch {
                what: "bits of a weight in blocks (2, 4 and 8 are known)",
                expected: 4,
                found: self.bits,
            });
        }
        if self.block == 0 {
            return Err(Error::Zero { what: "the block" });
        }
        let per_byte = 8 / self.bits;
        equal(
            "the block, in whole bytes",
            self.block / per_byte * per_byte,
            self.block,
        )?;
        let blocks = product("the scales", &[self.columns, self.per_column()])?;
        let bytes = product("the weights", &[blocks, self.block / per_byte])?;
        at_least("the weights", self.integers.len(), bytes)?;
        at_least("the scales", self.scales.len(), blocks)?;
        match self.zero_points {
            ZeroPoints::Middle => Ok(()),
            ZeroPoints::Packed(packed) => {
                let needed = self.columns * self.per_column().div_ceil(per_byte);
                at_least("the zero points", packed.len(), needed)
            }
            ZeroPoints::Floats(floats) => at_least("the zero points", floats.len(), blocks),
        }
    }

    fn per_column(&self) -> usize {
        self.depth.div_ceil(self.block)
    }

    /// An integer of so many bits, low bits first.
    fn integer(&self, bytes: &[u8], at: usize) -> u8 {
        let per_byte = 8 / self.bits;
        let byte = bytes[at / per_byte] >> (at % per_byte * self.bits);
        byte & (u8::MAX >> (8 - self.bits))
    }

    /// The scale and zero point of a block.
    fn block_scale(&self, column: usize, block: usize) -> (f32, f32) {
        let at = column * self.per_column() + block;
        let zero = match self.zero_points {
            ZeroPoints::Middle => f32::from(1u8 << (self.bits - 1)),
            ZeroPoints::Packed(packed) => {
                let bytes = self.per_column().div_ceil(8 / self.bits);
                f32::from(self.integer(&packed[column * bytes..], block))
            }
            ZeroPoints::Floats(floats) => floats[at],
        };
        (self.scales[at], zero)
    }

    /// Writes a column's weights as floats, `stride` apart.
    fn unpack(&self, column: usize, stride: usize, output: &mut [f32]) {
        let bytes = self.block * self.bits / 8;
        let per_byte = 8 / self.bits;
        let mut levels = [0.0; 256];
        for block in 0..self.per_column() {
            let (scale, zero) = self.block_scale(column, block);
            let integers = &self.integers[(column * self.per_column() + block) * bytes..][..bytes];
            let first = block * self.block;
            let count = self.block.min(self.depth - first);
            let mut outputs = output[first * stride..]
                .iter_mut()
                .step_by(stride)
                .take(count);
            if self.bits == 8 {
                for (to, &byte) in outputs.zip(integers) {
                    *to = (f32::from(byte) - zero) * scale;
                }
                continue;
            }
            for (level, value) in levels[..1 << self.bits].iter_mut().zip(0u8..) {
                *level = (f32::from(value) - zero) * scale;
            }
            for &byte in integers {
                for at in 0..per_byte {
                    let value = (byte >> (at * self.bits)) & (u8::MAX >> (8 - self.bits));
                    if let Some(to) = outputs.next() {
                        *to = levels[usize::from(value)];
                    }
                }
            }
        }
    }
}

/// Rows and columns of a tile, whose sums stay in registers.
const HIGH: usize = 4;
const WIDE: usize = 8;

/// Rows of floats times the matrix: `Σ a · ((w - zero) · scale) + bias`, summed in the order of the depth, every
/// operation rounded to f32. Row r of the output begins at `r · stride`.
pub fn block_gemm(
    (rows, row_stride, count): (&[f32], usize, usize),
    weights: &Blocks,
    bias: Option<&[f32]>,
    output: &mut [f32],
    stride: usize,
) -> Result<(), Error> {
    weights.check()?;
    at_least(
        "the activations",
        rows.len(),
        span("the activations", count, row_stride, weights.depth)?,
    )?;
    at_least(
        "the output",
        output.len(),
        span("the output", count, stride, weights.columns)?,
    )?;
    bias.map_or(Ok(()), |bias| equal("bias", weights.columns, bias.len()))?;
    if count == 0 || weights.columns == 0 {
        return Ok(());
    }
    // Eight columns at a time as floats, [depth, columns]: a sum is a lane, so its order is that of the depth.
    let depth = weights.depth;
    let mut unpacked = vec![0.0; product("the weights", &[depth, WIDE])?];
    for first in (0..weights.columns).step_by(WIDE) {
        let columns = WIDE.min(weights.columns - first);
        for column in 0..columns {
            weights.unpack(
                first + column,
                WIDE,
                unpacked.get_mut(column..).unwrap_or_default(),
            );
        }
        for row in (0..count).step_by(HIGH) {
            let high = HIGH.min(count - row);
            // A row that isn't there is the last one again.
            let values = core::array::from_fn(|at| match depth {
                0 => &[],
                depth => &rows[(row + at.min(high - 1)) * row_stride..][..depth],
            });
            let sums = tile(values, &unpacked);
            for (at, sums) in sums[..high].iter().enumerate() {
                let output = &mut output[(row + at) * stride + first..][..columns];
                for (column, (to, &sum)) in output.iter_mut().zip(sums).enumerate() {
                    *to = match bias {
                        Some(bias) => sum + bias[first + column],
                        None => sum,
                    };
                }
            }
        }
    }
    Ok(())
}

#[inline(always)]
fn tile(rows: [&[f32]; HIGH], weights: &[f32]) -> [[f32; WIDE]; HIGH] {
    let mut sums = [[0.0; WIDE]; HIGH];
    let [a, b, c, d] = rows;
    let rows = a.iter().zip(b).zip(c).zip(d);
    for (weights, (((&a, &b), &c), &d)) in weights.as_chunks::<WIDE>().0.iter().zip(rows) {
        for (sums, value) in sums.iter_mut().zip([a, b, c, d]) {
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum += value * weight;
            }
        }
    }
    sums
}
