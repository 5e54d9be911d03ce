//! What calibration remembers of one tensor: small, mergeable, and the same bits for any order
//! and any cut of the data.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// What was seen of one tensor over all samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// `Some` once a finite value was seen: the least and the greatest.
    ends: Option<(f32, f32)>,
    finite: u64,
    nan: u64,
    infinite: u64,
    histogram: Histogram,
}

impl Observation {
    /// Nothing seen yet.
    pub fn new() -> Observation {
        Observation::default()
    }

    /// Takes in the values of one run.
    pub fn observe(&mut self, values: &[f32]) {
        let all = values.len() as u64;
        let (min, max, all_finite) = ends(values);
        if all_finite {
            if all > 0 {
                self.finite += all;
                self.reach(min, max);
                self.histogram.observe(values, min, max, true);
            }
            return;
        }
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let count = finite().count() as u64;
        let nan = values.iter().filter(|value| value.is_nan()).count() as u64;
        self.nan += nan;
        self.infinite += all - count - nan;
        if count > 0 {
            let (min, max) = finite()
                .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), v| {
                    (least.min(v), most.max(v))
                });
            self.finite += count;
            self.reach(min, max);
            self.histogram.observe(values, min, max, false);
        }
    }

    /// Takes in all that `other` has seen. Exact, associative and commutative.
    pub fn merge(&mut self, other: &Observation) {
        if let Some((min, max)) = other.ends {
            self.reach(min, max);
        }
        self.finite += other.finite;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.histogram.merge(&other.histogram);
    }

    /// The least finite value; `None` while there is none.
    pub fn min(&self) -> Option<f32> {
        self.ends.map(|(min, _)| min)
    }

    /// The greatest finite value; `None` while there is none.
    pub fn max(&self) -> Option<f32> {
        self.ends.map(|(_, max)| max)
    }

    /// How many values were seen, finite or not.
    pub fn count(&self) -> u64 {
        self.finite + self.nan + self.infinite
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

    fn reach(&mut self, min: f32, max: f32) {
        let (least, greatest) = self.ends.unwrap_or((min, max));
        // Adding zero turns -0 into 0: which of the two a minimum gives would depend on the order.
        self.ends = Some((least.min(min) + 0.0, greatest.max(max) + 0.0));
    }
}

/// The least and the greatest value, and whether all are finite: the ends mean something only then.
/// Written in lanes, so that it becomes vector code.
fn ends(values: &[f32]) -> (f32, f32, bool) {
    const LANES: usize = 16;
    let mut least = [f32::INFINITY; LANES];
    let mut greatest = [f32::NEG_INFINITY; LANES];
    // Zero for as long as everything is finite; NaN from then on.
    let mut zero = [0.0f32; LANES];
    let mut take = |lane: usize, value: f32| {
        least[lane] = if value < least[lane] {
            value
        } else {
            least[lane]
        };
        greatest[lane] = if value > greatest[lane] {
            value
        } else {
            greatest[lane]
        };
        zero[lane] += value * 0.0;
    };
    let blocks = values.chunks_exact(LANES);
    for (lane, &value) in blocks.remainder().iter().enumerate() {
        take(lane, value);
    }
    for block in blocks {
        for (lane, &value) in block.iter().enumerate() {
            take(lane, value);
        }
    }
    let min = least.iter().copied().fold(f32::INFINITY, f32::min);
    let max = greatest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (min, max, zero.iter().all(|&z| z == 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> Observation {
        let mut observation = Observation::new();
        observation.observe(values);
        observation
    }

    #[test]
    fn counts_and_ends_are_those_of_the_values() {
        let seen = of(&[0.5, f32::NAN, -3.0, f32::INFINITY, f32::NEG_INFINITY, 2.0]);
        assert_eq!((seen.min(), seen.max()), (Some(-3.0), Some(2.0)));
        assert_eq!(
            (seen.count(), seen.nan_count(), seen.infinite_count()),
            (6, 1, 2)
        );
        let none = of(&[f32::NAN]);
        assert_eq!((none.min(), none.max(), none.count()), (None, None, 1));
    }

    #[test]
    fn the_sign_of_zero_leaves_no_trace() {
        assert_eq!(of(&[0.0, -0.0]).min().map(f32::to_bits), Some(0));
        assert_eq!(of(&[-0.0, 0.0]).min().map(f32::to_bits), Some(0));
        assert_eq!(of(&[-0.0]).max().map(f32::to_bits), Some(0));
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
                let (a, b, c) = (of(&a), of(&b), of(&c));
                prop_assert_eq!(merged(&a, &b), merged(&b, &a));
                prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
                prop_assert_eq!(merged(&a, &Observation::new()), a);
            }

            #[test]
            fn any_cut_and_any_order_give_the_same_bits(
                values in any_values(), cut in 0usize..60, turn in 0usize..60,
            ) {
                let whole = of(&values);
                let (left, right) = values.split_at(cut.min(values.len()));
                prop_assert_eq!(&merged(&of(left), &of(right)), &whole);
                let mut stepwise = of(left);
                stepwise.observe(right);
                prop_assert_eq!(&stepwise, &whole);
                let mut turned = values.clone();
                turned.rotate_left(turn.min(values.len()));
                turned.reverse();
                prop_assert_eq!(&of(&turned), &whole);
            }

            #[test]
            fn each_bin_counts_the_values_between_its_edges(values in any_values()) {
                let seen = of(&values);
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
