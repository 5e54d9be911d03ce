//! Ranges in the files of other tools: calibration tables of ONNX Runtime and TensorRT, and encodings
//! of AIMET, read and written.
//!
//! A file is recognized by its content. Most formats say less than Octet's own: [`RangeFile::notes`]
//! says what is missing. A reader takes any bytes and answers with ranges or with an error.

mod aimet;
mod encodings;
mod error;
mod flatbuffer_table;
mod json_table;
mod result_ranges;
mod text_tables;

use std::collections::BTreeMap;

use serde_json::Value;

pub use encodings::{Encoding, encodings_of};
pub use error::RangeFileError;
pub use result_ranges::{RangeFileSummary, of_result};

use crate::onnx::schema::ModelProto;
use crate::quantize::TensorSettings;
use crate::session::{ValueRanges, ranges_text};
use crate::stats::Range;

/// The format of a file of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeFormat {
    /// Octet's own: `{"tensor": [min, max]}`.
    Octet,
    /// ONNX Runtime's calibration cache, JSON.
    OnnxRuntime,
    /// ONNX Runtime's table for TensorRT and MIGraphX, FlatBuffers.
    OnnxRuntimeFlatbuffers,
    /// ONNX Runtime's table as text: a name and a number in each line.
    OnnxRuntimeText,
    /// TensorRT's calibration cache.
    TensorRt,
    /// Encodings of AIMET, version 0.6.1.
    Aimet061,
    /// Encodings of AIMET, version 1.0.0.
    Aimet,
}

impl RangeFormat {
    /// All formats.
    pub const ALL: [RangeFormat; 7] = [
        RangeFormat::Octet,
        RangeFormat::OnnxRuntime,
        RangeFormat::OnnxRuntimeFlatbuffers,
        RangeFormat::OnnxRuntimeText,
        RangeFormat::TensorRt,
        RangeFormat::Aimet061,
        RangeFormat::Aimet,
    ];

    /// The name in options and summaries.
    pub fn name(self) -> &'static str {
        match self {
            RangeFormat::Octet => "octet",
            RangeFormat::OnnxRuntime => "onnxruntime",
            RangeFormat::OnnxRuntimeFlatbuffers => "onnxruntime-flatbuffers",
            RangeFormat::OnnxRuntimeText => "onnxruntime-text",
            RangeFormat::TensorRt => "tensorrt",
            RangeFormat::Aimet061 => "aimet-0.6.1",
            RangeFormat::Aimet => "aimet",
        }
    }

    /// The title for people.
    pub fn title(self) -> &'static str {
        match self {
            RangeFormat::Octet => "ranges of Octet",
            RangeFormat::OnnxRuntime => "a calibration cache of ONNX Runtime",
            RangeFormat::OnnxRuntimeFlatbuffers | RangeFormat::OnnxRuntimeText => {
                "a calibration table of ONNX Runtime"
            }
            RangeFormat::TensorRt => "a calibration cache of TensorRT",
            RangeFormat::Aimet061 | RangeFormat::Aimet => "encodings of AIMET",
        }
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<RangeFormat> {
        let mut all = RangeFormat::ALL.into_iter();
        all.find(|format| format.name() == name)
    }

    /// The format that the ending of a file's name stands for; Octet's own for other endings.
    pub fn of_ending(path: &str) -> RangeFormat {
        match path.rsplit('.').next().unwrap_or_default() {
            "flatbuffers" => RangeFormat::OnnxRuntimeFlatbuffers,
            "cache" => RangeFormat::TensorRt,
            "encodings" => RangeFormat::Aimet,
            _ => RangeFormat::Octet,
        }
    }

    /// True for formats that hold scales of a quantized model, weights included.
    pub fn needs_encodings(self) -> bool {
        matches!(self, RangeFormat::Aimet061 | RangeFormat::Aimet)
    }
}

/// The content of a file of ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFile {
    /// The format.
    pub format: RangeFormat,
    /// The ranges of activations.
    pub ranges: ValueRanges,
    /// Settings of single tensors, from formats that have types.
    pub tensors: BTreeMap<String, TensorSettings>,
    /// Notes on all that the format does not say, or that Octet cannot express, a sentence each.
    pub notes: Vec<String>,
}

impl RangeFile {
    fn new(format: RangeFormat, ranges: ValueRanges) -> RangeFile {
        RangeFile {
            format,
            ranges,
            tensors: BTreeMap::new(),
            notes: Vec::new(),
        }
    }
}

/// Reads a file of ranges, whatever its format.
pub fn read(bytes: &[u8]) -> Result<RangeFile, RangeFileError> {
    let file = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => read_text(text.trim_start_matches('\u{feff}'))?,
        _ => flatbuffer_table::read(bytes)?,
    };
    if file.ranges.is_empty() && file.tensors.is_empty() {
        return Err(RangeFileError::Empty(file.format));
    }
    for (tensor, range) in &file.ranges {
        if !(range.min.is_finite() && range.max.is_finite() && range.min <= range.max) {
            return Err(RangeFileError::NoRange {
                tensor: tensor.clone(),
                min: range.min,
                max: range.max,
            });
        }
    }
    Ok(file)
}

fn read_text(text: &str) -> Result<RangeFile, RangeFileError> {
    if text.starts_with("TRT-") {
        return text_tables::read_tensorrt(text);
    }
    if !text.trim_start().starts_with('{') {
        return text_tables::read_lines(text);
    }
    let document: Value =
        serde_json::from_str(text).map_err(|error| RangeFileError::Json(error.to_string()))?;
    if document.get("activation_encodings").is_some() || document.get("encodings").is_some() {
        return aimet::read(&document);
    }
    json_table::read(&document)
}

/// The ranges with those of values that only pass a Relu or Clip. Octet gives them no range of their
/// own, and other tools ask for one: that of the node's output loses nothing.
pub fn with_clipped_values(ranges: &ValueRanges, float: &ModelProto) -> ValueRanges {
    let mut all = ranges.clone();
    let nodes = float.graph.iter().flat_map(|graph| &graph.node);
    for node in nodes.filter(|node| node.is("Relu") || node.is("Clip")) {
        let output = node.output.first().and_then(|output| ranges.get(output));
        if let (Some(input), Some(range)) = (node.input_at(0), output) {
            all.entry(input.to_string()).or_insert(*range);
        }
    }
    all
}

/// A written file of ranges.
pub struct WrittenRanges {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Notes on all that the format cannot hold, a sentence each.
    pub notes: Vec<String>,
}

/// Writes ranges. `encodings` are those of the quantized model, for formats that need them.
pub fn write(
    format: RangeFormat,
    ranges: &ValueRanges,
    encodings: &[Encoding],
) -> Result<WrittenRanges, RangeFileError> {
    let lossless = |text: String| WrittenRanges {
        bytes: text.into_bytes(),
        notes: Vec::new(),
    };
    Ok(match format {
        RangeFormat::Octet => lossless(ranges_text(ranges)),
        RangeFormat::OnnxRuntime => lossless(json_table::write(ranges)),
        RangeFormat::OnnxRuntimeFlatbuffers => {
            one_number(flatbuffer_table::write(&magnitudes(ranges)), ranges)
        }
        RangeFormat::OnnxRuntimeText => {
            let bytes = text_tables::write_lines(&magnitudes(ranges)).into_bytes();
            one_number(bytes, ranges)
        }
        RangeFormat::TensorRt => {
            let bytes = text_tables::write_tensorrt(&magnitudes(ranges)).into_bytes();
            let mut written = one_number(bytes, ranges);
            let cut = ranges.keys().filter(|name| name.contains(':')).count();
            if cut > 0 {
                written.notes.push(format!(
                    "{cut} names of tensors contain a colon, where ONNX Runtime ends a name: it does not find these tensors"
                ));
            }
            written
        }
        RangeFormat::Aimet061 | RangeFormat::Aimet if encodings.is_empty() => {
            return Err(RangeFileError::NoEncodings);
        }
        RangeFormat::Aimet061 => lossless(aimet::write_061(encodings)),
        RangeFormat::Aimet => lossless(aimet::write_100(encodings)),
    })
}

/// The largest magnitude of each range.
fn magnitudes(ranges: &ValueRanges) -> BTreeMap<&str, f32> {
    let magnitude = |range: &Range| range.min.abs().max(range.max.abs());
    ranges
        .iter()
        .map(|(name, range)| (name.as_str(), magnitude(range)))
        .collect()
}

/// A file with one number for each tensor; the note counts the ranges that lost an end.
fn one_number(bytes: Vec<u8>, ranges: &ValueRanges) -> WrittenRanges {
    let lost = ranges.values().filter(|range| -range.min != range.max);
    let notes = match lost.count() {
        0 => Vec::new(),
        lost => vec![format!(
            "the format holds one number for each tensor: {lost} of {} ranges are not symmetric, and only their larger \
             magnitude is written",
            ranges.len()
        )],
    };
    WrittenRanges { bytes, notes }
}

/// The ranges of a table with one magnitude for each tensor.
fn symmetric(
    format: RangeFormat,
    magnitudes: impl IntoIterator<Item = (String, f32)>,
) -> RangeFile {
    let ranges = magnitudes
        .into_iter()
        .map(|(name, magnitude)| (name, Range::new(-magnitude, magnitude)));
    let mut file = RangeFile::new(format, ranges.collect());
    file.notes.push(
        "the table holds one number for each tensor and no minimum, so every range is symmetric: tensors without \
         negative values get half of the integers of an unsigned type"
            .into(),
    );
    file
}

#[cfg(test)]
mod tests;
