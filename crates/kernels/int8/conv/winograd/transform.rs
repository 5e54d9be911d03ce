//! Input, weight and output transforms. The parent module derives them.

use super::super::super::gemm::NR;
use super::lanes::{I16x8, I32x4};
use super::{IN, OUT, POSITIONS};

/// The inverse of 9 modulo 2³².
pub(super) const INVERSE_OF_9: i32 = 0x38E3_8E39;

/// Transforms a 3 × 3 kernel minus its zero point, at most 255 from zero, to the positions of a
/// tile. Results are at most 49 times as large.
pub(super) fn transform_weights(window: &[i8; 9], zero: i32) -> [i16; POSITIONS] {
    let [a, b, c, d, e, f, g, h, i] = window.map(|weight| i32::from(weight) - zero);
    let (left, middle, right) = (
        weights_1d([a, d, g]),
        weights_1d([b, e, h]),
        weights_1d([c, f, i]),
    );
    let mut positions = [0; POSITIONS];
    let rows = left.into_iter().zip(middle).zip(right);
    for (positions, ((a, b), c)) in positions.as_chunks_mut::<IN>().0.iter_mut().zip(rows) {
        *positions = weights_1d([a, b, c]).map(|sum| sum as i16);
    }
    positions
}

/// Multiplies three weights by G'.
#[inline(always)]
fn weights_1d([a, b, c]: [i32; 3]) -> [i32; IN] {
    let (ends, far) = (a + c, a + 4 * c);
    [6 * a, -ends - b, b - ends, far + 2 * b, far - 2 * b, 6 * c]
}

/// Multiplies six input values by Bᵀ.
#[inline(always)]
fn input_1d([d0, d1, d2, d3, d4, d5]: [I16x8; IN]) -> [I16x8; IN] {
    let (e, f) = (d4.sub(d2.shl(2)), d3.sub(d1.shl(2)));
    let (g, h) = (d4.sub(d2), d3.sub(d1).shl(1));
    [
        d0.sub(d2).shl(2).add(g),
        e.add(f),
        e.sub(f),
        g.add(h),
        g.sub(h),
        d5.sub(d3).sub(h.shl(1)),
    ]
}

/// Multiplies six products by the scaled Aᵀ: four results, times 24, 12, 6 and 6.
#[inline(always)]
fn output_1d([m0, m1, m2, m3, m4, m5]: [I32x4; IN]) -> [I32x4; OUT] {
    let (s, d) = (m1.add(m2), m1.sub(m2));
    let (p, q) = (m3.add(m4), m3.sub(m4));
    [
        m0.add(s.shl(2)).add(p),
        d.shl(1).add(q),
        s.add(p),
        d.add(q.shl(1)).add(m5),
    ]
}

/// Transforms a tile's pixels. Positions are `position_stride` bytes apart.
///
/// # Safety
///
/// Each pixel has that many channels, at least eight, and each position two bytes per channel.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn transform_input(
    pixels: &[*const u8; POSITIONS],
    channels: usize,
    to: *mut u8,
    position_stride: usize,
) {
    let mut channel = 0;
    loop {
        // SAFETY: eight channels of pixels and positions, by the contract. The last eight may
        // overlap the previous ones.
        unsafe {
            let to = to.add(channel * 2);
            let columns = [
                input_column(pixels, 0, channel),
                input_column(pixels, 1, channel),
                input_column(pixels, 2, channel),
                input_column(pixels, 3, channel),
                input_column(pixels, 4, channel),
                input_column(pixels, 5, channel),
            ];
            store_row(&columns, 0, to, position_stride);
            store_row(&columns, 1, to, position_stride);
            store_row(&columns, 2, to, position_stride);
            store_row(&columns, 3, to, position_stride);
            store_row(&columns, 4, to, position_stride);
            store_row(&columns, 5, to, position_stride);
        }
        channel += 8;
        if channel >= channels {
            return;
        }
        channel = channel.min(channels - 8);
    }
}

/// # Safety
///
/// Each pixel has eight channels from this one on.
#[inline(always)]
unsafe fn input_column(pixels: &[*const u8; POSITIONS], x: usize, channel: usize) -> [I16x8; IN] {
    // SAFETY: the caller's promise.
    unsafe {
        input_1d([
            I16x8::load_u8(pixels[x].add(channel)),
            I16x8::load_u8(pixels[IN + x].add(channel)),
            I16x8::load_u8(pixels[2 * IN + x].add(channel)),
            I16x8::load_u8(pixels[3 * IN + x].add(channel)),
            I16x8::load_u8(pixels[4 * IN + x].add(channel)),
            I16x8::load_u8(pixels[5 * IN + x].add(channel)),
        ])
    }
}

/// # Safety
///
/// Sixteen bytes can be written at each of the positions.
#[inline(always)]
unsafe fn store_row(columns: &[[I16x8; IN]; IN], y: usize, to: *mut u8, position_stride: usize) {
    let [a, b, c, d, e, f] = columns;
    let [a, b, c, d, e, f] = input_1d([a[y], b[y], c[y], d[y], e[y], f[y]]);
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(y * IN * position_stride);
        a.store(to);
        b.store(to.add(position_stride));
        c.store(to.add(position_stride * 2));
        d.store(to.add(position_stride * 3));
        e.store(to.add(position_stride * 4));
        f.store(to.add(position_stride * 5));
    }
}

/// Transforms a tile's products to its pixels. Positions are `position_stride` sums apart.
///
/// # Safety
///
/// Each position has [`NR`] sums, and so do the initial accumulators.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn transform_output(
    products: *const i32,
    position_stride: usize,
    initial: &[i32],
    to: &mut [[i32; NR]; OUT * OUT],
) {
    for first in (0..NR).step_by(4) {
        // SAFETY: four sums of each position, by the contract, and as many accumulators and pixels.
        unsafe {
            let products = products.add(first);
            let columns = [
                output_column(products, position_stride),
                output_column(products.add(position_stride), position_stride),
                output_column(products.add(position_stride * 2), position_stride),
                output_column(products.add(position_stride * 3), position_stride),
                output_column(products.add(position_stride * 4), position_stride),
                output_column(products.add(position_stride * 5), position_stride),
            ];
            let initial = I32x4::load(initial.as_ptr().add(first));
            let to = to.as_mut_ptr().cast::<i32>().add(first);
            store_pixels::<0, 6, 5, 4>(&columns, initial, to);
            store_pixels::<1, 5, 4, 3>(&columns, initial, to);
            store_pixels::<2, 4, 3, 2>(&columns, initial, to);
            store_pixels::<3, 4, 3, 2>(&columns, initial, to);
        }
    }
}

/// # Safety
///
/// Four sums can be read at each position of a tile column.
#[inline(always)]
unsafe fn output_column(products: *const i32, position_stride: usize) -> [I32x4; OUT] {
    let row = position_stride * IN;
    // SAFETY: the caller's promise.
    unsafe {
        output_1d([
            I32x4::load(products),
            I32x4::load(products.add(row)),
            I32x4::load(products.add(row * 2)),
            I32x4::load(products.add(row * 3)),
            I32x4::load(products.add(row * 4)),
            I32x4::load(products.add(row * 5)),
        ])
    }
}

/// Writes a row of pixels: a ninth of each sum, shifted right by its remaining power of two.
///
/// # Safety
///
/// Four sums can be written at each of the row's pixels.
#[inline(always)]
unsafe fn store_pixels<const Y: usize, const A: u32, const B: u32, const CD: u32>(
    columns: &[[I32x4; OUT]; IN],
    initial: I32x4,
    to: *mut i32,
) {
    let [a, b, c, d, e, f] = columns;
    let [a, b, c, d] = output_1d([a[Y], b[Y], c[Y], d[Y], e[Y], f[Y]]);
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(Y * OUT * NR);
        a.mul_shr(INVERSE_OF_9, A).add(initial).store(to);
        b.mul_shr(INVERSE_OF_9, B).add(initial).store(to.add(NR));
        c.mul_shr(INVERSE_OF_9, CD)
            .add(initial)
            .store(to.add(NR * 2));
        d.mul_shr(INVERSE_OF_9, CD)
            .add(initial)
            .store(to.add(NR * 3));
    }
}
