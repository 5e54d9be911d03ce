//! Convolutions of an image with channels last, grouped, strided, dilated, and transposed ones.

use core::ops::Range;

use super::error::{Error, at_least, equal, product};
use super::output::Output;
use super::shape::{Image, Window, zero_points};
use super::{Form, reference};

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

/// The weights of a convolution, packed once for one form.
#[derive(Clone, Debug)]
pub struct ConvWeights {
    form: Form,
    shape: ConvShape,
    values: Vec<i8>,
    zero_points: Vec<i8>,
}

impl ConvWeights {
    /// Packs weights that lie as in ONNX: [out, in of a group, rows, columns]. One zero point an output channel,
    /// or none for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        shape: ConvShape,
        zero_points_of_outputs: &[i8],
    ) -> Result<ConvWeights, Error> {
        let count = shape.weights()?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_outputs, shape.outputs)?;
        Ok(ConvWeights {
            form,
            shape,
            values: values[..count].to_vec(),
            zero_points: zero_points_of_outputs.to_vec(),
        })
    }

    /// The form that runs.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Channels and kernel.
    pub fn shape(&self) -> ConvShape {
        self.shape
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        self.values.len()
    }
}

/// A range of the output's rows; the output's slice begins with the first of them. Padding is the image's zero point.
pub fn conv(
    image: &Image,
    window: &Window,
    weights: &ConvWeights,
    bias: Option<&[i32]>,
    rows: Range<usize>,
    output: Output,
) -> Result<(), Error> {
    reference::conv(
        image,
        window,
        &weights.values,
        &weights.shape,
        &weights.zero_points,
        bias,
        rows,
        output,
    )
}

/// The weights of a transposed convolution, packed once for one form and one stride.
#[derive(Clone, Debug)]
pub struct TransposedWeights {
    form: Form,
    shape: ConvShape,
    window: Window,
    values: Vec<i8>,
    zero_points: Vec<i8>,
}

impl TransposedWeights {
    /// Packs weights that lie as in ONNX: [in, out of a group, rows, columns]. One zero point an output channel,
    /// or none for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        shape: ConvShape,
        window: &Window,
        zero_points_of_outputs: &[i8],
    ) -> Result<TransposedWeights, Error> {
        let count = shape.weights()?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_outputs, shape.outputs)?;
        Ok(TransposedWeights {
            form,
            shape,
            window: window.clone(),
            values: values[..count].to_vec(),
            zero_points: zero_points_of_outputs.to_vec(),
        })
    }

    /// The form that runs.
    pub fn form(&self) -> Form {
        self.form
    }
}

/// Checks the output size [height, width] asked of a transposed convolution: the window, moved over it, must
/// have a place for each pixel of the image, which is what ONNX's output_padding (less than the stride) leaves.
pub(super) fn transposed_size(
    image: &Image,
    window: &Window,
    size: [usize; 2],
) -> Result<(), Error> {
    let places = window.output(size[0], size[1])?;
    for (expected, found) in [image.height, image.width].into_iter().zip(places) {
        equal(
            "the output's size, as places of the window",
            expected,
            found,
        )?;
    }
    Ok(())
}

/// A range of the rows of a transposed convolution's output of this size [height, width].
pub fn transposed(
    image: &Image,
    size: [usize; 2],
    weights: &TransposedWeights,
    bias: Option<&[i32]>,
    rows: Range<usize>,
    output: Output,
) -> Result<(), Error> {
    reference::transposed(
        image,
        &weights.window,
        size,
        &weights.values,
        &weights.shape,
        &weights.zero_points,
        bias,
        rows,
        output,
    )
}
