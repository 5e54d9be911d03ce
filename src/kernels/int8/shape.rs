//! Images and the windows that move over them.

use core::ops::Range;

use super::error::{Error, at_least, equal, product, span};

/// Rows of a matrix of activations.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Row r begins at `r · stride`.
    pub values: &'a [u8],
    /// How many rows.
    pub count: usize,
    /// At least the number of values in a row.
    pub stride: usize,
    /// What stands for zero.
    pub zero_point: u8,
}

/// One image, channels last, of bytes unless another type is named.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a, T = u8> {
    /// Pixel (y, x), channel c is at `(y · width + x) · stride + c`.
    pub values: &'a [T],
    /// In pixels.
    pub height: usize,
    /// In pixels.
    pub width: usize,
    /// How many of a pixel's values are looked at.
    pub channels: usize,
    /// From pixel to pixel; at least the number of channels.
    pub stride: usize,
    /// What stands for zero, in the padding too.
    pub zero_point: u8,
}

impl<T> Image<'_, T> {
    /// Whether the values are all there.
    pub(super) fn check(&self) -> Result<(), Error> {
        let pixels = product("the image", &[self.height, self.width])?;
        let needed = span("the image", pixels, self.stride, self.channels)?;
        at_least("the image", self.values.len(), needed)
    }

    /// From the first value of a row to behind its last.
    pub(super) fn row_length(&self) -> usize {
        (self.width - 1) * self.stride + self.channels
    }

    /// The values of a row, and those between them.
    pub(super) fn row(&self, y: usize) -> &[T] {
        &self.values[y * self.width * self.stride..][..self.row_length()]
    }
}

/// How a kernel moves over an image. First the vertical number of each pair, then the horizontal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Pixels from one place to the next.
    pub strides: [usize; 2],
    /// Pixels between two taps, 1 for neighbours.
    pub dilations: [usize; 2],
    /// Pixels of padding: top, left, bottom, right (ONNX's order).
    pub pads: [usize; 4],
}

impl Window {
    /// A window of one pixel that looks at all of them.
    pub const PIXEL: Window = Window {
        kernel: [1, 1],
        strides: [1, 1],
        dilations: [1, 1],
        pads: [0; 4],
    };

    /// A kernel that moves by one pixel and has no padding.
    pub fn of(kernel: [usize; 2]) -> Window {
        Window {
            kernel,
            ..Window::PIXEL
        }
    }

    /// Height and width of what comes out of an image of this height and width (0 where the window does not fit).
    pub fn output(&self, height: usize, width: usize) -> Result<[usize; 2], Error> {
        self.sized(height, width, false)
    }

    /// The same where a pooling rounds up (ceil_mode): a last window may begin inside and end outside, but none
    /// begins in the padding behind the image.
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
                let places = room.div_ceil(stride) + 1;
                let begins = (places - 1).checked_mul(stride);
                let inside = begins.is_some_and(|at| at < size + self.pads[axis]);
                if inside { places } else { places - 1 }
            } else {
                room / stride + 1
            };
        }
        Ok(sizes)
    }

    /// The pixel that a tap of an output's place looks at on one axis; nothing in the padding.
    #[inline]
    pub(super) fn at(&self, axis: usize, place: usize, tap: usize, size: usize) -> Option<usize> {
        let at = place * self.strides[axis] + tap * self.dilations[axis];
        at.checked_sub(self.pads[axis]).filter(|&at| at < size)
    }

    /// How many taps the kernel has.
    pub(super) fn taps(&self) -> Result<usize, Error> {
        product("the kernel", &self.kernel)
    }
}

/// Checks a range of output rows against how many there are, and gives their number.
pub(super) fn row_count(rows: &Range<usize>, height: usize) -> Result<usize, Error> {
    count_of("the last of the output's rows asked for", rows, height)
}

/// The same of an output's places, row by row.
pub(super) fn place_count(places: &Range<usize>, size: [usize; 2]) -> Result<usize, Error> {
    let all = product("the output", &size)?;
    count_of("the last of the output's places asked for", places, all)
}

/// How many a range of so many holds; `what` says what its end is.
pub(super) fn count_of(
    what: &'static str,
    range: &Range<usize>,
    all: usize,
) -> Result<usize, Error> {
    if range.start > range.end || range.end > all {
        return Err(Error::Mismatch {
            what,
            expected: all,
            found: range.end.max(range.start),
        });
    }
    Ok(range.end - range.start)
}

/// One zero point a column; none stands for zeros.
pub(super) fn zero_points(given: &[i8], columns: usize) -> Result<(), Error> {
    if given.is_empty() {
        return Ok(());
    }
    equal("zero points of the weights", columns, given.len())
}
