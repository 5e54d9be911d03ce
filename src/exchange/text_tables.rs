//! Tables as text: TensorRT's calibration cache and ONNX Runtime's plain table.
//!
//! TensorRT's cache has a line for each tensor, `name: 3c010a14`: the bits of a float, the highest
//! first. The float is the scale, so the range ends at 127 times the scale.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{RangeFile, RangeFileError, RangeFormat, symmetric};

/// The first line that Octet writes. The version is that of TensorRT 8.6, the last one that all
/// readers of the field know; they read the lines of any version.
const HEADER: &str = "TRT-8601-EntropyCalibration2";

/// The largest integer of a symmetric tensor in TensorRT.
const LARGEST: f32 = 127.0;

/// Characters of a wrong line that an error shows.
const SHOWN: usize = 60;

fn wrong(index: usize, line: &str, form: &'static str) -> RangeFileError {
    RangeFileError::Line {
        line: index + 1,
        text: line.chars().take(SHOWN).collect(),
        form,
    }
}

/// Reads TensorRT's calibration cache. The last colon of a line ends the name.
pub(super) fn read_tensorrt(text: &str) -> Result<RangeFile, RangeFileError> {
    let mut magnitudes = BTreeMap::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let parts = line.rsplit_once(':').and_then(|(name, digits)| {
            let bits = u32::from_str_radix(digits.trim(), 16).ok()?;
            Some((name, f32::from_bits(bits)))
        });
        let (name, scale) = parts
            .filter(|(name, scale)| !name.is_empty() && *scale >= 0.0)
            .ok_or_else(|| wrong(index, line, "`name: ` with a scale of 8 hexadecimal digits"))?;
        magnitudes.insert(name.to_string(), scale * LARGEST);
    }
    Ok(symmetric(RangeFormat::TensorRt, magnitudes))
}

/// Writes TensorRT's calibration cache.
pub(super) fn write_tensorrt(magnitudes: &BTreeMap<&str, f32>) -> String {
    let mut text = format!("{HEADER}\n");
    for (name, magnitude) in magnitudes {
        let bits = (magnitude / LARGEST).to_bits();
        let _ = writeln!(text, "{name}: {bits:08x}");
    }
    text
}

/// Reads lines of a name, a space and a magnitude.
pub(super) fn read_lines(text: &str) -> Result<RangeFile, RangeFileError> {
    let mut magnitudes = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let parts = line.trim_end().rsplit_once(' ');
        let parts =
            parts.and_then(|(name, number)| Some((name.trim(), number.parse::<f32>().ok()?)));
        match parts {
            Some((name, magnitude)) if !name.is_empty() => {
                magnitudes.insert(name.to_string(), magnitude);
            }
            // The first line decides whether this is a table at all.
            _ if magnitudes.is_empty() => return Err(RangeFileError::Unknown),
            _ => return Err(wrong(index, line, "a name, a space and a number")),
        }
    }
    match magnitudes.is_empty() {
        true => Err(RangeFileError::Unknown),
        false => Ok(symmetric(RangeFormat::OnnxRuntimeText, magnitudes)),
    }
}

/// Writes lines of a name, a space and a magnitude.
pub(super) fn write_lines(magnitudes: &BTreeMap<&str, f32>) -> String {
    let line = |(name, magnitude): (&&str, &f32)| format!("{name} {magnitude:?}\n");
    magnitudes.iter().map(line).collect()
}
