//! Row interleave for the depthwise vector kernels. Bytes of vertically adjacent taps lie side by
//! side, so that one dot product adds them all.
//!
//! An interleaved row serves all taps of those kernel rows, and all output rows that read it.

use core::arch::wasm32::{
    i8x16_shuffle, u8x16_splat, u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, v128, v128_load,
};

use core::ops::Range;

use super::super::shape::{Image, Window};
use super::VECTORS;
use super::strip::ColumnMap;

/// Maximum bytes of interleaved rows that are cached for other output rows: about an L2 cache.
const CACHE_BYTES: usize = 256 * 1024;

/// Interleaves image rows.
pub(super) trait Interleave: Copy {
    /// Rows per interleave.
    const ROWS: usize;

    /// Interleaves sixteen channels of `ROWS` rows, as bytes or i16. Surplus rows are ignored.
    fn interleave(self, rows: [v128; 4]) -> [v128; VECTORS];
}

/// Two rows, as i16.
#[derive(Clone, Copy)]
pub(super) struct TwoRows;

impl Interleave for TwoRows {
    const ROWS: usize = 2;

    #[inline(always)]
    fn interleave(self, [a, b, _, _]: [v128; 4]) -> [v128; VECTORS] {
        let [low, high] = interleaved(a, b);
        [
            u16x8_extend_low_u8x16(low),
            u16x8_extend_high_u8x16(low),
            u16x8_extend_low_u8x16(high),
            u16x8_extend_high_u8x16(high),
        ]
    }
}

/// Four rows, as bytes.
#[cfg(target_feature = "relaxed-simd")]
#[derive(Clone, Copy)]
pub(super) struct FourRows;

#[cfg(target_feature = "relaxed-simd")]
impl Interleave for FourRows {
    const ROWS: usize = 4;

    #[inline(always)]
    fn interleave(self, [a, b, c, d]: [v128; 4]) -> [v128; VECTORS] {
        let ([ab_low, ab_high], [cd_low, cd_high]) = (interleaved(a, b), interleaved(c, d));
        let [first, second] = interleaved_pairs(ab_low, cd_low);
        let [third, fourth] = interleaved_pairs(ab_high, cd_high);
        [first, second, third, fourth]
    }
}

/// a0 b0 a1 b1 …, low half and high half.
#[inline(always)]
fn interleaved(a: v128, b: v128) -> [v128; 2] {
    [
        i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b),
        i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b),
    ]
}

/// Interleaves pairs of bytes, low half and high half.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn interleaved_pairs(a: v128, b: v128) -> [v128; 2] {
    use core::arch::wasm32::i16x8_shuffle;
    [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b),
    ]
}

/// The interleaved rows of a strip of output columns and a block of channels.
pub(super) struct InterleavedRows<'a, I> {
    interleave: I,
    image: &'a Image<'a>,
    window: &'a Window,
    /// A row of zero points.
    padding: Vec<u8>,
    /// Interleaved rows per window.
    count: usize,
    /// Column order.
    map: &'a ColumnMap,
    /// True if rows are cached, in a slot determined by their first row. Otherwise they are rebuilt
    /// for every few output rows.
    cached: bool,
    /// Distance between kernel rows.
    dilation: i64,
    /// First row of each slot. (64 bits, because padding rows of a kernel may lie anywhere.)
    rows: Vec<Option<i64>>,
    /// Vectors by slot, group of four channels and column. After the last slot lies one of padding
    /// only.
    vectors: Vec<v128>,
    /// First channel of the block.
    channel: usize,
    /// First image column of the strip, and the strip's columns inside the image. The others hold
    /// padding, written once for all rows and blocks.
    left: isize,
    inside: Range<usize>,
}

impl<'a, I: Interleave> InterleavedRows<'a, I> {
    /// Allocates the interleaved rows that these columns of `rows` output rows read.
    pub(super) fn new(
        interleave: I,
        image: &'a Image<'a>,
        window: &'a Window,
        map: &'a ColumnMap,
        rows: usize,
    ) -> Self {
        let count = window.kernel[0].div_ceil(I::ROWS);
        let wide = map.wide;
        // A row is read until the window has passed it.
        let span = (count - 1) * I::ROWS * window.dilations[0] + (rows - 1) * window.strides[0] + 1;
        let cached = span <= CACHE_BYTES / (wide * VECTORS * 16);
        let slots = if cached { span } else { rows * count };
        let padding_only = interleave.interleave([u8x16_splat(image.zero_point); 4]);
        InterleavedRows {
            interleave,
            image,
            window,
            padding: vec![image.zero_point; image.row_length()],
            count,
            map,
            cached,
            dilation: match window.kernel[0] {
                1 => 1,
                _ => window.dilations[0] as i64,
            },
            rows: vec![None; slots],
            // All channels share one zero point.
            vectors: vec![padding_only[0]; (slots + 1) * wide * VECTORS],
            channel: 0,
            left: 0,
            inside: 0..0,
        }
    }

    /// Returns all vectors.
    pub(super) fn vectors(&self) -> &[v128] {
        &self.vectors
    }

    /// Returns the offset of the padding-only row.
    pub(super) fn padding_only(&self) -> usize {
        self.rows.len() * self.map.wide * VECTORS
    }

    /// Starts a strip at an output column and a block of channels.
    pub(super) fn start(&mut self, position: usize, channel: usize) {
        let window = self.window;
        self.channel = channel;
        self.rows.fill(None);
        let left = (position * window.strides[1]) as isize - window.pads[1] as isize;
        let columns = self.map.columns.len() as isize;
        let column = |x: usize| (x as isize - left).clamp(0, columns) as usize;
        let inside = column(0)..column(self.image.width);
        if inside != self.inside && !self.inside.is_empty() {
            let padding_only = self.vectors[self.padding_only()];
            self.vectors.fill(padding_only);
        }
        (self.left, self.inside) = (left, inside);
    }

    /// Interleaves the image rows that these output rows read. Returns their offsets, output row by
    /// output row.
    pub(super) fn locate(&mut self, rows: Range<usize>, offsets: &mut Vec<usize>) {
        offsets.clear();
        let [rows_per_dot, slots] = [I::ROWS, self.rows.len()].map(|count| count as i64);
        for y in rows {
            let top = (y * self.window.strides[0]) as i64 - self.window.pads[0] as i64;
            for at in 0..self.count {
                let row = top + at as i64 * rows_per_dot * self.dilation;
                let last = row + (rows_per_dot - 1) * self.dilation;
                let slot = match self.cached {
                    _ if last < 0 || row >= self.image.height as i64 => self.rows.len(),
                    true => row.rem_euclid(slots) as usize,
                    false => offsets.len(),
                };
                if self
                    .rows
                    .get(slot)
                    .is_some_and(|&cached| cached != Some(row))
                {
                    self.rows[slot] = Some(row);
                    self.interleave_rows(row, slot);
                }
                offsets.push(slot * self.map.wide * VECTORS);
            }
        }
    }

    fn interleave_rows(&mut self, row: i64, slot: usize) {
        let (image, interleave, wide) = (self.image, self.interleave, self.map.wide);
        let mut rows = [self.padding.as_ptr(); 4];
        for (at, row_of) in rows[..I::ROWS].iter_mut().enumerate() {
            let y = usize::try_from(row + at as i64 * self.dilation).ok();
            if let Some(y) = y.filter(|&y| y < image.height) {
                *row_of = image.row(y).as_ptr();
            }
        }
        let to = &mut self.vectors[slot * wide * VECTORS..][..wide * VECTORS];
        let to = to.as_mut_ptr();
        let first = (self.left + self.inside.start as isize) as usize;
        let mut from = first * image.stride + self.channel;
        for &column in &self.map.columns[self.inside.clone()] {
            let column = column as usize;
            // SAFETY: each row has this pixel, the pixel has the block's sixteen channels, and the
            // slot has the column.
            unsafe {
                let mut lanes = [u8x16_splat(0); 4];
                for (lanes, row) in lanes[..I::ROWS].iter_mut().zip(rows) {
                    *lanes = v128_load(row.add(from).cast());
                }
                let [a, b, c, d] = interleave.interleave(lanes);
                to.add(column).write(a);
                to.add(column + wide).write(b);
                to.add(column + wide * 2).write(c);
                to.add(column + wide * 3).write(d);
            }
            from += image.stride;
        }
    }
}
