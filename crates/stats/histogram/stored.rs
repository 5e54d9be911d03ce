//! The binary form of histograms: the bins that hold values, each with the number of empty bins
//! before it.

use super::{FINEST, HALF, Histogram};
use crate::stored::{DamagedStatistics, StatisticsReader, Stored, put, put_signed};

/// Exponent of the bins that hold the largest f32 numbers.
const WIDEST: i64 = 128;

impl Stored for Histogram {
    fn store(&self, out: &mut Vec<u8>) {
        let sides = (self.counts.len() / HALF) as u8;
        out.push(sides);
        if sides == 0 {
            return;
        }
        put_signed(out, self.exponent.into());
        let filled = || {
            self.all_counts()
                .enumerate()
                .filter(|&(_, count)| count > 0)
        };
        put(out, filled().count() as u64);
        let mut next = 0;
        for (bin, count) in filled() {
            put(out, (bin - next) as u64);
            put(out, count);
            next = bin + 1;
        }
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<Histogram, DamagedStatistics> {
        let sides = match from.byte()? {
            0 => return Ok(Histogram::default()),
            sides @ 1..=2 => usize::from(sides),
            _ => return Err(DamagedStatistics("a histogram has too many sides")),
        };
        let exponent = from.signed()?;
        if !(i64::from(FINEST)..=WIDEST).contains(&exponent) {
            return Err(DamagedStatistics("a histogram's bins have no width"));
        }
        let mut read = Histogram {
            exponent: exponent as i32,
            counts: vec![0; sides * HALF],
            ..Histogram::default()
        };
        let mut next = 0u64;
        for _ in 0..from.length(2)? {
            let bin = next.saturating_add(from.number()?);
            if bin >= read.counts.len() as u64 {
                return Err(DamagedStatistics("a histogram has too many bins"));
            }
            read.add(bin as usize, from.count()?);
            next = bin + 1;
        }
        match read.total {
            0 => Err(DamagedStatistics("a histogram is empty")),
            _ => Ok(read),
        }
    }
}
