//! The binary form of channel means.

use super::ChannelMeans;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored};

impl Stored for ChannelMeans {
    fn store(&self, out: &mut Vec<u8>) {
        self.sums.store(out);
        self.extents.store(out);
        self.runs.store(out);
        out.push(self.uneven.into());
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<ChannelMeans, DamagedStatistics> {
        Ok(ChannelMeans {
            sums: Vec::load(from)?,
            extents: Vec::load(from)?,
            runs: from.count()?,
            uneven: from.flag()?,
        })
    }
}
