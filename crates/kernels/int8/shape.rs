//! Matrices, images and sliding windows.

use core::ops::Range;

use super::error::{Error, at_least, equal, product, span};

/// Rows of a u8 activation matrix.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Row r begins at `r · stride`.
    pub values: &'a [u8],
    /// Number of rows.
    pub count: usize,
    /// At least the number of values in a row.
    pub stride: usize,
    /// Zero point.
    pub zero_point: u8,
}

/// An NHWC image of batch 1, of bytes unless another type is given.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a, T = u8> {
    /// Pixel (y, x), channel c is at `(y · width + x) · stride + c`.
    pub values: &'a [T],
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Number of channels that kernels read.
    pub channels: usize,
    /// Distance between pixels; at least the number of channels.
    pub stride: usize,
    /// Zero point, which padding takes too.
    pub zero_point: u8,
}

impl<T> Image<'_, T> {
    /// Checks that the slice holds the image.
    pub(super) fn check(&self) -> Result<(), Error> {
        let pixels = product("the image", &[self.height, self.width])?;
        let needed = span("the image", pixels, self.stride, self.channels)?;
        at_least("the image", self.values.len(), needed)
    }

    /// Length of an image row, from its first value to its last.
    pub(super) fn row_length(&self) -> usize {
        (self.width - 1) * self.stride + self.channels
    }

    /// Returns an image row, gaps between pixels included.
    pub(super) fn row(&self, y: usize) -> &[T] {
        &self.values[y * self.width * self.stride..][..self.row_length()]
    }
}

/// A sliding window. Pairs are (vertical, horizontal).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Strides.
    pub strides: [usize; 2],
    /// Dilations; 1 means adjacent taps.
    pub dilations: [usize; 2],
    /// Padding: top, left, bottom, right (ONNX order).
    pub pads: [usize; 4],
}

impl Window {
    /// A 1 × 1 window that visits every pixel.
    pub const PIXEL: Window = Window {
        kernel: [1, 1],
        strides: [1, 1],
        dilations: [1, 1],
        pads: [0; 4],
    };

    /// A window with this kernel, stride 1 and no padding.
    pub fn of(kernel: [usize; 2]) -> Window {
        Window {
            kernel,
            ..Window::PIXEL
        }
    }

    /// Returns the output's height and width for an input of this size; 0 if the window does not
    /// fit.
    pub fn output(&self, height: usize, width: usize) -> Result<[usize; 2], Error> {
        self.sized(height, width, false)
    }

    /// Returns the output's size with ceil_mode: the last window may begin inside and end outside
    /// the padded image. No window begins in the trailing padding.
    pub fn output_rounded_up(&self, height: usize, width: usize) -> Result<[usize; 2], Error> {
        self.sized(height, width, true)
    }

    fn sized(&self, height: usize, width: usize, up: bool) -> Result<[usize; 2], Error> {
        let mut sizes = [0; 2];
        for (axis, size) in [height, width].into_iter().enumerate() {
            for (what, value) in [
                ("a kernel size", self.kernel[axis]),
                ("a stride", self.strides[axis]),
                ("a dilation", self.dilations[axis]),
            ] {
                if value == 0 {
                    return Err(Error::Zero { what });
                }
            }
            let what = "the window";
            let reach = product(what, &[self.kernel[axis] - 1, self.dilations[axis]])?;
            let padded = size
                .checked_add(self.pads[axis])
                .and_then(|size| size.checked_add(self.pads[axis + 2]))
                // Positions are computed in isize.
                .filter(|&size| size <= isize::MAX as usize / 2)
                .ok_or(Error::TooLarge { what })?;
            let Some(room) = padded.checked_sub(reach + 1) else {
                continue;
            };
            let stride = self.strides[axis];
            sizes[axis] = if up {
                let positions = room.div_ceil(stride) + 1;
                let begins = (positions - 1).checked_mul(stride);
                let inside = begins.is_some_and(|at| at < size + self.pads[axis]);
                if inside { positions } else { positions - 1 }
            } else {
                room / stride + 1
            };
        }
        Ok(sizes)
    }

    /// Returns the input position of a tap at an output position, along one axis. `None` in the
    /// padding.
    #[inline]
    pub(super) fn input_position(
        &self,
        axis: usize,
        position: usize,
        tap: usize,
        size: usize,
    ) -> Option<usize> {
        let at = position * self.strides[axis] + tap * self.dilations[axis];
        at.checked_sub(self.pads[axis]).filter(|&at| at < size)
    }

    /// Number of taps.
    pub(super) fn taps(&self) -> Result<usize, Error> {
        product("the kernel", &self.kernel)
    }
}

/// Checks a range of output rows and returns its length.
pub(super) fn row_count(rows: &Range<usize>, height: usize) -> Result<usize, Error> {
    count_of("the end of the requested output rows", rows, height)
}

/// Checks a range of output positions, counted row by row, and returns its length.
pub(super) fn position_count(positions: &Range<usize>, size: [usize; 2]) -> Result<usize, Error> {
    let all = product("the output", &size)?;
    count_of(
        "the last of the output's positions asked for",
        positions,
        all,
    )
}

/// Checks a range within `all` and returns its length. `what` names its end.
pub(super) fn count_of(
    what: &'static str,
    range: &Range<usize>,
    all: usize,
) -> Result<usize, Error> {
    if range.start > range.end || range.end > all {
        return Err(Error::Exceeds {
            what,
            limit: all,
            actual: range.end.max(range.start),
        });
    }
    Ok(range.end - range.start)
}

/// Checks that there is one zero point per column, or none, which means zeros.
pub(super) fn zero_points(zero_points: &[i8], columns: usize) -> Result<(), Error> {
    if zero_points.is_empty() {
        return Ok(());
    }
    equal("zero points of the weights", columns, zero_points.len())
}
