//! Decoding of PNG and JPEG to 8-bit RGB.
//!
//! Transparency is dropped and 16 bits become 8, as in Pillow's `convert("RGB")`. EXIF rotation is
//! not applied. The content decides the format, since many `.jpg` files are PNG.

use std::io::Cursor;

use image::{ImageFormat, ImageReader};

use super::SampleProblem;

/// Maximum height or width of an image.
pub(super) const LONGEST_SIDE: u32 = 16_384;
/// Maximum bytes that the decoder may allocate.
const DECODING_LIMIT: u64 = 512 << 20;

/// A decoded image, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecodedImage {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<[u8; 3]>,
}

const AGAIN: &str = "save it again as PNG or JPEG, or leave it out";

/// Decodes an image.
pub(super) fn decode(file: &str, bytes: &[u8]) -> Result<DecodedImage, SampleProblem> {
    let decoded = reader(file, bytes)?.decode();
    let picture = decoded
        .map_err(|e| broken(file, &e.to_string()))?
        .into_rgb8();
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let pixels = picture.into_raw().as_chunks().0.to_vec();
    Ok(DecodedImage {
        width,
        height,
        pixels,
    })
}

/// Height and width, from the file's header.
pub(super) fn size(file: &str, bytes: &[u8]) -> Result<(usize, usize), SampleProblem> {
    let sides = reader(file, bytes)?.into_dimensions();
    let (width, height) = sides.map_err(|e| broken(file, &e.to_string()))?;
    if width.max(height) > LONGEST_SIDE {
        let why =
            format!("it is {height} x {width}, and {LONGEST_SIDE} is the maximum for each side");
        return Err(broken(file, &why));
    }
    Ok((height as usize, width as usize))
}

fn broken(file: &str, why: &str) -> SampleProblem {
    SampleProblem::broken(file, why, AGAIN)
}

/// Decoder for a file, which must be complete as far as its markers tell.
fn reader<'a>(file: &str, bytes: &'a [u8]) -> Result<ImageReader<Cursor<&'a [u8]>>, SampleProblem> {
    let broken = |why: &str| broken(file, why);
    if bytes.is_empty() {
        return Err(broken("it is empty"));
    }
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| broken(&e.to_string()))?;
    match reader.format() {
        Some(ImageFormat::Png) if png_is_whole(bytes) => {}
        Some(ImageFormat::Jpeg) if jpeg_is_whole(bytes) => {}
        Some(ImageFormat::Png | ImageFormat::Jpeg) => return Err(broken("it is truncated")),
        _ => return Err(broken("it is neither PNG nor JPEG")),
    }
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(LONGEST_SIDE);
    limits.max_image_height = Some(LONGEST_SIDE);
    limits.max_alloc = Some(DECODING_LIMIT);
    reader.limits(limits);
    Ok(reader)
}

/// True if the chunks continue to the last one, `IEND`.
fn png_is_whole(bytes: &[u8]) -> bool {
    let mut at = 8;
    while let Some(Some([a, b, c, d, kind @ ..])) =
        bytes.get(at..at + 8).map(|b| b.first_chunk::<8>())
    {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some(end) = at.checked_add(length).and_then(|end| end.checked_add(12)) else {
            return false;
        };
        if kind == b"IEND" {
            return end <= bytes.len();
        }
        at = end;
    }
    false
}

/// True if the end marker follows the first scan. The decoder fills missing parts with grey, and
/// calibration would include that grey.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let mut at = 2;
    // Segments state their lengths, up to the first scan. Markers of an embedded thumbnail are
    // inside a segment.
    while let Some(&[0xff, mark, high, low]) = bytes.get(at..at + 4).and_then(|b| b.first_chunk()) {
        match mark {
            0xff => at += 1,
            0xda => return bytes[at..].windows(2).any(|w| w == [0xff, 0xd9]),
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jpeg() -> Vec<u8> {
        let buffer =
            image::RgbImage::from_fn(40, 24, |x, y| image::Rgb([x as u8 * 6, y as u8 * 10, 90]));
        let mut out = Cursor::new(Vec::new());
        buffer.write_to(&mut out, ImageFormat::Jpeg).unwrap();
        out.into_inner()
    }

    #[test]
    fn a_jpeg_decodes_to_known_pixels() {
        // The sum is the same with vector instructions (native) and without (wasm).
        let picture = decode("a.jpg", &jpeg()).unwrap();
        let sum: u64 = (1u64..)
            .zip(picture.pixels.as_flattened())
            .map(|(i, &x)| i * u64::from(x))
            .sum();
        assert_eq!((picture.width, picture.height, sum), (40, 24, 502_296_947));
    }

    #[test]
    fn a_truncated_or_foreign_file_is_an_error() {
        let whole = jpeg();
        for end in 0..whole.len() {
            assert!(decode("a.jpg", &whole[..end]).is_err(), "cut at {end}");
        }
        let html = decode("a.png", b"<html>").unwrap_err().to_string();
        assert!(html.contains("neither PNG nor JPEG"), "{html}");
    }
}
