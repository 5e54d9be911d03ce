//! Rows of the image brought together, for the vector forms: of taps below each other the bytes lie side by side, so that one
//! dot product adds them all. What is made once serves all taps of the kernel's rows, and all rows of the output that look at it.

use core::arch::wasm32::{
    i8x16_shuffle, u8x16_splat, u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, v128, v128_load,
};

use core::ops::Range;

use super::super::shape::{Image, Window};
use super::WIDE;
use super::strip::Places;

/// Vectors of four bytes a channel, for sixteen channels.
pub(super) const VECTORS: usize = WIDE / 4;

/// Bytes of bundles that are kept for other rows of the output, at most: as much as a near cache holds.
const KEPT: usize = 256 * 1024;

/// Brings rows together.
pub(super) trait Interleave: Copy {
    /// How many rows.
    const DEEP: usize;

    /// Of sixteen channels that many bytes each, or words. (A row too many is not looked at.)
    fn together(self, rows: [v128; 4]) -> [v128; VECTORS];
}

/// Two rows, as i16.
#[derive(Clone, Copy)]
pub(super) struct Two;

impl Interleave for Two {
    const DEEP: usize = 2;

    #[inline(always)]
    fn together(self, [a, b, _, _]: [v128; 4]) -> [v128; VECTORS] {
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
pub(super) struct Four;

#[cfg(target_feature = "relaxed-simd")]
impl Interleave for Four {
    const DEEP: usize = 4;

    #[inline(always)]
    fn together(self, [a, b, c, d]: [v128; 4]) -> [v128; VECTORS] {
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

/// The same with pairs of bytes.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn interleaved_pairs(a: v128, b: v128) -> [v128; 2] {
    use core::arch::wasm32::i16x8_shuffle;
    [
        i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b),
        i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b),
    ]
}

/// The bundles of a strip of the output's columns and a block of channels.
pub(super) struct Bundles<'a, I> {
    interleave: I,
    image: &'a Image<'a>,
    window: &'a Window,
    /// A row of zero points.
    padding: Vec<u8>,
    /// How many a place of the window looks at.
    count: usize,
    /// Where their columns lie.
    places: &'a Places,
    /// Whether they are kept: each has a slot by its first row. Else they are made anew for each few rows of the output.
    kept: bool,
    /// From a row of the kernel to the next.
    dilation: i64,
    /// The first row of each slot's. (In 64 bits: a row that a kernel is filled up to may be anywhere.)
    rows: Vec<Option<i64>>,
    /// Slot after slot four channels after the other, of these the columns; behind them one of padding only.
    vectors: Vec<v128>,
    /// The block's first channel.
    channel: usize,
    /// The image's column that is the strip's first, and the strip's columns that are in the image: what the others hold is
    /// written once for all rows and blocks.
    left: isize,
    inside: Range<usize>,
}

impl<'a, I: Interleave> Bundles<'a, I> {
    /// Room for what these places of so many rows of the output look at.
    pub(super) fn new(
        interleave: I,
        image: &'a Image<'a>,
        window: &'a Window,
        places: &'a Places,
        rows: usize,
    ) -> Self {
        let count = window.kernel[0].div_ceil(I::DEEP);
        let wide = places.wide;
        // A row is looked at until the window has passed.
        let span = (count - 1) * I::DEEP * window.dilations[0] + (rows - 1) * window.strides[0] + 1;
        let kept = span <= KEPT / (wide * VECTORS * 16);
        let slots = if kept { span } else { rows * count };
        let nothing = interleave.together([u8x16_splat(image.zero_point); 4]);
        Bundles {
            interleave,
            image,
            window,
            padding: vec![image.zero_point; image.row_length()],
            count,
            places,
            kept,
            dilation: match window.kernel[0] {
                1 => 1,
                _ => window.dilations[0] as i64,
            },
            rows: vec![None; slots],
            // All channels' zero point is one.
            vectors: vec![nothing[0]; (slots + 1) * wide * VECTORS],
            channel: 0,
            left: 0,
            inside: 0..0,
        }
    }

    /// All columns.
    pub(super) fn vectors(&self) -> &[v128] {
        &self.vectors
    }

    /// Where the bundle of padding only begins.
    pub(super) fn nothing(&self) -> usize {
        self.rows.len() * self.places.wide * VECTORS
    }

    /// Begins with a strip that begins at this place, and a block that begins at this channel.
    pub(super) fn begin(&mut self, place: usize, channel: usize) {
        let window = self.window;
        self.channel = channel;
        self.rows.fill(None);
        let left = (place * window.strides[1]) as isize - window.pads[1] as isize;
        let columns = self.places.columns.len() as isize;
        let column = |x: usize| (x as isize - left).clamp(0, columns) as usize;
        let inside = column(0)..column(self.image.width);
        if inside != self.inside && !self.inside.is_empty() {
            let nothing = self.vectors[self.nothing()];
            self.vectors.fill(nothing);
        }
        (self.left, self.inside) = (left, inside);
    }

    /// For each of these rows of the output where the bundles that it looks at begin.
    pub(super) fn of(&mut self, rows: Range<usize>, found: &mut Vec<usize>) {
        found.clear();
        let [deep, slots] = [I::DEEP, self.rows.len()].map(|count| count as i64);
        for y in rows {
            let top = (y * self.window.strides[0]) as i64 - self.window.pads[0] as i64;
            for at in 0..self.count {
                let row = top + at as i64 * deep * self.dilation;
                let last = row + (deep - 1) * self.dilation;
                let slot = match self.kept {
                    _ if last < 0 || row >= self.image.height as i64 => self.rows.len(),
                    true => row.rem_euclid(slots) as usize,
                    false => found.len(),
                };
                if self.rows.get(slot).is_some_and(|&held| held != Some(row)) {
                    self.rows[slot] = Some(row);
                    self.make(row, slot);
                }
                found.push(slot * self.places.wide * VECTORS);
            }
        }
    }

    fn make(&mut self, row: i64, slot: usize) {
        let (image, interleave, wide) = (self.image, self.interleave, self.places.wide);
        let mut rows = [self.padding.as_ptr(); 4];
        for (at, row_of) in rows[..I::DEEP].iter_mut().enumerate() {
            let y = usize::try_from(row + at as i64 * self.dilation).ok();
            if let Some(y) = y.filter(|&y| y < image.height) {
                *row_of = image.row(y).as_ptr();
            }
        }
        let to = &mut self.vectors[slot * wide * VECTORS..][..wide * VECTORS];
        let to = to.as_mut_ptr();
        let first = (self.left + self.inside.start as isize) as usize;
        let mut from = first * image.stride + self.channel;
        for &column in &self.places.columns[self.inside.clone()] {
            let column = column as usize;
            // SAFETY: each row has this pixel, and the pixel the block's sixteen channels; each four channels have the column.
            unsafe {
                let mut lanes = [u8x16_splat(0); 4];
                for (lanes, row) in lanes[..I::DEEP].iter_mut().zip(rows) {
                    *lanes = v128_load(row.add(from).cast());
                }
                let [a, b, c, d] = interleave.together(lanes);
                to.add(column).write(a);
                to.add(column + wide).write(b);
                to.add(column + wide * 2).write(c);
                to.add(column + wide * 3).write(d);
            }
            from += image.stride;
        }
    }
}
