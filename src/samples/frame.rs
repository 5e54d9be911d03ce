//! Getting a picture to the height and width of the input.

use super::Problem;
use super::image_settings::{ImageSettings, Resize};
use super::picture::{LONGEST_SIDE, Picture};
use super::resize::resize;

/// The grey around a letterboxed picture, as detectors are trained with it.
const LETTERBOX_GREY: u8 = 114;

/// The picture as the settings bring it to a height and width; `None` is the picture's own.
pub(super) fn to_size(
    file: &str,
    picture: Picture,
    (height, width): (Option<usize>, Option<usize>),
    settings: &ImageSettings,
) -> Result<Picture, Problem> {
    let (from_width, from_height) = (picture.width, picture.height);
    let (width, height) = (width.unwrap_or(from_width), height.unwrap_or(from_height));
    match settings.resize {
        Resize::None if (width, height) == (from_width, from_height) => Ok(picture),
        Resize::None => Err(Problem::NoPicture {
            file: file.into(),
            why: format!("it is {from_height}x{from_width} and the input wants {height}x{width}"),
            next: "choose a way to resize it",
        }),
        Resize::Exact => Ok(resize(&picture, width, height)),
        Resize::Shorter => {
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
            if w.max(h) > LONGEST_SIDE as usize {
                let why = format!(
                    "at {from_height}x{from_width} it is too long and narrow to be cropped"
                );
                return Err(Problem::NoPicture {
                    file: file.into(),
                    why,
                    next: "leave it out, or resize exactly",
                });
            }
            Ok(crop(
                &resize(&picture, w.max(width), h.max(height)),
                width,
                height,
            ))
        }
        Resize::Letterbox => {
            let (w, h) = if from_height * width <= from_width * height {
                (width, nearest(from_height * width, from_width))
            } else {
                (nearest(from_width * height, from_height), height)
            };
            Ok(letterbox(
                &resize(&picture, w.max(1), h.max(1)),
                width,
                height,
            ))
        }
    }
}

fn nearest(dividend: usize, divisor: usize) -> usize {
    (2 * dividend / divisor).div_ceil(2)
}

/// The middle of a picture; half a pixel goes to the even side, as in torchvision.
fn crop(picture: &Picture, width: usize, height: usize) -> Picture {
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
    Picture {
        width,
        height,
        pixels,
    }
}

fn letterbox(picture: &Picture, width: usize, height: usize) -> Picture {
    let mut pixels = vec![[LETTERBOX_GREY; 3]; width * height];
    let (left, top) = ((width - picture.width) / 2, (height - picture.height) / 2);
    let lines = picture.pixels.chunks_exact(picture.width);
    for (line, out) in lines.zip(pixels.chunks_exact_mut(width).skip(top)) {
        out[left..left + picture.width].copy_from_slice(line);
    }
    Picture {
        width,
        height,
        pixels,
    }
}
