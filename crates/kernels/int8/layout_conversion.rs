//! Conversion between NCHW and NHWC, with optional quantization or dequantization.
//!
//! Tiles are read in runs, transposed in registers, and written in runs.

use super::convert::{Convert, Dequantize, Identity, LANES, Quantize};
use super::error::{Error, at_least, span};
use super::scale::Scale;

/// NHWC to NCHW: [pixels, channels] to [channels, pixels]. Pixels are `stride` values apart.
pub fn to_channels_first<T: Copy + Default>(
    values: &[T],
    stride: usize,
    size: [usize; 2],
    output: &mut [T],
) -> Result<(), Error> {
    to_nchw(values, stride, size, output, Identity)
}

/// NCHW to NHWC: [channels, pixels] to [pixels, channels]. Input channels are `channel_stride`
/// values apart, output pixels `stride`.
pub fn to_channels_last<T: Copy + Default>(
    values: &[T],
    channel_stride: usize,
    size: [usize; 2],
    output: &mut [T],
    stride: usize,
) -> Result<(), Error> {
    to_nhwc(values, channel_stride, size, (output, stride), Identity)
}

/// NCHW floats to NHWC bytes, quantized.
pub fn quantize_to_channels_last(
    values: &[f32],
    channel_stride: usize,
    size: [usize; 2],
    to: Scale,
    output: &mut [u8],
    stride: usize,
) -> Result<(), Error> {
    to_nhwc(
        values,
        channel_stride,
        size,
        (output, stride),
        Quantize::new(to),
    )
}

/// NHWC bytes to NCHW floats, dequantized.
pub fn dequantize_to_channels_first(
    values: &[u8],
    stride: usize,
    size: [usize; 2],
    from: Scale,
    output: &mut [f32],
) -> Result<(), Error> {
    to_nchw(values, stride, size, output, Dequantize::new(from))
}

/// NHWC to NCHW, converting after the transpose.
fn to_nchw<F: Copy + Default, T: Copy>(
    values: &[F],
    stride: usize,
    [pixels, channels]: [usize; 2],
    output: &mut [T],
    conversion: impl Convert<F, T>,
) -> Result<(), Error> {
    let read = RowStride {
        stride,
        length: channels,
    };
    let write = RowStride {
        stride: pixels,
        length: pixels,
    };
    convert_layout((values, read), (output, write), true, Identity, conversion)
}

/// NCHW to NHWC, converting before the transpose.
fn to_nhwc<F: Copy, T: Copy + Default>(
    values: &[F],
    channel_stride: usize,
    [channels, pixels]: [usize; 2],
    (output, stride): (&mut [T], usize),
    conversion: impl Convert<F, T>,
) -> Result<(), Error> {
    let read = RowStride {
        stride: channel_stride,
        length: pixels,
    };
    let write = RowStride {
        stride,
        length: channels,
    };
    convert_layout((values, read), (output, write), false, conversion, Identity)
}

/// Rows and columns of a tile: the bytes of a vector.
const TILE: usize = LANES;

/// Channels of an RGB picture without padding.
const RGB: usize = 3;

/// Pixels transposed before the next channels. Large enough to visit each page of a channel once.
/// Small enough to keep the pixels in cache, since every sixteen channels touch them again.
const PIXEL_RUN: usize = 64 * TILE;

/// Rows of a matrix, `stride` values apart.
#[derive(Clone, Copy)]
struct RowStride {
    stride: usize,
    length: usize,
}

/// Transposes a matrix. `pixels` is true if the input rows are pixels. `before` converts values
/// before the transpose, `after` behind it.
fn convert_layout<F: Copy, M: Copy + Default, T: Copy>(
    (values, read): (&[F], RowStride),
    (output, write): (&mut [T], RowStride),
    pixels: bool,
    before: impl Convert<F, M>,
    after: impl Convert<M, T>,
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
    let mut transposed = tile;
    for (first, begin) in tiles(tall, wide, pixels) {
        let (rows, columns) = (TILE.min(tall - first), TILE.min(wide - begin));
        for (row, tile) in tile[..rows].iter_mut().enumerate() {
            let from = &values[(first + row) * read.stride + begin..];
            // A narrow tile also transposes values beyond its columns, which are not written.
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
        if rows == RGB && write.stride == RGB && columns == TILE {
            let interleaved = interleave(&tile);
            let to = &mut output[begin * RGB..][..RGB * TILE];
            for (to, conversion) in to.as_chunks_mut::<TILE>().0.iter_mut().zip(&interleaved) {
                *to = after.many(conversion);
            }
            continue;
        }
        // With few rows, most of the tile would be empty.
        if rows < TILE / 2 {
            for column in 0..columns {
                let to = &mut output[(begin + column) * write.stride + first..][..rows];
                for (to, tile) in to.iter_mut().zip(&tile) {
                    *to = after.one(tile[column]);
                }
            }
            continue;
        }
        transpose(&tile, &mut transposed);
        for (column, conversion) in transposed[..columns].iter().enumerate() {
            let to = &mut output[(begin + column) * write.stride + first..];
            match to.first_chunk_mut::<TILE>() {
                Some(whole) if rows == TILE => {
                    *whole = after.many(conversion);
                }
                _ => {
                    for (to, &from) in to[..rows].iter_mut().zip(conversion) {
                        *to = after.one(from);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the first row and column of each tile.
fn tiles(tall: usize, wide: usize, pixels: bool) -> impl Iterator<Item = (usize, usize)> {
    let (long, short) = if pixels { (tall, wide) } else { (wide, tall) };
    let blocks = (0..long).step_by(PIXEL_RUN);
    let tiles = blocks.flat_map(move |block| {
        let end = long.min(block + PIXEL_RUN);
        let bands = (0..short).step_by(TILE);
        bands.flat_map(move |band| (block..end).step_by(TILE).map(move |at| (at, band)))
    });
    tiles.map(move |(at, band)| if pixels { (at, band) } else { (band, at) })
}

/// Interleaves the first three rows of a tile into RGB pixels.
#[inline(always)]
fn interleave<T: Copy + Default>(tile: &[[T; TILE]; TILE]) -> [[T; TILE]; RGB] {
    let mut interleaved = [[T::default(); TILE]; RGB];
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<T>() == 1 {
        let (tile, to) = (
            std::ptr::from_ref(tile),
            std::ptr::from_mut(&mut interleaved),
        );
        // SAFETY: `T` is one byte wide and aligned, and any permutation of valid `T`s is valid.
        unsafe { interleave_bytes(&*tile.cast(), &mut *to.cast()) };
        return interleaved;
    }
    let flat = interleaved.as_flattened_mut();
    for (pixel, pixel_values) in flat.as_chunks_mut::<RGB>().0.iter_mut().enumerate() {
        *pixel_values = std::array::from_fn(|channel| tile[channel][pixel]);
    }
    interleaved
}

/// Two shuffles per vector: the first combines two channels, the second inserts the third.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn interleave_bytes(tile: &[[u8; TILE]; TILE], interleaved: &mut [[u8; TILE]; RGB]) {
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
    for (to, vector) in interleaved.iter_mut().zip([first, second, third]) {
        // SAFETY: as above.
        unsafe { v128_store(to.as_mut_ptr().cast(), vector) };
    }
}

/// Transposes a tile. Passed by reference: a copy of this size would be a call to `memory.copy`.
#[inline(always)]
fn transpose<T: Copy>(tile: &[[T; TILE]; TILE], transposed: &mut [[T; TILE]; TILE]) {
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if size_of::<T>() == 1 {
        let (tile, transposed) = (std::ptr::from_ref(tile), std::ptr::from_mut(transposed));
        // SAFETY: `T` is one byte wide and aligned, and any permutation of valid `T`s is valid.
        return unsafe { transpose_bytes(&*tile.cast(), &mut *transposed.cast()) };
    }
    for (column, row) in transposed.iter_mut().enumerate() {
        *row = std::array::from_fn(|at| tile[at][column]);
    }
}

/// Four rounds, each of which interleaves row i with row i + 8.
///
/// Written out: the compiler keeps a loop over sixteen vectors in memory, which takes three times
/// as long.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn transpose_bytes(tile: &[[u8; TILE]; TILE], transposed: &mut [[u8; TILE]; TILE]) {
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
    let mut store =
        |row: usize| unsafe { v128_store(transposed[row].as_mut_ptr().cast(), rows[row]) };
    each!(store; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}
