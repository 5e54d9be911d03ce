//! Checks of samples before a run: each must be readable and have a shape that the model accepts.
//!
//! A check is cheap enough for every file of a folder. It reads the header of an image and the
//! start of a large array, and decodes small files.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::assign_inputs::shape_fits;
use super::convert::convert;
use super::group::{FileKind, kind};
use super::image::only_input;
use super::image_placement::place;
use super::{
    Encoded, InputSpec, SampleError, SampleProblem, SampleSettings, decode, decode_image,
    image_size, npy,
};

/// Maximum size of an array file that is decoded.
const LIGHT: u64 = 1 << 20;
/// Bytes to read of a larger `.npy` file; they contain any header.
const BEGINNING: u64 = 1 << 16;
/// Maximum size of other files that are read.
const READ: u64 = 32 << 20;

/// A file of a sample, or its beginning.
#[derive(Clone, Debug)]
pub struct FileStart {
    /// Name or path of the file.
    pub path: String,
    /// Its first bytes: as many as [`bytes_to_check`] returns, or all.
    pub beginning: Bytes,
    /// Size of the whole file in bytes.
    pub size: u64,
}

/// A sample that was left out, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// Name of the sample.
    pub sample: String,
    /// The problem, or a note that the user excluded it.
    pub reason: String,
}

/// Number of bytes to read of a file of this size; 0 if the check is left to the run.
pub fn bytes_to_check(path: &str, size: u64) -> u64 {
    match kind(path) {
        Some(FileKind::Npy) if size > LIGHT => BEGINNING.min(size),
        Some(_) if size > READ => 0,
        _ => size,
    }
}

/// Checks a sample. Returns the shapes of its tensors if all are known.
pub fn check(
    name: &str,
    parts: &[FileStart],
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Option<Vec<Vec<usize>>>, SampleError> {
    let about = |problem| SampleError::Sample {
        sample: name.into(),
        problem,
    };
    if let [
        FileStart {
            path,
            beginning,
            size,
        },
    ] = parts
    {
        match kind(path) {
            Some(FileKind::Image) if beginning.len() as u64 == *size => {
                let shape = image_shape(path, beginning, inputs, settings).map_err(about)?;
                return Ok(Some(vec![shape]));
            }
            Some(FileKind::Npy) if (beginning.len() as u64) < *size && !beginning.is_empty() => {
                return array_shape(path, beginning, *size, inputs)
                    .map(|shape| shape.map(|shape| vec![shape]))
                    .map_err(about);
            }
            _ => {}
        }
    }
    if parts
        .iter()
        .any(|part| (part.beginning.len() as u64) < part.size)
    {
        return Ok(None);
    }
    let whole = parts
        .iter()
        .map(|part| (part.path.clone(), part.beginning.clone()));
    let sample = Encoded {
        name: name.into(),
        parts: whole.collect(),
    };
    let tensors = decode(&sample, inputs, settings)?;
    Ok(Some(
        tensors
            .iter()
            .map(|tensor| tensor.shape().to_vec())
            .collect(),
    ))
}

fn image_shape(
    file: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Vec<usize>, SampleProblem> {
    let input = only_input(file, inputs)?;
    let place = place(file, input, &settings.image)?;
    let from = decode_image::size(file, bytes)?;
    let (height, width) =
        image_size::size(file, from, (place.height, place.width), &settings.image)?;
    Ok(place.shape(height, width))
}

fn array_shape(
    file: &str,
    beginning: &[u8],
    size: u64,
    inputs: &[InputSpec],
) -> Result<Option<Vec<usize>>, SampleProblem> {
    let npy::HeaderInfo { shape, mut empty } = npy::read_header(file, beginning, size)?;
    let [input] = inputs else { return Ok(None) };
    shape_fits(file, &shape, input, &mut BTreeMap::new())?;
    convert(&mut empty, input, &mut Vec::new())?;
    Ok(Some(shape))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::ImageFormat;

    use super::*;
    use crate::{ImageSettings, ResizeMode};
    use octet_graph::Dim;
    use octet_onnx::schema::DataType;

    fn file(path: &str, bytes: Vec<u8>) -> FileStart {
        let size = bytes.len() as u64;
        let read = bytes_to_check(path, size) as usize;
        FileStart {
            path: path.into(),
            beginning: bytes[..read].to_vec().into(),
            size,
        }
    }

    fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let buffer = image::RgbImage::from_pixel(width, height, image::Rgb([9, 8, 7]));
        let mut out = Cursor::new(Vec::new());
        buffer.write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    fn open() -> [InputSpec; 1] {
        [InputSpec {
            name: "x".into(),
            element: DataType::Float,
            shape: vec![Dim::Known(1), Dim::Known(3), Dim::Unknown, Dim::Unknown],
        }]
    }

    fn reading(resize: ResizeMode, side: Option<u32>) -> SampleSettings {
        SampleSettings {
            image: ImageSettings {
                resize,
                height: side,
                width: side,
                ..ImageSettings::default()
            },
            ..SampleSettings::default()
        }
    }

    #[test]
    fn the_checked_shape_of_an_image_equals_the_decoded_one() {
        let ways = [
            ResizeMode::None,
            ResizeMode::Exact,
            ResizeMode::Shorter,
            ResizeMode::Letterbox,
        ];
        for (resize, format) in ways
            .into_iter()
            .zip([ImageFormat::Png, ImageFormat::Jpeg].into_iter().cycle())
        {
            let (name, settings) = ("a.png", reading(resize, Some(40)));
            let bytes = picture(30, 50, format);
            let predicted = check(name, &[file(name, bytes.clone())], &open(), &settings);
            let sample = Encoded {
                name: name.into(),
                parts: vec![(name.into(), bytes.into())],
            };
            let shape = match decode(&sample, &open(), &settings) {
                Ok(tensors) => Ok(Some(vec![tensors[0].shape().to_vec()])),
                Err(error) => Err(error),
            };
            assert_eq!(predicted, shape, "{resize:?}");
        }
    }

    #[test]
    fn a_truncated_image_is_found_without_decoding() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let whole = picture(60, 40, format);
            for end in [0, 1, whole.len() / 2, whole.len() - 1] {
                let cut = file("a.jpg", whole[..end].to_vec());
                let found = check("a.jpg", &[cut], &open(), &reading(ResizeMode::None, None));
                assert!(found.is_err(), "{format:?} cut at {end}");
            }
        }
    }

    #[test]
    fn a_large_array_is_checked_by_its_header() {
        let side = 600;
        let values = vec![0; side * side * 3 * 4];
        let array = |shape: &str| npy::tests::file("<f4", false, shape, &values);
        let good = file("a.npy", array("(1, 3, 600, 600)"));
        assert!((good.beginning.len() as u64) < good.size);
        let settings = SampleSettings::default();
        let shapes = check("a.npy", &[good], &open(), &settings).unwrap();
        assert_eq!(shapes, Some(vec![vec![1, 3, side, side]]));
        let message = |bytes: Vec<u8>| {
            let found = check("a.npy", &[file("a.npy", bytes)], &open(), &settings);
            found.unwrap_err().to_string()
        };
        assert!(message(array("(3, 600, 600)")).contains("batch axis"));
        let whole = npy::tests::file("<i4", false, "(1, 3, 600, 600)", &values);
        assert!(message(whole).contains("int32"));
        let mut cut = array("(1, 3, 600, 600)");
        cut.truncate(cut.len() - 1);
        assert!(message(cut).contains("states"));
    }

    #[test]
    fn very_large_files_are_left_to_the_run() {
        assert_eq!(bytes_to_check("a.npz", 1 << 40), 0);
        let far = FileStart {
            path: "a.npz".into(),
            beginning: Bytes::new(),
            size: 1 << 40,
        };
        assert_eq!(
            check("a", &[far], &open(), &SampleSettings::default()),
            Ok(None)
        );
    }
}
