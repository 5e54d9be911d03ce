//! Sizes of images, and views of images in slices.

use octet_kernels::int8::Image;

/// Size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
}

impl ImageSize {
    /// Size of an image of this shape.
    pub(crate) fn of(shape: &[usize]) -> ImageSize {
        let [height, width] = plane(shape);
        ImageSize {
            height,
            width,
            channels: shape.get(1).copied().unwrap_or(1),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// The image in these values.
    pub(crate) fn view<'a, T>(&self, values: &'a [T], zero_point: u8) -> Image<'a, T> {
        Image {
            values,
            height: self.height,
            width: self.width,
            channels: self.channels,
            stride: self.channels,
            zero_point,
        }
    }
}

/// Height and width of an image with one or two spatial axes.
pub(crate) fn plane(shape: &[usize]) -> [usize; 2] {
    match *shape {
        [_, _, length] => [1, length],
        [_, _, height, width] => [height, width],
        _ => [1, 1],
    }
}
