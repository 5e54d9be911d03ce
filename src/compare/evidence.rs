//! The evidence of an output, one entry a sample.

use serde::{Deserialize, Serialize};

use super::difference::Difference;
use super::interval;
use super::verdict::{Measured, QualityMeasure};

/// Entries of all samples for one output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// Parts that agree with the float model, and all parts: rows of classes, positions, boxes.
    #[serde(with = "pair_bits")]
    shares: Vec<(f64, f64)>,
    /// Change of the next tokens' negative log-probabilities, and their number.
    #[serde(with = "pair_bits")]
    losses: Vec<(f64, f64)>,
    /// Labels that only the quantized model, and that only the float model, has right.
    gained: u64,
    lost: u64,
    labelled: u64,
    #[serde(with = "bits")]
    sqnr: Vec<f64>,
    #[serde(with = "bits")]
    cosine: Vec<f64>,
}

/// The stored form of numbers: their bits, because JSON rounds them and has no infinities.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        let bits: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
        bits.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let bits = Vec::<u64>::deserialize(from)?;
        Ok(bits.into_iter().map(f64::from_bits).collect())
    }
}

/// The stored form of pairs of numbers.
mod pair_bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(pairs: &[(f64, f64)], to: S) -> Result<S::Ok, S::Error> {
        let bits = pairs.iter().map(|(a, b)| [a.to_bits(), b.to_bits()]);
        bits.collect::<Vec<[u64; 2]>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
        let bits = Vec::<[u64; 2]>::deserialize(from)?;
        let pair = |[a, b]: [u64; 2]| (f64::from_bits(a), f64::from_bits(b));
        Ok(bits.into_iter().map(pair).collect())
    }
}

impl Evidence {
    /// Adds the entries of other samples.
    pub(super) fn merge(&mut self, other: &Evidence) {
        self.shares.extend(&other.shares);
        self.losses.extend(&other.losses);
        self.sqnr.extend(&other.sqnr);
        self.cosine.extend(&other.cosine);
        self.gained = self.gained.saturating_add(other.gained);
        self.lost = self.lost.saturating_add(other.lost);
        self.labelled = self.labelled.saturating_add(other.labelled);
    }

    /// The entries in an order that does not depend on that of the samples, as the sums of floats
    /// do.
    pub(super) fn sorted(mut self) -> Evidence {
        for pairs in [&mut self.shares, &mut self.losses] {
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        for numbers in [&mut self.sqnr, &mut self.cosine] {
            numbers.sort_by(f64::total_cmp);
        }
        self
    }

    pub(super) fn add_values(&mut self, first: &[f32], second: &[f32]) {
        let mut sample = Difference::default();
        sample.add(first, second);
        let metrics = sample.metrics();
        self.sqnr.push(metrics.sqnr);
        self.cosine.push(metrics.cosine);
    }

    /// Adds a sample of which `same` of `all` parts agree.
    pub(super) fn add_share(&mut self, same: u64, all: u64) {
        if all > 0 {
            self.shares.push((same as f64, all as f64));
        }
    }

    /// Adds the summed change of negative log-probabilities of `followed` tokens.
    pub(super) fn add_loss(&mut self, change: f64, followed: u64) {
        if followed > 0 {
            self.losses.push((change, followed as f64));
        }
    }

    pub(super) fn add_label(&mut self, float: bool, quantized: bool) {
        self.labelled += 1;
        self.gained += u64::from(quantized && !float);
        self.lost += u64::from(float && !quantized);
    }

    /// The value of this measure; `None` without a sample that shows it.
    pub(super) fn measured(&self, measure: QualityMeasure) -> Option<Measured> {
        let of_mean = |values: &[f64]| {
            let (value, interval) = interval::mean(values);
            (!values.is_empty()).then_some((value, interval, values.len()))
        };
        let (value, interval, samples) = match measure {
            QualityMeasure::AccuracyChange => {
                let change = self.gained as f64 - self.lost as f64;
                let interval = interval::paired_change(self.gained, self.lost, self.labelled);
                let count = self.labelled as usize;
                (count > 0).then_some((change / count as f64, Some(interval), count))
            }
            QualityMeasure::Agreement | QualityMeasure::Boxes => {
                let (share, _) = interval::ratio(&self.shares);
                let interval = interval::wilson(share, self.independent_parts());
                (!self.shares.is_empty()).then_some((share, Some(interval), self.shares.len()))
            }
            QualityMeasure::PerplexityRatio => {
                let (change, error) = interval::ratio(&self.losses);
                let count = self.losses.len();
                let ends = interval::student(count)
                    .map(|t| ((change - t * error).exp(), (change + t * error).exp()));
                (count > 0).then_some((change.exp(), ends, count))
            }
            QualityMeasure::Cosine => of_mean(&self.cosine),
            QualityMeasure::Sqnr => of_mean(&self.sqnr),
        }?;
        Some(Measured {
            measure,
            value,
            interval,
            samples,
        })
    }

    /// The interval of a share of so many samples of one part each.
    pub(super) fn repeated(share: f64, samples: usize) -> (f64, f64) {
        interval::wilson(share, samples as f64)
    }

    /// The number of independent parts that would give the same standard error: at least the
    /// samples, at most the parts.
    fn independent_parts(&self) -> f64 {
        let (share, error) = interval::ratio(&self.shares);
        let parts: f64 = self.shares.iter().map(|(_, all)| all).sum();
        let samples = self.shares.len() as f64;
        match error > 0.0 {
            true => (share * (1.0 - share) / (error * error)).clamp(samples.min(parts), parts),
            false => samples,
        }
    }
}
