//! Floats times a matrix of small integers in blocks: ONNX Runtime's MatMulNBits.
//!
//! The integers are packed once into tiles of [`WIDE`] columns and stay integers: only as much of a tile as fits the nearest
//! cache is made floats at a time, and all rows are multiplied by it before the next. A sum is a lane, so its order is
//! that of the depth.
//!
//! Sixteen bytes of a tile hold `2 · 8/bits` steps of its depth. Byte `8h + c` has, lowest bits first, the integers of column `c`
//! in the steps `h`, `2 + h`, `4 + h` …: shifted and masked, they are two steps side by side.

mod multiply;

pub use multiply::{block_gemm, rows_of_tiles};

use super::error::{Error, at_least, equal, product};

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
        if self.block == 0 || self.depth == 0 {
            return Err(Error::Zero {
                what: "the block, or the depth",
            });
        }
        let whole = self.block / self.steps() * self.steps();
        equal(
            "the block, in whole steps of packed bytes",
            whole,
            self.block,
        )?;
        let blocks = product("the scales", &[self.columns, self.per_column()])?;
        let bytes = product("the weights", &[blocks, self.block / self.per_byte()])?;
        at_least("the weights", self.integers.len(), bytes)?;
        at_least("the scales", self.scales.len(), blocks)?;
        match self.zero_points {
            ZeroPoints::Middle => Ok(()),
            ZeroPoints::Packed(packed) => {
                let needed = self.columns * self.per_column().div_ceil(self.per_byte());
                at_least("the zero points", packed.len(), needed)
            }
            ZeroPoints::Floats(floats) => at_least("the zero points", floats.len(), blocks),
        }
    }

    fn per_byte(&self) -> usize {
        8 / self.bits
    }

    /// How many steps of the depth sixteen packed bytes hold.
    fn steps(&self) -> usize {
        2 * self.per_byte()
    }

    fn per_column(&self) -> usize {
        self.depth.div_ceil(self.block)
    }

    /// An integer of so many bits, low bits first.
    fn integer(&self, bytes: &[u8], at: usize) -> u8 {
        let byte = bytes[at / self.per_byte()] >> (at % self.per_byte() * self.bits);
        byte & (u8::MAX >> (8 - self.bits))
    }

    /// The integer at a depth of a column; 0 where there is none.
    fn at(&self, column: usize, depth: usize) -> u8 {
        if column >= self.columns || depth >= self.depth {
            return 0;
        }
        let bytes = self.block / self.per_byte();
        let block = column * self.per_column() + depth / self.block;
        self.integer(&self.integers[block * bytes..][..bytes], depth % self.block)
    }

    /// The zero point of a block.
    fn zero(&self, column: usize, block: usize) -> f32 {
        match self.zero_points {
            ZeroPoints::Middle => f32::from(1u8 << (self.bits - 1)),
            ZeroPoints::Packed(packed) => {
                let bytes = self.per_column().div_ceil(self.per_byte());
                f32::from(self.integer(&packed[column * bytes..], block))
            }
            ZeroPoints::Floats(floats) => floats[column * self.per_column() + block],
        }
    }
}

/// Columns of a tile.
const WIDE: usize = 8;

/// A matrix of small integers in blocks, packed once.
#[derive(Clone, Debug)]
pub struct BlockWeights {
    bits: usize,
    block: usize,
    depth: usize,
    columns: usize,
    packed: Vec<u8>,
    /// Tile by tile, block by block, one a column.
    scales: Vec<[f32; WIDE]>,
    /// As many, or one for all.
    zeros: Vec<[f32; WIDE]>,
}

impl BlockWeights {
    /// Columns of a tile.
    pub const WIDE: usize = WIDE;

    /// Packs a matrix.
    pub fn pack(blocks: &Blocks) -> Result<BlockWeights, Error> {
        blocks.check()?;
        let tiles = blocks.columns.div_ceil(WIDE);
        let chunks = blocks.depth.div_ceil(blocks.steps());
        let length = product("the packed weights", &[tiles, chunks, 2 * WIDE])?;
        let mut packed = Vec::with_capacity(length);
        for (tile, chunk) in (0..tiles).flat_map(|tile| (0..chunks).map(move |at| (tile, at))) {
            for (half, lane) in (0..2).flat_map(|half| (0..WIDE).map(move |lane| (half, lane))) {
                let sets = 0..blocks.per_byte();
                let byte = sets.fold(0, |byte, set| {
                    let depth = chunk * blocks.steps() + 2 * set + half;
                    byte | blocks.at(tile * WIDE + lane, depth) << (set * blocks.bits)
                });
                packed.push(byte);
            }
        }
        let each = |of: &dyn Fn(usize, usize) -> f32| {
            let places =
                (0..tiles).flat_map(|tile| (0..blocks.per_column()).map(move |b| (tile, b)));
            let lanes = places.map(|(tile, block)| {
                core::array::from_fn(|lane| match tile * WIDE + lane {
                    column if column < blocks.columns => of(column, block),
                    _ => 0.0,
                })
            });
            lanes.collect()
        };
        let zeros = match blocks.zero_points {
            ZeroPoints::Middle => vec![[blocks.zero(0, 0); WIDE]],
            _ => each(&|column, block| blocks.zero(column, block)),
        };
        Ok(BlockWeights {
            bits: blocks.bits,
            block: blocks.block,
            depth: blocks.depth,
            columns: blocks.columns,
            packed,
            scales: each(&|column, block| blocks.scales[column * blocks.per_column() + block]),
            zeros,
        })
    }

    /// How many products make a sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many sums a row gets.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many tiles the columns make.
    pub fn tiles(&self) -> usize {
        self.columns.div_ceil(WIDE)
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        let floats = self.scales.len() + self.zeros.len();
        self.packed.len() + size_of::<[f32; WIDE]>() * floats
    }
}
