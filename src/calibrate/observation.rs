//! What calibration remembers of one tensor: small, mergeable, and the same bits for any order
//! and any cut of the data.

use octet_kernels::Ends;
use serde::{Deserialize, Serialize};

use super::exact_sum::ExactSum;
use super::histogram::Bins;
use super::numpy_histogram::NumpyHistogram;
use super::{Channels, HALF, Histogram, Meeting, Moments, Range, Reach, Spread};

/// What was seen of one tensor over all samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// `Some` once a finite value was seen: the least, the greatest and the least magnitude.
    ends: Option<[f32; 3]>,
    finite: u64,
    zeros: u64,
    nan: u64,
    infinite: u64,
    histogram: Histogram,
    /// Sums of the least and the greatest values of the samples that ended, and how many these were.
    sample_ends: (ExactSum, ExactSum, u64),
    /// The means of its channels, where they are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<Channels>,
    /// How far its channels reach, where that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reach_by_channel: Option<Reach>,
    /// How far its channels vary, where that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<Spread>,
    /// What a second pass counted, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second: Option<NumpyHistogram>,
    /// What layers' weights are multiplied with that read it, where a further pass looked at that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moments: Vec<Moments>,
}

impl Observation {
    /// Nothing seen yet.
    pub fn new() -> Observation {
        Observation::default()
    }

    /// Takes in the values of one run.
    pub fn observe(&mut self, values: &[f32]) {
        self.observe_like(values, None);
    }

    /// The same, a little faster where they lie as those did of `before`, with which what is seen here must be merged in the end.
    pub(super) fn observe_like(&mut self, values: &[f32], before: Option<Bins>) {
        let all = values.len() as u64;
        if let Some(found) = self.histogram.observe_within(values, before) {
            self.finite += all;
            self.zeros += found.zeros;
            self.reach(found.reach);
            return;
        }
        let found = Ends::of(values);
        if found.all_finite {
            if all > 0 {
                self.finite += all;
                self.zeros += found.zeros;
                self.reach(found.reach);
                self.histogram
                    .observe(values, found.reach[0], found.reach[1], true);
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
            let reach = finite().fold(none, |[least, greatest, near], v| {
                [least.min(v), greatest.max(v), near.min(v.abs())]
            });
            self.finite += count;
            self.zeros += finite().filter(|&value| value == 0.0).count() as u64;
            self.reach(reach);
            self.histogram.observe(values, reach[0], reach[1], false);
        }
    }

    /// Takes in the means of the channels of one run, which lie along `axis`.
    pub fn observe_channels(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let channels = self.channels.get_or_insert_default();
        channels.observe(values, shape, axis);
    }

    /// Takes in how far the channels of one run reach, which lie along `axis`.
    pub(super) fn observe_reach(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let reach = self.reach_by_channel.get_or_insert_default();
        reach.observe(values, shape, axis);
    }

    /// Takes in how far the channels of one run vary, which lie along `axis`.
    pub(crate) fn observe_spread(&mut self, values: &[f32], shape: &[usize], axis: usize) {
        let spread = self.spread.get_or_insert_default();
        spread.observe(values, shape, axis);
    }

    /// What is seen of these values.
    #[cfg(test)]
    pub(crate) fn of(values: &[f32]) -> Observation {
        let mut seen = Observation::new();
        seen.observe(values);
        seen
    }

    /// Says that all values so far were of one sample, whose ends count once in the mean over samples.
    pub fn end_sample(&mut self) {
        if let Some([min, max, _]) = self.ends {
            self.sample_ends.0.add(min);
            self.sample_ends.1.add(max);
            self.sample_ends.2 += 1;
        }
    }

    /// Takes in all that `other` has seen. Exact, associative and commutative.
    pub fn merge(&mut self, other: &Observation) {
        if let Some(reach) = other.ends {
            self.reach(reach);
        }
        self.finite += other.finite;
        self.zeros += other.zeros;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.histogram.merge(&other.histogram);
        self.sample_ends.0.merge(&other.sample_ends.0);
        self.sample_ends.1.merge(&other.sample_ends.1);
        self.sample_ends.2 += other.sample_ends.2;
        if let Some(channels) = &other.channels {
            self.channels.get_or_insert_default().merge(channels);
        }
        if let Some(reach) = &other.reach_by_channel {
            self.reach_by_channel.get_or_insert_default().merge(reach);
        }
        if let Some(spread) = &other.spread {
            self.spread.get_or_insert_default().merge(spread);
        }
    }

    /// The least finite value; `None` while there is none.
    pub fn min(&self) -> Option<f32> {
        self.ends.map(|[min, _, _]| min)
    }

    /// The greatest finite value; `None` while there is none.
    pub fn max(&self) -> Option<f32> {
        self.ends.map(|[_, max, _]| max)
    }

    /// The finite value nearest to zero, without its sign; `None` while there is none.
    pub fn least_magnitude(&self) -> Option<f32> {
        self.ends.map(|[_, _, near]| near)
    }

    /// The mean over samples of the least and of the greatest value; `None` while no sample ended.
    pub fn mean_ends(&self) -> Option<Range> {
        let (min, max, samples) = &self.sample_ends;
        let mean = |sum: &ExactSum| (sum.value() / *samples as f64) as f32;
        (*samples > 0).then(|| Range::new(mean(min), mean(max)))
    }

    /// How many samples ended.
    pub fn samples(&self) -> u64 {
        self.sample_ends.2
    }

    /// The means of its channels, where they were wanted.
    pub fn channels(&self) -> Option<&Channels> {
        self.channels.as_ref()
    }

    /// How far its channels reach, where that was wanted.
    pub fn reach_by_channel(&self) -> Option<&Reach> {
        self.reach_by_channel.as_ref()
    }

    /// How far its channels vary, where that was wanted.
    pub fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    /// What a second pass over the samples counted.
    pub fn second_pass(&self) -> Option<&NumpyHistogram> {
        self.second.as_ref()
    }

    /// Takes what a second pass over the samples counted.
    pub(super) fn set_second_pass(&mut self, counted: NumpyHistogram) {
        self.second = Some(counted);
    }

    /// What those layers' weights are multiplied with that meet it like this, where a further pass looked at that.
    pub fn moments(&self, meeting: &Meeting) -> Option<&Moments> {
        self.moments.iter().find(|seen| seen.meeting() == meeting)
    }

    /// Whether a further pass looked at what any weights are multiplied with.
    pub fn has_moments(&self) -> bool {
        !self.moments.is_empty()
    }

    /// Takes what a further pass over the samples saw.
    pub(super) fn add_moments(&mut self, moments: Moments) {
        self.moments.push(moments);
    }

    /// The greatest magnitude that was seen; 0 while there was none.
    pub(super) fn magnitude(&self) -> f32 {
        self.ends.map_or(0.0, |[min, max, _]| max.max(-min))
    }

    /// Bytes that this holds, or where nothing was seen yet will hold once there was anything.
    pub fn expected_bytes(&self) -> u64 {
        let counts = match self.histogram.bytes() {
            0 => 2 * HALF * size_of::<u32>(),
            held => held,
        };
        let channels = self.channels.as_ref().map_or(0, Channels::bytes);
        let spread = self.spread.as_ref().map_or(0, Spread::bytes);
        (size_of::<Observation>() + counts + channels + spread) as u64
    }

    /// How many values were seen, finite or not.
    pub fn count(&self) -> u64 {
        self.finite + self.nan + self.infinite
    }

    /// How many of them were finite.
    pub fn finite_count(&self) -> u64 {
        self.finite
    }

    /// How many of them were exactly zero, of either sign.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// How many of them were NaN.
    pub fn nan_count(&self) -> u64 {
        self.nan
    }

    /// How many of them were infinite.
    pub fn infinite_count(&self) -> u64 {
        self.infinite
    }

    /// Where the finite values lie.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    fn reach(&mut self, [min, max, near]: [f32; 3]) {
        let [least, greatest, nearest] = self.ends.unwrap_or([min, max, near]);
        // Adding zero turns -0 into 0: which of the two a minimum gives would depend on the order.
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
    fn counts_and_ends_are_those_of_the_values() {
        let seen = Observation::of(&[0.5, f32::NAN, -3.0, f32::INFINITY, f32::NEG_INFINITY, 2.0]);
        assert_eq!((seen.min(), seen.max()), (Some(-3.0), Some(2.0)));
        assert_eq!(
            (seen.count(), seen.nan_count(), seen.infinite_count()),
            (6, 1, 2)
        );
        assert_eq!((seen.zeros(), seen.least_magnitude()), (0, Some(0.5)));
        let many: Vec<f32> = (0..100)
            .map(|i| (i % 3) as f32 - 0.5 * (i % 3) as f32)
            .collect();
        assert_eq!(
            (
                Observation::of(&many).zeros(),
                Observation::of(&many).least_magnitude()
            ),
            (34, Some(0.0))
        );
        let none = Observation::of(&[f32::NAN]);
        assert_eq!((none.min(), none.max(), none.count()), (None, None, 1));
    }

    #[test]
    fn the_sign_of_zero_leaves_no_trace() {
        assert_eq!(
            Observation::of(&[0.0, -0.0]).min().map(f32::to_bits),
            Some(0)
        );
        assert_eq!(
            Observation::of(&[-0.0, 0.0]).min().map(f32::to_bits),
            Some(0)
        );
        assert_eq!(Observation::of(&[-0.0]).max().map(f32::to_bits), Some(0));
    }

    #[test]
    fn each_sample_counts_once_in_the_mean_of_the_ends() {
        let sample = |values| {
            let mut seen = Observation::of(values);
            seen.end_sample();
            seen
        };
        let (a, b) = (sample(&[-1.0, 4.0, 4.0]), sample(&[-2.0, 1.0]));
        let mut both = a.clone();
        both.merge(&b);
        both.merge(&sample(&[f32::NAN])); // a sample without a finite value has no ends
        assert_eq!(both.mean_ends(), Some(Range::new(-1.5, 2.5)));
        assert_eq!(Observation::of(&[1.0]).mean_ends(), None);
        let mut turned = b;
        turned.merge(&a);
        turned.merge(&sample(&[f32::NAN]));
        assert_eq!(both, turned);
    }

    #[cfg(not(target_family = "wasm"))]
    mod laws {
        use super::*;
        use proptest::prelude::*;

        /// Any bits at all: NaNs, infinities, subnormals and zeros of both signs among them.
        fn any_values() -> impl Strategy<Value = Vec<f32>> {
            let value = prop_oneof![
                any::<u32>().prop_map(f32::from_bits),
                -4.0f32..4.0,
                Just(0.0f32),
                Just(-0.0f32),
                (-149i32..128).prop_map(|power| 2f32.powi(power)),
                (-149i32..128).prop_map(|power| -(2f32.powi(power))),
            ];
            proptest::collection::vec(value, 0..60)
        }

        fn merged(a: &Observation, b: &Observation) -> Observation {
            let mut sum = a.clone();
            sum.merge(b);
            sum
        }

        proptest! {
            #[test]
            fn merging_is_associative_and_commutative(
                a in any_values(), b in any_values(), c in any_values(),
            ) {
                let (a, b, c) = (Observation::of(&a), Observation::of(&b), Observation::of(&c));
                prop_assert_eq!(merged(&a, &b), merged(&b, &a));
                prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
                prop_assert_eq!(merged(&a, &Observation::new()), a);
            }

            #[test]
            fn any_cut_and_any_order_give_the_same_bits(
                values in any_values(), cut in 0usize..60, turn in 0usize..60,
            ) {
                let whole = Observation::of(&values);
                let (left, right) = values.split_at(cut.min(values.len()));
                prop_assert_eq!(&merged(&Observation::of(left), &Observation::of(right)), &whole);
                let mut stepwise = Observation::of(left);
                stepwise.observe(right);
                prop_assert_eq!(&stepwise, &whole);
                let mut turned = values.clone();
                turned.rotate_left(turn.min(values.len()));
                turned.reverse();
                prop_assert_eq!(&Observation::of(&turned), &whole);
            }

            #[test]
            fn each_bin_counts_the_values_between_its_edges(values in any_values()) {
                let seen = Observation::of(&values);
                let mut counted = 0;
                for (lower, upper, count) in seen.histogram().bins() {
                    let inside = |v: &&f32| (lower..upper).contains(&f64::from(**v));
                    prop_assert_eq!(values.iter().filter(inside).count() as u64, count);
                    counted += count;
                }
                prop_assert_eq!(counted, seen.count() - seen.nan_count() - seen.infinite_count());
            }
        }
    }
}
