//! Errors for invalid kernel arguments.

use core::fmt;

use super::Isa;

/// Invalid arguments of a kernel. The kernel has written nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A slice holds fewer values than its shape requires.
    TooShort {
        /// Name of the slice.
        what: &'static str,
        /// Required number of values.
        needed: usize,
        /// Actual number of values.
        actual: usize,
    },
    /// Two sizes that must be equal differ.
    Mismatch {
        /// Name of the size.
        what: &'static str,
        /// Size according to one argument.
        expected: usize,
        /// Size according to another argument.
        actual: usize,
    },
    /// A size exceeds its limit.
    Exceeds {
        /// Name of the size.
        what: &'static str,
        /// Largest size.
        limit: usize,
        /// Actual size.
        actual: usize,
    },
    /// An index is outside of its axis.
    OutOfRange {
        /// Name of the index.
        what: &'static str,
        /// Length of the axis.
        length: usize,
        /// The index.
        index: usize,
    },
    /// A permutation lists an axis twice.
    RepeatedAxis(usize),
    /// The distance between rows is less than their length.
    ShortStride {
        /// Distance between rows.
        stride: usize,
        /// Length of a row.
        length: usize,
    },
    /// Packed weights have another number of bits than 2, 4 or 8.
    Bits(usize),
    /// A size that must be at least one is zero.
    Zero {
        /// Name of the size.
        what: &'static str,
    },
    /// A size or a product of sizes does not fit the address space.
    TooLarge {
        /// Name of the size.
        what: &'static str,
    },
    /// A factor is infinite, NaN, or so large that its products may overflow.
    NotFinite {
        /// Name of the factors.
        what: &'static str,
    },
    /// The requested ISA is not available in this build or on this machine.
    Unavailable(Isa),
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooShort {
                what,
                needed,
                actual,
            } => write!(to, "{what} holds {actual} values, its shape needs {needed}"),
            Error::Mismatch {
                what,
                expected,
                actual,
            } => write!(to, "{what}: expected {expected}, actual {actual}"),
            Error::Exceeds {
                what,
                limit,
                actual,
            } => write!(to, "{what}: at most {limit}, actual {actual}"),
            Error::OutOfRange {
                what,
                length,
                index,
            } => write!(to, "{what}: {index} is not below {length}"),
            Error::RepeatedAxis(axis) => write!(to, "axis {axis} is repeated"),
            Error::ShortStride { stride, length } => {
                write!(to, "the stride {stride} is shorter than a row of {length}")
            }
            Error::Bits(bits) => write!(to, "{bits} bits per weight: expected 2, 4 or 8"),
            Error::Zero { what } => write!(to, "{what} is zero"),
            Error::TooLarge { what } => {
                write!(to, "{what} is larger than this machine can address")
            }
            Error::NotFinite { what } => write!(to, "{what}: not finite, or too large"),
            Error::Unavailable(isa) => {
                write!(
                    to,
                    "the instruction set {isa} is not available here; Isa::available lists those that are"
                )
            }
        }
    }
}

impl core::error::Error for Error {}

/// Multiplies sizes, or returns an error with the name of the result.
pub(super) fn product(what: &'static str, sizes: &[usize]) -> Result<usize, Error> {
    // A slice spans at most isize::MAX bytes.
    sizes
        .iter()
        .try_fold(1usize, |all, &size| all.checked_mul(size))
        .filter(|&all| isize::try_from(all).is_ok())
        .ok_or(Error::TooLarge { what })
}

/// Checks that a slice is long enough for its shape.
pub(super) fn at_least(what: &'static str, actual: usize, needed: usize) -> Result<(), Error> {
    if actual < needed {
        return Err(Error::TooShort {
            what,
            needed,
            actual,
        });
    }
    Ok(())
}

/// Checks that two sizes are equal.
pub(super) fn equal(what: &'static str, expected: usize, actual: usize) -> Result<(), Error> {
    if expected != actual {
        return Err(Error::Mismatch {
            what,
            expected,
            actual,
        });
    }
    Ok(())
}

/// Checks that products of the factors with accumulators stay finite, so that no NaN arises. Vector
/// comparisons with NaN differ between ISAs.
pub(super) fn finite(what: &'static str, factors: &[f32]) -> Result<(), Error> {
    if factors.iter().all(|factor| factor.abs() <= 1e28) {
        Ok(())
    } else {
        Err(Error::NotFinite { what })
    }
}

/// Returns the span of `count` runs of `length` values, `stride` apart. The last run needs no
/// stride.
pub(super) fn span(
    what: &'static str,
    count: usize,
    stride: usize,
    length: usize,
) -> Result<usize, Error> {
    if stride < length && count > 1 {
        return Err(Error::ShortStride { stride, length });
    }
    if count == 0 || length == 0 {
        return Ok(0);
    }
    product(what, &[count - 1, stride])?
        .checked_add(length)
        .filter(|&all| isize::try_from(all).is_ok())
        .ok_or(Error::TooLarge { what })
}
