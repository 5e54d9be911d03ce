//! Convolutions of an image with channels last, grouped, strided, dilated, and transposed ones.
//!
//! A convolution is a gemm whose rows are the places of the window, which are gathered a few dozen at a time (`gather`), or one
//! with fewer products (`winograd`).

mod direct;
mod gather;
mod transposed;
mod winograd;

pub use direct::{ConvWeights, Way, conv};
pub(super) use transposed::transposed_size;
pub use transposed::{TransposedWeights, transposed};

use super::error::{Error, equal, product};
use super::shape::Window;

/// Channels in and out of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Channels of the image, of all groups.
    pub inputs: usize,
    /// Channels of the output, of all groups.
    pub outputs: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// How many groups, 1 for a plain convolution.
    pub groups: usize,
}

impl ConvShape {
    /// Channels in and out of a group.
    pub(super) fn per_group(&self) -> Result<[usize; 2], Error> {
        if self.groups == 0 {
            return Err(Error::Zero {
                what: "the number of groups",
            });
        }
        for (what, channels) in [
            ("channels in, over groups", self.inputs),
            ("channels out, over groups", self.outputs),
        ] {
            if channels % self.groups != 0 {
                return Err(Error::Mismatch {
                    what,
                    expected: channels / self.groups * self.groups,
                    found: channels,
                });
            }
        }
        Ok([self.inputs / self.groups, self.outputs / self.groups])
    }

    /// Whether a window has this kernel.
    pub(super) fn fits(&self, window: &Window) -> Result<(), Error> {
        equal("rows of the kernel", self.kernel[0], window.kernel[0])?;
        equal("columns of the kernel", self.kernel[1], window.kernel[1])
    }

    /// How many weights there are.
    pub(super) fn weights(&self) -> Result<usize, Error> {
        let [inputs, _] = self.per_group()?;
        product(
            "the weights",
            &[self.outputs, inputs, self.kernel[0], self.kernel[1]],
        )
    }
}
