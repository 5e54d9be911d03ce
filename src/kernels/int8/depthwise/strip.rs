//! A strip of the output for the vector forms, four channels at a time: the weights of a few taps stay in registers while the
//! places go by.

use core::arch::wasm32::{v128, v128_load};

use super::super::gemm::simd128::Dot;
use super::super::shape::Window;
use super::bundle::VECTORS;

/// Bytes of the weights of a tap of a bundle, for sixteen channels.
pub(super) const TAP: usize = VECTORS * 16;

/// Four channels of some rows of the output, or of parts of them.
pub(super) struct Strip<'a> {
    pub(super) window: &'a Window,
    /// The columns of all bundles.
    pub(super) vectors: &'a [v128],
    /// Where those begin that each row of the output looks at, and how many these are.
    pub(super) bundles: &'a [usize],
    pub(super) each: usize,
    /// Vectors further on for these channels.
    pub(super) from: usize,
    /// Tap after tap, [`TAP`] bytes from one to the next.
    pub(super) weights: &'a [u8],
    /// What the sums begin with.
    pub(super) beginning: v128,
    /// Places of a row.
    pub(super) places: usize,
}

impl Strip<'_> {
    /// Sums all taps of all places.
    #[inline(always)]
    pub(super) fn run(&self, dot: impl Dot, sums: &mut [v128]) {
        match self.window.dilations[1] {
            1 => self.rows_of_taps::<1>(dot, sums),
            _ => self.rows_of_taps::<0>(dot, sums),
        }
    }

    /// `APART` is 1 where taps are neighbours, so that the compiler knows.
    #[inline(always)]
    fn rows_of_taps<const APART: usize>(&self, dot: impl Dot, sums: &mut [v128]) {
        let wide = self.window.kernel[1];
        if (self.each, wide) == (2, 3) {
            self.add::<2, 3, APART>(dot, [0, 0], sums);
            return;
        }
        for row in 0..self.each {
            let mut column = 0;
            while column < wide {
                column += match wide - column {
                    5.. => self.add::<1, 5, APART>(dot, [row, column], sums),
                    3.. => self.add::<1, 3, APART>(dot, [row, column], sums),
                    _ => self.add::<1, 1, APART>(dot, [row, column], sums),
                };
            }
        }
    }

    /// Adds the taps of `HIGH` bundles and `BROAD` columns of the kernel, and gives the latter.
    #[inline(always)]
    fn add<const HIGH: usize, const BROAD: usize, const APART: usize>(
        &self,
        dot: impl Dot,
        [row, column]: [usize; 2],
        sums: &mut [v128],
    ) -> usize {
        let apart = match APART {
            1 => 1,
            _ => self.window.dilations[1],
        };
        let step = self.window.strides[1];
        let mut weights = [[self.beginning; BROAD]; HIGH];
        for (high, weights) in weights.iter_mut().enumerate() {
            for (broad, weights) in weights.iter_mut().enumerate() {
                let tap = (row + high) * self.window.kernel[1] + column + broad;
                let bytes = &self.weights[tap * TAP..][..16];
                // SAFETY: sixteen bytes.
                *weights = unsafe { v128_load(bytes.as_ptr().cast()) };
            }
        }
        let span = (self.places - 1) * step + (BROAD - 1) * apart + 1;
        let first = [row, column] == [0, 0];
        let begin = |sum: v128| if first { self.beginning } else { sum };
        let rows = sums.chunks_exact_mut(self.places);
        for (mut sums, bundles) in rows.zip(self.bundles.chunks_exact(self.each)) {
            let mut pixels = [core::ptr::null::<v128>(); HIGH];
            for (pixels, bundle) in pixels.iter_mut().zip(&bundles[row..]) {
                let columns = &self.vectors[bundle + self.from + column * apart..];
                *pixels = columns[..span].as_ptr();
            }
            if APART == 1 && step == 1 {
                // Two places look at nearly the same columns.
                let (pairs, rest) = sums.as_chunks_mut::<2>();
                for pair in pairs {
                    let mut lanes = pair.map(begin);
                    for (pixels, weights) in pixels.iter_mut().zip(&weights) {
                        // SAFETY: `span` is up to the last place's last column.
                        let mut pixel = unsafe { **pixels };
                        for (broad, &weights) in weights.iter().enumerate() {
                            // SAFETY: likewise.
                            let next = unsafe { *pixels.add(broad + 1) };
                            lanes[0] = dot.dot(lanes[0], pixel, weights);
                            lanes[1] = dot.dot(lanes[1], next, weights);
                            pixel = next;
                        }
                        *pixels = pixels.wrapping_add(2);
                    }
                    *pair = lanes;
                }
                sums = rest;
            }
            for sum in sums {
                let mut lanes = begin(*sum);
                for (pixels, weights) in pixels.iter_mut().zip(&weights) {
                    for (broad, &weights) in weights.iter().enumerate() {
                        // SAFETY: likewise.
                        lanes = dot.dot(lanes, unsafe { *pixels.add(broad * apart) }, weights);
                    }
                    *pixels = pixels.wrapping_add(step);
                }
                *sum = lanes;
            }
        }
        BROAD
    }
}
