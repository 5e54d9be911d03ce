//! Rows of floats by packed weights in blocks.

use core::array;
use core::ops::Range;

use super::super::error::{Error, equal, product};
use super::{BlockWeights, WIDE};
#[cfg(target_arch = "wasm32")]
use crate::float::Lanes;

/// Rows of a tile, whose sums stay in registers: half of wasm's sixteen vectors, and as many as hide what an addition takes.
const HIGH: usize = if cfg!(target_arch = "wasm32") { 4 } else { 8 };

/// Floats of a tile that are made at a time: with the rows they meet they fit the nearest cache.
const PANEL: usize = 2048;

impl BlockWeights {
    /// Some depth of a tile as floats, `(integer - zero) · scale`; from a whole number of packed steps on.
    #[inline(always)]
    fn unpack<const BITS: usize>(&self, tile: usize, depth: Range<usize>, panel: &mut [f32]) {
        let steps = 2 * 8 / BITS;
        let chunks = self.depth.div_ceil(steps);
        let blocks = self.depth.div_ceil(self.block);
        let (packed, _) = self.packed[tile * chunks * 2 * WIDE..].as_chunks::<{ 2 * WIDE }>();
        let first = depth.start / steps;
        let count = depth.len().div_ceil(steps);
        let made = panel.chunks_exact_mut(steps * WIDE);
        for ((at, bytes), made) in (first..).zip(&packed[first..first + count]).zip(made) {
            let place = tile * blocks + at * steps / self.block;
            let scale = &self.scales[place];
            let zero = self.zeros.get(place).unwrap_or(&self.zeros[0]);
            let (made, _) = made.as_chunks_mut::<{ 2 * WIDE }>();
            for (set, made) in made.iter_mut().enumerate() {
                two_steps::<BITS>(bytes, set, (zero, scale), made);
            }
        }
    }
}

/// A set of two steps as floats.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn two_steps<const BITS: usize>(
    bytes: &[u8; 2 * WIDE],
    set: usize,
    (zero, scale): (&[f32; WIDE], &[f32; WIDE]),
    made: &mut [f32; 2 * WIDE],
) {
    use core::arch::wasm32::*;
    // SAFETY: sixteen bytes are read, eight floats as two vectors, and sixteen written as four.
    unsafe {
        let pair = |floats: &[f32; WIDE]| {
            let first: *const v128 = floats.as_ptr().cast();
            [v128_load(first), v128_load(first.add(1))]
        };
        let (zero, scale) = (pair(zero), pair(scale));
        let bytes = v128_load(bytes.as_ptr().cast());
        // What a shift of 16 bits brings over from the byte above is masked off.
        let shifted = u16x8_shr(bytes, (set * BITS) as u32);
        let integers = v128_and(shifted, u8x16_splat(u8::MAX >> (8 - BITS)));
        let [first, second] = [
            u16x8_extend_low_u8x16(integers),
            u16x8_extend_high_u8x16(integers),
        ];
        let to: *mut v128 = made.as_mut_ptr().cast();
        for (at, integers) in [
            u32x4_extend_low_u16x8(first),
            u32x4_extend_high_u16x8(first),
            u32x4_extend_low_u16x8(second),
            u32x4_extend_high_u16x8(second),
        ]
        .into_iter()
        .enumerate()
        {
            let steps = f32x4_sub(f32x4_convert_i32x4(integers), zero[at % 2]);
            v128_store(to.add(at), f32x4_mul(steps, scale[at % 2]));
        }
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
fn two_steps<const BITS: usize>(
    bytes: &[u8; 2 * WIDE],
    set: usize,
    (zero, scale): (&[f32; WIDE], &[f32; WIDE]),
    made: &mut [f32; 2 * WIDE],
) {
    // Array after array, which becomes vector code as one loop over all of it doesn't.
    let mask = u8::MAX >> (8 - BITS);
    let integers: [u8; 2 * WIDE] = array::from_fn(|at| (bytes[at] >> (set * BITS)) & mask);
    let ((integers, _), (made, _)) = (integers.as_chunks::<WIDE>(), made.as_chunks_mut::<WIDE>());
    for (integers, made) in integers.iter().zip(made) {
        let wide: [i32; WIDE] = array::from_fn(|lane| i32::from(integers[lane]));
        let floats: [f32; WIDE] = array::from_fn(|lane| wide[lane] as f32);
        let centred: [f32; WIDE] = array::from_fn(|lane| floats[lane] - zero[lane]);
        *made = array::from_fn(|lane| centred[lane] * scale[lane]);
    }
}

/// Rows of floats times some tiles of the matrix: `Σ a · ((w - zero) · scale)`, summed in the order of the depth. Tile after tile
/// comes out, each with all rows, each of these with its eight sums; a row begins every `depth` values.
pub fn block_gemm(
    rows: &[f32],
    weights: &BlockWeights,
    tiles: Range<usize>,
    output: &mut [f32],
) -> Result<(), Error> {
    let depth = weights.depth;
    let count = rows.len() / depth;
    equal("the activations, in whole rows", count * depth, rows.len())?;
    if tiles.start > tiles.end || tiles.end > weights.tiles() {
        return Err(Error::Mismatch {
            what: "the last of the tiles asked for",
            expected: weights.tiles(),
            found: tiles.end.max(tiles.start),
        });
    }
    let tile = product("the output", &[count, WIDE])?;
    equal(
        "the output",
        product("the output", &[tiles.len(), tile])?,
        output.len(),
    )?;
    if tile == 0 {
        return Ok(());
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both.
        unsafe { multiply_with_avx2(rows, weights, tiles, output) };
        return Ok(());
    }
    multiply::<Eight>(rows, weights, tiles, output);
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_with_avx2(
    rows: &[f32],
    weights: &BlockWeights,
    tiles: Range<usize>,
    output: &mut [f32],
) {
    multiply::<FusedEight>(rows, weights, tiles, output);
}

/// Sums of all columns of a tile.
trait Sums: Copy {
    fn load(from: &[f32; WIDE]) -> Self;
    fn store(self, to: &mut [f32; WIDE]);
    fn add_product(self, value: f32, weights: Self) -> Self;
}

/// In two vectors.
#[cfg(target_arch = "wasm32")]
#[derive(Clone, Copy)]
struct Eight([Lanes; 2]);

#[cfg(target_arch = "wasm32")]
impl Sums for Eight {
    #[inline(always)]
    fn load(from: &[f32; WIDE]) -> Eight {
        let from = from.as_ptr();
        // SAFETY: eight floats.
        Eight(unsafe { [Lanes::load(from), Lanes::load(from.add(WIDE / 2))] })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; WIDE]) {
        // SAFETY: eight floats.
        unsafe {
            self.0[0].store(to.as_mut_ptr());
            self.0[1].store(to.as_mut_ptr().add(WIDE / 2));
        }
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: Eight) -> Eight {
        let value = Lanes::splat(value);
        let ([a, b], [x, y]) = (self.0, weights.0);
        Eight([a.add_product(value, x), b.add_product(value, y)])
    }
}

/// As the compiler likes.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Copy)]
struct Eight([f32; WIDE]);

#[cfg(not(target_arch = "wasm32"))]
impl Sums for Eight {
    #[inline(always)]
    fn load(from: &[f32; WIDE]) -> Eight {
        Eight(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; WIDE]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: Eight) -> Eight {
        Eight(array::from_fn(|lane| {
            self.0[lane] + value * weights.0[lane]
        }))
    }
}

/// In one vector that multiplies and adds at once.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct FusedEight([f32; WIDE]);

#[cfg(target_arch = "x86_64")]
impl Sums for FusedEight {
    #[inline(always)]
    fn load(from: &[f32; WIDE]) -> FusedEight {
        FusedEight(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; WIDE]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: FusedEight) -> FusedEight {
        let sum = |lane: usize| value.mul_add(weights.0[lane], self.0[lane]);
        FusedEight(array::from_fn(sum))
    }
}

#[inline(always)]
fn multiply<S: Sums>(
    rows: &[f32],
    weights: &BlockWeights,
    tiles: Range<usize>,
    output: &mut [f32],
) {
    let depth = weights.depth;
    let tile = rows.len() / depth * WIDE;
    let mut panel = [0.0; PANEL];
    for (tile, output) in tiles.zip(output.chunks_exact_mut(tile)) {
        output.fill(0.0);
        for first in (0..depth).step_by(PANEL / WIDE) {
            let part = first..depth.min(first + PANEL / WIDE);
            match weights.bits {
                2 => weights.unpack::<2>(tile, part.clone(), &mut panel),
                4 => weights.unpack::<4>(tile, part.clone(), &mut panel),
                _ => weights.unpack::<8>(tile, part.clone(), &mut panel),
            }
            let (panel, _) = panel[..part.len() * WIDE].as_chunks::<WIDE>();
            let (sums, _) = output.as_chunks_mut::<WIDE>();
            for (rows, sums) in rows.chunks(HIGH * depth).zip(sums.chunks_mut(HIGH)) {
                let of = |row: usize| &rows[row * depth..][part.clone()];
                let mut done = 0;
                while done < sums.len() {
                    let of = |row: usize| of(done + row);
                    let sums = &mut sums[done..];
                    done += if sums.len() >= HIGH {
                        add_products::<S, HIGH>(array::from_fn(of), panel, sums)
                    } else if sums.len() >= 4 {
                        add_products::<S, 4>(array::from_fn(of), panel, sums)
                    } else if sums.len() >= 2 {
                        add_products::<S, 2>(array::from_fn(of), panel, sums)
                    } else {
                        add_products::<S, 1>([of(0)], panel, sums)
                    };
                }
            }
        }
    }
}

/// Adds the products of some rows and a panel to their sums, and says how many rows.
#[inline(always)]
fn add_products<S: Sums, const ROWS: usize>(
    rows: [&[f32]; ROWS],
    panel: &[[f32; WIDE]],
    output: &mut [[f32; WIDE]],
) -> usize {
    let rows = rows.map(|row| &row[..panel.len()]);
    let mut sums: [S; ROWS] = array::from_fn(|row| S::load(&output[row]));
    for (at, weights) in panel.iter().enumerate() {
        let weights = S::load(weights);
        for (sum, row) in sums.iter_mut().zip(&rows) {
            *sum = sum.add_product(row[at], weights);
        }
    }
    for (sum, to) in sums.into_iter().zip(output) {
        sum.store(to);
    }
    ROWS
}

/// What [`block_gemm`] made of all tiles as rows.
pub fn rows_of_tiles(tiles: &[f32], columns: usize, output: &mut [f32]) -> Result<(), Error> {
    let Some(count) = output.len().checked_div(columns) else {
        return equal("the output", 0, output.len());
    };
    equal(
        "the output",
        product("the output", &[count, columns])?,
        output.len(),
    )?;
    let tile = product("the tiles", &[count, WIDE])?;
    equal(
        "the tiles",
        product("the tiles", &[columns.div_ceil(WIDE), tile])?,
        tiles.len(),
    )?;
    for (row, output) in output.chunks_exact_mut(columns).enumerate() {
        for (tile, output) in tiles.chunks_exact(tile).zip(output.chunks_mut(WIDE)) {
            output.copy_from_slice(&tile[row * WIDE..][..output.len()]);
        }
    }
    Ok(())
}
