//! Semantics of WebAssembly's relaxed dot.

/// Semantics of a relaxed dot: the signedness of activations and the weight range in which it is
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RelaxedDot {
    /// True if activations are read as i8. Then 128 is subtracted from them, and the initial
    /// accumulators compensate.
    pub(super) signed: bool,
    /// Maximum magnitude of a weight.
    pub(super) limit: i32,
}
