//! Laws of tensor statistics: equal bits for any order and division of the data.

use super::TensorStatistics;
use proptest::prelude::*;

/// Any bits, including NaN, infinities, subnormals and zeros of both signs.
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

fn merged(a: &TensorStatistics, b: &TensorStatistics) -> TensorStatistics {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #[test]
    fn merging_is_associative_and_commutative(
        a in any_values(), b in any_values(), c in any_values(),
    ) {
        let (a, b, c) = (TensorStatistics::from_values(&a), TensorStatistics::from_values(&b), TensorStatistics::from_values(&c));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &TensorStatistics::new()), a);
    }

    #[test]
    fn any_division_and_order_give_identical_bits(
        values in any_values(), cut in 0usize..60, turn in 0usize..60,
    ) {
        let whole = TensorStatistics::from_values(&values);
        let (left, right) = values.split_at(cut.min(values.len()));
        prop_assert_eq!(&merged(&TensorStatistics::from_values(left), &TensorStatistics::from_values(right)), &whole);
        let mut stepwise = TensorStatistics::from_values(left);
        stepwise.observe(right);
        prop_assert_eq!(&stepwise, &whole);
        let mut turned = values.clone();
        turned.rotate_left(turn.min(values.len()));
        turned.reverse();
        prop_assert_eq!(&TensorStatistics::from_values(&turned), &whole);
    }

    #[test]
    fn each_bin_counts_the_values_between_its_edges(values in any_values()) {
        let stats = TensorStatistics::from_values(&values);
        let mut counted = 0;
        for (lower, upper, count) in stats.histogram().bins() {
            let inside = |v: &&f32| (lower..upper).contains(&f64::from(**v));
            prop_assert_eq!(values.iter().filter(inside).count() as u64, count);
            counted += count;
        }
        prop_assert_eq!(counted, stats.count() - stats.nan_count() - stats.infinite_count());
    }
}
