//! Why a kernel refuses its arguments.

use core::fmt;

use super::Form;

/// What is wrong with the arguments of a kernel. Nothing was written where one of these comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A slice holds fewer values than the shape says.
    TooShort {
        /// Which slice.
        what: &'static str,
        /// How many values the shape asks for.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// Two numbers that must be equal are not.
    Mismatch {
        /// Of what.
        what: &'static str,
        /// The number one argument implies.
        expected: usize,
        /// The number another one has.
        found: usize,
    },
    /// A size that must be at least one is zero.
    Zero {
        /// Which size.
        what: &'static str,
    },
    /// A size does not fit the address space, or a product of sizes.
    TooLarge {
        /// Which size.
        what: &'static str,
    },
    /// A factor that is infinite, no number, or so large that products with it could be.
    NotFinite {
        /// Which factors.
        what: &'static str,
    },
    /// This build or this machine cannot run the form that was asked for.
    Unavailable(Form),
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooShort {
                what,
                needed,
                found,
            } => write!(to, "{what} holds {found} values, its shape needs {needed}"),
            Error::Mismatch {
                what,
                expected,
                found,
            } => write!(to, "{what}: {found} where {expected} was expected"),
            Error::Zero { what } => write!(to, "{what} is zero"),
            Error::TooLarge { what } => {
                write!(to, "{what} is larger than this machine can address")
            }
            Error::NotFinite { what } => write!(to, "{what}: not finite, or too large"),
            Error::Unavailable(form) => {
                write!(
                    to,
                    "the kernel form {form} cannot run on this machine; Form::available lists those that can"
                )
            }
        }
    }
}

impl core::error::Error for Error {}

/// The product of sizes, or an error naming what they are the size of.
pub(super) fn product(what: &'static str, sizes: &[usize]) -> Result<usize, Error> {
    // isize: what a slice may span.
    sizes
        .iter()
        .try_fold(1usize, |all, &size| all.checked_mul(size))
        .filter(|&all| isize::try_from(all).is_ok())
        .ok_or(Error::TooLarge { what })
}

/// Holds a slice's length against what its shape needs.
pub(super) fn at_least(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found < needed {
        return Err(Error::TooShort {
            what,
            needed,
            found,
        });
    }
    Ok(())
}

/// Holds two numbers that must be equal against each other.
pub(super) fn equal(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected != found {
        return Err(Error::Mismatch {
            what,
            expected,
            found,
        });
    }
    Ok(())
}

/// Holds factors to magnitudes whose products with sums of bytes stay finite, so that no NaN comes about: what
/// comparisons do with one is not the same in every vector form.
pub(super) fn finite(what: &'static str, factors: &[f32]) -> Result<(), Error> {
    if factors.iter().all(|factor| factor.abs() <= 1e28) {
        Ok(())
    } else {
        Err(Error::NotFinite { what })
    }
}

/// How many values `count` runs of `length`, `stride` apart, span: the last run needs no stride.
pub(super) fn span(
    what: &'static str,
    count: usize,
    stride: usize,
    length: usize,
) -> Result<usize, Error> {
    if stride < length && count > 1 {
        return Err(Error::Mismatch {
            what: "a stride shorter than what it strides over",
            expected: length,
            found: stride,
        });
    }
    if count == 0 || length == 0 {
        return Ok(0);
    }
    product(what, &[count - 1, stride])?
        .checked_add(length)
        .filter(|&all| isize::try_from(all).is_ok())
        .ok_or(Error::TooLarge { what })
}
