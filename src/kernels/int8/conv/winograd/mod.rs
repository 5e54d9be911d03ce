//! Windows of 3 × 3 that move by one pixel, with a quarter of the products: Winograd's way, in whole numbers.
//! Dilated ones are windows of neighbours in each of the images that every so manieth pixel makes.
//!
//! Four by four pixels of the output look at six by six of the image. With the points 0, ±1, ±2 and ∞ their sums
//! are `Y = Aᵀ [ (G w Gᵀ) ∘ (Bᵀ a B) ] A`, where ∘ multiplies place by place: 36 products for 16 pixels that had 144. For
//! each of the 36 places that is a gemm over the channels. G has fractions; here each of its rows is the least whole
//! numbers it can be (24, 6, 6, 24, 24 and 6 times what it was; the first and the last would do with less), and A makes up
//! for it: it gives 24, 12, 6 and 6 times the four sums. So
//!
//! ```text
//! Bᵀ a B        of bytes:  at most 68 · 255 = 17340 from zero, an i16
//! G' w G'ᵀ      of w - w₀: at most 49 · 255 = 12495, an i16
//! the sums      wrap in i32, as all that follows is sums and products
//! f² Y          f is 3 · 8, 3 · 4 or 3 · 2 in each direction: 9 is taken out by its inverse among the i32 that wrap,
//!               and up to 64 by a shift, which is right where 64 |Y| < 2³¹
//! ```
//!
//! The last is known from the weights: [`Winograd::pack`] gives nothing where activations of 255 could be too much.
//! The integers are those of any other way.

mod lanes;
mod transform;

use core::ops::Range;

use super::super::Form;
use super::super::error::Error;
use super::super::gemm::{Block, Finish, WIDE, Weights, beginnings, is_narrow, multiply};
use super::super::output::Output;
use super::super::shape::{Image, Window};

/// Pixels of a tile's side, of the output and of the image.
const OUT: usize = 4;
const IN: usize = OUT + 2;
const PLACES: usize = IN * IN;

/// Columns whose products wait for each other.
const CHUNK: usize = 16;

/// Channels times tiles that are multiplied together: with their products they fit a near cache.
const TOGETHER: usize = 1 << 12;

/// Whether weights of so many channels a group can be packed.
pub(super) fn fits([inputs, outputs]: [usize; 2], kernel: [usize; 2]) -> bool {
    kernel == [3, 3] && inputs >= 8 && outputs > 0
}

/// Whether a window moves as it must.
fn moves_by_one(window: &Window) -> bool {
    window.kernel == [3, 3] && window.strides == [1, 1] && !window.dilations.contains(&0)
}

/// Whether this is faster than to gather the windows, for an output of this height and width.
pub(super) fn pays(form: Form, channels: [usize; 2], window: &Window, size: [usize; 2]) -> bool {
    if form == Form::Portable || !fits(channels, window.kernel) || !moves_by_one(window) {
        return false;
    }
    // A tile of few columns would be empty for the most part.
    if is_narrow([channels[0] * 9, channels[1]]) {
        return false;
    }
    let tiles: [usize; 2] =
        core::array::from_fn(|axis| begins(size[axis], window.dilations[axis]).count());
    // A single tile reads more weights than it has products.
    if tiles[0] * tiles[1] < 4 {
        return false;
    }
    // As measured where both multiply i16 (docs/kernels.md): with many channels so many times as fast, with these half of it,
    // since the sums before and behind are as many with few.
    let (most, half) = match form {
        Form::Avx2 => (2.2, 30),
        _ => (2.9, 10),
    };
    let used = (size[0] * size[1]) as f32 / (tiles[0] * tiles[1] * OUT * OUT) as f32;
    let times = most * used * channels[0] as f32 / (channels[0] + half) as f32;
    times > 1.1 * form.words_over_bytes()
}

/// Rows that make whole tiles.
pub(super) fn rows_together(dilation: usize) -> usize {
    dilation.saturating_mul(OUT)
}

/// Where tiles begin on an axis of this size: in each of the images that every so manieth pixel makes.
fn begins(size: usize, dilation: usize) -> impl Iterator<Item = usize> {
    let phases = 0..dilation.min(size);
    phases.flat_map(move |phase| (phase..size).step_by(rows_together(dilation)))
}

/// Where tiles begin, in an output of this height and width.
fn origins([height, width]: [usize; 2], [down, right]: [usize; 2]) -> Vec<[usize; 2]> {
    begins(height, down)
        .flat_map(|y| begins(width, right).map(move |x| [y, x]))
        .collect()
}

/// What is computed.
pub(super) struct Tiled<'a> {
    pub(super) image: &'a Image<'a>,
    /// The group's first channel.
    pub(super) first: usize,
    pub(super) window: &'a Window,
    pub(super) bias: Option<&'a [i32]>,
    /// Of the output.
    pub(super) rows: Range<usize>,
    /// The output's.
    pub(super) width: usize,
}

/// The weights of a group, packed once for one form.
#[derive(Clone, Debug)]
pub(super) struct Winograd {
    inputs: usize,
    outputs: usize,
    /// [`CHUNK`] columns after each other, and of these place after place.
    places: Vec<Weights>,
    /// `Σ (w - w₀)`, a column each.
    sums: Vec<i32>,
}

impl Winograd {
    /// Packs a group's weights, [out, in, 3, 3], for a form that multiplies i16; nothing where sums could be too large.
    pub(super) fn pack(
        form: Form,
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
        let mut places = Vec::with_capacity(outputs.div_ceil(CHUNK) * PLACES);
        for first in (0..outputs).step_by(CHUNK) {
            let columns = CHUNK.min(outputs - first);
            let begin = places.len();
            for _ in 0..PLACES {
                // Whole tiles: what is too much is never read.
                places.push(Weights::words(
                    form,
                    [inputs, columns.next_multiple_of(WIDE)],
                )?);
            }
            for at in 0..columns {
                let (zero, windows) = (zero(first + at), column(first + at).as_chunks::<9>().0);
                for (channel, window) in windows.iter().enumerate() {
                    let words = transform::of_weights(window, zero);
                    Weights::set_words(&mut places[begin..], at, channel, &words);
                }
            }
        }
        Ok(Some(Winograd {
            inputs,
            outputs,
            places,
            sums,
        }))
    }

    /// What the packed weights take.
    pub(super) fn bytes(&self) -> usize {
        self.places.iter().map(Weights::bytes).sum()
    }

    /// The form that runs.
    pub(super) fn form(&self) -> Form {
        self.places.first().map_or(Form::Portable, Weights::form)
    }

    /// Some rows of the output; what is written begins with the first of them. The caller has checked sizes.
    pub(super) fn run(&self, what: &Tiled, output: Output) -> Result<(), Error> {
        let window = what.window;
        if !moves_by_one(window) {
            let [down, right] = window.strides;
            return Err(Error::Mismatch {
                what: "the stride, of weights packed for tiles",
                expected: 1,
                found: down.max(right),
            });
        }
        #[cfg(target_arch = "x86_64")]
        if self.form() == Form::Avx2 {
            assert!(
                std::is_x86_feature_detected!("avx2"),
                "checked when packing"
            );
            // SAFETY: the processor has AVX2.
            unsafe { self.compute_in_avx2(what, output) };
            return Ok(());
        }
        self.compute(what, output);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn compute_in_avx2(&self, what: &Tiled, output: Output) {
        self.compute(what, output);
    }

    #[inline(always)]
    fn compute(&self, what: &Tiled, mut output: Output) {
        let tiles = origins([what.rows.len(), what.width], what.window.dilations);
        let at_once = (TOGETHER / self.inputs).next_multiple_of(4).clamp(4, 16);
        let at_once = at_once.min(tiles.len());
        let zero_point = what.image.zero_point;
        let beginnings = beginnings(&self.sums, zero_point, what.bias);
        let padding = vec![zero_point; self.inputs];
        let stride = self.inputs.next_multiple_of(2) * 2;
        let mut spread = vec![0u8; PLACES * at_once * stride];
        let mut products = vec![0i32; PLACES * at_once * CHUNK];
        for tiles in tiles.chunks(at_once) {
            let apart = tiles.len() * stride;
            for (at, &from) in tiles.iter().enumerate() {
                let pixels = self.pixels(what, from, &padding);
                // SAFETY: pixels are slices of so many channels, and `spread` has room for all places of all tiles.
                unsafe {
                    let to = spread.as_mut_ptr().add(at * stride);
                    transform::spread(&pixels, self.inputs, to, apart);
                }
            }
            for (chunk, places) in self.places.chunks_exact(PLACES).enumerate() {
                let each = spread.chunks_exact(apart);
                let to = products.chunks_exact_mut(tiles.len() * CHUNK);
                for ((weights, values), to) in places.iter().zip(each).zip(to) {
                    let block = Block {
                        values,
                        stride,
                        rows: tiles.len(),
                        row_sums: &[],
                        columns: 0..weights.columns(),
                        beginnings: &[0; CHUNK],
                    };
                    let stride = CHUNK;
                    multiply(&block, weights, Output::Accumulators { values: to, stride });
                }
                let products = (&products[..], &beginnings[..]);
                self.finish(what, chunk * CHUNK, tiles, products, &mut output);
            }
        }
    }

    /// The pixels of tiles from the products of a chunk of columns, and from what all columns' sums begin with.
    #[inline(always)]
    fn finish(
        &self,
        what: &Tiled,
        first: usize,
        tiles: &[[usize; 2]],
        (products, beginnings): (&[i32], &[i32]),
        output: &mut Output,
    ) {
        let apart = tiles.len() * CHUNK;
        assert!(products.len() >= PLACES * apart, "all places of all tiles");
        let [down, right] = what.window.dilations;
        for column in (first..self.outputs.min(first + CHUNK)).step_by(WIDE) {
            let beginnings = &beginnings[column..][..WIDE];
            let mut finish = Finish::new(output, column, WIDE.min(self.outputs - column));
            let mut sums = [[0; WIDE]; OUT * OUT];
            for (at, &[y, x]) in tiles.iter().enumerate() {
                // SAFETY: asserted above.
                unsafe {
                    let from = products.as_ptr().add(at * CHUNK + column - first);
                    transform::gather(from, apart, beginnings, &mut sums);
                }
                let high = (what.rows.len() - y).div_ceil(down).min(OUT);
                let wide = (what.width - x).div_ceil(right).min(OUT);
                for (row, sums) in sums.as_chunks::<OUT>().0[..high].iter().enumerate() {
                    let pixel = (y + row * down) * what.width + x;
                    for (column, sums) in sums[..wide].iter().enumerate() {
                        finish.sums(pixel + column * right, sums);
                    }
                }
            }
        }
    }

    /// Where a tile's pixels are, from a pixel of the output on.
    #[inline(always)]
    fn pixels(&self, what: &Tiled, [y, x]: [usize; 2], padding: &[u8]) -> [*const u8; PLACES] {
        let (image, window) = (what.image, what.window);
        let mut pixels = [padding.as_ptr(); PLACES];
        for (row, pixels) in pixels.as_chunks_mut::<IN>().0.iter_mut().enumerate() {
            let Some(y) = window.at(0, what.rows.start + y, row, image.height) else {
                continue;
            };
            for (column, pixel) in pixels.iter_mut().enumerate() {
                if let Some(x) = window.at(1, x, column, image.width) {
                    let at = (y * image.width + x) * image.stride + what.first;
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
    fn tiles_begin_in_each_image_of_every_so_manieth_pixel() {
        assert_eq!(origins([5, 3], [1, 1]), [[0, 0], [4, 0]]);
        assert_eq!(origins([2, 9], [2, 2]).len(), 2 * 3);
        let across: Vec<usize> = origins([1, 9], [1, 2]).iter().map(|at| at[1]).collect();
        assert_eq!(across, [0, 8, 1]);
        assert_eq!(origins([0, 4], [1, 1]).len(), 0);
        assert_eq!(origins([2, 1], [usize::MAX / 2, 1]), [[0, 0], [1, 0]]);
    }

    #[test]
    fn it_pays_with_channels_and_pixels_enough() {
        let neighbours = Window::of([3, 3]);
        let pays = |channels, window: &Window, size| pays(Form::Simd128, channels, window, size);
        assert!(pays([64, 64], &neighbours, [56, 56]));
        assert!(pays([512, 512], &neighbours, [7, 7]));
        assert!(!pays([3, 64], &neighbours, [56, 56]));
        assert!(!pays([64, 64], &neighbours, [4, 4]));
        assert!(!pays([64, 64], &neighbours, [5, 1]));
        assert!(!pays([64, 64], &neighbours, [0, 0]));
        let dilated = |dilation| Window {
            dilations: [dilation; 2],
            ..neighbours.clone()
        };
        assert!(pays([64, 64], &dilated(2), [56, 56]));
        // Each image is of a few pixels.
        assert!(!pays([64, 64], &dilated(28), [56, 56]));
        let strided = Window {
            strides: [2, 2],
            ..neighbours.clone()
        };
        assert!(!pays([64, 64], &strided, [28, 28]));
        assert!(!pays([64, 64], &Window::of([5, 5]), [28, 28]));
    }

    #[test]
    fn a_ninth_is_the_inverse_of_nine() {
        assert_eq!(transform::NINTH.wrapping_mul(9), 1);
    }
}
