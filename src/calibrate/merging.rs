//! That what was seen is the same in whatever order its parts are merged.

use core::fmt::Debug;

/// Two parts either way round, and three in either grouping.
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
