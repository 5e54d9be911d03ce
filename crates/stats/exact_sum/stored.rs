//! The binary form of exact sums.

use super::{DIGITS, ExactSum, carried};
use crate::stored::{DamagedStatistics, StatisticsReader, Stored};

impl Stored for ExactSum {
    fn store(&self, out: &mut Vec<u8>) {
        // Without carries, equal sums have equal digits.
        carried(self.digits)
            .iter()
            .for_each(|digit| digit.store(out));
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<ExactSum, DamagedStatistics> {
        let mut digits = [0; DIGITS];
        for digit in &mut digits {
            *digit = from.signed()?;
            if digit.unsigned_abs() >= 1 << 47 {
                return Err(DamagedStatistics("a sum is too large"));
            }
        }
        Ok(ExactSum { digits })
    }
}
