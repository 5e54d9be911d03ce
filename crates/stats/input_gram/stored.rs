//! The binary form of input Gram matrices, and their merging.

use super::{InputGram, blocks, triangle};
use crate::im2col_view::Im2colView;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored, put};

impl InputGram {
    /// True if the matrices have the same view and the same step, so that they can be merged.
    pub fn is_alike(&self, other: &InputGram) -> bool {
        self.view == other.view && self.step.to_bits() == other.step.to_bits()
    }

    /// Adds a matrix that is [alike](InputGram::is_alike). Sums are integers, so the order does not
    /// matter.
    pub fn merge(&mut self, other: &InputGram) {
        let (own, others) = (self.inputs, other.inputs);
        self.uneven |= other.uneven || (own > 0 && others > 0 && own != others);
        if self.uneven {
            // Cleared, so that the result does not depend on the order of merging.
            (self.inputs, self.positions) = (0, 0);
            (self.sums, self.products) = Default::default();
        } else if own == 0 {
            self.clone_from(other);
        } else if others > 0 {
            self.positions += other.positions;
            let add = |all: &mut [i64], more: &[i64]| {
                for (all, &more) in all.iter_mut().zip(more) {
                    *all = all.saturating_add(more);
                }
            };
            add(&mut self.sums, &other.sums);
            add(&mut self.products, &other.products);
        }
    }
}

impl Stored for InputGram {
    fn store(&self, out: &mut Vec<u8>) {
        self.view.store(out);
        out.extend(self.step.to_le_bytes());
        out.push(self.uneven.into());
        // A matrix without a result has no sums.
        let inputs = if self.uneven { 0 } else { self.inputs };
        put(out, inputs as u64);
        if inputs > 0 {
            self.positions.store(out);
            let sums = self.sums.iter().chain(&self.products);
            sums.for_each(|sum| sum.store(out));
        }
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<InputGram, DamagedStatistics> {
        let view = Im2colView::load(from)?;
        let mut step = [0; 8];
        step.copy_from_slice(from.take(8)?);
        let step = f64::from_le_bytes(step);
        if !(step.is_finite() && step >= 0.0) {
            return Err(DamagedStatistics("the step of a matrix is no number"));
        }
        let uneven = from.flag()?;
        let inputs = from.length(1)?;
        let mut read = InputGram {
            step,
            inputs,
            positions: 0,
            sums: Vec::new(),
            products: Vec::new(),
            uneven,
            view,
        };
        if inputs > 0 {
            read.positions = from.count()?;
            let products: usize = blocks(inputs).iter().map(|b| triangle(b.len())).sum();
            let groups = read.view.groups();
            let sizes = [inputs, products].map(|one| one.checked_mul(groups));
            let [Some(sums), Some(products)] = sizes else {
                return Err(DamagedStatistics("a matrix is too large"));
            };
            if sums.saturating_add(products) > from.0.len() || read.positions == 0 {
                return Err(DamagedStatistics("a matrix is larger than the bytes"));
            }
            read.sums = from.signed_list(sums)?;
            read.products = from.signed_list(products)?;
        }
        Ok(read)
    }
}
