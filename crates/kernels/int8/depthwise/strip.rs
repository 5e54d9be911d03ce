//! A strip of depthwise outputs in vector code, four channels at a time. The weights of a few taps
//! stay in registers while the pixels pass.

use core::arch::wasm32::{i32x4_add, i32x4_splat, v128, v128_load};

use super::super::gemm::dot::Dot;
use super::super::shape::Window;
use super::VECTORS;

/// Bytes of one tap's weights in a row group, for sixteen channels.
pub(super) const TAP_BYTES: usize = VECTORS * 16;

/// Column order of the interleaved rows and the positions of the outputs' taps.
///
/// Columns are ordered by their residue modulo the dilation. The taps of an output are then
/// contiguous, and two outputs one dilation apart read nearly the same columns.
pub(super) struct ColumnMap {
    /// Index of each image column.
    pub(super) columns: Vec<u32>,
    /// Number of column slots.
    pub(super) wide: usize,
    /// Number of output pixels.
    pub(super) count: usize,
    /// Index of the first tap's column, and the pixel. `pairs` lists the first of two pixels with
    /// adjacent columns, `singles` the others.
    pairs: Vec<[u32; 2]>,
    singles: Vec<[u32; 2]>,
    /// Distance between the pixels of a pair.
    pair_distance: usize,
    /// Taps per kernel row.
    taps: usize,
}

impl ColumnMap {
    /// Computes the order for this many consecutive pixels.
    pub(super) fn new(window: &Window, count: usize) -> ColumnMap {
        let [taps, stride] = [window.kernel[1], window.strides[1]];
        let dilation = if taps == 1 { 1 } else { window.dilations[1] };
        let span = columns(window, count);
        let long = span.div_ceil(dilation);
        let index_of = |column: usize| (column % dilation * long + column / dilation) as u32;
        let (mut pairs, mut singles) = (Vec::new(), Vec::new());
        // Distance to the pixel whose taps read the adjacent columns.
        let pair_distance = (1..=dilation).find(|pair_distance| pair_distance * stride == dilation);
        for output in 0..count {
            let entry = [index_of(output * stride), output as u32];
            match pair_distance {
                Some(pair_distance) if output / pair_distance % 2 == 1 => {}
                Some(pair_distance) if output + pair_distance < count => pairs.push(entry),
                _ => singles.push(entry),
            }
        }
        ColumnMap {
            columns: (0..span).map(index_of).collect(),
            wide: long * dilation,
            count,
            pairs,
            singles,
            pair_distance: pair_distance.unwrap_or(0),
            taps,
        }
    }
}

/// Image columns that this many consecutive pixels span.
pub(super) fn columns(window: &Window, pixels: usize) -> usize {
    (pixels - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilations[1] + 1
}

/// Four channels of some output rows, or of parts of them.
pub(super) struct Strip<'a> {
    pub(super) map: &'a ColumnMap,
    /// Columns of all interleaved rows.
    pub(super) vectors: &'a [v128],
    /// Offsets of the interleaved rows of each output row, and their number per row.
    pub(super) rows: &'a [usize],
    pub(super) rows_per_output: usize,
    /// Offset of the padding-only row.
    pub(super) padding_only: usize,
    /// Vector offset of these channels.
    pub(super) from: usize,
    /// Weights by tap, [`TAP_BYTES`] apart.
    pub(super) weights: &'a [u8],
    /// Initial accumulators.
    pub(super) initial: v128,
}

impl Strip<'_> {
    /// Sums all taps of all pixels, a few taps at a time.
    #[inline(always)]
    pub(super) fn run(&self, dot: impl Dot, sums: &mut [v128]) {
        let wide = self.map.taps;
        if (self.rows_per_output, wide) == (2, 3) {
            self.add::<2, 3, true>(dot, [0, 0], sums);
            return;
        }
        for row in 0..self.rows_per_output {
            let mut column = 0;
            while column < wide {
                let at = [row, column];
                column += match (wide - column, at) {
                    (5.., [0, 0]) => self.add::<1, 5, true>(dot, at, sums),
                    (5.., _) => self.add::<1, 5, false>(dot, at, sums),
                    (3.., [0, 0]) => self.add::<1, 3, true>(dot, at, sums),
                    (3.., _) => self.add::<1, 3, false>(dot, at, sums),
                    (_, [0, 0]) => self.add::<1, 1, true>(dot, at, sums),
                    _ => self.add::<1, 1, false>(dot, at, sums),
                };
            }
        }
    }

    /// Adds the taps of `ROWS` interleaved rows and `COLUMNS` kernel columns. Returns `COLUMNS`. If
    /// `FIRST`, starts from the initial accumulators.
    #[inline(always)]
    fn add<const ROWS: usize, const COLUMNS: usize, const FIRST: bool>(
        &self,
        dot: impl Dot,
        [row, column]: [usize; 2],
        sums: &mut [v128],
    ) -> usize {
        let map = self.map;
        let mut weights = [[self.initial; COLUMNS]; ROWS];
        for (row_offset, weights) in weights.iter_mut().enumerate() {
            for (column_offset, weights) in weights.iter_mut().enumerate() {
                let tap = (row + row_offset) * map.taps + column + column_offset;
                let bytes = &self.weights[tap * TAP_BYTES..][..16];
                // SAFETY: sixteen bytes.
                *weights = unsafe { v128_load(bytes.as_ptr().cast()) };
            }
        }
        let initial = self.initial;
        let (pairs, singles, pair_distance) = (&map.pairs[..], &map.singles[..], map.pair_distance);
        let sum_rows = sums.chunks_exact_mut(map.count);
        for (sums, rows) in sum_rows.zip(self.rows.chunks_exact(self.rows_per_output)) {
            if ROWS == 1 && rows[row] == self.padding_only {
                // All pixels read the same padding.
                let mut more = i32x4_splat(0);
                for &weights in weights.as_flattened() {
                    more = dot.dot(more, self.vectors[self.padding_only], weights);
                }
                for sum in sums {
                    *sum = i32x4_add(more, if FIRST { initial } else { *sum });
                }
                continue;
            }
            let mut row_columns = [core::ptr::null::<v128>(); ROWS];
            for (row_columns, from) in row_columns.iter_mut().zip(&rows[row..]) {
                let columns = &self.vectors[from + self.from..][..map.wide];
                *row_columns = columns[column..].as_ptr();
            }
            let sums = sums.as_mut_ptr();
            // SAFETY: `ColumnMap` lists pixels below `count`, all of whose taps read columns below
            // `wide`.
            unsafe {
                for &[at, output] in pairs {
                    let sum = sums.add(output as usize);
                    let sums = [sum, sum.add(pair_distance)];
                    let mut lanes = match FIRST {
                        true => [initial; 2],
                        false => [*sums[0], *sums[1]],
                    };
                    for (row_columns, weights) in row_columns.iter().zip(&weights) {
                        let columns = row_columns.add(at as usize);
                        let mut pixel = *columns;
                        for (column_offset, &weights) in weights.iter().enumerate() {
                            let next = *columns.add(column_offset + 1);
                            lanes[0] = dot.dot(lanes[0], pixel, weights);
                            lanes[1] = dot.dot(lanes[1], next, weights);
                            pixel = next;
                        }
                    }
                    *sums[0] = lanes[0];
                    *sums[1] = lanes[1];
                }
                for &[at, output] in singles {
                    let sum = sums.add(output as usize);
                    let mut lanes = if FIRST { initial } else { *sum };
                    for (row_columns, weights) in row_columns.iter().zip(&weights) {
                        let columns = row_columns.add(at as usize);
                        for (column_offset, &weights) in weights.iter().enumerate() {
                            lanes = dot.dot(lanes, *columns.add(column_offset), weights);
                        }
                    }
                    *sum = lanes;
                }
            }
        }
        COLUMNS
    }
}
