//! Image resizing that equals Pillow's `Image.resize(size, Image.BILINEAR)`. A triangle filter
//! widens as the image shrinks (antialiasing). Rows come first, then columns, with 8 bits in
//! between. Weights are fixed-point integers, so results are the same on all platforms, bit for
//! bit.

use super::decode_image::DecodedImage;

/// Fraction bits of a weight: 32, less 8 of a pixel and 2 for overshoot.
const FRACTION_BITS: u32 = 32 - 8 - 2;

/// Weights of the source pixels that make up one pixel of the result.
struct PixelWeights {
    first: usize,
    weights: Vec<i32>,
}

/// Resizes an image.
pub(super) fn resize(picture: &DecodedImage, width: usize, height: usize) -> DecodedImage {
    let wide = if width == picture.width {
        None
    } else {
        Some(rows(picture, width))
    };
    let wide = wide.as_ref().unwrap_or(picture);
    if height == wide.height {
        wide.clone()
    } else {
        columns(wide, height)
    }
}

/// Weights for each pixel of a line, from `from` to `to` pixels.
fn pixel_weights(from: usize, to: usize) -> Vec<PixelWeights> {
    let scale = from as f64 / to as f64;
    // When the image shrinks, the triangle spans all source pixels that fall on one of the result.
    let radius = scale.max(1.0);
    (0..to)
        .map(|at| {
            let centre = (at as f64 + 0.5) * scale;
            let first = (centre - radius + 0.5).max(0.0) as usize;
            let end = ((centre + radius + 0.5) as usize).min(from);
            let triangle: Vec<f64> = (first..end)
                .map(|x| (1.0 - ((x as f64 - centre + 0.5) / radius).abs()).max(0.0))
                .collect();
            let sum: f64 = triangle.iter().sum();
            let one = f64::from(1u32 << FRACTION_BITS);
            let weights = triangle
                .iter()
                .map(|w| (0.5 + w / sum * one) as i32)
                .collect();
            PixelWeights { first, weights }
        })
        .collect()
}

fn rows(picture: &DecodedImage, width: usize) -> DecodedImage {
    let taps = pixel_weights(picture.width, width);
    let mut pixels = Vec::with_capacity(width * picture.height);
    for line in picture.pixels.chunks_exact(picture.width) {
        pixels.extend(taps.iter().map(|t| weigh(t, |i| line[i])));
    }
    DecodedImage {
        width,
        height: picture.height,
        pixels,
    }
}

fn columns(picture: &DecodedImage, height: usize) -> DecodedImage {
    let width = picture.width;
    let mut pixels = Vec::with_capacity(width * height);
    for t in pixel_weights(picture.height, height) {
        pixels.extend((0..width).map(|x| weigh(&t, |i| picture.pixels[i * width + x])));
    }
    DecodedImage {
        width,
        height,
        pixels,
    }
}

fn weigh(taps: &PixelWeights, pixel: impl Fn(usize) -> [u8; 3]) -> [u8; 3] {
    let mut sum = [1i32 << (FRACTION_BITS - 1); 3];
    for (i, &weight) in taps.weights.iter().enumerate() {
        let colours = pixel(taps.first + i);
        for (total, colour) in sum.iter_mut().zip(colours) {
            *total += i32::from(colour) * weight;
        }
    }
    sum.map(|total| (total >> FRACTION_BITS).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: usize, height: usize) -> DecodedImage {
        let pixel = |i: usize| [(i * 7 % 256) as u8, (i * i % 251) as u8, (i * 13 + 5) as u8];
        DecodedImage {
            width,
            height,
            pixels: (0..width * height).map(pixel).collect(),
        }
    }

    #[test]
    fn one_colour_stays_one_colour_at_any_size() {
        let grey = DecodedImage {
            width: 13,
            height: 7,
            pixels: vec![[255, 1, 128]; 91],
        };
        for (width, height) in [(1, 1), (13, 7), (14, 6), (100, 3), (5, 50)] {
            let out = resize(&grey, width, height);
            assert_eq!(out.pixels, vec![[255, 1, 128]; width * height]);
        }
    }

    #[test]
    fn results_equal_those_of_pillow() {
        // Expected values from Pillow 12 for the same gradient.
        let cases: [((usize, usize), (usize, usize), &[u8]); 4] = [
            (
                (5, 4),
                (3, 2),
                &[
                    28, 28, 57, 39, 43, 77, 50, 64, 97, 83, 107, 160, 94, 85, 180, 105, 130, 200,
                ],
            ),
            (
                (3, 2),
                (5, 4),
                &[
                    0, 0, 5, 3, 0, 10, 7, 1, 18, 11, 3, 26, 14, 4, 31, 5, 2, 15, 8, 3, 20, 12, 5,
                    28, 16, 8, 36, 19, 9, 41, 16, 7, 34, 19, 9, 39, 23, 12, 47, 27, 17, 55, 30, 20,
                    60, 21, 9, 44, 24, 12, 49, 28, 16, 57, 32, 21, 65, 35, 25, 70,
                ],
            ),
            (
                (7, 5),
                (7, 2),
                &[
                    49, 73, 84, 56, 88, 97, 63, 37, 110, 70, 56, 123, 77, 77, 136, 84, 100, 149,
                    91, 125, 104, 147, 134, 92, 154, 177, 105, 161, 63, 118, 168, 110, 131, 175,
                    79, 144, 182, 130, 157, 189, 183, 112,
                ],
            ),
            (
                (40, 30),
                (3, 3),
                &[
                    128, 106, 131, 132, 117, 118, 122, 130, 144, 128, 127, 144, 128, 114, 126, 127,
                    113, 115, 133, 110, 117, 129, 128, 138, 120, 121, 116,
                ],
            ),
        ];
        for (from, to, expected) in cases {
            let out = resize(&gradient(from.0, from.1), to.0, to.1);
            assert_eq!(out.pixels.as_flattened(), expected, "{from:?} to {to:?}");
        }
        let large = resize(&gradient(300, 201), 97, 131);
        let sum = |total: u64, (i, &x): (usize, &u8)| total + (i as u64 + 1) * u64::from(x) % 65521;
        assert_eq!(
            large.pixels.as_flattened().iter().enumerate().fold(0, sum),
            1_242_143_987
        );
    }
}
