//! The sums and differences before the products and behind them. The module above derives them.

use super::super::super::gemm::WIDE;
use super::lanes::{Sums, Words};
use super::{IN, OUT, PLACES};

/// The inverse of nine among the i32 that wrap.
pub(super) const NINTH: i32 = 0x38E3_8E39;

/// A window's nine weights less their zero, at most 255 from it, at the places of a tile: at most 49 times as much.
pub(super) fn of_weights(window: &[i8; 9], zero: i32) -> [i16; PLACES] {
    let [a, b, c, d, e, f, g, h, i] = window.map(|weight| i32::from(weight) - zero);
    let (left, middle, right) = (six([a, d, g]), six([b, e, h]), six([c, f, i]));
    let mut places = [0; PLACES];
    let rows = left.into_iter().zip(middle).zip(right);
    for (places, ((a, b), c)) in places.as_chunks_mut::<IN>().0.iter_mut().zip(rows) {
        *places = six([a, b, c]).map(|sum| sum as i16);
    }
    places
}

/// G' times three weights.
#[inline(always)]
fn six([a, b, c]: [i32; 3]) -> [i32; IN] {
    let (ends, far) = (a + c, a + 4 * c);
    [6 * a, -ends - b, b - ends, far + 2 * b, far - 2 * b, 6 * c]
}

/// Six values of a row or column of the image.
#[inline(always)]
fn of_image([d0, d1, d2, d3, d4, d5]: [Words; IN]) -> [Words; IN] {
    let (e, f) = (d4.sub(d2.left(2)), d3.sub(d1.left(2)));
    let (g, h) = (d4.sub(d2), d3.sub(d1).left(1));
    [
        d0.sub(d2).left(2).add(g),
        e.add(f),
        e.sub(f),
        g.add(h),
        g.sub(h),
        d5.sub(d3).sub(h.left(1)),
    ]
}

/// Four values from six products, times 24, 12, 6 and 6.
#[inline(always)]
fn of_products([m0, m1, m2, m3, m4, m5]: [Sums; IN]) -> [Sums; OUT] {
    let (s, d) = (m1.add(m2), m1.sub(m2));
    let (p, q) = (m3.add(m4), m3.sub(m4));
    [
        m0.add(s.left(2)).add(p),
        d.left(1).add(q),
        s.add(p),
        d.add(q.left(1)).add(m5),
    ]
}

/// A tile's pixels to its places, each so many bytes after the one before.
///
/// # Safety
///
/// Each pixel has that many channels, at least eight, and each place two bytes a channel.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn spread(
    pixels: &[*const u8; PLACES],
    channels: usize,
    to: *mut u8,
    apart: usize,
) {
    let mut channel = 0;
    loop {
        // SAFETY: eight channels of pixels and places, by the contract; the last eight may overlap those before.
        unsafe {
            let to = to.add(channel * 2);
            let columns = [
                of_column(pixels, 0, channel),
                of_column(pixels, 1, channel),
                of_column(pixels, 2, channel),
                of_column(pixels, 3, channel),
                of_column(pixels, 4, channel),
                of_column(pixels, 5, channel),
            ];
            put_row(&columns, 0, to, apart);
            put_row(&columns, 1, to, apart);
            put_row(&columns, 2, to, apart);
            put_row(&columns, 3, to, apart);
            put_row(&columns, 4, to, apart);
            put_row(&columns, 5, to, apart);
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
unsafe fn of_column(pixels: &[*const u8; PLACES], x: usize, channel: usize) -> [Words; IN] {
    // SAFETY: the caller's promise.
    unsafe {
        of_image([
            Words::of_bytes(pixels[x].add(channel)),
            Words::of_bytes(pixels[IN + x].add(channel)),
            Words::of_bytes(pixels[2 * IN + x].add(channel)),
            Words::of_bytes(pixels[3 * IN + x].add(channel)),
            Words::of_bytes(pixels[4 * IN + x].add(channel)),
            Words::of_bytes(pixels[5 * IN + x].add(channel)),
        ])
    }
}

/// # Safety
///
/// Sixteen bytes can be written at each of the places.
#[inline(always)]
unsafe fn put_row(columns: &[[Words; IN]; IN], y: usize, to: *mut u8, apart: usize) {
    let [a, b, c, d, e, f] = columns;
    let [a, b, c, d, e, f] = of_image([a[y], b[y], c[y], d[y], e[y], f[y]]);
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(y * IN * apart);
        a.store(to);
        b.store(to.add(apart));
        c.store(to.add(apart * 2));
        d.store(to.add(apart * 3));
        e.store(to.add(apart * 4));
        f.store(to.add(apart * 5));
    }
}

/// A tile's products, each place's so many sums after those of the one before, to the sums of its pixels.
///
/// # Safety
///
/// Each place has [`WIDE`] sums, and so have the beginnings.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn gather(
    products: *const i32,
    apart: usize,
    beginnings: &[i32],
    to: &mut [[i32; WIDE]; OUT * OUT],
) {
    for first in (0..WIDE).step_by(4) {
        // SAFETY: four of the sums of places, by the contract, and of as many beginnings and pixels.
        unsafe {
            let products = products.add(first);
            let columns = [
                of_places(products, apart),
                of_places(products.add(apart), apart),
                of_places(products.add(apart * 2), apart),
                of_places(products.add(apart * 3), apart),
                of_places(products.add(apart * 4), apart),
                of_places(products.add(apart * 5), apart),
            ];
            let beginnings = Sums::load(beginnings.as_ptr().add(first));
            let to = to.as_mut_ptr().cast::<i32>().add(first);
            put_pixels::<0, 6, 5, 4>(&columns, beginnings, to);
            put_pixels::<1, 5, 4, 3>(&columns, beginnings, to);
            put_pixels::<2, 4, 3, 2>(&columns, beginnings, to);
            put_pixels::<3, 4, 3, 2>(&columns, beginnings, to);
        }
    }
}

/// # Safety
///
/// Four sums can be read at each place of a column of them.
#[inline(always)]
unsafe fn of_places(products: *const i32, apart: usize) -> [Sums; OUT] {
    let row = apart * IN;
    // SAFETY: the caller's promise.
    unsafe {
        of_products([
            Sums::load(products),
            Sums::load(products.add(row)),
            Sums::load(products.add(row * 2)),
            Sums::load(products.add(row * 3)),
            Sums::load(products.add(row * 4)),
            Sums::load(products.add(row * 5)),
        ])
    }
}

/// A row of pixels: the ninth of its sums, halved as often as each needs it.
///
/// # Safety
///
/// Four sums can be written at each of the row's pixels.
#[inline(always)]
unsafe fn put_pixels<const Y: usize, const A: u32, const B: u32, const CD: u32>(
    columns: &[[Sums; OUT]; IN],
    beginnings: Sums,
    to: *mut i32,
) {
    let [a, b, c, d, e, f] = columns;
    let [a, b, c, d] = of_products([a[Y], b[Y], c[Y], d[Y], e[Y], f[Y]]);
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(Y * OUT * WIDE);
        a.scaled(NINTH, A).add(beginnings).store(to);
        b.scaled(NINTH, B).add(beginnings).store(to.add(WIDE));
        c.scaled(NINTH, CD).add(beginnings).store(to.add(WIDE * 2));
        d.scaled(NINTH, CD).add(beginnings).store(to.add(WIDE * 3));
    }
}
