//! The binary form of the greatest magnitudes.

use super::ChannelAbsMax;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored};

impl Stored for ChannelAbsMax {
    fn store(&self, out: &mut Vec<u8>) {
        self.greatest.store(out);
        out.push(self.uneven.into());
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<ChannelAbsMax, DamagedStatistics> {
        let read = ChannelAbsMax {
            greatest: Vec::load(from)?,
            uneven: from.flag()?,
        };
        match read
            .greatest
            .iter()
            .all(|one| one.is_finite() && *one >= 0.0)
        {
            true => Ok(read),
            false => Err(DamagedStatistics("a magnitude is no finite number")),
        }
    }
}
