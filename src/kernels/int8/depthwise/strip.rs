//! A strip of the output for the vector forms, four channels at a time: the weights of a few taps stay in registers while the
//! places go by.

use core::arch::wasm32::{i32x4_add, i32x4_splat, v128, v128_load};

use super::super::gemm::simd128::Dot;
use super::super::shape::Window;
use super::bundle::VECTORS;

/// Bytes of the weights of a tap of a bundle, for sixteen channels.
pub(super) const TAP: usize = VECTORS * 16;

/// Where the places of a row look.
///
/// A bundle holds every so manieth column of the image after the other, as dilated taps look at them: then those of a place
/// are neighbours, and two places as far apart as taps look at nearly the same ones.
pub(super) struct Places {
    /// Where each column of the image lies.
    pub(super) columns: Vec<u32>,
    /// Room for all of them.
    pub(super) wide: usize,
    /// How many places.
    pub(super) count: usize,
    /// Where the first tap of a place looks, and the place: of two that look at neighbours the first, and of others.
    pairs: Vec<[u32; 2]>,
    alone: Vec<[u32; 2]>,
    /// Places between two of a pair.
    apart: usize,
    /// Taps of a row of the kernel.
    taps: usize,
}

impl Places {
    /// So many neighbouring places.
    pub(super) fn new(window: &Window, count: usize) -> Places {
        let [taps, stride] = [window.kernel[1], window.strides[1]];
        let dilation = if taps == 1 { 1 } else { window.dilations[1] };
        let looked_at = columns(window, count);
        let long = looked_at.div_ceil(dilation);
        let lies = |column: usize| (column % dilation * long + column / dilation) as u32;
        let (mut pairs, mut alone) = (Vec::new(), Vec::new());
        // From one place to the next whose taps look at neighbours of what its own do.
        let apart = (1..=dilation).find(|apart| apart * stride == dilation);
        for place in 0..count {
            let entry = [lies(place * stride), place as u32];
            match apart {
                Some(apart) if place / apart % 2 == 1 => {}
                Some(apart) if place + apart < count => pairs.push(entry),
                _ => alone.push(entry),
            }
        }
        Places {
            columns: (0..looked_at).map(lies).collect(),
            wide: long * dilation,
            count,
            pairs,
            alone,
            apart: apart.unwrap_or(0),
            taps,
        }
    }
}

/// Columns of the image that so many neighbouring places look at, with those between them.
pub(super) fn columns(window: &Window, places: usize) -> usize {
    (places - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilations[1] + 1
}

/// Four channels of some rows of the output, or of parts of them.
pub(super) struct Strip<'a> {
    pub(super) places: &'a Places,
    /// The columns of all bundles.
    pub(super) vectors: &'a [v128],
    /// Where those begin that each row of the output looks at, and how many these are.
    pub(super) bundles: &'a [usize],
    pub(super) each: usize,
    /// Where the one of padding only begins.
    pub(super) nothing: usize,
    /// Vectors further on for these channels.
    pub(super) from: usize,
    /// Tap after tap, [`TAP`] bytes from one to the next.
    pub(super) weights: &'a [u8],
    /// What the sums begin with.
    pub(super) beginning: v128,
}

impl Strip<'_> {
    /// Sums all taps of all places, a few at a time.
    #[inline(always)]
    pub(super) fn run(&self, dot: impl Dot, sums: &mut [v128]) {
        let wide = self.places.taps;
        if (self.each, wide) == (2, 3) {
            self.add::<2, 3, true>(dot, [0, 0], sums);
            return;
        }
        for row in 0..self.each {
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

    /// Adds the taps of `HIGH` bundles and `BROAD` columns of the kernel, and gives the latter. With the `FIRST` the sums begin.
    #[inline(always)]
    fn add<const HIGH: usize, const BROAD: usize, const FIRST: bool>(
        &self,
        dot: impl Dot,
        [row, column]: [usize; 2],
        sums: &mut [v128],
    ) -> usize {
        let places = self.places;
        let mut weights = [[self.beginning; BROAD]; HIGH];
        for (high, weights) in weights.iter_mut().enumerate() {
            for (broad, weights) in weights.iter_mut().enumerate() {
                let tap = (row + high) * places.taps + column + broad;
                let bytes = &self.weights[tap * TAP..][..16];
                // SAFETY: sixteen bytes.
                *weights = unsafe { v128_load(bytes.as_ptr().cast()) };
            }
        }
        let beginning = self.beginning;
        let (pairs, alone, apart) = (&places.pairs[..], &places.alone[..], places.apart);
        let rows = sums.chunks_exact_mut(places.count);
        for (sums, bundles) in rows.zip(self.bundles.chunks_exact(self.each)) {
            if HIGH == 1 && bundles[row] == self.nothing {
                // All places look at the same.
                let mut more = i32x4_splat(0);
                for &weights in weights.as_flattened() {
                    more = dot.dot(more, self.vectors[self.nothing], weights);
                }
                for sum in sums {
                    *sum = i32x4_add(more, if FIRST { beginning } else { *sum });
                }
                continue;
            }
            let mut bundled = [core::ptr::null::<v128>(); HIGH];
            for (bundled, from) in bundled.iter_mut().zip(&bundles[row..]) {
                let columns = &self.vectors[from + self.from..][..places.wide];
                *bundled = columns[column..].as_ptr();
            }
            let sums = sums.as_mut_ptr();
            // SAFETY: `Places` has entries of places below `count`, all of whose taps look at columns below `wide`.
            unsafe {
                for &[at, place] in pairs {
                    let sum = sums.add(place as usize);
                    let sums = [sum, sum.add(apart)];
                    let mut lanes = match FIRST {
                        true => [beginning; 2],
                        false => [*sums[0], *sums[1]],
                    };
                    for (bundled, weights) in bundled.iter().zip(&weights) {
                        let columns = bundled.add(at as usize);
                        let mut pixel = *columns;
                        for (broad, &weights) in weights.iter().enumerate() {
                            let next = *columns.add(broad + 1);
                            lanes[0] = dot.dot(lanes[0], pixel, weights);
                            lanes[1] = dot.dot(lanes[1], next, weights);
                            pixel = next;
                        }
                    }
                    *sums[0] = lanes[0];
                    *sums[1] = lanes[1];
                }
                for &[at, place] in alone {
                    let sum = sums.add(place as usize);
                    let mut lanes = if FIRST { beginning } else { *sum };
                    for (bundled, weights) in bundled.iter().zip(&weights) {
                        let columns = bundled.add(at as usize);
                        for (broad, &weights) in weights.iter().enumerate() {
                            lanes = dot.dot(lanes, *columns.add(broad), weights);
                        }
                    }
                    *sum = lanes;
                }
            }
        }
        BROAD
    }
}
