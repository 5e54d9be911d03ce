//! Decoding of pictures to 8-bit RGB: PNG and JPEG, and with the feature `more-pictures` WebP, BMP
//! and GIF. A page leaves those to the browser.
//!
//! Transparency is dropped and 16 bits become 8, as in Pillow's `convert("RGB")`. Images are turned
//! as their EXIF entry says, as in Pillow's `exif_transpose`. The first of a moving picture counts.
//! The content decides the format, since many `.jpg` files are PNG.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};

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
    let mut orientation = Orientation::NoTransforms;
    let decoded = reader(file, bytes)?.into_decoder().and_then(|mut decoder| {
        orientation = orientation_of(&mut decoder);
        let mut limits = limits();
        limits.reserve(decoder.total_bytes())?;
        decoder.set_limits(limits)?;
        DynamicImage::from_decoder(decoder)
    });
    let picture = decoded
        .map_err(|e| broken(file, &e.to_string()))?
        .into_rgb8();
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let pixels = picture.into_raw().as_chunks().0.to_vec();
    let picture = DecodedImage {
        width,
        height,
        pixels,
    };
    Ok(upright(picture, orientation))
}

/// Height and width, from the file's header.
pub(super) fn size(file: &str, bytes: &[u8]) -> Result<(usize, usize), SampleProblem> {
    let decoder = reader(file, bytes)?.into_decoder();
    let mut decoder = decoder.map_err(|e| broken(file, &e.to_string()))?;
    let (mut width, mut height) = decoder.dimensions();
    if turns_sideways(orientation_of(&mut decoder)) {
        (width, height) = (height, width);
    }
    if width.max(height) > LONGEST_SIDE {
        let why =
            format!("it is {height} x {width}, and {LONGEST_SIDE} is the maximum for each side");
        return Err(broken(file, &why));
    }
    Ok((height as usize, width as usize))
}

/// Turns an image upright. (The crate `image` has code for this in each of its ten pixel formats.)
fn upright(picture: DecodedImage, orientation: Orientation) -> DecodedImage {
    use Orientation as O;
    if orientation == O::NoTransforms {
        return picture;
    }
    let (right, below) = (picture.width - 1, picture.height - 1);
    let source = |x: usize, y: usize| match orientation {
        O::NoTransforms => (x, y),
        O::FlipHorizontal => (right - x, y),
        O::Rotate180 => (right - x, below - y),
        O::FlipVertical => (x, below - y),
        O::Rotate90FlipH => (y, x),
        O::Rotate90 => (y, below - x),
        O::Rotate270FlipH => (right - y, below - x),
        O::Rotate270 => (right - y, x),
    };
    let (width, height) = match turns_sideways(orientation) {
        true => (picture.height, picture.width),
        false => (picture.width, picture.height),
    };
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixel = |(x, y)| {
        let (x, y) = source(x, y);
        picture.pixels[y * picture.width + x]
    };
    DecodedImage {
        width,
        height,
        pixels: places.map(pixel).collect(),
    }
}

/// The orientation in the EXIF entry. A damaged entry counts as none, as in browsers.
fn orientation_of(decoder: &mut impl ImageDecoder) -> Orientation {
    decoder.orientation().unwrap_or(Orientation::NoTransforms)
}

/// True if height and width are exchanged.
fn turns_sideways(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(
        orientation,
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH
    )
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
    let is_whole = match reader.format() {
        Some(ImageFormat::Png) => png_is_whole(bytes),
        Some(ImageFormat::Jpeg) => jpeg_is_whole(bytes),
        Some(format) if reads_more(format) => format != ImageFormat::WebP || webp_is_whole(bytes),
        Some(format) => {
            let (why, next) = not_read(format);
            return Err(SampleProblem::broken(file, why, next));
        }
        None => return Err(broken(&format!("it is none of {}", readable()))),
    };
    if !is_whole {
        return Err(broken("it is truncated"));
    }
    reader.limits(limits());
    Ok(reader)
}

/// True if this build reads the format beside PNG and JPEG.
fn reads_more(format: ImageFormat) -> bool {
    use ImageFormat::{Bmp, Gif, WebP};
    cfg!(feature = "more-pictures") && matches!(format, WebP | Bmp | Gif)
}

/// Formats that this build reads.
fn readable() -> &'static str {
    match cfg!(feature = "more-pictures") {
        true => "PNG, JPEG, WebP, BMP and GIF",
        false => "PNG and JPEG",
    }
}

/// Reason and remedy for a picture in a format that this build does not read.
fn not_read(format: ImageFormat) -> (String, &'static str) {
    let why = format!("it is {}, and only {} are read", called(format), readable());
    let next = match format {
        ImageFormat::Avif => {
            "convert it, as by `magick IN.avif OUT.png` or `ffmpeg -i IN.avif OUT.png`, or use the page"
        }
        _ => AGAIN,
    };
    (why, next)
}

/// The usual name of a format.
fn called(format: ImageFormat) -> String {
    match format {
        ImageFormat::WebP => "WebP".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

/// Limits against hostile files.
fn limits() -> image::Limits {
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(LONGEST_SIDE);
    limits.max_image_height = Some(LONGEST_SIDE);
    limits.max_alloc = Some(DECODING_LIMIT);
    limits
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

/// True if the file is as long as its header says. The decoder would fill what is missing.
fn webp_is_whole(bytes: &[u8]) -> bool {
    let length = bytes.get(4..8).and_then(|length| length.first_chunk());
    length.is_some_and(|length| bytes.len() >= 8 + u32::from_le_bytes(*length) as usize)
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

    /// A JPEG with an EXIF entry for its orientation.
    fn turned(orientation: u8) -> Vec<u8> {
        let entry = [
            b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(),
            &[orientation, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let length = (entry.len() as u16 + 2).to_be_bytes();
        let whole = jpeg();
        [&whole[..2], &[0xff, 0xe1], &length, &entry, &whole[2..]].concat()
    }

    #[test]
    fn a_picture_is_turned_as_its_exif_entry_says() {
        let plain = decode("a.jpg", &jpeg()).unwrap();
        assert_eq!(decode("a.jpg", &turned(1)).unwrap(), plain);
        // The entry 6 of cameras held upright: the top of the file is on the right.
        let upright = decode("a.jpg", &turned(6)).unwrap();
        assert_eq!((upright.width, upright.height), (24, 40));
        assert_eq!(size("a.jpg", &turned(6)).unwrap(), (40, 24));
        for (x, y) in [(0, 0), (23, 0), (5, 17), (23, 39)] {
            let from = plain.pixels[(23 - x) * 40 + y];
            assert_eq!(upright.pixels[y * 24 + x], from, "at {x}, {y}");
        }
        // The crate `image` turns the same way.
        for entry in 1..=8 {
            let ours = decode("a.jpg", &turned(entry)).unwrap();
            let mut theirs = image::load_from_memory(&jpeg()).unwrap();
            theirs.apply_orientation(Orientation::from_exif(entry).unwrap());
            assert_eq!(ours.width as u32, theirs.width());
            let theirs = theirs.into_rgb8().into_raw();
            assert_eq!(ours.pixels.as_flattened(), theirs, "entry {entry}");
        }
    }

    #[test]
    fn a_truncated_or_foreign_file_is_an_error() {
        let whole = jpeg();
        for end in 0..whole.len() {
            assert!(decode("a.jpg", &whole[..end]).is_err(), "cut at {end}");
        }
        let html = decode("a.png", b"<html>").unwrap_err().to_string();
        assert!(html.contains("it is none of PNG"), "{html}");
    }

    #[test]
    fn a_picture_that_no_build_reads_is_refused_with_the_conversion() {
        let mut avif = b"\0\0\0\x20ftypavif\0\0\0\0avifmif1miaf".to_vec();
        avif.resize(400, 0);
        for said in [
            decode("a.avif", &avif).unwrap_err(),
            size("a.avif", &avif).unwrap_err(),
        ] {
            let said = said.to_string();
            assert!(said.contains("it is AVIF, and only PNG"), "{said}");
            assert!(said.contains("magick IN.avif OUT.png"), "{said}");
        }
    }

    #[cfg(feature = "more-pictures")]
    /// A picture of few colours in a format, as the crate `image` writes it.
    fn written(format: ImageFormat) -> (image::RgbImage, Vec<u8>) {
        let level = |at: u32| [0, 90, 255][at as usize % 3];
        let picture = image::RgbImage::from_fn(37, 21, |x, y| {
            image::Rgb([level(x / 5), level(y / 4), level(x / 9 + y / 7)])
        });
        let mut out = Cursor::new(Vec::new());
        picture.write_to(&mut out, format).unwrap();
        (picture, out.into_inner())
    }

    #[cfg(feature = "more-pictures")]
    #[test]
    fn the_command_line_reads_webp_bmp_and_gif_or_says_that_they_are_truncated() {
        for format in [ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Gif] {
            let (picture, whole) = written(format);
            assert_eq!(size("a", &whole).unwrap(), (21, 37), "{format:?}");
            let read = decode("a", &whole).unwrap();
            assert_eq!((read.width, read.height), (37, 21));
            assert!(read.pixels.as_flattened() == picture.as_raw(), "{format:?}");
            for end in 0..whole.len() {
                // Only the trailer of a GIF may be missing.
                if let Ok(cut) = decode("a", &whole[..end]) {
                    assert!(format == ImageFormat::Gif && cut == read, "cut at {end}");
                }
            }
        }
    }

    #[cfg(not(feature = "more-pictures"))]
    #[test]
    fn a_build_for_pages_leaves_webp_to_the_browser() {
        let webp =
            b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
        let said = decode("a.webp", webp).unwrap_err().to_string();
        assert!(
            said.contains("it is WebP, and only PNG and JPEG are read"),
            "{said}"
        );
    }
}
