//! Checksums in the report that tie a result to what it was made from.
//!
//! They hold no time and no path, so two runs on the same files give the same proof.

use serde::{Deserialize, Serialize};

use super::ranges::ValueRanges;
use super::source::Checksum;
use crate::onnx;
use crate::quantize::Settings;

/// The report's section `proof`. The float model's own checksum is in the section `model`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Version of Octet.
    pub version: String,
    /// SHA-256 of the settings as compact JSON.
    pub settings: String,
    /// SHA-256 of the file of ranges that `--save-ranges` writes.
    pub ranges: String,
    /// SHA-256 of the quantized model's file.
    pub result: String,
}

impl Proof {
    /// The proof of a result.
    pub(super) fn new(settings: &Settings, ranges: &ValueRanges, file: &onnx::Pieces) -> Proof {
        let settings = serde_json::to_vec(settings).unwrap_or_default();
        Proof {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: checksum([settings.as_slice()]),
            ranges: checksum([ranges_text(ranges).as_bytes()]),
            result: checksum(file.as_slice()),
        }
    }
}

/// The file contents of ranges, one per line.
pub fn ranges_text(ranges: &ValueRanges) -> String {
    // Names and pairs of numbers always have a form in JSON.
    serde_json::to_string_pretty(ranges).unwrap_or_default() + "\n"
}

fn checksum<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> String {
    let mut checksum = Checksum::new();
    for piece in pieces {
        checksum.add(piece.as_ref());
    }
    checksum.finish()
}
