//! Resizing of NHWC images. Scale and zero point stay unchanged.

use super::error::{Error, at_least, finite, product};
use super::scale::Target;
use super::shape::Image;

/// ONNX's coordinate_transformation_mode: from output pixels to input coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinates {
    /// half_pixel: pixels are squares, and their centres correspond.
    HalfPixel,
    /// pytorch_half_pixel: as half_pixel, but an output of one pixel reads the first.
    PytorchHalfPixel,
    /// align_corners: the centres of the corner pixels coincide.
    AlignCorners,
    /// asymmetric: pixels are points, and the first ones coincide.
    Asymmetric,
}

/// ONNX's nearest_mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearest {
    /// Rounds halves down.
    RoundPreferFloor,
    /// Rounds halves up.
    RoundPreferCeil,
    /// Rounds down.
    Floor,
    /// Rounds up.
    Ceil,
}

impl Coordinates {
    /// Returns the input coordinate of output pixel `at`. `scale` is output size over input size.
    ///
    /// Every operation is rounded to f32, in the order of ONNX Runtime. Near integers and halves,
    /// the last bits decide which pixel is selected.
    fn source_position(self, at: usize, [from, to]: [usize; 2], scale: f32) -> f32 {
        let middle = |at: usize| (at as f32 + 0.5) / scale - 0.5;
        match self {
            _ if scale == 1.0 => at as f32,
            Coordinates::HalfPixel => middle(at),
            Coordinates::PytorchHalfPixel if to <= 1 => 0.0,
            Coordinates::PytorchHalfPixel => middle(at),
            Coordinates::AlignCorners if to <= 1 => 0.0,
            Coordinates::AlignCorners => {
                at as f32 * from.saturating_sub(1) as f32 / (to - 1) as f32
            }
            Coordinates::Asymmetric => at as f32 / scale,
        }
    }
}

impl Nearest {
    /// Distance within which a coordinate counts as a half. The ONNX specification has no such
    /// tolerance, but ONNX Runtime does. In 11,000 resizes of all modes both selected the same
    /// pixels.
    const HALF: f32 = 1e-6;

    fn round(self, at: f32) -> f32 {
        let below = at.floor();
        let half = (at - below - 0.5).abs() < Nearest::HALF;
        match self {
            Nearest::Floor => below,
            Nearest::Ceil => at.ceil(),
            Nearest::RoundPreferFloor if half => below,
            Nearest::RoundPreferCeil if half => below + 1.0,
            Nearest::RoundPreferFloor | Nearest::RoundPreferCeil => (at + 0.5).floor(),
        }
    }
}

/// Returns the input pixel of each output pixel, along one axis of `[from, to]` pixels. The caller
/// bounds `to`.
pub fn nearest_pixels(
    coordinates: Coordinates,
    rounding: Nearest,
    [from, to]: [usize; 2],
    scale: f32,
) -> Vec<usize> {
    let last = from.saturating_sub(1);
    (0..to)
        .map(|at| {
            let at = rounding.round(coordinates.source_position(at, [from, to], scale));
            // Coordinates below the first pixel, and NaN, give the first.
            (at as usize).min(last)
        })
        .collect()
}

/// Two neighbouring pixels and the weight of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearTap {
    /// The pixel at or before the coordinate.
    pub first: usize,
    /// The pixel after it.
    pub second: usize,
    /// Weight of the second pixel, 0 to 1.
    pub share: f32,
}

/// Returns the interpolation of each output pixel, along one axis of `[from, to]` pixels. The
/// caller bounds `to`.
pub fn linear_pixels(
    coordinates: Coordinates,
    [from, to]: [usize; 2],
    scale: f32,
) -> Vec<LinearTap> {
    let last = from.saturating_sub(1);
    (0..to)
        .map(|at| {
            let at = coordinates
                .source_position(at, [from, to], scale)
                .clamp(0.0, last as f32);
            let first = (at as usize).min(last);
            LinearTap {
                first,
                second: (first + 1).min(last),
                share: at - first as f32,
            }
        })
        .collect()
}

/// Copies the pixels selected by rows and columns. A subset of the rows gives that part of the
/// output.
pub fn resize_nearest(
    image: &Image,
    rows: &[usize],
    columns: &[usize],
    output: &mut [u8],
) -> Result<(), Error> {
    inside(image, rows.iter().copied(), columns.iter().copied())?;
    let needed = product("the output", &[rows.len(), columns.len(), image.channels])?;
    at_least("the output", output.len(), needed)?;
    if needed == 0 {
        return Ok(());
    }
    let pixels = rows
        .iter()
        .flat_map(|y| columns.iter().map(move |x| y * image.width + x));
    for (output, pixel) in output.chunks_exact_mut(image.channels).zip(pixels) {
        output.copy_from_slice(&image.values[pixel * image.stride..][..image.channels]);
    }
    Ok(())
}

fn inside(
    image: &Image,
    rows: impl Iterator<Item = usize>,
    columns: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    image.check()?;
    for (what, most, size) in [
        ("a row of the image", rows.max(), image.height),
        ("a column of the image", columns.max(), image.width),
    ] {
        if let Some(index) = most.filter(|&most| most >= size) {
            return Err(Error::OutOfRange {
                what,
                length: size,
                index,
            });
        }
    }
    Ok(())
}

/// Bilinear interpolation, first along the row, then between rows. Each step is
/// `p + share · (q - p)`, with every operation rounded to f32. The input's zero point is
/// subtracted, and the result is in steps of the output.
pub fn resize_linear(
    image: &Image,
    rows: &[LinearTap],
    columns: &[LinearTap],
    multiplier: f32,
    to: Target,
    output: &mut [u8],
) -> Result<(), Error> {
    finite("the multiplier", &[multiplier])?;
    let both = |tap: &LinearTap| [tap.first, tap.second];
    inside(
        image,
        rows.iter().flat_map(both),
        columns.iter().flat_map(both),
    )?;
    let needed = product("the output", &[rows.len(), columns.len(), image.channels])?;
    at_least("the output", output.len(), needed)?;
    if needed == 0 {
        return Ok(());
    }
    let zero = i32::from(image.zero_point);
    let positions = rows
        .iter()
        .flat_map(|y| columns.iter().map(move |x| (y, x)));
    for (output, (y, x)) in output.chunks_exact_mut(image.channels).zip(positions) {
        let pixel = |y: usize, x: usize| {
            &image.values[(y * image.width + x) * image.stride..][..image.channels]
        };
        let mixed = |first: u8, second: u8, share: f32| {
            let (first, second) = (
                (i32::from(first) - zero) as f32,
                (i32::from(second) - zero) as f32,
            );
            first + share * (second - first)
        };
        let top = pixel(y.first, x.first).iter().zip(pixel(y.first, x.second));
        let bottom = pixel(y.second, x.first)
            .iter()
            .zip(pixel(y.second, x.second));
        for ((byte, (&a, &b)), (&c, &d)) in output.iter_mut().zip(top).zip(bottom) {
            let (top, bottom) = (mixed(a, b, x.share), mixed(c, d, x.share));
            *byte = to.byte((top + y.share * (bottom - top)) * multiplier);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pixels that ONNX Runtime 1.31 selects if the last bits of a coordinate decide.
    #[test]
    fn pixels_are_those_of_onnx_runtime() {
        use Coordinates::{AlignCorners, Asymmetric, HalfPixel, PytorchHalfPixel};
        use Nearest::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor};
        for (coordinates, rounding, sizes, scale, positions) in [
            // 0.1 as an f32 exceeds a tenth. The second coordinate is slightly below 10, and rounds
            // to 10 in f32.
            (Asymmetric, Floor, [20, 2], 0.1, &[0, 10][..]),
            (Asymmetric, RoundPreferCeil, [7, 2], 2.0 / 7.0, &[0, 4]),
            (Asymmetric, RoundPreferFloor, [7, 2], 2.0 / 7.0, &[0, 3]),
            (
                HalfPixel,
                RoundPreferFloor,
                [3, 6],
                2.0,
                &[0, 0, 1, 1, 2, 2],
            ),
            (HalfPixel, RoundPreferFloor, [4, 2], 0.5, &[0, 2]),
            (HalfPixel, RoundPreferCeil, [4, 2], 0.5, &[1, 3]),
            (HalfPixel, Floor, [2, 2], 1.3, &[0, 0]),
            (PytorchHalfPixel, Ceil, [5, 1], 0.2, &[0]),
            (AlignCorners, Floor, [3, 5], 5.0 / 3.0, &[0, 0, 1, 1, 2]),
            (AlignCorners, Ceil, [3, 1], 1.0 / 3.0, &[0]),
        ] {
            let pixels = nearest_pixels(coordinates, rounding, sizes, scale);
            assert_eq!(
                pixels, positions,
                "{coordinates:?} {rounding:?} {sizes:?} {scale}"
            );
        }
        let pixels = nearest_pixels(Asymmetric, RoundPreferCeil, [20, 48], 48.0 / 20.0);
        assert_eq!([pixels[18], pixels[30]], [8, 13]);
    }

    #[test]
    fn a_nan_scale_selects_pixels_inside_the_image() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let pixels = nearest_pixels(Coordinates::HalfPixel, Nearest::Floor, [3, 4], scale);
            assert!(pixels.iter().all(|&pixel| pixel < 3), "{scale}");
        }
    }
}
