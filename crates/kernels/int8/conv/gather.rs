//! Gathering of im2col rows into a panel of a few dozen rows. The panel stays in cache while all
//! weight columns pass over it.
//!
//! The image is never copied as a whole. Strides, padding and dilations cost nothing in the inner
//! loop.

use core::ops::Range;

use super::super::gemm::{Block, Blocking, Panel, Weights, multiply};
use super::super::output::Output;
use super::super::shape::{Image, Window};

/// Source of a group's pixels.
pub(super) struct Gather<'a> {
    pub(super) image: &'a Image<'a>,
    /// First channel and number of channels.
    pub(super) first_channel: usize,
    pub(super) channels: usize,
    /// Zero points of one tap.
    pub(super) padding: &'a [u8],
}

impl Gather<'_> {
    /// Writes one tap to a panel row: a pixel of the image, or padding.
    #[inline]
    pub(super) fn tap(&self, panel: &mut Panel, row: usize, depth: usize, pixel: Option<usize>) {
        match pixel {
            Some(pixel) => {
                let pixel = pixel * self.image.stride + self.first_channel;
                panel.put(row, depth, &self.image.values[pixel..][..self.channels]);
            }
            None => panel.put(row, depth, &self.padding[..self.channels]),
        }
    }
}

/// The im2col rows of a forward convolution.
pub(super) struct Im2colRows<'a> {
    pub(super) gather: Gather<'a>,
    pub(super) window: &'a Window,
    /// First output position, and the output's width.
    pub(super) first_position: usize,
    pub(super) width: usize,
}

impl Im2colRows<'_> {
    /// Writes consecutive positions, relative to the first, to the panel's rows.
    pub(super) fn put(&self, panel: &mut Panel, positions: Range<usize>) {
        let mut row = 0;
        while row < positions.len() {
            let position = self.first_position + positions.start + row;
            let (y, x) = (position / self.width, position % self.width);
            let columns = x..self.width.min(x + positions.len() - row);
            self.put_row(panel, row, y, columns.clone());
            row += columns.len();
        }
    }

    /// Writes positions of one output row in order. Each may overrun into the next, which is
    /// written later.
    fn put_row(&self, panel: &mut Panel, row: usize, y: usize, columns: Range<usize>) {
        let (window, image, channels) = (self.window, self.gather.image, self.gather.channels);
        let dense = self.dense(&columns);
        let run = window.kernel[1] * channels;
        let line = |ky| {
            window
                .input_position(0, y, ky, image.height)
                .map(|iy| iy * image.width)
        };
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
                    let ix = window.input_position(1, x, kx, image.width);
                    let pixel = line.zip(ix).map(|(line, ix)| line + ix);
                    self.gather.tap(panel, row, depth + kx * channels, pixel);
                }
            }
        }
    }

    /// Returns the columns whose windows need no padding. The range is empty unless adjacent taps
    /// are contiguous (dilation 1, an image without gaps).
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

/// Multiplies `count` gathered rows in blocks. `gather` writes a range of rows to the panel.
pub(super) fn multiply_gathered(
    weights: &Weights,
    initial: &[i32],
    count: usize,
    mut output: Output,
    mut gather: impl FnMut(&mut Panel, Range<usize>),
) {
    let blocks = Blocking::new(weights, count);
    let mut panel = Panel::new(weights, blocks.max_rows());
    let mut row_sums = Vec::new();
    for block in blocks.ranges() {
        let (first, rows) = (block.start, block.len());
        gather(&mut panel, block);
        if weights.needs_row_sums() {
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
            initial,
        };
        multiply(&block, weights, output.part(first, 0, weights.columns()));
    }
}
