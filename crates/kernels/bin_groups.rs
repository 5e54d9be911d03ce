//! Sums over groups of histogram bins, for the information lost by merging bins.
//! `calibrate/methods/entropy.rs` derives them.

use core::ops::Range;

use crate::log2;

/// Prefix sums over bins: entry i covers the bins before bin i.
#[derive(Clone, Copy, Debug)]
pub struct PrefixSums<'a> {
    /// Prefix sums of the counts.
    pub mass: &'a [f64],
    /// Prefix counts of the non-empty bins.
    pub filled: &'a [f64],
}

impl PrefixSums<'_> {
    /// Subtracts `(m + outside) · log2(m / f)` from a sum for each group of these bins. `m` is the
    /// group's mass and `f` its number of non-empty bins. `outside` is the mass below for the
    /// first group and the mass above for the last.
    ///
    /// Returns the sum and the number of non-empty groups.
    pub fn less_groups(
        &self,
        mut sum: f64,
        bins: Range<usize>,
        groups: usize,
        [below, above]: [f64; 2],
    ) -> (f64, f64) {
        let mut filled_groups = 0.0;
        let mut from = bins.start;
        for group in 0..groups {
            let to = bins.start + (group + 1) * bins.len() / groups;
            let content = self.mass[to] - self.mass[from];
            if content > 0.0 {
                let more = if group == 0 { below } else { 0.0 }
                    + if group + 1 == groups { above } else { 0.0 };
                let filled = self.filled[to] - self.filled[from];
                sum -= (content + more) * log2(content / filled);
                filled_groups += 1.0;
            }
            from = to;
        }
        (sum, filled_groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_match_the_definition() {
        // Bins 0, 4, 0, 2, 2, 8. From the second bin on, two groups: 4 in one bin, 12 in three.
        let prefix = PrefixSums {
            mass: &[0.0, 0.0, 4.0, 4.0, 6.0, 8.0, 16.0],
            filled: &[0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0],
        };
        let (sum, groups) = prefix.less_groups(100.0, 1..6, 2, [1.0, 3.0]);
        assert!(
            (sum - (100.0 - 5.0 * 2.0 - 15.0 * 2.0)).abs() < 1e-12,
            "{sum}"
        );
        assert_eq!(groups, 2.0);
        let (sum, groups) = prefix.less_groups(0.0, 0..1, 1, [0.0; 2]);
        assert_eq!((sum, groups), (0.0, 0.0));
    }
}
