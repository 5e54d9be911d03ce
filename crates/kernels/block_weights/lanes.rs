//! Blocks that are computed side by side: a lane of a vector is a block.

use super::columns::{BlockResults, BlockRule};
use super::grid::{BlockGrid, Levels, from_low_and_high, greatest, least, nearest};
use super::{GridMethod, LONGEST, half_quadratic, search};

/// Blocks that are computed side by side.
pub(super) const LANES: usize = 16;

/// Columns that are read at a time: rows lie far apart in memory, so whole cache lines pay.
pub(super) const STRIP: usize = 64;

type Row = [f32; LANES];

/// Scales and zero points of blocks.
#[derive(Clone, Copy)]
pub(super) struct LaneGrids<const L: usize> {
    pub(super) scales: [f32; L],
    pub(super) zero_points: [f32; L],
}

impl<const L: usize> LaneGrids<L> {
    #[inline(always)]
    pub(super) fn get(&self, lane: usize) -> BlockGrid {
        BlockGrid {
            scale: self.scales[lane],
            zero_point: self.zero_points[lane],
        }
    }

    /// The factors from real numbers to integers.
    #[inline(always)]
    pub(super) fn inverses(&self) -> [f32; L] {
        std::array::from_fn(|lane| self.get(lane).inverse())
    }
}

/// Minima and maxima of blocks.
pub(super) struct LaneEnds<const L: usize> {
    low: [f32; L],
    high: [f32; L],
    /// Sums of zero times each number. An infinite one makes it NaN, and it stays so.
    zeros: [f32; L],
}

impl<const L: usize> LaneEnds<L> {
    #[inline(always)]
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a [f32; L]>) -> Self {
        let (mut low, mut high) = ([f32::INFINITY; L], [f32::NEG_INFINITY; L]);
        let mut zeros = [0.0; L];
        for row in rows {
            for lane in 0..L {
                let value = row[lane];
                low[lane] = least(low[lane], value);
                high[lane] = greatest(high[lane], value);
                zeros[lane] += value * 0.0;
            }
        }
        Self { low, high, zeros }
    }

    /// The grids from minimum and maximum, with exact scales.
    #[inline(always)]
    pub(super) fn grids(&self, levels: Levels) -> LaneGrids<L> {
        let grid = |lane| from_low_and_high([self.low[lane], self.high[lane]], levels, |s| s);
        let grids: [BlockGrid; L] = std::array::from_fn(grid);
        LaneGrids {
            scales: grids.map(|grid| grid.scale),
            zero_points: grids.map(|grid| grid.zero_point),
        }
    }

    /// True if no number of the first blocks is infinite or NaN.
    fn are_finite(&self, count: usize) -> bool {
        self.zeros[..count].iter().all(|zero| *zero == 0.0)
    }
}

/// Numbers of a strip that are computed side by side.
#[derive(Clone, Copy)]
pub(super) struct StripPart<'a> {
    pub(super) strip: &'a [[f32; STRIP]],
    /// Its place among the parts of `LANES` numbers.
    pub(super) group: usize,
}

/// The places of the blocks in lanes.
#[derive(Clone, Copy)]
pub(super) struct LanePlaces {
    /// The place of the first block.
    pub(super) first: usize,
    /// From one block to the next.
    pub(super) step: usize,
    /// Number of blocks.
    pub(super) count: usize,
}

impl LanePlaces {
    /// The places, lane after lane.
    #[inline(always)]
    pub(super) fn all(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |lane| self.first + lane * self.step)
    }
}

impl<'a> StripPart<'a> {
    #[inline(always)]
    pub(super) fn rows(self) -> impl ExactSizeIterator<Item = &'a Row> {
        self.strip
            .iter()
            .map(move |row| &row.as_chunks().0[self.group])
    }

    /// Computes the blocks. `packed` has the bytes of one. False if one of the numbers is infinite or
    /// NaN.
    #[inline(always)]
    pub(super) fn quantize(
        self,
        packed: &mut [[u8; LANES]],
        rule: &BlockRule,
        at: LanePlaces,
        results: &mut BlockResults<'_>,
    ) -> bool {
        let ends = LaneEnds::of(self.rows());
        let plain = ends.grids(rule.levels);
        let grids = match rule.method {
            GridMethod::Ends => plain,
            GridMethod::Search => search::grids(&self.gathered(), &plain, rule.levels),
            GridMethod::HalfQuadratic => {
                half_quadratic::grids(&self.gathered(), &plain, rule.levels)
            }
            GridMethod::KQuant(_) => return self.one_by_one(rule, at, results),
        };
        let rounded = LaneGrids {
            scales: grids.scales.map(rule.rounded),
            ..grids
        };
        for (lane, place) in at.all().enumerate() {
            results.grids[place] = rounded.get(lane);
        }
        match rule.levels.bits {
            4 => self.pack::<4>(&rounded, packed),
            2 => self.pack::<2>(&rounded, packed),
            _ => self.pack::<8>(&rounded, packed),
        }
        let used = self.strip.len().div_ceil(usize::from(8 / rule.levels.bits));
        for (lane, place) in at.all().enumerate() {
            let bytes = &mut results.integers[place * rule.bytes()..][..rule.bytes()];
            for (to, row) in bytes.iter_mut().zip(&packed[..used]) {
                *to = row[lane];
            }
        }
        ends.are_finite(at.count)
    }

    /// Computes the blocks one after the other.
    #[inline(always)]
    fn one_by_one(self, rule: &BlockRule, at: LanePlaces, results: &mut BlockResults<'_>) -> bool {
        let mut block = [0.0; LONGEST];
        let block = &mut block[..self.strip.len()];
        let mut finite = true;
        for (lane, place) in at.all().enumerate() {
            for (to, row) in block.iter_mut().zip(self.rows()) {
                *to = row[lane];
            }
            finite &= results.compute(block, rule, place);
        }
        finite
    }

    /// The rows, one after the other in memory.
    fn gathered(self) -> Vec<Row> {
        self.rows().copied().collect()
    }

    /// Computes the integers, and packs those of a lane.
    #[inline(always)]
    fn pack<const BITS: usize>(self, grids: &LaneGrids<LANES>, packed: &mut [[u8; LANES]]) {
        let highest = f32::from(u8::MAX >> (8 - BITS));
        let inverses = grids.inverses();
        for (bytes, rows) in packed.iter_mut().zip(self.strip.chunks(8 / BITS)) {
            let mut sums = [0; LANES];
            for (place, row) in rows.iter().enumerate() {
                let row: &Row = &row.as_chunks().0[self.group];
                for lane in 0..LANES {
                    let value = row[lane] * inverses[lane] + grids.zero_points[lane];
                    sums[lane] |= nearest(value, highest) << (place * BITS);
                }
            }
            *bytes = sums.map(|sum| sum as u8);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::grid::from_ends;
    use super::*;

    /// Blocks of 32 numbers, each with one that is larger.
    fn blocks() -> impl Iterator<Item = Vec<f32>> {
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..50).map(move |_| {
            let mut block: Vec<f32> = (0..32).map(|_| random() + random() + random()).collect();
            block[7] *= 3.0;
            block
        })
    }

    /// The grid of a block that lies in one lane of five, beside zeros and larger numbers.
    fn grids_of(
        block: &[f32],
        levels: Levels,
        grids: impl Fn(&[[f32; 5]], &LaneGrids<5>, Levels) -> LaneGrids<5>,
    ) -> BlockGrid {
        let row = |&value: &f32| [0.0, value * 3.0, value, -value, value * value];
        let rows: Vec<[f32; 5]> = block.iter().map(row).collect();
        let plain = LaneEnds::of(rows.iter()).grids(levels);
        let found = grids(&rows, &plain, levels);
        assert_eq!(found.get(0), plain.get(0), "a block of zeros");
        found.get(2)
    }

    /// Expects the grids of a reference, and no larger errors than those from minimum and maximum.
    /// Returns the number of blocks whose error is less.
    pub(in super::super) fn gained(
        levels: Levels,
        grids: impl Fn(&[[f32; 5]], &LaneGrids<5>, Levels) -> LaneGrids<5>,
        reference: impl Fn(&[f32], Levels) -> BlockGrid,
        error: impl Fn(&[f32], BlockGrid, Levels) -> f32,
    ) -> usize {
        let gains = |block: &Vec<f32>| {
            let found = grids_of(block, levels, &grids);
            assert_eq!(found, reference(block, levels), "{levels:?}: {block:?}");
            let [plain, best] =
                [from_ends(block, levels), found].map(|grid| error(block, grid, levels));
            assert!(best <= plain);
            best < plain
        };
        blocks().filter(gains).count()
    }
}
