//! The binary form of a tensor's statistics. Those of extra passes are stored apart.

use super::TensorStatistics;
use crate::stored::{DamagedStatistics, StatisticsReader, Stored};

impl Stored for TensorStatistics {
    fn store(&self, out: &mut Vec<u8>) {
        out.push(self.ends.is_some().into());
        for end in self.ends.iter().flatten() {
            end.store(out);
        }
        [self.finite, self.zeros, self.nan, self.infinite]
            .iter()
            .for_each(|count| count.store(out));
        self.histogram.store(out);
        self.sample_ends.0.store(out);
        self.sample_ends.1.store(out);
        self.sample_ends.2.store(out);
        self.channel_means.store(out);
        self.channel_abs_max.store(out);
        self.channel_variance.store(out);
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<TensorStatistics, DamagedStatistics> {
        let ends = match from.flag()? {
            true => Some([from.finite()?, from.finite()?, from.finite()?]),
            false => None,
        };
        let read = TensorStatistics {
            ends,
            finite: from.count()?,
            zeros: from.count()?,
            nan: from.count()?,
            infinite: from.count()?,
            histogram: Stored::load(from)?,
            sample_ends: (Stored::load(from)?, Stored::load(from)?, from.count()?),
            channel_means: Stored::load(from)?,
            channel_abs_max: Stored::load(from)?,
            channel_variance: Stored::load(from)?,
            ..TensorStatistics::default()
        };
        let ordered = ends.is_none_or(|[min, max, near]| min <= max && near >= 0.0);
        let means = read.mean_ends().is_none_or(|of| of.min <= of.max);
        let counted = read.finite == read.histogram.total() && read.zeros <= read.finite;
        match ordered && means && counted && ends.is_some() == (read.finite > 0) {
            true => Ok(read),
            false => Err(DamagedStatistics("the counts of a tensor differ")),
        }
    }
}
