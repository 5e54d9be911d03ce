//! Winograd convolution F(4×4, 3×3) in exact integer arithmetic: 3 × 3 windows with stride 1, at a
//! quarter of the products. A dilated window is an undilated one on each of the subsampled images.
//!
//! A tile of 4 × 4 outputs reads 6 × 6 inputs. With the points 0, ±1, ±2 and ∞, the outputs are
//! `Y = Aᵀ [ (G w Gᵀ) ∘ (Bᵀ a B) ] A`. ∘ multiplies elementwise: 36 products for 16 pixels instead
//! of 144. For each of the 36 positions this is a GEMM over the channels.
//!
//! G has fractions. G' scales its rows to integers, by 24, 6, 6, 24, 24 and 6. (The first and the
//! last could be smaller.) A compensates: its four results come out scaled by 24, 12, 6 and 6. So
//!
//! ```text
//! Bᵀ a B        of bytes:  at most 68 · 255 = 17340 from zero, an i16
//! G' w G'ᵀ      of w - w₀: at most 49 · 255 = 12495, an i16
//! the sums      wrap in i32, as all that follows is sums and products
//! f² Y          f is 3 · 8, 3 · 4 or 3 · 2 in each direction: the inverse of 9 modulo 2³²
//!               removes 9, and a shift removes up to 64, exactly if 64 |Y| < 2³¹
//! ```
//!
//! The last condition depends on the weights. [`Winograd::pack`] returns `None` if activations of
//! 255 could violate it. The integers equal those of the im2col algorithm.

mod lanes;
mod transform;

use core::ops::Range;

use super::super::Isa;
use super::super::error::Error;
use super::super::gemm::{Block, Epilogue, NR, Weights, initial_accumulators, is_narrow, multiply};
use super::super::output::Output;
use super::super::shape::{Image, Window};

/// Side of a tile in output and input pixels.
const OUT: usize = 4;
const IN: usize = OUT + 2;
const POSITIONS: usize = IN * IN;

/// Columns whose products are buffered together.
const CHUNK: usize = 16;

/// Channels times tiles that are multiplied together. With their products they fit the L2 cache.
const TILE_BATCH: usize = 1 << 12;

/// Returns true if weights with these channels per group can be packed.
pub(super) fn fits([inputs, outputs]: [usize; 2], kernel: [usize; 2]) -> bool {
    kernel == [3, 3] && inputs >= 8 && outputs > 0
}

/// Returns true if the window is 3 × 3 with stride 1.
fn has_unit_stride(window: &Window) -> bool {
    window.kernel == [3, 3] && window.strides == [1, 1] && !window.dilations.contains(&0)
}

/// Returns true if this is faster than im2col for an output of this height and width.
pub(super) fn is_faster(isa: Isa, channels: [usize; 2], window: &Window, size: [usize; 2]) -> bool {
    let scalar = matches!(isa, Isa::Portable | Isa::CutPairs);
    if scalar || !fits(channels, window.kernel) || !has_unit_stride(window) {
        return false;
    }
    // With few columns, tiles would be mostly empty.
    if is_narrow([channels[0] * 9, channels[1]]) {
        return false;
    }
    let tiles: [usize; 2] =
        core::array::from_fn(|axis| tile_starts(size[axis], window.dilations[axis]).count());
    // A single tile reads more weights than it has products.
    if tiles[0] * tiles[1] < 4 {
        return false;
    }
    // Measured where both algorithms multiply i16 (docs/kernels.md). `speedup` is the speedup with
    // many channels. With `half` channels it is half of that, because the transforms weigh more.
    let (speedup, half) = match isa {
        Isa::Avx2 => (2.2, 30),
        _ => (2.9, 10),
    };
    let used = (size[0] * size[1]) as f32 / (tiles[0] * tiles[1] * OUT * OUT) as f32;
    let times = speedup * used * channels[0] as f32 / (channels[0] + half) as f32;
    times > 1.1 * isa.i16_slowdown()
}

/// Output rows of a whole row of tiles.
pub(super) fn rows_together(dilation: usize) -> usize {
    dilation.saturating_mul(OUT)
}

/// Returns the starts of the tiles along an axis, for each of the subsampled images.
fn tile_starts(size: usize, dilation: usize) -> impl Iterator<Item = usize> {
    let phases = 0..dilation.min(size);
    phases.flat_map(move |phase| (phase..size).step_by(rows_together(dilation)))
}

/// Returns the origins of the tiles in an output of this height and width.
fn tile_origins([height, width]: [usize; 2], [down, right]: [usize; 2]) -> Vec<[usize; 2]> {
    tile_starts(height, down)
        .flat_map(|y| tile_starts(width, right).map(move |x| [y, x]))
        .collect()
}

/// Arguments of a convolution.
pub(super) struct Problem<'a> {
    pub(super) image: &'a Image<'a>,
    /// First channel of the group.
    pub(super) first_channel: usize,
    pub(super) window: &'a Window,
    pub(super) bias: Option<&'a [i32]>,
    /// Output rows to compute.
    pub(super) rows: Range<usize>,
    /// Width of the output.
    pub(super) width: usize,
}

/// Weights of a group, packed once for one ISA.
#[derive(Clone, Debug)]
pub(super) struct Winograd {
    inputs: usize,
    outputs: usize,
    /// Transformed weights: [`CHUNK`] columns at a time, and of these position after position.
    positions: Vec<Weights>,
    /// `Σ (w - w₀)` per column.
    sums: Vec<i32>,
}

impl Winograd {
    /// Packs a group's weights, [out, in, 3, 3], for i16 products. Returns `None` if sums could
    /// overflow.
    pub(super) fn pack(
        isa: Isa,
        values: &[i8],
        [inputs, outputs]: [usize; 2],
        zero_points: &[i8],
    ) -> Result<Option<Winograd>, Error> {
        let depth = inputs * 9;
        let zero = |column: usize| zero_points.get(column).map_or(0, |&zero| i32::from(zero));
        let column = |column: usize| &values[column * depth..][..depth];
        let mut sums = Vec::with_capacity(outputs);
        for at in 0..outputs {
            let mut ends = [0i64; 2];
            for &value in column(at) {
                let value = i32::from(value) - zero(at);
                ends[usize::from(value < 0)] += i64::from(value);
            }
            if ends[0].max(-ends[1]) * 255 >= 1 << 25 {
                return Ok(None);
            }
            sums.push((ends[0] + ends[1]) as i32);
        }
        let mut positions = Vec::with_capacity(outputs.div_ceil(CHUNK) * POSITIONS);
        for first in (0..outputs).step_by(CHUNK) {
            let columns = CHUNK.min(outputs - first);
            let begin = positions.len();
            for _ in 0..POSITIONS {
                // Padded to whole tiles. Results of the padding are never read.
                positions.push(Weights::zeroed_i16(
                    isa,
                    [inputs, columns.next_multiple_of(NR)],
                )?);
            }
            for at in 0..columns {
                let (zero, windows) = (zero(first + at), column(first + at).as_chunks::<9>().0);
                for (channel, window) in windows.iter().enumerate() {
                    let words = transform::transform_weights(window, zero);
                    Weights::set_i16(&mut positions[begin..], at, channel, &words);
                }
            }
        }
        Ok(Some(Winograd {
            inputs,
            outputs,
            positions,
            sums,
        }))
    }

    /// Memory of the packed weights.
    pub(super) fn bytes(&self) -> usize {
        self.positions.iter().map(Weights::bytes).sum()
    }

    /// Returns the ISA that runs.
    pub(super) fn form(&self) -> Isa {
        self.positions.first().map_or(Isa::Portable, Weights::form)
    }

    /// Computes some output rows. The output begins with the first of them. The caller has checked
    /// the sizes.
    pub(super) fn run(&self, problem: &Problem, output: Output) -> Result<(), Error> {
        let window = problem.window;
        if !has_unit_stride(window) {
            let [down, right] = window.strides;
            return Err(Error::Exceeds {
                what: "the stride of a Winograd convolution",
                limit: 1,
                actual: down.max(right),
            });
        }
        #[cfg(target_arch = "x86_64")]
        if self.form() == Isa::Avx2 {
            assert!(
                std::is_x86_feature_detected!("avx2"),
                "checked when packing"
            );
            // SAFETY: the processor supports AVX2.
            unsafe { self.compute_in_avx2(problem, output) };
            return Ok(());
        }
        self.compute(problem, output);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn compute_in_avx2(&self, problem: &Problem, output: Output) {
        self.compute(problem, output);
    }

    #[inline(always)]
    fn compute(&self, problem: &Problem, mut output: Output) {
        let tiles = tile_origins(
            [problem.rows.len(), problem.width],
            problem.window.dilations,
        );
        let batch = (TILE_BATCH / self.inputs).next_multiple_of(4).clamp(4, 16);
        let batch = batch.min(tiles.len());
        let zero_point = problem.image.zero_point;
        let initial = initial_accumulators(&self.sums, zero_point, problem.bias);
        let padding = vec![zero_point; self.inputs];
        let stride = self.inputs.next_multiple_of(2) * 2;
        let mut transformed = vec![0u8; POSITIONS * batch * stride];
        let mut products = vec![0i32; POSITIONS * batch * CHUNK];
        for tiles in tiles.chunks(batch) {
            let position_stride = tiles.len() * stride;
            for (at, &from) in tiles.iter().enumerate() {
                let pixels = self.pixels(problem, from, &padding);
                // SAFETY: pixels are slices of this many channels, and `transformed` holds all
                // positions of all tiles.
                unsafe {
                    let to = transformed.as_mut_ptr().add(at * stride);
                    transform::transform_input(&pixels, self.inputs, to, position_stride);
                }
            }
            for (chunk, positions) in self.positions.chunks_exact(POSITIONS).enumerate() {
                let each = transformed.chunks_exact(position_stride);
                let to = products.chunks_exact_mut(tiles.len() * CHUNK);
                for ((weights, values), to) in positions.iter().zip(each).zip(to) {
                    let block = Block {
                        values,
                        stride,
                        rows: tiles.len(),
                        row_sums: &[],
                        columns: 0..weights.columns(),
                        initial: &[0; CHUNK],
                    };
                    let stride = CHUNK;
                    multiply(&block, weights, Output::Accumulators { values: to, stride });
                }
                let products = (&products[..], &initial[..]);
                self.transform_output(problem, chunk * CHUNK, tiles, products, &mut output);
            }
        }
    }

    /// Transforms the products of a column chunk to output pixels, and adds the initial
    /// accumulators.
    #[inline(always)]
    fn transform_output(
        &self,
        problem: &Problem,
        first: usize,
        tiles: &[[usize; 2]],
        (products, initial): (&[i32], &[i32]),
        output: &mut Output,
    ) {
        let position_stride = tiles.len() * CHUNK;
        assert!(
            products.len() >= POSITIONS * position_stride,
            "all positions of all tiles"
        );
        let [down, right] = problem.window.dilations;
        for column in (first..self.outputs.min(first + CHUNK)).step_by(NR) {
            let initial = &initial[column..][..NR];
            let mut epilogue = Epilogue::new(output, column, NR.min(self.outputs - column));
            let mut sums = [[0; NR]; OUT * OUT];
            for (at, &[y, x]) in tiles.iter().enumerate() {
                // SAFETY: asserted above.
                unsafe {
                    let from = products.as_ptr().add(at * CHUNK + column - first);
                    transform::transform_output(from, position_stride, initial, &mut sums);
                }
                let high = (problem.rows.len() - y).div_ceil(down).min(OUT);
                let wide = (problem.width - x).div_ceil(right).min(OUT);
                for (row, sums) in sums.as_chunks::<OUT>().0[..high].iter().enumerate() {
                    let pixel = (y + row * down) * problem.width + x;
                    for (column, sums) in sums[..wide].iter().enumerate() {
                        epilogue.sums(pixel + column * right, sums);
                    }
                }
            }
        }
    }

    /// Returns pointers to the input pixels of a tile at an output position.
    #[inline(always)]
    fn pixels(
        &self,
        problem: &Problem,
        [y, x]: [usize; 2],
        padding: &[u8],
    ) -> [*const u8; POSITIONS] {
        let (image, window) = (problem.image, problem.window);
        let mut pixels = [padding.as_ptr(); POSITIONS];
        for (row, pixels) in pixels.as_chunks_mut::<IN>().0.iter_mut().enumerate() {
            let Some(y) = window.input_position(0, problem.rows.start + y, row, image.height)
            else {
                continue;
            };
            for (column, pixel) in pixels.iter_mut().enumerate() {
                if let Some(x) = window.input_position(1, x, column, image.width) {
                    let at = (y * image.width + x) * image.stride + problem.first_channel;
                    *pixel = image.values[at..][..self.inputs].as_ptr();
                }
            }
        }
        pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_each_subsampled_image() {
        assert_eq!(tile_origins([5, 3], [1, 1]), [[0, 0], [4, 0]]);
        assert_eq!(tile_origins([2, 9], [2, 2]).len(), 2 * 3);
        let across: Vec<usize> = tile_origins([1, 9], [1, 2])
            .iter()
            .map(|at| at[1])
            .collect();
        assert_eq!(across, [0, 8, 1]);
        assert_eq!(tile_origins([0, 4], [1, 1]).len(), 0);
        assert_eq!(tile_origins([2, 1], [usize::MAX / 2, 1]), [[0, 0], [1, 0]]);
    }

    #[test]
    fn winograd_is_faster_with_enough_channels_and_pixels() {
        let neighbours = Window::of([3, 3]);
        let faster =
            |channels, window: &Window, size| is_faster(Isa::Simd128, channels, window, size);
        assert!(faster([64, 64], &neighbours, [56, 56]));
        assert!(faster([512, 512], &neighbours, [7, 7]));
        assert!(!faster([3, 64], &neighbours, [56, 56]));
        assert!(!faster([64, 64], &neighbours, [4, 4]));
        assert!(!faster([64, 64], &neighbours, [5, 1]));
        assert!(!faster([64, 64], &neighbours, [0, 0]));
        let dilated = |dilation| Window {
            dilations: [dilation; 2],
            ..neighbours.clone()
        };
        assert!(faster([64, 64], &dilated(2), [56, 56]));
        // Each subsampled image has only a few pixels.
        assert!(!faster([64, 64], &dilated(28), [56, 56]));
        let strided = Window {
            strides: [2, 2],
            ..neighbours.clone()
        };
        assert!(!faster([64, 64], &strided, [28, 28]));
        assert!(!faster([64, 64], &Window::of([5, 5]), [28, 28]));
    }

    #[test]
    fn the_inverse_of_nine_is_correct() {
        assert_eq!(transform::INVERSE_OF_9.wrapping_mul(9), 1);
    }
}
