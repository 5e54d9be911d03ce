//! Resizing an image to the height and width of the input, with cropping or letterboxing.

use super::SampleProblem;
use super::decode_image::{DecodedImage, LONGEST_SIDE};
use super::image_settings::{ImageSettings, ResizeMode};
use super::resize::resize;

/// Brings an image to a height and width by the settings; `None` keeps the image's own.
pub(super) fn to_size(
    file: &str,
    picture: DecodedImage,
    expected: (Option<usize>, Option<usize>),
    settings: &ImageSettings,
) -> Result<DecodedImage, SampleProblem> {
    let (height, width) = size(file, (picture.height, picture.width), expected, settings)?;
    let (inner_height, inner_width) =
        inner((picture.height, picture.width), (height, width), settings);
    Ok(match settings.resize {
        ResizeMode::None => picture,
        ResizeMode::Exact => resize(&picture, width, height),
        ResizeMode::Shorter => crop(&resize(&picture, inner_width, inner_height), width, height),
        ResizeMode::Letterbox => {
            let inner = resize(&picture, inner_width, inner_height);
            letterbox(&inner, width, height, settings.pad)
        }
    })
}

/// Height and width that an image of this size will have.
pub(super) fn size(
    file: &str,
    from: (usize, usize),
    (height, width): (Option<usize>, Option<usize>),
    settings: &ImageSettings,
) -> Result<(usize, usize), SampleProblem> {
    let expected = (height.unwrap_or(from.0), width.unwrap_or(from.1));
    let refused = |why, next| {
        Err(SampleProblem::NoPicture {
            file: file.into(),
            why,
            next,
        })
    };
    if settings.resize == ResizeMode::None && expected != from {
        let why = format!(
            "it is {} x {} (height x width), and the input expects {} x {}",
            from.0, from.1, expected.0, expected.1
        );
        return refused(why, "choose a way of resizing");
    }
    let inner = inner(from, expected, settings);
    if inner.0.max(inner.1) > LONGEST_SIDE as usize {
        let why = format!(
            "with {} x {} (height x width) it is too long and narrow to be cropped",
            from.0, from.1
        );
        return refused(why, "leave it out, or resize exactly");
    }
    Ok(expected)
}

/// Size to which the image is resized before it is cropped or padded.
fn inner(
    (from_height, from_width): (usize, usize),
    (height, width): (usize, usize),
    settings: &ImageSettings,
) -> (usize, usize) {
    match settings.resize {
        ResizeMode::None | ResizeMode::Exact => (height, width),
        ResizeMode::Shorter => {
            let short = width.min(height);
            let target = match settings.shorter_side {
                Some(n) => (n.min(LONGEST_SIDE) as usize).max(short),
                None => (short * 8 + 3) / 7,
            };
            let (cover_width, cover_height) = (width * target / short, height * target / short);
            let (w, h) = if from_height * cover_width <= from_width * cover_height {
                (from_width * cover_height / from_height, cover_height)
            } else {
                (cover_width, from_height * cover_width / from_width)
            };
            (h.max(height), w.max(width))
        }
        ResizeMode::Letterbox => {
            let (w, h) = if from_height * width <= from_width * height {
                (width, nearest(from_height * width, from_width))
            } else {
                (nearest(from_width * height, from_height), height)
            };
            (h.max(1), w.max(1))
        }
    }
}

fn nearest(dividend: usize, divisor: usize) -> usize {
    (2 * dividend / divisor).div_ceil(2)
}

/// Centre crop. Half a pixel goes to the even side, as in torchvision.
fn crop(picture: &DecodedImage, width: usize, height: usize) -> DecodedImage {
    let half = |n: usize| n / 2 + usize::from(n % 4 == 3);
    let (left, top) = (half(picture.width - width), half(picture.height - height));
    let lines = picture
        .pixels
        .chunks_exact(picture.width)
        .skip(top)
        .take(height);
    let pixels = lines
        .flat_map(|line| &line[left..left + width])
        .copied()
        .collect();
    DecodedImage {
        width,
        height,
        pixels,
    }
}

fn letterbox(picture: &DecodedImage, width: usize, height: usize, grey: u8) -> DecodedImage {
    let mut pixels = vec![[grey; 3]; width * height];
    let (left, top) = ((width - picture.width) / 2, (height - picture.height) / 2);
    let lines = picture.pixels.chunks_exact(picture.width);
    for (line, out) in lines.zip(pixels.chunks_exact_mut(width).skip(top)) {
        out[left..left + picture.width].copy_from_slice(line);
    }
    DecodedImage {
        width,
        height,
        pixels,
    }
}
