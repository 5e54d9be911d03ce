//! Convolutions in which every channel has a kernel of its own.

use core::ops::Range;

use super::conv::ConvShape;
use super::error::{Error, at_least, product};
use super::output::Output;
use super::shape::{Image, Window, zero_points};
use super::{Form, reference};

/// The weights of a depthwise convolution, packed once for one form.
#[derive(Clone, Debug)]
pub struct DepthwiseWeights {
    form: Form,
    channels: usize,
    kernel: [usize; 2],
    values: Vec<i8>,
    zero_points: Vec<i8>,
}

impl DepthwiseWeights {
    /// Packs weights that lie as in ONNX: [channels, 1, rows, columns]. One zero point a channel, or none for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        channels: usize,
        kernel: [usize; 2],
        zero_points_of_channels: &[i8],
    ) -> Result<DepthwiseWeights, Error> {
        let count = product("the weights", &[channels, kernel[0], kernel[1]])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_channels, channels)?;
        Ok(DepthwiseWeights {
            form,
            channels,
            kernel,
            values: values[..count].to_vec(),
            zero_points: zero_points_of_channels.to_vec(),
        })
    }

    /// The form that runs.
    pub fn form(&self) -> Form {
        self.form
    }
}

/// A range of the output's rows; the output's slice begins with the first of them. Padding is the image's zero point.
pub fn depthwise(
    image: &Image,
    window: &Window,
    weights: &DepthwiseWeights,
    bias: Option<&[i32]>,
    rows: Range<usize>,
    output: Output,
) -> Result<(), Error> {
    let shape = ConvShape {
        inputs: weights.channels,
        outputs: weights.channels,
        kernel: weights.kernel,
        groups: weights.channels,
    };
    reference::conv(
        image,
        window,
        &weights.values,
        &shape,
        &weights.zero_points,
        bias,
        rows,
        output,
    )
}
