//! The binary form of channel variances.

use super::ChannelVariance;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored};

impl Stored for ChannelVariance {
    fn store(&self, out: &mut Vec<u8>) {
        self.means.store(out);
        self.squares.store(out);
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<ChannelVariance, DamagedStatistics> {
        Ok(ChannelVariance {
            means: Stored::load(from)?,
            squares: Stored::load(from)?,
        })
    }
}
