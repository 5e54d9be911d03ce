//! Costs of operators, which decide over the number of threads.

/// Minimum cost of a parallel operator. A unit is an element that is moved or computed, or
/// [`MULTIPLICATIONS_PER_UNIT`] of a product.
pub(crate) const MIN_PARALLEL_COST: usize = 1 << 13;

/// Minimum cost of a piece where an operator has more pieces than threads. A shorter one would cost
/// a noticeable share in claims.
pub(crate) const MIN_PIECE_COST: usize = 1 << 14;

/// Maximum number of pieces per thread. With many pieces, a thread that starts late or is
/// interrupted delays an operator by one piece instead of its whole share.
pub(crate) const MAX_PIECES_PER_THREAD: usize = 4;

/// Multiplications of a product that cost as much as one element.
const MULTIPLICATIONS_PER_UNIT: usize = 16;

/// Cost of a product with this number of multiplications, in the units of
/// [`split_rows`](crate::split_rows).
pub fn cost_of_product(multiplications: usize) -> usize {
    multiplications / MULTIPLICATIONS_PER_UNIT
}
