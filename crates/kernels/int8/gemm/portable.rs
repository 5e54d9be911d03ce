//! The tile kernel in scalar loops that the compiler can vectorize.

use super::super::output::Output;
use super::{Block, MR, NR, Weights, narrow};

/// Multiplies a block.
pub(super) fn multiply(block: &Block, weights: &Weights, output: Output) {
    multiply_with(block, weights, output, |rows, packed, sums| {
        tile(rows, packed, sums, |pair| pair);
    });
}

/// Multiplies a block with sums of two products that are cut off at 16 bits, as `vpmaddubsw` does.
pub(super) fn multiply_cut_pairs(block: &Block, weights: &Weights, output: Output) {
    multiply_with(block, weights, output, |rows, packed, sums| {
        tile(rows, packed, sums, |pair| {
            pair.clamp(i16::MIN.into(), i16::MAX.into())
        });
    });
}

/// Loops over the tiles. `tile` receives the rows' bytes and the tile's weights, and adds to the
/// accumulators.
#[inline(always)]
pub(super) fn multiply_with(
    block: &Block,
    weights: &Weights,
    mut output: Output,
    tile: impl Fn([&[u8]; MR], &[u8], &mut [[i32; NR]; MR]),
) {
    if weights.narrow {
        return narrow::multiply(block, weights, output);
    }
    let row_bytes = weights.steps() * 4;
    let tile_bytes = row_bytes * NR;
    for first_column in block.columns.clone().step_by(NR) {
        let columns = NR.min(block.columns.end - first_column);
        let at = first_column - block.columns.start;
        let packed = &weights.packed[first_column / NR * tile_bytes..][..tile_bytes];
        let mut initial = [0; NR];
        initial.copy_from_slice(&block.initial[at..][..NR]);
        for first_row in (0..block.rows).step_by(MR) {
            let rows = MR.min(block.rows - first_row);
            let mut sums = [initial; MR];
            if let Some(factors) = weights.row_factors.get(first_column..first_column + NR) {
                for (sums, &row_sum) in sums.iter_mut().zip(&block.row_sums[first_row..]) {
                    for (sum, &factor) in sums.iter_mut().zip(factors) {
                        *sum = sum.wrapping_add(factor.wrapping_mul(row_sum));
                    }
                }
            }
            // Missing rows repeat the last one; their results are discarded.
            let row = |row: usize| {
                &block.values[(first_row + row.min(rows - 1)) * block.stride..][..row_bytes]
            };
            tile([row(0), row(1), row(2), row(3)], packed, &mut sums);
            output.put_tile([first_row, at], &sums[..rows], columns);
        }
    }
}

/// Epilogue of one tile's columns, for any row.
#[cfg(not(target_arch = "wasm32"))]
pub(in crate::int8) struct Epilogue<'o, 'a> {
    output: &'o mut Output<'a>,
    column: usize,
    columns: usize,
}

#[cfg(not(target_arch = "wasm32"))]
impl<'o, 'a> Epilogue<'o, 'a> {
    pub(in crate::int8) fn new(output: &'o mut Output<'a>, column: usize, columns: usize) -> Self {
        Epilogue {
            output,
            column,
            columns,
        }
    }

    /// Applies the epilogue to one row of sums.
    #[inline(always)]
    pub(in crate::int8) fn sums(&mut self, row: usize, sums: &[i32; NR]) {
        let tile = core::slice::from_ref(sums);
        self.output.put_tile([row, self.column], tile, self.columns);
    }
}

/// Adds the pairs of products of two depths. `cut` changes the sum of a pair.
#[inline(always)]
fn tile(
    rows: [&[u8]; MR],
    packed: &[u8],
    sums: &mut [[i32; NR]; MR],
    cut: impl Fn(i32) -> i32 + Copy,
) {
    for (row, sums) in rows.into_iter().zip(sums) {
        let steps = row.as_chunks::<4>().0.iter();
        for (step, weights) in steps.zip(packed.as_chunks::<{ NR * 4 }>().0) {
            let [first, second] = [[step[0], step[1]], [step[2], step[3]]]
                .map(|bytes| i32::from(i16::from_le_bytes(bytes)));
            for (column, sum) in sums.iter_mut().enumerate() {
                let [a, b] = [0, 2].map(|at| {
                    let bytes = [weights[column * 4 + at], weights[column * 4 + at + 1]];
                    i32::from(i16::from_le_bytes(bytes))
                });
                *sum = sum.wrapping_add(cut(first * a + second * b));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Isa;
    use super::super::super::shape::Rows;
    use super::super::{WeightLayout, Weights, gemm};
    use super::Output;

    /// The sums of one row with weights in columns.
    fn sums(isa: Isa, row: &[u8], columns: &[&[i8]]) -> Vec<i32> {
        let (depth, values) = (row.len(), columns.concat());
        let layout = WeightLayout::ColumnAfterColumn;
        let weights =
            Weights::pack(isa, &values, layout, [depth, columns.len()], &[]).expect("a good shape");
        let rows = Rows {
            values: row,
            count: 1,
            stride: depth,
            zero_point: 3,
        };
        let mut found = vec![0; columns.len()];
        let output = Output::Accumulators {
            values: &mut found,
            stride: columns.len(),
        };
        gemm(&rows, &weights, None, output).expect("good rows");
        found
    }

    #[test]
    fn pairs_of_neighbours_are_cut_off_and_nothing_else() {
        let row = [255, 255, 0, 255, 200];
        let columns: [&[i8]; 4] = [
            &[127, 127, 0, 127, 100],
            &[-128, -128, 0, 1, 0],
            &[64, 64, 127, 127, 127],
            &[127, 0, 127, 0, 127],
        ];
        let exact = sums(Isa::Portable, &row, &columns);
        // 2 · 255 · 127 is 64,770, and −2 · 255 · 128 is −65,280.
        let cut = [32_767 - 64_770, 65_280 - 32_768, 0, 0];
        let expected: Vec<i32> = exact.iter().zip(cut).map(|(sum, cut)| sum + cut).collect();
        assert_eq!(sums(Isa::CutPairs, &row, &columns), expected);
    }

    #[test]
    fn few_columns_and_deep_rows_are_cut_off_too() {
        let (row, column) = ([255; 64], [127; 64]);
        let found = sums(Isa::CutPairs, &row, &[&column]);
        assert_eq!(found, [32 * 32_767 - 3 * 64 * 127]);
    }
}
