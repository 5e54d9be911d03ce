//! Blocks of the columns of a matrix. Blocks from minimum and maximum are computed side by side: a
//! lane of a vector is a block.

use std::ops::Range;

use super::grid::{BlockGrid, Levels, from_low_and_high, greatest, least, nearest};
use super::{GridMethod, LONGEST, quantize_block};
use crate::LittleEndianFloats;
use crate::dispatch::vectorized;

/// Blocks that are computed side by side.
const LANES: usize = 16;

/// Columns that are read at a time: rows lie far apart in memory, so whole cache lines pay.
const STRIP: usize = 64;

type Row = [f32; LANES];

/// The computation of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockRule {
    /// Numbers in a block.
    pub size: usize,
    /// The integers.
    pub levels: Levels,
    /// The choice of scale and zero point.
    pub method: GridMethod,
    /// Rounds a scale to the type in which it is stored.
    pub rounded: fn(f32) -> f32,
}

impl BlockRule {
    /// Bytes of the integers of a block.
    pub fn bytes(&self) -> usize {
        self.size * usize::from(self.levels.bits) / 8
    }
}

/// The results of blocks.
pub struct BlockResults<'a> {
    /// Packed integers, one block after the other.
    pub integers: &'a mut [u8],
    /// Scales and zero points.
    pub grids: &'a mut [BlockGrid],
}

/// The results of columns, each with as many blocks.
pub struct BlockPlaces<'a> {
    /// One column after the other.
    pub results: BlockResults<'a>,
    /// Blocks of a column.
    pub blocks: usize,
    /// The first block of each column that is computed.
    pub first: usize,
}

/// Rows of a matrix, and the columns that are computed of it.
#[derive(Clone)]
pub struct MatrixRows<'a> {
    /// Whole rows.
    pub numbers: LittleEndianFloats<'a>,
    /// Numbers in a row.
    pub width: usize,
    /// The columns.
    pub columns: Range<usize>,
}

/// Quantizes blocks of columns. False if one of the numbers is infinite or NaN.
pub fn quantize_columns(
    matrix: &MatrixRows<'_>,
    rule: &BlockRule,
    places: &mut BlockPlaces<'_>,
) -> bool {
    vectorized!(quantize(matrix, rule, places))
}

#[inline(always)]
fn quantize(matrix: &MatrixRows<'_>, rule: &BlockRule, places: &mut BlockPlaces<'_>) -> bool {
    let rows = matrix.numbers.len() / matrix.width.max(1);
    let size = rule.size.clamp(1, LONGEST);
    let mut strip = vec![[0.0; STRIP]; size];
    let mut packed = vec![[0; LANES]; rule.bytes()];
    let results = &mut places.results;
    let mut all_finite = true;
    for (block, start) in (0..rows).step_by(size).enumerate() {
        let strip = &mut strip[..size.min(rows - start)];
        for first in (0..matrix.columns.len()).step_by(STRIP) {
            let width = STRIP.min(matrix.columns.len() - first);
            for (row, to) in (start..).zip(strip.iter_mut()) {
                let at = row * matrix.width + matrix.columns.start + first;
                matrix.numbers.read(at, &mut to[..width]);
            }
            for (group, lanes) in (0..width).step_by(LANES).enumerate() {
                let part = StripPart { strip, group };
                let at = LanePlaces {
                    first: (first + lanes) * places.blocks + places.first + block,
                    step: places.blocks,
                    count: LANES.min(width - lanes),
                };
                all_finite &= match rule.method {
                    GridMethod::Ends => side_by_side(part, &mut packed, rule, at, results),
                    _ => one_by_one(part, rule, at, results),
                };
            }
        }
    }
    all_finite
}

/// Quantizes the blocks of a contiguous column into packed bytes. False if one of its numbers is
/// infinite or NaN.
pub fn quantize_column(
    column: LittleEndianFloats<'_>,
    rule: &BlockRule,
    results: &mut BlockResults<'_>,
) -> bool {
    vectorized!(quantize_contiguous(column, rule, results))
}

#[inline(always)]
fn quantize_contiguous(
    column: LittleEndianFloats<'_>,
    rule: &BlockRule,
    results: &mut BlockResults<'_>,
) -> bool {
    let size = rule.size.clamp(1, LONGEST);
    let mut numbers = [0.0; LONGEST];
    let numbers = &mut numbers[..size];
    let mut strip = vec![[0.0; STRIP]; size];
    let mut packed = vec![[0; LANES]; rule.bytes()];
    let together = match rule.method {
        GridMethod::Ends => column.len() / size,
        _ => 0,
    };
    let mut all_finite = true;
    for first in (0..together).step_by(LANES) {
        let count = LANES.min(together - first);
        for lane in 0..count {
            column.read((first + lane) * size, numbers);
            for (row, &number) in strip.iter_mut().zip(numbers.iter()) {
                row[lane] = number;
            }
        }
        let part = StripPart {
            strip: &strip,
            group: 0,
        };
        let step = 1;
        let at = LanePlaces { first, step, count };
        all_finite &= side_by_side(part, &mut packed, rule, at, results);
    }
    for place in together..column.len().div_ceil(size) {
        let block = &mut numbers[..size.min(column.len() - place * size)];
        column.read(place * size, block);
        all_finite &= results.compute(block, rule, place);
    }
    all_finite
}

impl BlockResults<'_> {
    /// Computes a block by any method.
    #[inline(always)]
    fn compute(&mut self, block: &[f32], rule: &BlockRule, place: usize) -> bool {
        let bytes = &mut self.integers[place * rule.bytes()..][..rule.bytes()];
        let found = quantize_block(block, rule.levels, rule.method, rule.rounded, bytes);
        if let Some(grid) = found {
            self.grids[place] = grid;
        }
        found.is_some()
    }
}

/// Numbers of a strip that are computed side by side.
#[derive(Clone, Copy)]
struct StripPart<'a> {
    strip: &'a [[f32; STRIP]],
    /// Its place among the parts of `LANES` numbers.
    group: usize,
}

impl<'a> StripPart<'a> {
    #[inline(always)]
    fn rows(self) -> impl ExactSizeIterator<Item = &'a Row> {
        self.strip
            .iter()
            .map(move |row| &row.as_chunks().0[self.group])
    }
}

/// The places of the blocks in lanes.
#[derive(Clone, Copy)]
struct LanePlaces {
    /// The place of the first block.
    first: usize,
    /// From one block to the next.
    step: usize,
    /// Number of blocks.
    count: usize,
}

impl LanePlaces {
    /// The places, lane after lane.
    #[inline(always)]
    fn all(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |lane| self.first + lane * self.step)
    }
}

/// Computes the blocks of a part of a strip by any method.
#[inline(always)]
fn one_by_one(
    part: StripPart<'_>,
    rule: &BlockRule,
    at: LanePlaces,
    results: &mut BlockResults<'_>,
) -> bool {
    let mut gathered = [0.0; LONGEST];
    let gathered = &mut gathered[..part.strip.len()];
    let mut finite = true;
    for (lane, place) in at.all().enumerate() {
        for (to, row) in gathered.iter_mut().zip(part.rows()) {
            *to = row[lane];
        }
        finite &= results.compute(gathered, rule, place);
    }
    finite
}

/// Computes the blocks of a part of a strip from their minima and maxima. `packed` has the bytes of a
/// block.
#[inline(always)]
fn side_by_side(
    part: StripPart<'_>,
    packed: &mut [[u8; LANES]],
    rule: &BlockRule,
    at: LanePlaces,
    results: &mut BlockResults<'_>,
) -> bool {
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    // An infinite number times zero is NaN, and stays it.
    let mut zeros = [0.0; LANES];
    for row in part.rows() {
        for lane in 0..LANES {
            let value = row[lane];
            low[lane] = least(low[lane], value);
            high[lane] = greatest(high[lane], value);
            zeros[lane] += value * 0.0;
        }
    }
    let mut inverses = [0.0; LANES];
    let mut zero_points = [0.0; LANES];
    for (lane, place) in at.all().enumerate() {
        let grid = from_low_and_high([low[lane], high[lane]], rule.levels, rule.rounded);
        inverses[lane] = grid.inverse();
        zero_points[lane] = grid.zero_point;
        results.grids[place] = grid;
    }
    let highest = f32::from(rule.levels.highest());
    match rule.levels.bits {
        4 => pack::<4>(part, (&inverses, &zero_points), highest, packed),
        2 => pack::<2>(part, (&inverses, &zero_points), highest, packed),
        _ => pack::<8>(part, (&inverses, &zero_points), highest, packed),
    }
    let used = part.strip.len().div_ceil(usize::from(8 / rule.levels.bits));
    for (lane, place) in at.all().enumerate() {
        let bytes = &mut results.integers[place * rule.bytes()..][..rule.bytes()];
        for (to, row) in bytes.iter_mut().zip(&packed[..used]) {
            *to = row[lane];
        }
    }
    zeros[..at.count].iter().all(|zero| *zero == 0.0)
}

/// Computes the integers of a part of a strip, and packs those of a lane.
#[inline(always)]
fn pack<const BITS: usize>(
    part: StripPart<'_>,
    (inverses, zero_points): (&Row, &Row),
    highest: f32,
    packed: &mut [[u8; LANES]],
) {
    for (bytes, rows) in packed.iter_mut().zip(part.strip.chunks(8 / BITS)) {
        let mut sums = [0; LANES];
        for (place, row) in rows.iter().enumerate() {
            let row: &Row = &row.as_chunks().0[part.group];
            for lane in 0..LANES {
                let value = row[lane] * inverses[lane] + zero_points[lane];
                sums[lane] |= nearest(value, highest) << (place * BITS);
            }
        }
        *bytes = sums.map(|sum| sum as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes, zeros of both signs among them.
    fn numbers(count: usize) -> Vec<f32> {
        let number = |at: usize| match at % 7 {
            0 => 0.0,
            3 => -0.0,
            rest => (at as f32 * 0.73).sin() * f32::powi(10.0, rest as i32 - 4),
        };
        (0..count).map(number).collect()
    }

    #[test]
    fn columns_side_by_side_have_the_integers_of_their_blocks() {
        let (rows, width) = (75, 37);
        let values = numbers(rows * width);
        let bytes: Vec<[u8; 4]> = values.iter().map(|value| value.to_le_bytes()).collect();
        for (bits, symmetric) in [(2, false), (4, true), (4, false), (8, true), (8, false)] {
            for method in [GridMethod::Ends, GridMethod::Search] {
                let rule = BlockRule {
                    size: 32,
                    levels: Levels { bits, symmetric },
                    method,
                    rounded: |scale| scale,
                };
                let columns = 2..36;
                let mut integers = vec![0; columns.len() * 4 * rule.bytes()];
                let mut grids = vec![BlockGrid::default(); columns.len() * 4];
                let matrix = MatrixRows {
                    numbers: LittleEndianFloats::Float(&bytes),
                    width,
                    columns: columns.clone(),
                };
                let mut places = BlockPlaces {
                    results: BlockResults {
                        integers: &mut integers,
                        grids: &mut grids,
                    },
                    blocks: 4,
                    first: 1,
                };
                assert!(quantize_columns(&matrix, &rule, &mut places));
                for (index, column) in columns.enumerate() {
                    let whole: Vec<f32> = (0..rows).map(|r| values[r * width + column]).collect();
                    for (block, numbers) in whole.chunks(32).enumerate() {
                        let mut wanted = vec![0; rule.bytes()];
                        let (levels, rounded) = (rule.levels, rule.rounded);
                        let grid = quantize_block(numbers, levels, method, rounded, &mut wanted);
                        let at = index * 4 + block + 1;
                        assert_eq!(Some(grids[at]), grid, "{bits} {method:?}");
                        assert_eq!(&integers[at * rule.bytes()..][..rule.bytes()], wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_without_an_integer_are_found_in_every_lane() {
        let rule = BlockRule {
            size: 16,
            levels: Levels {
                bits: 4,
                symmetric: true,
            },
            method: GridMethod::Ends,
            rounded: |scale| scale,
        };
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 0..17 * 16 {
                let mut values = numbers(17 * 16);
                values[at] = bad;
                let bytes: Vec<[u8; 4]> = values.iter().map(|value| value.to_le_bytes()).collect();
                let matrix = MatrixRows {
                    numbers: LittleEndianFloats::Float(&bytes),
                    width: 17,
                    columns: 0..17,
                };
                let mut places = BlockPlaces {
                    results: BlockResults {
                        integers: &mut [0; 17 * 8],
                        grids: &mut [BlockGrid::default(); 17],
                    },
                    blocks: 1,
                    first: 0,
                };
                assert!(!quantize_columns(&matrix, &rule, &mut places), "{at}");
            }
        }
    }
}
