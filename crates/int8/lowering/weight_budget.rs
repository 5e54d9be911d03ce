//! Memory limit of packed weights.

use octet_kernels::int8::Way;

/// Bytes left for Winograd weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WinogradBudget(usize);

impl WinogradBudget {
    /// Budget of a region, out of the 4 GiB of a page; VGG needs less.
    pub(crate) const FULL: WinogradBudget = WinogradBudget(1 << 28);

    /// The algorithm `best`, if its weights fit into the rest of the budget.
    pub(crate) fn way(&mut self, best: Way, weights: usize) -> Way {
        let bytes = weights.saturating_mul(best.bytes_a_weight());
        match (best, self.0.checked_sub(bytes)) {
            (Way::Winograd, Some(rest)) => {
                self.0 = rest;
                best
            }
            _ => Way::Gathered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_packed_for_winograd_within_the_budget() {
        let mut budget = WinogradBudget(8 * 100);
        assert_eq!(budget.way(Way::Winograd, 60), Way::Winograd);
        // Gathered convolutions use nothing of the budget.
        assert_eq!(budget.way(Way::Gathered, 1000), Way::Gathered);
        assert_eq!(budget.way(Way::Winograd, 41), Way::Gathered);
        assert_eq!(budget.way(Way::Winograd, 40), Way::Winograd);
        assert_eq!(budget.way(Way::Winograd, usize::MAX), Way::Gathered);
    }
}
