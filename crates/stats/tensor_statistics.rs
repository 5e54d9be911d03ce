//! Statistics of one tensor over a calibration: small, mergeable, and identical to the bit for any
//! order and division of the data.

mod stored;

use octet_kernels::Extrema;
use serde::{Deserialize, Serialize};

use super::exact_sum::ExactSum;
use super::histogram::BinLayout;
use super::numpy_histogram::NumpyHistogram;
use super::{
    ChannelAbsMax, ChannelMeans, ChannelVariance, HALF, Histogram, Im2colView, InputGram, Range,
};

/// Statistics of one tensor over all samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorStatistics {
    /// Minimum, maximum and least magnitude; `None` before the first finite value.
    ends: Option<[f32; 3]>,
    finite: u64,
    zeros: u64,
    nan: u64,
    infinite: u64,
    histogram: Histogram,
    /// Sums of the minima and maxima of the complete samples, and the number of these samples.
    sample_ends: (ExactSum, ExactSum, u64),
    /// Channel means, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel_means: Option<ChannelMeans>,
    /// Greatest magnitude per channel, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel_abs_max: Option<ChannelAbsMax>,
    /// Variance per channel, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel_variance: Option<ChannelVariance>,
    /// Histogram of an extra pass, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second_pass: Option<NumpyHistogram>,
    /// Gram matrices of the layers that read the tensor, if an extra pass collected them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    input_grams: Vec<InputGram>,
}

impl TensorStatistics {
    /// Empty statistics.
    pub fn new() -> TensorStatistics {
        TensorStatistics::default()
    }

    /// Adds the values of one run.
    pub fn observe(&mut self, values: &[f32]) {
        self.observe_with_bins(values, None);
    }

    /// Adds the values of one run. This is faster if they fit the bins of `before`, a histogram
    /// with which these statistics must be merged in the end.
    pub fn observe_with_bins(&mut self, values: &[f32], before: Option<BinLayout>) {
        let all = values.len() as u64;
        if let Some(counted) = self.histogram.observe_within(values, before) {
            self.finite += all;
            self.zeros += counted.zeros;
            self.include(counted.reach);
            return;
        }
        let counted = Extrema::of(values);
        if counted.all_finite {
            if all > 0 {
                self.finite += all;
                self.zeros += counted.zeros;
                self.include(counted.reach);
                self.histogram
                    .observe(values, counted.reach[0], counted.reach[1], true);
            }
            return;
        }
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let count = finite().count() as u64;
        let nan = values.iter().filter(|value| value.is_nan()).count() as u64;
        self.nan += nan;
        self.infinite += all - count - nan;
        if count > 0 {
            let none = [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY];
            let ends = finite().fold(none, |[least, greatest, near], v| {
                [least.min(v), greatest.max(v), near.min(v.abs())]
            });
            self.finite += count;
            self.zeros += finite().filter(|&value| value == 0.0).count() as u64;
            self.include(ends);
            self.histogram.observe(values, ends[0], ends[1], false);
        }
    }

    /// Adds the channel means of one run; channels lie along `axis`.
    pub fn observe_channel_means(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let channels = self.channel_means.get_or_insert_default();
        channels.observe(values, shape, axis);
    }

    /// Adds the greatest magnitude per channel of one run; channels lie along `axis`.
    pub fn observe_abs_max(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let abs_max = self.channel_abs_max.get_or_insert_default();
        abs_max.observe(values, shape, axis);
    }

    /// Adds the variance per channel of one run; channels lie along `axis`.
    pub fn observe_variance(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let spread = self.channel_variance.get_or_insert_default();
        spread.observe(values, shape, axis);
    }

    /// The statistics of these values.
    pub fn from_values(values: &[f32]) -> TensorStatistics {
        let mut stats = TensorStatistics::new();
        stats.observe(values);
        stats
    }

    /// Marks the end of a sample. The ends of the values so far count once in the mean over
    /// samples.
    pub fn end_sample(&mut self) {
        if let Some([min, max, _]) = self.ends {
            self.sample_ends.0.add(min);
            self.sample_ends.1.add(max);
            self.sample_ends.2 += 1;
        }
    }

    /// Merges the statistics of `other`. Exact, associative and commutative.
    pub fn merge(&mut self, other: &TensorStatistics) {
        if let Some(ends) = other.ends {
            self.include(ends);
        }
        self.finite += other.finite;
        self.zeros += other.zeros;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.histogram.merge(&other.histogram);
        self.sample_ends.0.merge(&other.sample_ends.0);
        self.sample_ends.1.merge(&other.sample_ends.1);
        self.sample_ends.2 += other.sample_ends.2;
        if let Some(channels) = &other.channel_means {
            self.channel_means.get_or_insert_default().merge(channels);
        }
        if let Some(abs_max) = &other.channel_abs_max {
            self.channel_abs_max.get_or_insert_default().merge(abs_max);
        }
        if let Some(spread) = &other.channel_variance {
            self.channel_variance.get_or_insert_default().merge(spread);
        }
    }

    /// Least finite value, or `None` if there is none.
    pub fn min(&self) -> Option<f32> {
        self.ends.map(|[min, _, _]| min)
    }

    /// Greatest finite value, or `None` if there is none.
    pub fn max(&self) -> Option<f32> {
        self.ends.map(|[_, max, _]| max)
    }

    /// Least magnitude of a finite value, or `None` if there is none.
    pub fn least_magnitude(&self) -> Option<f32> {
        self.ends.map(|[_, _, near]| near)
    }

    /// Means over samples of the minimum and the maximum, or `None` before the end of a sample.
    pub fn mean_ends(&self) -> Option<Range> {
        let (min, max, samples) = &self.sample_ends;
        let mean = |sum: &ExactSum| (sum.value() / *samples as f64) as f32;
        (*samples > 0).then(|| Range::new(mean(min), mean(max)))
    }

    /// Number of complete samples.
    pub fn samples(&self) -> u64 {
        self.sample_ends.2
    }

    /// Channel means, if requested.
    pub fn channel_means(&self) -> Option<&ChannelMeans> {
        self.channel_means.as_ref()
    }

    /// Greatest magnitude per channel, if requested.
    pub fn channel_abs_max(&self) -> Option<&ChannelAbsMax> {
        self.channel_abs_max.as_ref()
    }

    /// Variance per channel, if requested.
    pub fn channel_variance(&self) -> Option<&ChannelVariance> {
        self.channel_variance.as_ref()
    }

    /// Histogram of an extra pass over the samples.
    pub fn second_pass(&self) -> Option<&NumpyHistogram> {
        self.second_pass.as_ref()
    }

    /// Sets the histogram of an extra pass.
    pub fn set_second_pass(&mut self, counted: NumpyHistogram) {
        self.second_pass = Some(counted);
    }

    /// Gram matrix of the layers that read the tensor in this layout, if an extra pass collected
    /// it.
    pub fn input_gram(&self, view: &Im2colView) -> Option<&InputGram> {
        self.input_grams.iter().find(|stats| stats.view() == view)
    }

    /// Returns true if an extra pass collected Gram matrices.
    pub fn has_input_grams(&self) -> bool {
        !self.input_grams.is_empty()
    }

    /// Adds a Gram matrix of an extra pass.
    pub fn add_input_gram(&mut self, gram: InputGram) {
        self.input_grams.push(gram);
    }

    /// Greatest magnitude; 0 if there are no values.
    pub fn magnitude(&self) -> f32 {
        self.ends.map_or(0.0, |[min, max, _]| max.max(-min))
    }

    /// Bytes held, or bytes that empty statistics will hold after their first value.
    pub fn expected_bytes(&self) -> u64 {
        let counts = match self.histogram.bytes() {
            0 => 2 * HALF * size_of::<u32>(),
            bytes => bytes,
        };
        let channels = self.channel_means.as_ref().map_or(0, ChannelMeans::bytes);
        let spread = self
            .channel_variance
            .as_ref()
            .map_or(0, ChannelVariance::bytes);
        (size_of::<TensorStatistics>() + counts + channels + spread) as u64
    }

    /// Number of values, finite or not.
    pub fn count(&self) -> u64 {
        self.finite + self.nan + self.infinite
    }

    /// Number of finite values.
    pub fn finite_count(&self) -> u64 {
        self.finite
    }

    /// Number of zeros of either sign.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// Number of NaN values.
    pub fn nan_count(&self) -> u64 {
        self.nan
    }

    /// Number of infinite values.
    pub fn infinite_count(&self) -> u64 {
        self.infinite
    }

    /// Histogram of the finite values.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    fn include(&mut self, [min, max, near]: [f32; 3]) {
        let [least, greatest, nearest] = self.ends.unwrap_or([min, max, near]);
        // Adding zero turns -0 into 0. Otherwise the sign of a zero minimum would depend on the
        // order.
        self.ends = Some([
            least.min(min) + 0.0,
            greatest.max(max) + 0.0,
            nearest.min(near),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_ends_match_the_values() {
        let stats = TensorStatistics::from_values(&[
            0.5,
            f32::NAN,
            -3.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            2.0,
        ]);
        assert_eq!((stats.min(), stats.max()), (Some(-3.0), Some(2.0)));
        assert_eq!(
            (stats.count(), stats.nan_count(), stats.infinite_count()),
            (6, 1, 2)
        );
        assert_eq!((stats.zeros(), stats.least_magnitude()), (0, Some(0.5)));
        let many: Vec<f32> = (0..100)
            .map(|i| (i % 3) as f32 - 0.5 * (i % 3) as f32)
            .collect();
        assert_eq!(
            (
                TensorStatistics::from_values(&many).zeros(),
                TensorStatistics::from_values(&many).least_magnitude()
            ),
            (34, Some(0.0))
        );
        let none = TensorStatistics::from_values(&[f32::NAN]);
        assert_eq!((none.min(), none.max(), none.count()), (None, None, 1));
    }

    #[test]
    fn the_sign_of_zero_is_dropped() {
        assert_eq!(
            TensorStatistics::from_values(&[0.0, -0.0])
                .min()
                .map(f32::to_bits),
            Some(0)
        );
        assert_eq!(
            TensorStatistics::from_values(&[-0.0, 0.0])
                .min()
                .map(f32::to_bits),
            Some(0)
        );
        assert_eq!(
            TensorStatistics::from_values(&[-0.0])
                .max()
                .map(f32::to_bits),
            Some(0)
        );
    }

    #[test]
    fn samples_have_equal_weight_in_the_mean_of_the_ends() {
        let sample = |values| {
            let mut stats = TensorStatistics::from_values(values);
            stats.end_sample();
            stats
        };
        let (a, b) = (sample(&[-1.0, 4.0, 4.0]), sample(&[-2.0, 1.0]));
        let mut both = a.clone();
        both.merge(&b);
        both.merge(&sample(&[f32::NAN])); // no finite value, so no ends
        assert_eq!(both.mean_ends(), Some(Range::new(-1.5, 2.5)));
        assert_eq!(TensorStatistics::from_values(&[1.0]).mean_ends(), None);
        let mut turned = b;
        turned.merge(&a);
        turned.merge(&sample(&[f32::NAN]));
        assert_eq!(both, turned);
    }
}
