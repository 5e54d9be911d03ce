//! Tests that merging is commutative and associative.

use core::fmt::Debug;

/// Merges two parts in both orders and three parts in both groupings.
pub(super) fn check_merging<T: Clone + Debug + PartialEq>(parts: &[T], merge: impl Fn(&mut T, &T)) {
    let merged = |one: &T, other: &T| {
        let mut both = one.clone();
        merge(&mut both, other);
        both
    };
    for a in parts {
        for b in parts {
            assert_eq!(merged(a, b), merged(b, a));
            for c in parts {
                assert_eq!(merged(&merged(a, b), c), merged(a, &merged(b, c)));
            }
        }
    }
}
