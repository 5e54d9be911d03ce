//! The microkernel: rows of floats times packed block-wise weights.

use core::array;
use core::ops::Range;

use super::super::error::{Error, equal, product};
use super::{BlockWeights, NR};
#[cfg(target_arch = "wasm32")]
use crate::float::Lanes;

/// Rows per tile, whose sums stay in registers. Half of wasm's sixteen vectors; enough to hide the
/// latency of an addition.
const MR: usize = if cfg!(target_arch = "wasm32") { 4 } else { 8 };

/// Floats of a tile dequantized at a time. Together with the rows they fit the L1 cache.
const PANEL: usize = 2048;

impl BlockWeights {
    /// Dequantizes part of a tile's depth, `(integer - zero) · scale`. The part begins at a
    /// multiple of the packed steps.
    #[inline(always)]
    fn unpack<const BITS: usize>(&self, tile: usize, depth: Range<usize>, panel: &mut [f32]) {
        let steps = 2 * 8 / BITS;
        let chunks = self.depth.div_ceil(steps);
        let blocks = self.depth.div_ceil(self.block);
        let (packed, _) = self.packed[tile * chunks * 2 * NR..].as_chunks::<{ 2 * NR }>();
        let first = depth.start / steps;
        let count = depth.len().div_ceil(steps);
        let made = panel.chunks_exact_mut(steps * NR);
        for ((at, bytes), made) in (first..).zip(&packed[first..first + count]).zip(made) {
            let place = tile * blocks + at * steps / self.block;
            let scale = &self.scales[place];
            let zero = self.zeros.get(place).unwrap_or(&self.zeros[0]);
            let (made, _) = made.as_chunks_mut::<{ 2 * NR }>();
            for (set, made) in made.iter_mut().enumerate() {
                two_steps::<BITS>(bytes, set, (zero, scale), made);
            }
        }
    }
}

/// Dequantizes one pair of depth steps.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn two_steps<const BITS: usize>(
    bytes: &[u8; 2 * NR],
    set: usize,
    (zero, scale): (&[f32; NR], &[f32; NR]),
    made: &mut [f32; 2 * NR],
) {
    use core::arch::wasm32::*;
    // SAFETY: sixteen bytes are read, eight floats as two vectors, and sixteen floats written as
    // four.
    unsafe {
        let pair = |floats: &[f32; NR]| {
            let first: *const v128 = floats.as_ptr().cast();
            [v128_load(first), v128_load(first.add(1))]
        };
        let (zero, scale) = (pair(zero), pair(scale));
        let bytes = v128_load(bytes.as_ptr().cast());
        // The mask removes bits that a 16-bit shift moves in from the neighbouring byte.
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
    bytes: &[u8; 2 * NR],
    set: usize,
    (zero, scale): (&[f32; NR], &[f32; NR]),
    made: &mut [f32; 2 * NR],
) {
    // One array per operation vectorizes; a single combined loop does not.
    let mask = u8::MAX >> (8 - BITS);
    let integers: [u8; 2 * NR] = array::from_fn(|at| (bytes[at] >> (set * BITS)) & mask);
    let ((integers, _), (made, _)) = (integers.as_chunks::<NR>(), made.as_chunks_mut::<NR>());
    for (integers, made) in integers.iter().zip(made) {
        let wide: [i32; NR] = array::from_fn(|lane| i32::from(integers[lane]));
        let floats: [f32; NR] = array::from_fn(|lane| wide[lane] as f32);
        let centred: [f32; NR] = array::from_fn(|lane| floats[lane] - zero[lane]);
        *made = array::from_fn(|lane| centred[lane] * scale[lane]);
    }
}

/// Multiplies float rows by some column tiles: `Σ a · ((w - zero) · scale)`, summed in the order of
/// the depth.
///
/// The output holds tile after tile. Each tile holds eight sums for every row. Input rows begin
/// every `depth` values.
pub fn block_gemm(
    rows: &[f32],
    weights: &BlockWeights,
    tiles: Range<usize>,
    output: &mut [f32],
) -> Result<(), Error> {
    let depth = weights.depth;
    let count = rows.len() / depth;
    equal("the activations in whole rows", count * depth, rows.len())?;
    if tiles.start > tiles.end || tiles.end > weights.tiles() {
        return Err(Error::Exceeds {
            what: "the end of the requested tiles",
            limit: weights.tiles(),
            actual: tiles.end.max(tiles.start),
        });
    }
    let tile = product("the output", &[count, NR])?;
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
        // SAFETY: the processor supports both.
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

/// Accumulators of a tile row.
trait RowAccumulators: Copy {
    fn load(from: &[f32; NR]) -> Self;
    fn store(self, to: &mut [f32; NR]);
    fn add_product(self, value: f32, weights: Self) -> Self;
}

/// Two vectors.
#[cfg(target_arch = "wasm32")]
#[derive(Clone, Copy)]
struct Eight([Lanes; 2]);

#[cfg(target_arch = "wasm32")]
impl RowAccumulators for Eight {
    #[inline(always)]
    fn load(from: &[f32; NR]) -> Eight {
        let from = from.as_ptr();
        // SAFETY: eight floats.
        Eight(unsafe { [Lanes::load(from), Lanes::load(from.add(NR / 2))] })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; NR]) {
        // SAFETY: eight floats.
        unsafe {
            self.0[0].store(to.as_mut_ptr());
            self.0[1].store(to.as_mut_ptr().add(NR / 2));
        }
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: Eight) -> Eight {
        let value = Lanes::splat(value);
        let ([a, b], [x, y]) = (self.0, weights.0);
        Eight([a.add_product(value, x), b.add_product(value, y)])
    }
}

/// Vectorized by the compiler.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Copy)]
struct Eight([f32; NR]);

#[cfg(not(target_arch = "wasm32"))]
impl RowAccumulators for Eight {
    #[inline(always)]
    fn load(from: &[f32; NR]) -> Eight {
        Eight(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; NR]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: Eight) -> Eight {
        Eight(array::from_fn(|lane| {
            self.0[lane] + value * weights.0[lane]
        }))
    }
}

/// Fused multiply-add in one vector.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct FusedEight([f32; NR]);

#[cfg(target_arch = "x86_64")]
impl RowAccumulators for FusedEight {
    #[inline(always)]
    fn load(from: &[f32; NR]) -> FusedEight {
        FusedEight(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; NR]) {
        *to = self.0;
    }

    #[inline(always)]
    fn add_product(self, value: f32, weights: FusedEight) -> FusedEight {
        let sum = |lane: usize| value.mul_add(weights.0[lane], self.0[lane]);
        FusedEight(array::from_fn(sum))
    }
}

#[inline(always)]
fn multiply<S: RowAccumulators>(
    rows: &[f32],
    weights: &BlockWeights,
    tiles: Range<usize>,
    output: &mut [f32],
) {
    let depth = weights.depth;
    let tile = rows.len() / depth * NR;
    let mut panel = [0.0; PANEL];
    for (tile, output) in tiles.zip(output.chunks_exact_mut(tile)) {
        output.fill(0.0);
        for first in (0..depth).step_by(PANEL / NR) {
            let part = first..depth.min(first + PANEL / NR);
            match weights.bits {
                2 => weights.unpack::<2>(tile, part.clone(), &mut panel),
                4 => weights.unpack::<4>(tile, part.clone(), &mut panel),
                _ => weights.unpack::<8>(tile, part.clone(), &mut panel),
            }
            let (panel, _) = panel[..part.len() * NR].as_chunks::<NR>();
            let (sums, _) = output.as_chunks_mut::<NR>();
            for (rows, sums) in rows.chunks(MR * depth).zip(sums.chunks_mut(MR)) {
                let of = |row: usize| &rows[row * depth..][part.clone()];
                let mut done = 0;
                while done < sums.len() {
                    let of = |row: usize| of(done + row);
                    let sums = &mut sums[done..];
                    done += if sums.len() >= MR {
                        add_products::<S, MR>(array::from_fn(of), panel, sums)
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

/// Adds the products of some rows with a panel to their sums. Returns the number of rows.
#[inline(always)]
fn add_products<S: RowAccumulators, const ROWS: usize>(
    rows: [&[f32]; ROWS],
    panel: &[[f32; NR]],
    output: &mut [[f32; NR]],
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

/// Copies the tiles that [`block_gemm`] computes into a row-major matrix.
pub fn rows_of_tiles(tiles: &[f32], columns: usize, output: &mut [f32]) -> Result<(), Error> {
    let Some(count) = output.len().checked_div(columns) else {
        return equal("the output", 0, output.len());
    };
    equal(
        "the output",
        product("the output", &[count, columns])?,
        output.len(),
    )?;
    let tile = product("the tiles", &[count, NR])?;
    equal(
        "the tiles",
        product("the tiles", &[columns.div_ceil(NR), tile])?,
        tiles.len(),
    )?;
    for (row, output) in output.chunks_exact_mut(columns).enumerate() {
        for (tile, output) in tiles.chunks_exact(tile).zip(output.chunks_mut(NR)) {
            output.copy_from_slice(&tile[row * NR..][..output.len()]);
        }
    }
    Ok(())
}
