//! The tile in WebAssembly's SIMD: four rows by eight columns, eight accumulators of four lanes.
//!
//! One step is the same whatever the instruction: the four bytes of a row are broadcast and multiplied into four
//! columns' four bytes. Here these are two i16 (`i32x4.dot_i16x8_s`); `relaxed` has the others.

use core::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_mul, i32x4_add, i32x4_dot_i16x8, i32x4_mul, i32x4_splat,
    v128, v128_load, v128_load32_splat,
};

use super::super::output::Output;
use super::super::vector::{Ends, load, store, store_eight};
use super::{Block, WIDE, Weights};

/// Vectors of a tile's row.
const VECTORS: usize = WIDE / 4;

/// Adds products of a row's four bytes (broadcast) and four columns' weights.
pub(in crate::int8) trait Dot: Copy {
    /// Steps in a turn of gemm's loop. More than one makes the loop cheaper, but the compiler then loads ahead, and
    /// only where the product itself takes several instructions do registers suffice for that (with two, simd128 and
    /// the fused form were measured at half their speed).
    const STEPS: usize = 1;

    fn dot(self, sums: v128, row: v128, weights: v128) -> v128;
}

/// Two i16 each.
#[derive(Clone, Copy)]
pub(in crate::int8) struct Wide;

impl Dot for Wide {
    #[inline(always)]
    fn dot(self, sums: v128, row: v128, weights: v128) -> v128 {
        i32x4_add(sums, i32x4_dot_i16x8(row, weights))
    }
}

/// Multiplies a block.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    match output {
        Output::Accumulators { values, stride } if weights.columns % WIDE == 0 => {
            multiply_to_sums(block, weights, values, stride);
        }
        output => multiply_with(Wide, block, weights, output),
    }
}

/// The walk over the tiles: a tile's weights stay in the cache while the rows go by. A function of its own for each
/// product, so that a browser has only what runs to compile well before it is fast.
#[inline(never)]
pub(super) fn multiply_with(dot: impl Dot, block: &Block, weights: &Weights, mut output: Output) {
    for column in (0..weights.columns).step_by(WIDE) {
        let columns = WIDE.min(weights.columns - column);
        let mut finish = Finish::new(&mut output, column, columns);
        columns_of(dot, block, weights, column, &mut finish);
    }
}

/// The same where whole tiles of sums stay sums: with few steps it is the end of a tile that takes the time.
#[inline(never)]
fn multiply_to_sums(block: &Block, weights: &Weights, values: &mut [i32], stride: usize) {
    for column in (0..weights.columns).step_by(WIDE) {
        let mut whole = WholeSums {
            values: &mut values[column..],
            stride,
        };
        columns_of(Wide, block, weights, column, &mut whole);
    }
}

/// All rows of a tile's columns.
#[inline(always)]
fn columns_of(dot: impl Dot, block: &Block, weights: &Weights, column: usize, to: &mut impl Put) {
    let steps = weights.steps();
    let tile = Tile {
        packed: &weights.packed[column * steps * 4..][..steps * WIDE * 4],
        steps,
        beginnings: &block.beginnings[column..][..WIDE],
        factors: weights.row_factors.get(column..column + WIDE),
    };
    let mut row = 0;
    // SAFETY: `multiply` of the module above has checked that the block holds its rows of whole steps.
    unsafe {
        while row + 4 <= block.rows {
            rows::<4, _>(dot, block, row, &tile, to);
            row += 4;
        }
        match block.rows - row {
            3 => rows::<3, _>(dot, block, row, &tile, to),
            2 => rows::<2, _>(dot, block, row, &tile, to),
            1 => rows::<1, _>(dot, block, row, &tile, to),
            _ => {}
        }
    }
}

/// The weights of a tile's columns, and what its sums begin with.
struct Tile<'a> {
    packed: &'a [u8],
    steps: usize,
    beginnings: &'a [i32],
    factors: Option<&'a [i32]>,
}

/// Four bytes of a row, and of a tile's columns, as they lie in memory.
type Step = [u8; 4];
type Columns = [[u8; 16]; VECTORS];

/// One step of a tile: the rows' bytes at a step from where they point.
///
/// # Safety
///
/// The rows have them.
#[inline(always)]
unsafe fn step<const HIGH: usize>(
    dot: impl Dot,
    rows: &[*const Step; HIGH],
    weights: &Columns,
    at: usize,
    sums: &mut [[v128; VECTORS]; HIGH],
) {
    let mut columns = [i32x4_splat(0); VECTORS];
    for (columns, weights) in columns.iter_mut().zip(weights) {
        // SAFETY: sixteen bytes.
        *columns = unsafe { v128_load(weights.as_ptr().cast()) };
    }
    for (row, sums) in rows.iter().zip(sums) {
        // SAFETY: by the contract.
        let bytes = unsafe { v128_load32_splat(row.add(at).cast()) };
        for (sums, &columns) in sums.iter_mut().zip(&columns) {
            *sums = dot.dot(*sums, bytes, columns);
        }
    }
}

/// A tile of `HIGH` rows.
///
/// # Safety
///
/// The block holds `first .. first + HIGH` rows of `steps` · 4 bytes.
#[inline(always)]
unsafe fn rows<const HIGH: usize, D: Dot>(
    dot: D,
    block: &Block,
    first: usize,
    tile: &Tile,
    to: &mut impl Put,
) {
    let steps = tile.steps;
    let mut sums: [[v128; VECTORS]; HIGH] =
        core::array::from_fn(|_| core::array::from_fn(|at| load(tile.beginnings, at * 4)));
    if let Some(factors) = tile.factors {
        for (row, sums) in sums.iter_mut().enumerate() {
            let row_sum = i32x4_splat(block.row_sums[first + row]);
            for (at, sums) in sums.iter_mut().enumerate() {
                *sums = i32x4_add(*sums, i32x4_mul(load(factors, at * 4), row_sum));
            }
        }
    }
    // SAFETY: inside the block, by the function's contract.
    let mut rows: [*const Step; HIGH] = core::array::from_fn(|row| unsafe {
        block
            .values
            .as_ptr()
            .add((first + row) * block.stride)
            .cast()
    });
    let mut weights: *const Columns = tile.packed.as_ptr().cast();
    for _ in 0..steps / D::STEPS {
        // SAFETY: `packed` holds `steps` columns' weights, each row `steps` times four bytes.
        unsafe {
            for at in 0..D::STEPS {
                step(dot, &rows, &*weights.add(at), at, &mut sums);
            }
            weights = weights.add(D::STEPS);
            for row in &mut rows {
                *row = row.add(D::STEPS);
            }
        }
    }
    for at in 0..steps % D::STEPS {
        // SAFETY: the last of them.
        unsafe { step(dot, &rows, &*weights.add(at), at, &mut sums) };
    }
    for (row, &sums) in sums.iter().enumerate() {
        to.put(first + row, sums);
    }
}

/// Where the sums of a row of a tile go.
trait Put {
    fn put(&mut self, row: usize, sums: [v128; VECTORS]);
}

/// To sums, of tiles that are whole.
struct WholeSums<'a> {
    values: &'a mut [i32],
    stride: usize,
}

impl Put for WholeSums<'_> {
    #[inline(always)]
    fn put(&mut self, row: usize, sums: [v128; VECTORS]) {
        let values = &mut self.values[row * self.stride..][..WIDE];
        store(values, 0, sums[0]);
        store(values, 4, sums[1]);
    }
}

/// What happens to finished sums, with the factors of a tile's columns at hand.
pub(in crate::int8) struct Finish<'o, 'a> {
    output: &'o mut Output<'a>,
    column: usize,
    columns: usize,
    factors: [v128; VECTORS],
    biases: [v128; VECTORS],
    ends: Ends,
}

impl<'o, 'a> Finish<'o, 'a> {
    #[inline(always)]
    pub(in crate::int8) fn new(output: &'o mut Output<'a>, column: usize, columns: usize) -> Self {
        let four = |values: Option<&[f32]>| {
            let mut all = [0.0f32; WIDE];
            if let Some(values) = values {
                all[..columns].copy_from_slice(&values[column..][..columns]);
            }
            core::array::from_fn(|at| load(&all, at * 4))
        };
        let (factors, biases, ends) = match output {
            Output::Requantized { by, .. } => {
                (Some(by.multipliers), None, [by.zero_point, by.low, by.high])
            }
            Output::Accumulators { .. } => (None, None, [0; 3]),
            Output::Floats { scales, bias, .. } => (Some(*scales), *bias, [0; 3]),
        };
        Finish {
            column,
            columns,
            factors: four(factors),
            biases: four(biases),
            ends: Ends::new(ends[0], ends[1], ends[2]),
            output,
        }
    }

    /// A row of sums.
    #[inline(always)]
    pub(in crate::int8) fn sums(&mut self, row: usize, sums: &[i32; WIDE]) {
        self.put(row, core::array::from_fn(|at| load(sums, at * 4)));
    }
}

impl Put for Finish<'_, '_> {
    #[inline(always)]
    fn put(&mut self, row: usize, sums: [v128; VECTORS]) {
        match self.output {
            Output::Requantized { values, stride, .. } => {
                let bytes = core::array::from_fn(|at| {
                    let steps = f32x4_mul(f32x4_convert_i32x4(sums[at]), self.factors[at]);
                    self.ends.of(steps)
                });
                let values = &mut values[row * *stride + self.column..][..self.columns];
                if let Ok(values) = <&mut [u8; WIDE]>::try_from(&mut *values) {
                    store_eight(values, bytes);
                } else {
                    let mut all = [0; WIDE];
                    store_eight(&mut all, bytes);
                    values.copy_from_slice(&all[..self.columns]);
                }
            }
            Output::Accumulators { values, stride } => {
                put_all(
                    &mut values[row * *stride + self.column..][..self.columns],
                    sums,
                );
            }
            Output::Floats {
                values,
                stride,
                bias,
                ..
            } => {
                let floats = core::array::from_fn(|at| {
                    let value = f32x4_mul(f32x4_convert_i32x4(sums[at]), self.factors[at]);
                    match bias {
                        Some(_) => f32x4_add(value, self.biases[at]),
                        None => value,
                    }
                });
                put_all(
                    &mut values[row * *stride + self.column..][..self.columns],
                    floats,
                );
            }
        }
    }
}

/// Stores up to eight values of four bytes.
#[inline(always)]
fn put_all<T: Copy + Default>(values: &mut [T], lanes: [v128; VECTORS]) {
    let mut all = [T::default(); WIDE];
    let count = values.len();
    let whole = count == WIDE;
    let to = if whole { &mut *values } else { &mut all[..] };
    for (at, &lanes) in lanes.iter().enumerate() {
        store(to, at * 4, lanes);
    }
    if !whole {
        values.copy_from_slice(&all[..count]);
    }
}
