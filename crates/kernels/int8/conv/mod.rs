//! Convolutions of NHWC images: grouped, strided, dilated and transposed.
//!
//! A convolution is a GEMM over the im2col matrix, of which a few dozen rows are gathered at a time
//! (`gather`). 3 × 3 windows can use Winograd's algorithm instead (`winograd`).

mod direct;
mod gather;
mod transposed;
mod winograd;

pub use direct::{ConvAlgorithm, ConvWeights, conv};
pub(super) use transposed::transposed_size;
pub use transposed::{TransposedWeights, transposed};

use super::error::{Error, equal, product};
use super::shape::Window;

/// Channels and kernel of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Input channels of all groups.
    pub inputs: usize,
    /// Output channels of all groups.
    pub outputs: usize,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Number of groups; 1 for a dense convolution.
    pub groups: usize,
}

impl ConvShape {
    /// Input and output channels per group.
    pub(super) fn per_group(&self) -> Result<[usize; 2], Error> {
        if self.groups == 0 {
            return Err(Error::Zero {
                what: "the number of groups",
            });
        }
        for (what, channels) in [
            ("input channels in whole groups", self.inputs),
            ("output channels in whole groups", self.outputs),
        ] {
            if channels % self.groups != 0 {
                return Err(Error::Mismatch {
                    what,
                    expected: channels / self.groups * self.groups,
                    actual: channels,
                });
            }
        }
        Ok([self.inputs / self.groups, self.outputs / self.groups])
    }

    /// Checks that the window has this kernel.
    pub(super) fn fits(&self, window: &Window) -> Result<(), Error> {
        equal("rows of the kernel", self.kernel[0], window.kernel[0])?;
        equal("columns of the kernel", self.kernel[1], window.kernel[1])
    }

    /// Number of weights.
    pub(super) fn weights(&self) -> Result<usize, Error> {
        let [inputs, _] = self.per_group()?;
        product(
            "the weights",
            &[self.outputs, inputs, self.kernel[0], self.kernel[1]],
        )
    }
}
