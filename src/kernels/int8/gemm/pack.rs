//! Weights in the order in which the tiles read them, and the algebra that makes all forms give the same sums.
//!
//! Wanted for each row and column is `Σ (a - a₀)(w - w₀)`. What the instructions add up is `Σ a' w'` with
//! `w' = w - s` (s moves a column's weights into the range the instruction takes exactly; 0 mostly) and
//! `a' = a - t` (t is 128 where it reads activations as i8, else 0). Multiplied out:
//!
//! ```text
//! Σ a w             = Σ a w' + s Σ a  =  Σ a' w' + t Σ w' + s Σ a
//! Σ (a - a₀)(w - w₀) = Σ a w - w₀ Σ a - a₀ Σ (w - w₀)
//!                    = Σ a' w'  +  (s - w₀) Σ a  +  [ t Σ w' - a₀ Σ (w - w₀) ]
//! ```
//!
//! The bracket is one number a column; `s - w₀` is 0 for most weights, and only where it isn't the rows are
//! summed. i32 wraps, so the order in which any of this is added changes nothing.

use core::ops::Range;

use super::super::error::{Error, at_least, product};
use super::super::form::{Form, Operands};
use super::super::shape::zero_points;

/// Rows and columns of a tile.
pub(in crate::int8) const HIGH: usize = 4;
pub(in crate::int8) const WIDE: usize = 8;

/// Steps of a vector, where columns are few.
pub(super) const STEPS: usize = 4;

/// Whether columns are so few, and so deep, that vectors lie along the depth: a tile would be empty for the most part, and only the
/// lanes of a vector have to be added up in the end.
pub(in crate::int8) fn is_narrow([depth, columns]: [usize; 2]) -> bool {
    columns <= WIDE / 2 && columns.saturating_mul(16) <= depth
}

/// How a weight matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All of a column's values together: [columns, depth] (Conv's, and Gemm's with transB).
    ColumnAfterColumn,
    /// [depth, columns]: MatMul's.
    DepthFirst,
}

/// A weight matrix, packed once for one form.
///
/// Tiles of [`WIDE`] columns; in a tile, step after step; in a step, column after column four bytes: the weights
/// of four depths as i8, or of two as i16. What is missing is zero. Of few columns each lies by itself, as many steps long as whole
/// vectors have (`narrow`).
#[derive(Clone, Debug)]
pub struct Weights {
    pub(super) form: Form,
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) narrow: bool,
    pub(super) packed: Vec<u8>,
    /// `Σ (w - w₀)`, a column each.
    sums: Vec<i32>,
    /// `t Σ w'`, a column each; empty where t is 0.
    lifts: Vec<i32>,
    /// `s - w₀`, a column each, up to whole tiles; empty where all are 0.
    pub(super) row_factors: Vec<i32>,
}

impl Weights {
    /// Packs `depth × columns` weights. No zero points stand for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        layout: Layout,
        [depth, columns]: [usize; 2],
        zero_points_of_columns: &[i8],
    ) -> Result<Weights, Error> {
        if !form.is_available() {
            return Err(Error::Unavailable(form));
        }
        let count = product("the weights", &[depth, columns])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_columns, columns)?;
        if depth == 0 && columns > 0 {
            return Err(Error::Zero {
                what: "the depth of the weights",
            });
        }
        let values = Matrix {
            values,
            layout,
            depth,
            columns,
        };
        let shifts = form.operands().and_then(|operands| values.shifts(operands));
        let (form, shifts) = match shifts {
            Some(shifts) => (form, shifts),
            None => (form.with_wide_weights(), Vec::new()),
        };
        let mut weights = Weights::zeros(form, [depth, columns], is_narrow([depth, columns]))?;
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
        if weights
            .form
            .operands()
            .is_some_and(|operands| operands.signed)
        {
            // Σ w' = Σ (w - w₀) + depth · (w₀ - s).
            let lift = |(column, &sum): (usize, &i32)| {
                let more = (depth as i32).wrapping_mul(zero(column) - shift(column));
                sum.wrapping_add(more).wrapping_mul(128)
            };
            weights.lifts = weights.sums.iter().enumerate().map(lift).collect();
        }
        if (0..columns).any(|column| shift(column) != zero(column)) {
            let factors = (0..columns).map(|column| shift(column) - zero(column));
            weights.row_factors = factors.collect();
            let whole = columns.next_multiple_of(WIDE);
            weights.row_factors.resize(whole, 0);
        }
        Ok(weights)
    }

    /// `depth × columns` words that are zero, for a form's products of i16.
    pub(in crate::int8) fn words(form: Form, sizes: [usize; 2]) -> Result<Weights, Error> {
        if !form.is_available() {
            return Err(Error::Unavailable(form));
        }
        Weights::zeros(form.with_wide_weights(), sizes, false)
    }

    /// Weights that are zero, not summed yet.
    fn zeros(form: Form, [depth, columns]: [usize; 2], narrow: bool) -> Result<Weights, Error> {
        let tiles = columns.div_ceil(WIDE);
        // Up to twice the bytes and filled up to whole tiles and steps.
        product("the packed weights", &[depth.div_ceil(2), tiles, WIDE, 4])?;
        let mut weights = Weights {
            form,
            depth,
            columns,
            narrow,
            packed: Vec::new(),
            sums: Vec::new(),
            lifts: Vec::new(),
            row_factors: Vec::new(),
        };
        let whole = if narrow { columns } else { tiles * WIDE };
        weights.packed = vec![0; whole * weights.steps() * 4];
        Ok(weights)
    }

    /// Sets a word in each of several such matrices of the same sizes.
    pub(in crate::int8) fn set_words(all: &mut [Weights], column: usize, at: usize, words: &[i16]) {
        let order = all.first().map(Weights::order);
        let byte = order.map_or(0, |order| order.place(column, at) * 4 + at % 2 * 2);
        for (weights, word) in all.iter_mut().zip(words) {
            weights.packed[byte..][..2].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Packs the values less their shifts, and sums the values as they are.
    fn fill(&mut self, matrix: &Matrix, shifts: &[i32]) {
        let order = self.order();
        self.sums = vec![0; self.columns];
        let mut put = |column: usize, at: usize, value: i8| {
            self.sums[column] = self.sums[column].wrapping_add(i32::from(value));
            let value = i32::from(value) - shifts.get(column).copied().unwrap_or(0);
            let step = order.place(column, at);
            if order.deep == 4 {
                // In range by the choice of the shift.
                self.packed[step * 4 + at % 4] = value as i8 as u8;
            } else {
                let bytes = (value as i16).to_le_bytes();
                self.packed[step * 4 + at % 2 * 2..][..2].copy_from_slice(&bytes);
            }
        };
        match matrix.layout {
            Layout::ColumnAfterColumn => {
                for column in 0..self.columns {
                    let values = &matrix.values[column * self.depth..][..self.depth];
                    for (at, &value) in values.iter().enumerate() {
                        put(column, at, value);
                    }
                }
            }
            Layout::DepthFirst => {
                for at in 0..self.depth {
                    let values = &matrix.values[at * self.columns..][..self.columns];
                    for (column, &value) in values.iter().enumerate() {
                        put(column, at, value);
                    }
                }
            }
        }
    }

    /// The form that runs: the one asked for, or the one for wide weights where these are too far apart for what
    /// this machine's relaxed dot takes.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many products make a sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many sums a row gets.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows that are best computed by one call, or multiples of them.
    pub fn rows_together(&self) -> usize {
        HIGH
    }

    /// The same of columns.
    pub fn columns_together(&self) -> usize {
        WIDE
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }

    /// Depths of a step: four bytes of activations, as u8 or i16.
    pub(in crate::int8) fn deep(&self) -> usize {
        if self.form.operands().is_some() { 4 } else { 2 }
    }

    /// Steps of a column.
    pub(in crate::int8) fn steps(&self) -> usize {
        let steps = self.depth.div_ceil(self.deep());
        match self.narrow {
            true => steps.next_multiple_of(STEPS),
            false => steps,
        }
    }

    fn order(&self) -> Order {
        Order {
            steps: self.steps(),
            deep: self.deep(),
            narrow: self.narrow,
        }
    }

    /// Whether the tiles need the sum of each row.
    pub(in crate::int8) fn wants_row_sums(&self) -> bool {
        !self.row_factors.is_empty()
    }

    /// What the accumulators of some columns begin with, up to whole tiles: the bracket above and their bias.
    pub(in crate::int8) fn beginnings(
        &self,
        columns: Range<usize>,
        zero_point: u8,
        bias: Option<&[i32]>,
    ) -> Vec<i32> {
        let mut beginnings = beginnings(&self.sums[columns.clone()], zero_point, bias);
        let lifts = self.lifts.get(columns).unwrap_or_default();
        for (beginning, &lift) in beginnings.iter_mut().zip(lifts) {
            *beginning = beginning.wrapping_add(lift);
        }
        beginnings
    }
}

/// The bias less what the zero point adds to each column's `Σ (w - w₀)`, up to whole tiles.
pub(in crate::int8) fn beginnings(sums: &[i32], zero_point: u8, bias: Option<&[i32]>) -> Vec<i32> {
    let mut beginnings = vec![0; sums.len().next_multiple_of(WIDE)];
    for (column, (beginning, &sum)) in beginnings.iter_mut().zip(sums).enumerate() {
        let bias = bias.map_or(0, |bias| bias[column]);
        *beginning = bias.wrapping_sub(i32::from(zero_point).wrapping_mul(sum));
    }
    beginnings
}

/// The order of packed weights.
#[derive(Clone, Copy)]
struct Order {
    steps: usize,
    deep: usize,
    narrow: bool,
}

impl Order {
    /// Which four bytes hold this depth of a column: tile, step, column, or of few columns column, step.
    fn place(self, column: usize, at: usize) -> usize {
        let step = at / self.deep;
        match self.narrow {
            true => column * self.steps + step,
            false => ((column / WIDE) * self.steps + step) * WIDE + column % WIDE,
        }
    }
}

struct Matrix<'a> {
    values: &'a [i8],
    layout: Layout,
    depth: usize,
    columns: usize,
}

impl Matrix<'_> {
    /// What to take off each column so that its weights are at most `limit` from zero; none where one can't be.
    fn shifts(&self, operands: Operands) -> Option<Vec<i32>> {
        if operands.limit >= 128 {
            return Some(Vec::new());
        }
        let mut ends = vec![(i8::MAX, i8::MIN); self.columns];
        for (at, &value) in self.values[..self.depth * self.columns].iter().enumerate() {
            let column = match self.layout {
                Layout::ColumnAfterColumn => at / self.depth,
                Layout::DepthFirst => at % self.columns,
            };
            let (least, greatest) = ends[column];
            ends[column] = (least.min(value), greatest.max(value));
        }
        let shift = |(least, greatest)| {
            let (least, greatest) = (i32::from(least), i32::from(greatest));
            if least > greatest || (least >= -operands.limit && greatest <= operands.limit) {
                return Some(0);
            }
            let middle = (least + greatest).div_euclid(2);
            (greatest - middle <= operands.limit && middle - least <= operands.limit)
                .then_some(middle)
        };
        ends.into_iter().map(shift).collect()
    }
}
