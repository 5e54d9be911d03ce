//! Block-wise quantized GEMM of float activations: ONNX Runtime's MatMulNBits.
//!
//! Weights are packed once, as integers, into tiles of [`NR`] columns. During the product, as much
//! of a tile as fits the L1 cache is dequantized at a time. All rows are multiplied by it before
//! the next part. Each sum occupies one lane and follows the order of the depth.
//!
//! Sixteen bytes of a tile hold `2 · 8/bits` steps of its depth. Byte `8h + c` holds the integers
//! of column `c` at steps `h`, `2 + h`, `4 + h` …, lowest bits first. A shift and a mask therefore
//! yield two consecutive steps.

mod multiply;

pub use multiply::{block_gemm, rows_of_tiles};

use super::error::{Error, at_least, equal, product};

/// Zero points of the blocks.
#[derive(Clone, Copy, Debug)]
pub enum ZeroPoints<'a> {
    /// The middle of the integer range, `2^(bits - 1)`, for every block.
    Middle,
    /// Packed integers of the weights' width. Each column occupies whole bytes.
    Packed(&'a [u8]),
    /// One float per block.
    Floats(&'a [f32]),
}

/// A `depth × columns` matrix of 2, 4 or 8-bit integers, quantized block-wise.
///
/// `integers` has the layout [columns, blocks, block · bits / 8], low bits first. `scales` has the
/// layout [columns, blocks].
#[derive(Clone, Copy, Debug)]
pub struct BlockwiseMatrix<'a> {
    /// Bits per weight: 2, 4 or 8.
    pub bits: usize,
    /// Values of a column that share a scale.
    pub block: usize,
    /// Values per column: the reduction dimension.
    pub depth: usize,
    /// Number of columns.
    pub columns: usize,
    /// The packed integers.
    pub integers: &'a [u8],
    /// One scale per block.
    pub scales: &'a [f32],
    /// The zero points.
    pub zero_points: ZeroPoints<'a>,
}

impl BlockwiseMatrix<'_> {
    fn check(&self) -> Result<(), Error> {
        if !matches!(self.bits, 2 | 4 | 8) {
            return Err(Error::Bits(self.bits));
        }
        if self.block == 0 || self.depth == 0 {
            return Err(Error::Zero {
                what: "the block size or the depth",
            });
        }
        let whole = self.block / self.steps() * self.steps();
        equal("the block size in whole packed steps", whole, self.block)?;
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

    /// Depth steps in sixteen packed bytes.
    fn steps(&self) -> usize {
        2 * self.per_byte()
    }

    fn per_column(&self) -> usize {
        self.depth.div_ceil(self.block)
    }

    /// Reads the integer at an index of packed bytes, low bits first.
    fn integer(&self, bytes: &[u8], at: usize) -> u8 {
        let byte = bytes[at / self.per_byte()] >> (at % self.per_byte() * self.bits);
        byte & (u8::MAX >> (8 - self.bits))
    }

    /// Returns the integer at a depth of a column; 0 beyond the matrix.
    fn at(&self, column: usize, depth: usize) -> u8 {
        if column >= self.columns || depth >= self.depth {
            return 0;
        }
        let bytes = self.block / self.per_byte();
        let block = column * self.per_column() + depth / self.block;
        self.integer(&self.integers[block * bytes..][..bytes], depth % self.block)
    }

    /// Returns the zero point of a block.
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

/// Columns per tile.
const NR: usize = 8;

/// A block-wise quantized matrix, packed once.
#[derive(Clone, Debug)]
pub struct BlockWeights {
    bits: usize,
    block: usize,
    depth: usize,
    columns: usize,
    packed: Vec<u8>,
    /// Scales per tile and block, one per column.
    scales: Vec<[f32; NR]>,
    /// Zero points in the order of the scales, or a single entry for all.
    zeros: Vec<[f32; NR]>,
}

impl BlockWeights {
    /// Columns per tile.
    pub const NR: usize = NR;

    /// Former name of [`BlockWeights::NR`].
    pub const WIDE: usize = NR;

    /// Packs a matrix.
    pub fn pack(blocks: &BlockwiseMatrix) -> Result<BlockWeights, Error> {
        blocks.check()?;
        let tiles = blocks.columns.div_ceil(NR);
        let chunks = blocks.depth.div_ceil(blocks.steps());
        let length = product("the packed weights", &[tiles, chunks, 2 * NR])?;
        let mut packed = Vec::with_capacity(length);
        for (tile, chunk) in (0..tiles).flat_map(|tile| (0..chunks).map(move |at| (tile, at))) {
            for (half, lane) in (0..2).flat_map(|half| (0..NR).map(move |lane| (half, lane))) {
                let sets = 0..blocks.per_byte();
                let byte = sets.fold(0, |byte, set| {
                    let depth = chunk * blocks.steps() + 2 * set + half;
                    byte | blocks.at(tile * NR + lane, depth) << (set * blocks.bits)
                });
                packed.push(byte);
            }
        }
        let each = |of: &dyn Fn(usize, usize) -> f32| {
            let places =
                (0..tiles).flat_map(|tile| (0..blocks.per_column()).map(move |b| (tile, b)));
            let lanes = places.map(|(tile, block)| {
                core::array::from_fn(|lane| match tile * NR + lane {
                    column if column < blocks.columns => of(column, block),
                    _ => 0.0,
                })
            });
            lanes.collect()
        };
        let zeros = match blocks.zero_points {
            ZeroPoints::Middle => vec![[blocks.zero(0, 0); NR]],
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

    /// Number of products per sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of column tiles.
    pub fn tiles(&self) -> usize {
        self.columns.div_ceil(NR)
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        let floats = self.scales.len() + self.zeros.len();
        self.packed.len() + size_of::<[f32; NR]>() * floats
    }
}
