//! Files of ranges, in any format of `octet::exchange`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use octet::exchange::{self, RangeFile, RangeFormat};
use octet::quantize::Settings;
use octet::session::{QuantizationResult, Session};

use super::progress::Progress;
use super::{Failure, files};

/// Options for files of ranges.
#[derive(Args)]
pub struct RangeOptions {
    /// Use these ranges instead of a calibration: JSON {"tensor": [min, max]}, a calibration table of
    /// ONNX Runtime or TensorRT, or encodings of AIMET
    #[arg(long, value_name = "FILE", conflicts_with = "samples")]
    pub ranges: Option<PathBuf>,
    /// Save the calibrated ranges to this file, for --ranges or another tool
    #[arg(long, value_name = "FILE")]
    pub save_ranges: Option<PathBuf>,
    /// The format of --save-ranges [default: by the ending: .flatbuffers, .cache (TensorRT),
    /// .encodings (AIMET); else octet]
    #[arg(long, value_name = "FORMAT", requires = "save_ranges")]
    pub ranges_format: Option<NamedFormat>,
}

/// A format as the value of an option.
#[derive(Clone, Copy)]
pub struct NamedFormat(RangeFormat);

impl ValueEnum for NamedFormat {
    fn value_variants<'a>() -> &'a [NamedFormat] {
        const ALL: [NamedFormat; RangeFormat::ALL.len()] = {
            let mut all = [NamedFormat(RangeFormat::Octet); RangeFormat::ALL.len()];
            let mut place = 0;
            while place < all.len() {
                all[place] = NamedFormat(RangeFormat::ALL[place]);
                place += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

impl RangeOptions {
    /// Reads the file of `--ranges`. Its settings of tensors are taken for tensors that the document
    /// of settings does not name.
    pub fn read(&self, settings: &mut Settings) -> Result<Option<RangeFile>, Failure> {
        let Some(path) = &self.ranges else {
            return Ok(None);
        };
        let file = exchange::read(&files::read(path, "ranges")?)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        for (tensor, own) in &file.tensors {
            let tensors = &mut settings.tensors;
            tensors.entry(tensor.clone()).or_insert_with(|| own.clone());
        }
        if !file.tensors.is_empty() {
            let whole = serde_json::to_value(&*settings)?;
            *settings = Settings::from_value(whole)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        }
        Ok(Some(file))
    }

    fn format(&self, path: &Path) -> RangeFormat {
        match self.ranges_format {
            Some(NamedFormat(format)) => format,
            None => RangeFormat::of_ending(&path.to_string_lossy()),
        }
    }

    /// Writes the file of `--save-ranges`.
    pub fn write(
        &self,
        session: &mut Session,
        outcome: &QuantizationResult,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let Some(path) = &self.save_ranges else {
            return Ok(());
        };
        let (format, model) = (self.format(path), outcome.model.as_slice());
        let written = exchange::of_result(session, format, &outcome.ranges, model)
            .map_err(|error| Failure::input(format!("--save-ranges: {error}")))?;
        written.notes.iter().for_each(|note| progress.note(note));
        files::write(path, &[written.bytes], "--save-ranges")
    }
}
