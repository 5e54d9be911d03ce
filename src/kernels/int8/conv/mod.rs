//! Convolutions of an image with channels last, grouped, strided, dilated, and transposed ones.
//!
//! A convolution is a gemm whose rows are the places of the window. They are gathered into a panel of a few dozen
//! rows, which stays in the cache while it is multiplied by all columns: no copy of the image is made, and what a
//! window looks at costs nothing in the inner loop, padding and dilation included.

mod direct;
mod transposed;
mod winograd;

pub use direct::{ConvWeights, Way, conv};
pub(super) use transposed::transposed_size;
pub use transposed::{TransposedWeights, transposed};

use super::error::{Error, equal, product};
use super::gemm::{Block, Panel, Weights, block_rows, multiply};
use super::output::Output;
use super::shape::{Image, Window};

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

/// The pixels that a place of the window looks at, tap by tap: for each row of taps whether it is inside.
struct Gather<'a> {
    image: &'a Image<'a>,
    /// The first channel, and how many.
    first: usize,
    channels: usize,
    /// A tap's worth of the zero point.
    padding: &'a [u8],
}

impl Gather<'_> {
    /// Puts one tap into a row of the panel.
    #[inline]
    fn tap(&self, panel: &mut Panel, row: usize, depth: usize, at: Option<(usize, usize)>) {
        match at {
            Some((y, x)) => {
                let pixel = (y * self.image.width + x) * self.image.stride + self.first;
                panel.put(row, depth, &self.image.values[pixel..][..self.channels]);
            }
            None => panel.put(row, depth, &self.padding[..self.channels]),
        }
    }
}

/// Multiplies `count` gathered rows, a block at a time. `gather` puts row r into a row of the panel.
fn multiply_gathered(
    weights: &Weights,
    beginnings: &[i32],
    count: usize,
    mut output: Output,
    mut gather: impl FnMut(&mut Panel, usize, usize),
) {
    let at_once = block_rows(weights).min(count);
    let mut panel = Panel::new(weights, at_once);
    let mut row_sums = Vec::new();
    for first in (0..count).step_by(at_once.max(1)) {
        let rows = at_once.min(count - first);
        for row in 0..rows {
            gather(&mut panel, row, first + row);
        }
        if weights.wants_row_sums() {
            row_sums.clear();
            row_sums.extend((0..rows).map(|row| panel.sum(row)));
        }
        let (values, stride) = panel.read();
        let block = Block {
            values,
            stride,
            rows,
            row_sums: &row_sums,
            beginnings,
        };
        multiply(&block, weights, output.part(first, 0, weights.columns()));
    }
}
