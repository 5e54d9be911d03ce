//! Ranges between a session and files: what a file holds, and the file of a result.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    RangeFile, RangeFileError, RangeFormat, WrittenRanges, encodings_of, with_clipped_values, write,
};
use crate::onnx::read;
use crate::onnx::schema::ModelProto;
use crate::quantize::TensorSettings;
use crate::session::{Session, ValueRanges};

/// Content of a file of ranges, for the page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RangeFileSummary {
    /// The format, for people.
    pub title: &'static str,
    /// Number of tensors with a range.
    pub ranges: usize,
    /// Settings of single tensors, from formats that have types.
    pub tensors: BTreeMap<String, TensorSettings>,
    /// Notes on all that the format does not say, a sentence each.
    pub notes: Vec<String>,
}

impl RangeFile {
    /// The content, without the ranges themselves.
    pub fn summary(&self) -> RangeFileSummary {
        RangeFileSummary {
            title: self.format.title(),
            ranges: self.ranges.len(),
            tensors: self.tensors.clone(),
            notes: self.notes.clone(),
        }
    }
}

/// A file of the ranges of a result. `quantized` is its model, of which encodings are read; the other
/// formats read the session's float model.
pub fn of_result(
    session: &mut Session,
    format: RangeFormat,
    ranges: &ValueRanges,
    quantized: &[Bytes],
) -> Result<WrittenRanges, RangeFileError> {
    let unread = |cause: String| RangeFileError::Model(cause);
    let model = |pieces: &[Bytes]| -> Result<ModelProto, RangeFileError> {
        read(Bytes::from(pieces.concat())).map_err(|cause| unread(cause.to_string()))
    };
    if format.needs_encodings() {
        return write(format, ranges, &encodings_of(&model(quantized)?));
    }
    if format == RangeFormat::Octet {
        return write(format, ranges, &[]);
    }
    let prepared = session.prepared();
    let prepared = prepared.map_err(|cause| unread(cause.to_string()))?;
    let float = model(prepared.as_slice())?;
    write(format, &with_clipped_values(ranges, &float), &[])
}
