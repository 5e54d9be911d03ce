//! Resizing of images with channels last. Scales and zero points stay.

use super::convert::Target;
use super::error::{Error, at_least, finite, product};
use super::shape::Image;

/// How a pixel of the output is found in the input: ONNX's coordinate_transformation_mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinates {
    /// Pixels are squares, their middles are compared.
    HalfPixel,
    /// The same, but a single pixel looks at the first.
    PytorchHalfPixel,
    /// The middles of the outer pixels fall together.
    AlignCorners,
    /// Pixels are points, the first ones fall together.
    Asymmetric,
}

/// How the nearest pixel is rounded: ONNX's nearest_mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearest {
    /// Halves down.
    RoundPreferFloor,
    /// Halves up.
    RoundPreferCeil,
    /// Down.
    Floor,
    /// Up.
    Ceil,
}

impl Coordinates {
    /// Where the middle of output `at` lies in the input. `scale` is output over input. Every operation is rounded to f32, in this
    /// order, as in ONNX Runtime: where a position is nearly whole or nearly a half, that decides which pixel is taken.
    fn of(self, at: usize, [from, to]: [usize; 2], scale: f32) -> f32 {
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
    /// What is so near to a half is one. The ONNX text knows no such thing; ONNX Runtime has it, and in 11,000 resizes of all modes
    /// takes the same pixels as these lines.
    const HALF: f32 = 1e-6;

    fn rounded(self, at: f32) -> f32 {
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

/// The pixel of the input for each pixel of the output, along one axis of `[from, to]` pixels (as many as the caller has
/// room for).
pub fn nearest_pixels(
    coordinates: Coordinates,
    rounding: Nearest,
    [from, to]: [usize; 2],
    scale: f32,
) -> Vec<usize> {
    let last = from.saturating_sub(1);
    (0..to)
        .map(|at| {
            let at = rounding.rounded(coordinates.of(at, [from, to], scale));
            // What is below the first pixel is the first, and so is what is no number.
            (at as usize).min(last)
        })
        .collect()
}

/// Two neighbours and how much of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// The pixel at or before.
    pub first: usize,
    /// The pixel after it.
    pub second: usize,
    /// The share of the second, 0 to 1.
    pub share: f32,
}

/// The neighbours for each pixel of the output, along one axis of `[from, to]` pixels (as many as the caller has room for).
pub fn linear_pixels(coordinates: Coordinates, [from, to]: [usize; 2], scale: f32) -> Vec<Between> {
    let last = from.saturating_sub(1);
    (0..to)
        .map(|at| {
            let at = coordinates
                .of(at, [from, to], scale)
                .clamp(0.0, last as f32);
            let first = (at as usize).min(last);
            Between {
                first,
                second: (first + 1).min(last),
                share: at - first as f32,
            }
        })
        .collect()
}

/// Copies the pixels named by their rows and columns. A part of the rows gives that part of the output.
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
        if most.is_some_and(|most| most >= size) {
            return Err(Error::Mismatch {
                what,
                expected: size,
                found: most.unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// Mixes the four neighbours, first along the row, then between the rows: each `p + share · (q - p)`, every
/// operation rounded to f32; then in steps of the output (the input's zero point taken off).
pub fn resize_linear(
    image: &Image,
    rows: &[Between],
    columns: &[Between],
    multiplier: f32,
    to: Target,
    output: &mut [u8],
) -> Result<(), Error> {
    finite("the multiplier", &[multiplier])?;
    let both = |between: &Between| [between.first, between.second];
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
    let places = rows
        .iter()
        .flat_map(|y| columns.iter().map(move |x| (y, x)));
    for (output, (y, x)) in output.chunks_exact_mut(image.channels).zip(places) {
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

    /// The pixels that ONNX Runtime 1.31 takes where the last bits of a position decide.
    #[test]
    fn pixels_are_those_of_onnx_runtime() {
        use Coordinates::{AlignCorners, Asymmetric, HalfPixel, PytorchHalfPixel};
        use Nearest::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor};
        for (coordinates, rounding, sizes, scale, places) in [
            // 0.1 as a float is more than a tenth: the second position is not quite 10, and in floats it is.
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
            let found = nearest_pixels(coordinates, rounding, sizes, scale);
            assert_eq!(
                found, places,
                "{coordinates:?} {rounding:?} {sizes:?} {scale}"
            );
        }
        let found = nearest_pixels(Asymmetric, RoundPreferCeil, [20, 48], 48.0 / 20.0);
        assert_eq!([found[18], found[30]], [8, 13]);
    }

    #[test]
    fn a_scale_that_is_no_number_takes_pixels_of_the_image() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let found = nearest_pixels(Coordinates::HalfPixel, Nearest::Floor, [3, 4], scale);
            assert!(found.iter().all(|&pixel| pixel < 3), "{scale}");
        }
    }
}
