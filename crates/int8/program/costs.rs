//! Costs of operators, which decide over the number of threads.

/// Minimum cost of a parallel operator. A unit is an element that is moved or computed, or
/// [`MULTIPLICATIONS_PER_UNIT`] of a product.
pub(crate) const MIN_PARALLEL_COST: usize = 1 << 13;

/// Above this cost there are two pieces per thread, which balances other load on the machine.
pub(crate) const LARGE_COST: usize = 1 << 18;

/// Multiplications of a product that cost as much as one element.
const MULTIPLICATIONS_PER_UNIT: usize = 16;

/// Cost of a product with this number of multiplications, in the units of
/// [`split_rows`](crate::split_rows).
pub fn cost_of_product(multiplications: usize) -> usize {
    multiplications / MULTIPLICATIONS_PER_UNIT
}
