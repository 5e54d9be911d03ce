//! Blocks of the columns of a matrix.

use std::ops::Range;

use super::grid::{BlockGrid, Levels};
use super::lanes::{LANES, LanePlaces, STRIP, StripPart};
use super::{GridMethod, LONGEST, quantize_block};
use crate::LittleEndianFloats;
use crate::dispatch::vectorized;

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
                all_finite &= part.quantize(&mut packed, rule, at, results);
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

/// Scales and zero points of the blocks of a column. The scales are infinite if one of its numbers is
/// infinite or NaN.
pub fn column_grids(column: &[f32], rule: &BlockRule) -> Vec<BlockGrid> {
    let bytes: Vec<[u8; 4]> = column.iter().map(|value| value.to_le_bytes()).collect();
    let mut grids = vec![BlockGrid::default(); column.len().div_ceil(rule.size)];
    let mut results = BlockResults {
        integers: &mut vec![0; grids.len() * rule.bytes()],
        grids: &mut grids,
    };
    let finite = quantize_column(LittleEndianFloats::Float(&bytes), rule, &mut results);
    if !finite {
        grids.iter_mut().for_each(|grid| grid.scale = f32::INFINITY);
    }
    grids
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
    let together = column.len() / size;
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
        all_finite &= part.quantize(&mut packed, rule, at, results);
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
    pub(super) fn compute(&mut self, block: &[f32], rule: &BlockRule, place: usize) -> bool {
        let bytes = &mut self.integers[place * rule.bytes()..][..rule.bytes()];
        let found = quantize_block(block, rule.levels, rule.method, rule.rounded, bytes);
        if let Some(grid) = found {
            self.grids[place] = grid;
        }
        found.is_some()
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
            for method in [
                GridMethod::Ends,
                GridMethod::Search,
                GridMethod::HalfQuadratic,
                GridMethod::KQuant(32),
            ] {
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
