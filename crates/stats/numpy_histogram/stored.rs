//! The binary form of numpy's histograms. The edges are computed again from the ends.

use super::{HistogramLayout, NumpyHistogram, edges};
use crate::stored::{DamagedStatistics, StatisticsReader, Stored, put};

/// Largest number of bins that a method asks for.
const MOST_BINS: usize = 1 << 20;

impl Stored for NumpyHistogram {
    fn store(&self, out: &mut Vec<u8>) {
        put(out, self.layout.bins as u64);
        out.push(self.layout.magnitudes.into());
        self.first.store(out);
        self.last.store(out);
        self.counts.iter().for_each(|count| count.store(out));
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<NumpyHistogram, DamagedStatistics> {
        let bins = from.length(1)?;
        if bins == 0 || bins > MOST_BINS {
            return Err(DamagedStatistics("a histogram has no usual number of bins"));
        }
        let layout = HistogramLayout {
            bins,
            magnitudes: from.flag()?,
        };
        let (first, last) = (from.finite()?, from.finite()?);
        let counts = (0..bins).map(|_| from.count()).collect::<Result<_, _>>()?;
        Ok(NumpyHistogram {
            layout,
            first,
            last,
            counts,
            edges: edges(first, last, bins),
        })
    }
}
