//! Channels first to channels last and back, converting on the way.
//!
//! Tile by tile: a tile is read in runs, turned in registers, and written in runs.

use super::convert::{Change, Dequantize, MANY, Quantize, Same, Scale};
use super::error::{Error, at_least, span};

/// [pixels, channels] to [channels, pixels]: channels first. A pixel begins every `stride` values.
pub fn to_channels_first<T: Copy + Default>(
    values: &[T],
    stride: usize,
    size: [usize; 2],
    output: &mut [T],
) -> Result<(), Error> {
    to_first(values, stride, size, output, Same)
}

/// [channels, pixels] to [pixels, channels]: channels last. A channel begins every `apart` values, a pixel every `stride` values
/// of the output.
pub fn to_channels_last<T: Copy + Default>(
    values: &[T],
    apart: usize,
    size: [usize; 2],
    output: &mut [T],
    stride: usize,
) -> Result<(), Error> {
    to_last(values, apart, size, (output, stride), Same)
}

/// The same, quantizing on the way: floats with channels first come in.
pub fn quantize_to_channels_last(
    values: &[f32],
    apart: usize,
    size: [usize; 2],
    to: Scale,
    output: &mut [u8],
    stride: usize,
) -> Result<(), Error> {
    to_last(values, apart, size, (output, stride), Quantize::new(to))
}

/// Channels first, dequantizing on the way: floats with channels first come out.
pub fn dequantize_to_channels_first(
    values: &[u8],
    stride: usize,
    size: [usize; 2],
    from: Scale,
    output: &mut [f32],
) -> Result<(), Error> {
    to_first(values, stride, size, output, Dequantize::new(from))
}

/// Channels first, what is written made of what is turned.
fn to_first<F: Copy + Default, T: Copy>(
    values: &[F],
    stride: usize,
    [pixels, channels]: [usize; 2],
    output: &mut [T],
    made: impl Change<F, T>,
) -> Result<(), Error> {
    let read = Rows {
        stride,
        length: channels,
    };
    let write = Rows {
        stride: pixels,
        length: pixels,
    };
    turn((values, read), (output, write), true, Same, made)
}

/// Channels last, what is turned made of what is read.
fn to_last<F: Copy, T: Copy + Default>(
    values: &[F],
    apart: usize,
    [channels, pixels]: [usize; 2],
    (output, stride): (&mut [T], usize),
    made: impl Change<F, T>,
) -> Result<(), Error> {
    let read = Rows {
        stride: apart,
        length: pixels,
    };
    let write = Rows {
        stride,
        length: channels,
    };
    turn((values, read), (output, write), false, made, Same)
}

/// How many rows and columns a tile has: as many bytes as a vector.
const TILE: usize = MANY;

/// The colours of a picture, whose pixels lie one behind the other.
const COLOURS: usize = 3;

/// How many pixels are turned before the next channels: so many that each page of memory that a channel lies in is come to once, so few
/// that the pixels, which are touched again for each sixteen channels, are near.
const PIXELS: usize = 64 * TILE;

/// Rows of a matrix that lie `stride` values apart.
#[derive(Clone, Copy)]
struct Rows {
    stride: usize,
    length: usize,
}

/// Turns rows into columns; `pixels` says whether the rows that are read are pixels. What is turned is what `before` makes of
/// the values; `after` makes of that what is written.
fn turn<F: Copy, M: Copy + Default, T: Copy>(
    (values, read): (&[F], Rows),
    (output, write): (&mut [T], Rows),
    pixels: bool,
    before: impl Change<F, M>,
    after: impl Change<M, T>,
) -> Result<(), Error> {
    let (tall, wide) = (write.length, read.length);
    at_least(
        "the input",
        values.len(),
        span("the input", tall, read.stride, wide)?,
    )?;
    at_least(
        "the output",
        output.len(),
        span("the output", wide, write.stride, tall)?,
    )?;
    let mut tile = [[M::default(); TILE]; TILE];
    let mut turned = tile;
    for (first, begin) in tiles(tall, wide, pixels) {
        let (rows, columns) = (TILE.min(tall - first), TILE.min(wide - begin));
        for (row, tile) in tile[..rows].iter_mut().enumerate() {
            let from = &values[(first + row) * read.stride + begin..];
            // Of a narrow tile what is read beyond it is turned, too, and not written.
            match from.first_chunk::<TILE>() {
                Some(whole) => {
                    *tile = before.many(whole);
                }
                None => {
                    for (to, &from) in tile.iter_mut().zip(&from[..columns]) {
                        *to = before.one(from);
                    }
                }
            }
        }
        if rows == COLOURS && write.stride == COLOURS && columns == TILE {
            let mixed = interleave(&tile);
            let to = &mut output[begin * COLOURS..][..COLOURS * TILE];
            for (to, made) in to.as_chunks_mut::<TILE>().0.iter_mut().zip(&mixed) {
                *to = after.many(made);
            }
            continue;
        }
        // Of few rows most of a tile would be turned for nothing.
        if rows < TILE / 2 {
            for column in 0..columns {
                let to = &mut output[(begin + column) * write.stride + first..][..rows];
                for (to, tile) in to.iter_mut().zip(&tile) {
                    *to = after.one(tile[column]);
                }
            }
            continue;
        }
        transpose(&tile, &mut turned);
        for (column, made) in turned[..columns].iter().enumerate() {
            let to = &mut output[(begin + column) * write.stride + first..];
            match to.first_chunk_mut::<TILE>() {
                Some(whole) if rows == TILE => {
                    *whole = after.many(made);
                }
                _ => {
                    for (to, &from) in to[..rows].iter_mut().zip(made) {
                        *to = after.one(from);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The first row and column of each tile.
fn tiles(tall: usize, wide: usize, pixels: bool) -> impl Iterator<Item = (usize, usize)> {
    let (long, short) = if pixels { (tall, wide) } else { (wide, tall) };
    let blocks = (0..long).step_by(PIXELS);
    let tiles = blocks.flat_map(move |block| {
        let end = long.min(block + PIXELS);
        let bands = (0..short).step_by(TILE);
        bands.flat_map(move |band| (block..end).step_by(TILE).map(move |at| (at, band)))
    });
    tiles.map(move |(at, band)| if pixels { (at, band) } else { (band, at) })
}

/// The first three rows of a tile as pixels of three colours.
#[inline(always)]
fn interleave<T: Copy + Default>(tile: &[[T; TILE]; TILE]) -> [[T; TILE]; COLOURS] {
    let mut mixed = [[T::default(); TILE]; COLOURS];
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<T>() == 1 {
        let (tile, to) = (std::ptr::from_ref(tile), std::ptr::from_mut(&mut mixed));
        // SAFETY: as large and as aligned, and any bytes that are `T`s in one order are in another.
        unsafe { interleave_bytes(&*tile.cast(), &mut *to.cast()) };
        return mixed;
    }
    let flat = mixed.as_flattened_mut();
    for (pixel, colours) in flat.as_chunks_mut::<COLOURS>().0.iter_mut().enumerate() {
        *colours = std::array::from_fn(|colour| tile[colour][pixel]);
    }
    mixed
}

/// Two shuffles a vector: the first brings two colours together, the second the third into their gaps.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn interleave_bytes(tile: &[[u8; TILE]; TILE], mixed: &mut [[u8; TILE]; COLOURS]) {
    use core::arch::wasm32::{u8x16_shuffle, v128_load, v128_store};
    // SAFETY: sixteen bytes each.
    let load = |row: usize| unsafe { v128_load(tile[row].as_ptr().cast()) };
    let (r, g, b) = (load(0), load(1), load(2));
    let first = u8x16_shuffle::<0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5>(r, g);
    let first = u8x16_shuffle::<0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15>(first, b);
    let second = u8x16_shuffle::<21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26>(r, g);
    let second =
        u8x16_shuffle::<0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15>(second, b);
    let third = u8x16_shuffle::<0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0>(r, g);
    let third = u8x16_shuffle::<26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31>(third, b);
    for (to, vector) in mixed.iter_mut().zip([first, second, third]) {
        // SAFETY: as above.
        unsafe { v128_store(to.as_mut_ptr().cast(), vector) };
    }
}

/// Writes the columns of a tile as rows. Not by value: a copy of so many bytes would be the engine's `memory.copy`, a call.
#[inline(always)]
fn transpose<T: Copy>(tile: &[[T; TILE]; TILE], turned: &mut [[T; TILE]; TILE]) {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<T>() == 1 {
        let (tile, turned) = (std::ptr::from_ref(tile), std::ptr::from_mut(turned));
        // SAFETY: as large and as aligned, and any bytes that are `T`s in one order are in another.
        return unsafe { transpose_bytes(&*tile.cast(), &mut *turned.cast()) };
    }
    for (column, row) in turned.iter_mut().enumerate() {
        *row = std::array::from_fn(|at| tile[at][column]);
    }
}

/// Four rounds, each of which interleaves a row with the one eight further on. Written out, since of a loop over sixteen vectors the
/// compiler makes one over memory, which takes three times as long.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn transpose_bytes(tile: &[[u8; TILE]; TILE], turned: &mut [[u8; TILE]; TILE]) {
    use core::arch::wasm32::{u8x16_shuffle, v128, v128_load, v128_store};
    #[inline(always)]
    fn first(a: v128, b: v128) -> v128 {
        u8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b)
    }
    #[inline(always)]
    fn second(a: v128, b: v128) -> v128 {
        u8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b)
    }
    macro_rules! round {
        ($rows:ident, $($half:literal)*) => {
            [$(first($rows[$half], $rows[$half + 8]), second($rows[$half], $rows[$half + 8])),*]
        };
    }
    macro_rules! each {
        ($does:expr; $($row:literal)*) => { [$($does($row)),*] };
    }
    // SAFETY: sixteen bytes each.
    let load = |row: usize| unsafe { v128_load(tile[row].as_ptr().cast()) };
    let rows: [v128; TILE] = each!(load; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let rows = round!(rows, 0 1 2 3 4 5 6 7);
    let rows = round!(rows, 0 1 2 3 4 5 6 7);
    let rows = round!(rows, 0 1 2 3 4 5 6 7);
    let rows = round!(rows, 0 1 2 3 4 5 6 7);
    // SAFETY: as above.
    let mut store = |row: usize| unsafe { v128_store(turned[row].as_mut_ptr().cast(), rows[row]) };
    each!(store; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}
