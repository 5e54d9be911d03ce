//! Packed weights and the zero-point algebra that gives the same sums on every ISA.
//!
//! Each row and column needs `Σ (a - a₀)(w - w₀)`. The instructions accumulate `Σ a' w'` with
//! `w' = w - s` and `a' = a - t`. The shift s moves a column's weights into the range in which the
//! instruction is exact; it is mostly 0. The offset t is 128 if the instruction reads activations
//! as i8, and 0 otherwise. Expanded:
//!
//! ```text
//! Σ a w              = Σ a w' + s Σ a  =  Σ a' w' + t Σ w' + s Σ a
//! Σ (a - a₀)(w - w₀) = Σ a w - w₀ Σ a - a₀ Σ (w - w₀)
//!                    = Σ a' w'  +  (s - w₀) Σ a  +  [ t Σ w' - a₀ Σ (w - w₀) ]
//! ```
//!
//! The bracket is a constant per column and becomes part of the initial accumulator. For most
//! weights `s - w₀` is 0. Row sums `Σ a` are computed only if it is not. i32 arithmetic wraps, so
//! the order of additions does not matter.

use core::ops::Range;

use super::super::error::{Error, at_least, product};
use super::super::isa::Isa;
use super::super::relaxed_dot::RelaxedDot;
use super::super::shape::zero_points;

/// Tile size: rows and columns.
pub(in crate::int8) const MR: usize = 4;
pub(in crate::int8) const NR: usize = 8;

/// Steps per vector, for matrices with few columns.
pub(super) const VECTOR_STEPS: usize = 4;

/// Returns true if the columns are few and deep enough for vectors along the depth. A tile would be
/// mostly empty, and the final sum over lanes is cheap.
pub(in crate::int8) fn is_narrow([depth, columns]: [usize; 2]) -> bool {
    columns <= NR / 2 && columns.saturating_mul(16) <= depth
}

/// Memory layout of a weight matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightLayout {
    /// [columns, depth]: Conv, and Gemm with transB.
    ColumnAfterColumn,
    /// [depth, columns]: MatMul.
    DepthFirst,
}

/// A weight matrix, packed once for one ISA.
///
/// The order is tiles of `NR` columns; in a tile, steps; in a step, four bytes per column. These
/// are the weights of four depths as i8, or of two as i16. Missing values are zero. With few
/// columns, each column is contiguous and padded to whole vectors (`narrow`).
#[derive(Clone, Debug)]
pub struct Weights {
    pub(super) isa: Isa,
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) narrow: bool,
    pub(super) packed: Vec<u8>,
    /// `Σ (w - w₀)` per column.
    sums: Vec<i32>,
    /// `t Σ w'` per column; empty if t is 0.
    offset_terms: Vec<i32>,
    /// `s - w₀` per column, padded to whole tiles; empty if all are 0.
    pub(super) row_factors: Vec<i32>,
}

impl Weights {
    /// Packs `depth × columns` weights. An empty slice of zero points means zeros.
    pub fn pack(
        isa: Isa,
        values: &[i8],
        layout: WeightLayout,
        [depth, columns]: [usize; 2],
        zero_points_of_columns: &[i8],
    ) -> Result<Weights, Error> {
        if !isa.is_available() {
            return Err(Error::Unavailable(isa));
        }
        let count = product("the weights", &[depth, columns])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_columns, columns)?;
        if depth == 0 && columns > 0 {
            return Err(Error::Zero {
                what: "the depth of the weights",
            });
        }
        let values = WeightMatrix {
            values,
            layout,
            depth,
            columns,
        };
        let shifts = isa.relaxed_dot().and_then(|dot| values.shifts(dot));
        let (isa, shifts) = match shifts {
            Some(shifts) => (isa, shifts),
            None => (isa.wide_weight_fallback(), Vec::new()),
        };
        let narrow = isa != Isa::CutPairs && is_narrow([depth, columns]);
        let mut weights = Weights::zeros(isa, [depth, columns], narrow)?;
        weights.fill(&values, &shifts);
        let shift = |column: usize| shifts.get(column).copied().unwrap_or(0);
        let zero = |column: usize| {
            let zero = zero_points_of_columns.get(column);
            zero.map_or(0, |&zero| i32::from(zero))
        };
        for column in 0..columns {
            let sum: i32 = weights.sums[column];
            weights.sums[column] = sum.wrapping_sub((depth as i32).wrapping_mul(zero(column)));
        }
        if weights.isa.relaxed_dot().is_some_and(|dot| dot.signed) {
            // Σ w' = Σ (w - w₀) + depth · (w₀ - s).
            let offset_term = |(column, &sum): (usize, &i32)| {
                let more = (depth as i32).wrapping_mul(zero(column) - shift(column));
                sum.wrapping_add(more).wrapping_mul(128)
            };
            weights.offset_terms = weights.sums.iter().enumerate().map(offset_term).collect();
        }
        if (0..columns).any(|column| shift(column) != zero(column)) {
            let factors = (0..columns).map(|column| shift(column) - zero(column));
            weights.row_factors = factors.collect();
            let whole = columns.next_multiple_of(NR);
            weights.row_factors.resize(whole, 0);
        }
        Ok(weights)
    }

    /// Allocates `depth × columns` i16 weights that are zero, for an ISA's i16 products.
    pub(in crate::int8) fn zeroed_i16(isa: Isa, sizes: [usize; 2]) -> Result<Weights, Error> {
        if !isa.is_available() {
            return Err(Error::Unavailable(isa));
        }
        Weights::zeros(isa.wide_weight_fallback(), sizes, false)
    }

    /// Allocates zero weights, without column sums.
    fn zeros(isa: Isa, [depth, columns]: [usize; 2], narrow: bool) -> Result<Weights, Error> {
        let tiles = columns.div_ceil(NR);
        // i16 doubles the bytes; padding fills whole tiles and steps.
        product("the packed weights", &[depth.div_ceil(2), tiles, NR, 4])?;
        let mut weights = Weights {
            isa,
            depth,
            columns,
            narrow,
            packed: Vec::new(),
            sums: Vec::new(),
            offset_terms: Vec::new(),
            row_factors: Vec::new(),
        };
        let whole = if narrow { columns } else { tiles * NR };
        weights.packed = vec![0; whole * weights.steps() * 4];
        Ok(weights)
    }

    /// Sets one i16 weight in each of several matrices of equal size.
    pub(in crate::int8) fn set_i16(all: &mut [Weights], column: usize, at: usize, words: &[i16]) {
        let order = all.first().map(Weights::order);
        let byte = order.map_or(0, |order| order.index(column, at) * 4 + at % 2 * 2);
        for (weights, word) in all.iter_mut().zip(words) {
            weights.packed[byte..][..2].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Packs the values minus their shifts, and sums the values without shifts.
    fn fill(&mut self, matrix: &WeightMatrix, shifts: &[i32]) {
        let order = self.order();
        self.sums = vec![0; self.columns];
        let mut put = |column: usize, at: usize, value: i8| {
            self.sums[column] = self.sums[column].wrapping_add(i32::from(value));
            let value = i32::from(value) - shifts.get(column).copied().unwrap_or(0);
            let step = order.index(column, at);
            if order.depths_per_step == 4 {
                // In range by the choice of the shift.
                self.packed[step * 4 + at % 4] = value as i8 as u8;
            } else {
                let bytes = (value as i16).to_le_bytes();
                self.packed[step * 4 + at % 2 * 2..][..2].copy_from_slice(&bytes);
            }
        };
        match matrix.layout {
            WeightLayout::ColumnAfterColumn => {
                for column in 0..self.columns {
                    let values = &matrix.values[column * self.depth..][..self.depth];
                    for (at, &value) in values.iter().enumerate() {
                        put(column, at, value);
                    }
                }
            }
            WeightLayout::DepthFirst => {
                for at in 0..self.depth {
                    let values = &matrix.values[at * self.columns..][..self.columns];
                    for (column, &value) in values.iter().enumerate() {
                        put(column, at, value);
                    }
                }
            }
        }
    }

    /// Returns the ISA that runs: the requested one, or its fallback if the weights exceed the
    /// range of this machine's relaxed dot.
    pub fn form(&self) -> Isa {
        self.isa
    }

    /// Number of products per sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Preferred granularity of rows per call.
    pub fn rows_together(&self) -> usize {
        MR
    }

    /// Preferred granularity of columns per call.
    pub fn columns_together(&self) -> usize {
        NR
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }

    /// Depths per step. A step is four bytes of activations, as u8 or i16.
    pub(in crate::int8) fn depths_per_step(&self) -> usize {
        if self.isa.relaxed_dot().is_some() {
            4
        } else {
            2
        }
    }

    /// Steps per column.
    pub(in crate::int8) fn steps(&self) -> usize {
        let steps = self.depth.div_ceil(self.depths_per_step());
        match self.narrow {
            true => steps.next_multiple_of(VECTOR_STEPS),
            false => steps,
        }
    }

    fn order(&self) -> Order {
        Order {
            steps: self.steps(),
            depths_per_step: self.depths_per_step(),
            narrow: self.narrow,
        }
    }

    /// Returns true if the kernels need `Σ a` of each row.
    pub(in crate::int8) fn needs_row_sums(&self) -> bool {
        !self.row_factors.is_empty()
    }

    /// Returns the initial accumulators of some columns, padded to whole tiles: the bracket above
    /// plus the bias.
    pub(in crate::int8) fn initial_accumulators(
        &self,
        columns: Range<usize>,
        zero_point: u8,
        bias: Option<&[i32]>,
    ) -> Vec<i32> {
        let mut initial = initial_accumulators(&self.sums[columns.clone()], zero_point, bias);
        let offset_terms = self.offset_terms.get(columns).unwrap_or_default();
        for (initial, &offset_term) in initial.iter_mut().zip(offset_terms) {
            *initial = initial.wrapping_add(offset_term);
        }
        initial
    }
}

/// Returns the bias minus `a₀ Σ (w - w₀)` per column, padded to whole tiles.
pub(in crate::int8) fn initial_accumulators(
    sums: &[i32],
    zero_point: u8,
    bias: Option<&[i32]>,
) -> Vec<i32> {
    let mut initial = vec![0; sums.len().next_multiple_of(NR)];
    for (column, (initial, &sum)) in initial.iter_mut().zip(sums).enumerate() {
        let bias = bias.map_or(0, |bias| bias[column]);
        *initial = bias.wrapping_sub(i32::from(zero_point).wrapping_mul(sum));
    }
    initial
}

/// Order of the packed weights.
#[derive(Clone, Copy)]
struct Order {
    steps: usize,
    depths_per_step: usize,
    narrow: bool,
}

impl Order {
    /// Returns the index of the four bytes that hold this depth of a column.
    fn index(self, column: usize, at: usize) -> usize {
        let step = at / self.depths_per_step;
        match self.narrow {
            true => column * self.steps + step,
            false => ((column / NR) * self.steps + step) * NR + column % NR,
        }
    }
}

struct WeightMatrix<'a> {
    values: &'a [i8],
    layout: WeightLayout,
    depth: usize,
    columns: usize,
}

impl WeightMatrix<'_> {
    /// Returns the shift per column that brings its weights within `limit` of zero. `None` if a
    /// column spans too much.
    fn shifts(&self, dot: RelaxedDot) -> Option<Vec<i32>> {
        if dot.limit >= 128 {
            return Some(Vec::new());
        }
        let mut ends = vec![(i8::MAX, i8::MIN); self.columns];
        for (at, &value) in self.values[..self.depth * self.columns].iter().enumerate() {
            let column = match self.layout {
                WeightLayout::ColumnAfterColumn => at / self.depth,
                WeightLayout::DepthFirst => at % self.columns,
            };
            let (least, greatest) = ends[column];
            ends[column] = (least.min(value), greatest.max(value));
        }
        let shift = |(least, greatest)| {
            let (least, greatest) = (i32::from(least), i32::from(greatest));
            if least > greatest || (least >= -dot.limit && greatest <= dot.limit) {
                return Some(0);
            }
            let middle = (least + greatest).div_euclid(2);
            (greatest - middle <= dot.limit && middle - least <= dot.limit).then_some(middle)
        };
        ends.into_iter().map(shift).collect()
    }
}
