//! What a window looks at, gathered into a panel of a few dozen rows, which stays in the cache while it is multiplied by all
//! columns: no copy of the image is made, and strides, padding and dilations cost nothing in the inner loop.

use core::ops::Range;

use super::super::gemm::{Block, Blocking, Panel, Weights, multiply};
use super::super::output::Output;
use super::super::shape::{Image, Window};

/// Pixels of a group's channels.
pub(super) struct Gather<'a> {
    pub(super) image: &'a Image<'a>,
    /// The first channel, and how many.
    pub(super) first: usize,
    pub(super) channels: usize,
    /// A tap's worth of the zero point.
    pub(super) padding: &'a [u8],
}

impl Gather<'_> {
    /// Puts one tap into a row of the panel: a pixel of the image, or padding.
    #[inline]
    pub(super) fn tap(&self, panel: &mut Panel, row: usize, depth: usize, pixel: Option<usize>) {
        match pixel {
            Some(pixel) => {
                let pixel = pixel * self.image.stride + self.first;
                panel.put(row, depth, &self.image.values[pixel..][..self.channels]);
            }
            None => panel.put(row, depth, &self.padding[..self.channels]),
        }
    }
}

/// What places of the output look at, for convolutions that go from the image to the output.
pub(super) struct Windows<'a> {
    pub(super) gather: Gather<'a>,
    pub(super) window: &'a Window,
    /// The first of the output's places, and the output's columns.
    pub(super) first: usize,
    pub(super) width: usize,
}

impl Windows<'_> {
    /// Puts neighbouring places, counted from the first, into the panel's rows.
    pub(super) fn put(&self, panel: &mut Panel, places: Range<usize>) {
        let mut row = 0;
        while row < places.len() {
            let place = self.first + places.start + row;
            let (y, x) = (place / self.width, place % self.width);
            let columns = x..self.width.min(x + places.len() - row);
            self.put_row(panel, row, y, columns.clone());
            row += columns.len();
        }
    }

    /// Puts places of one row of the output, one after the other, since each is put over the beginning of the next.
    fn put_row(&self, panel: &mut Panel, row: usize, y: usize, columns: Range<usize>) {
        let (window, image, channels) = (self.window, self.gather.image, self.gather.channels);
        let dense = self.dense(&columns);
        let run = window.kernel[1] * channels;
        let line = |ky| window.at(0, y, ky, image.height).map(|iy| iy * image.width);
        let lines: Vec<Option<usize>> = (0..window.kernel[0]).map(line).collect();
        for (row, x) in (row..).zip(columns) {
            let is_dense = dense.contains(&x);
            for (ky, &line) in lines.iter().enumerate() {
                let depth = ky * run;
                if let Some(line) = line.filter(|_| is_dense) {
                    let left = x * window.strides[1] - window.pads[1];
                    let from = &image.values[(line + left) * image.stride..];
                    panel.put_over(row, depth, from, run);
                    continue;
                }
                for kx in 0..window.kernel[1] {
                    let ix = window.at(1, x, kx, image.width);
                    let pixel = line.zip(ix).map(|(line, ix)| line + ix);
                    self.gather.tap(panel, row, depth + kx * channels, pixel);
                }
            }
        }
    }

    /// Of these columns those without padding, where neighbouring taps lie in one run: all channels are looked at.
    fn dense(&self, columns: &Range<usize>) -> Range<usize> {
        let (window, image, channels) = (self.window, self.gather.image, self.gather.channels);
        let [stride, pad] = [window.strides[1], window.pads[1]];
        let last = (image.width + pad).checked_sub(window.kernel[1]);
        match last.filter(|_| window.dilations[1] == 1 && image.stride == channels) {
            Some(last) => {
                let start = pad.div_ceil(stride).clamp(columns.start, columns.end);
                start..(last / stride + 1).clamp(start, columns.end)
            }
            None => columns.start..columns.start,
        }
    }
}

/// Multiplies `count` gathered rows, a block at a time. `gather` puts a range of them into the first rows of the panel.
pub(super) fn multiply_gathered(
    weights: &Weights,
    beginnings: &[i32],
    count: usize,
    mut output: Output,
    mut gather: impl FnMut(&mut Panel, Range<usize>),
) {
    let blocks = Blocking::of(weights, count);
    let mut panel = Panel::new(weights, blocks.most());
    let mut row_sums = Vec::new();
    for block in blocks.all() {
        let (first, rows) = (block.start, block.len());
        gather(&mut panel, block);
        if weights.wants_row_sums() {
            row_sums.clear();
            row_sums.extend((0..rows).map(|row| panel.sum(row)));
        }
        let (values, stride) = panel.read();
        let block = Block {
            values,
            stride,
            rows,
            row_sums: &row_sums,
            columns: 0..weights.columns(),
            beginnings,
        };
        multiply(&block, weights, output.part(first, 0, weights.columns()));
    }
}
