//! Row tiling of products with 16-bit inputs or outputs, so that intermediate floats stay in a near
//! cache.

use std::ops::Range;

use octet_kernels::int8::{self as kernels, Error, Grid, Target};

use super::weighted::{ProductEpilogue, WeightedProduct, floats};
use crate::error::ProgramError;
use crate::program::instruction::InstructionKernel;
use crate::program::slices::{InputSlice, OutputSlice, bytes_of};

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
pub(crate) fn rounded_to_grid(
    weighted: &WeightedProduct,
    input: (&[u8], u8),
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [f32], &ProductEpilogue),
    grid: Grid,
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

/// A product of 16-bit integers as two products of their bytes, which are then combined.
pub(crate) struct Int16Product {
    pub(crate) weighted: WeightedProduct,
    pub(crate) bias: Option<Vec<i32>>,
    /// Zero points and factors for the high and the low bytes, in this order.
    pub(crate) zero_points: [u8; 2],
    pub(crate) epilogues: [ProductEpilogue; 2],
    pub(crate) to: CombinedOutput,
}

/// Output of the combined products.
pub(crate) enum CombinedOutput {
    Bytes(Target),
    /// Reals, rounded to a grid if there is one.
    Reals(Option<Grid>),
}

/// The products of high and low bytes, combined by `join`.
fn combined<T: Send>(
    product: &Int16Product,
    inputs: &[InputSlice],
    output: &mut [T],
    join: impl Fn([&[f32]; 2], &mut [T]) -> Result<(), Error> + Sync,
) -> Result<(), ProgramError> {
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
    })?;
    Ok(())
}

impl InstructionKernel for Int16Product {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        match self.to {
            CombinedOutput::Bytes(to) => {
                combined(self, inputs, output.bytes()?, |[high, low], output| {
                    kernels::join_bytes(high, low, to, output)
                })
            }
            CombinedOutput::Reals(grid) => {
                combined(self, inputs, output.floats()?, |[high, low], output| {
                    kernels::join(high, low, grid, output)
                })
            }
        }
    }

    fn form(&self) -> Option<String> {
        Some(self.weighted.form())
    }
}
