//! Row tiling of products with 16-bit inputs or outputs, so that intermediate floats stay in a near
//! cache.

use std::ops::Range;

use octet_kernels::int8::{self as kernels, Error};

use super::instruction::{CombinedOutput, Int16Product, ProductEpilogue, WeightedProduct};
use super::products::floats;
use super::slices::{InputSlice, bytes_of};

/// Floats per tile. Two products and their combination are three tiles, 96 KiB.
const TILE: usize = 1 << 13;

/// Calls `each` with the rows and the output of every tile.
fn for_tiles<T>(
    weighted: &WeightedProduct,
    rows: Range<usize>,
    output: &mut [T],
    mut each: impl FnMut(Range<usize>, &mut [T]) -> Result<(), Error>,
) -> Result<(), Error> {
    let row = weighted.row().max(1);
    let at_once = (TILE / row)
        .max(1)
        .next_multiple_of(weighted.rows_together());
    let mut first = rows.start;
    for output in output.chunks_mut(at_once * row) {
        let next = (first + at_once).min(rows.end);
        each(first..next, output)?;
        first = next;
    }
    Ok(())
}

/// A product of bytes whose float output is rounded to a 16-bit grid.
pub(super) fn rounded_to_grid(
    weighted: &WeightedProduct,
    input: (&[u8], u8),
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [f32], &ProductEpilogue),
    grid: kernels::Grid,
) -> Result<(), Error> {
    let width = weighted.width();
    weighted.split_rows(output, |image, rows, output| {
        for_tiles(weighted, rows, output, |rows, output| {
            let sink = floats(output, 0..width, epilogue);
            weighted.run(input, image, rows, bias, sink)?;
            kernels::snap_in_place(output, grid);
            Ok(())
        })
    })
}

/// The products of high and low bytes, combined by `join`.
fn combined<T: Send>(
    product: &Int16Product,
    inputs: &[InputSlice],
    output: &mut [T],
    join: impl Fn([&[f32]; 2], &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let weighted = &product.weighted;
    let input = [bytes_of(inputs, 0)?, bytes_of(inputs, 1)?];
    // Added once, in the product whose unit is that of the accumulator.
    let biases = [None, product.bias.as_deref()];
    let width = weighted.width();
    weighted.split_rows(output, |image, rows, output| {
        let mut reals = [Vec::new(), Vec::new()];
        for_tiles(weighted, rows, output, |rows, output| {
            for (at, reals) in reals.iter_mut().enumerate() {
                reals.resize(output.len(), 0.0);
                let input = (input[at], product.zero_points[at]);
                let sink = floats(reals, 0..width, &product.epilogues[at]);
                weighted.run(input, image, rows.clone(), biases[at], sink)?;
            }
            join([&reals[0], &reals[1]], output)
        })
    })
}

pub(super) fn to_bytes(
    product: &Int16Product,
    inputs: &[InputSlice],
    output: &mut [u8],
) -> Result<(), Error> {
    let CombinedOutput::Bytes(to) = product.to else {
        return Err(Error::Zero {
            what: "a product with byte output",
        });
    };
    combined(product, inputs, output, |[high, low], output| {
        kernels::join_bytes(high, low, to, output)
    })
}

pub(super) fn to_floats(
    product: &Int16Product,
    inputs: &[InputSlice],
    output: &mut [f32],
) -> Result<(), Error> {
    let CombinedOutput::Reals(grid) = product.to else {
        return Err(Error::Zero {
            what: "a product with float output",
        });
    };
    combined(product, inputs, output, |[high, low], output| {
        kernels::join(high, low, grid, output)
    })
}
