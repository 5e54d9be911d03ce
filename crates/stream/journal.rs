//! The journal of a conversion: enough to go on after an interruption.
//!
//! A face writes it beside the files of the result, after the bytes that it speaks of are on the
//! disk. It never does so before: an old journal only repeats some work. It names the sources, the
//! settings and the result, because the work of another conversion must not be taken over.

use octet_quantize::recipe::RecipeSummary;
use octet_quantize::{RefusedConstants, Settings};
use serde::{Deserialize, Serialize};

use crate::{Conversion, OutputFiles, StreamError, WeightsFile};

/// The identity of a file that is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// Its name, relative to the model.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Milliseconds from 1970 to its last change, if known.
    pub modified: Option<u64>,
}

/// The state of a conversion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversionJournal {
    /// The version of Octet, as another one may compute other bytes.
    version: String,
    /// The model and its files of weights, by name.
    sources: Vec<SourceIdentity>,
    /// The settings as JSON text. Text is compared exactly, and read numbers are not.
    settings: String,
    output: OutputFiles,
    files: Vec<WeightsFile>,
    /// Constants that stay as they are.
    #[serde(default)]
    refused: RefusedConstants,
    /// Facts about the recipes whose outputs are written, in the order of the conversion.
    finished: Vec<RecipeSummary>,
}

/// Reasons why a journal can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Not a journal, or one of another model.
    #[error("the journal of the unfinished conversion is damaged: discard it and start again")]
    Damaged,
    /// A journal of another conversion.
    #[error("the unfinished conversion had {what}: discard it, or choose what it had")]
    Other {
        /// The difference.
        what: String,
    },
}

impl ConversionJournal {
    /// The journal of a conversion that has just been planned.
    pub fn new(
        version: &str,
        mut sources: Vec<SourceIdentity>,
        settings: &Settings,
        output: &OutputFiles,
        conversion: &Conversion,
    ) -> ConversionJournal {
        sources.sort();
        ConversionJournal {
            version: version.to_owned(),
            sources,
            settings: serde_json::to_string(settings).unwrap_or_default(),
            output: output.clone(),
            files: conversion.files().to_vec(),
            refused: conversion.refused().clone(),
            finished: conversion.finished().to_vec(),
        }
    }

    /// The name of its file, beside a model file of this name.
    pub fn file_name(model: &str) -> String {
        format!("{model}.journal.json")
    }

    /// Takes the files of a conversion that was planned again, of which nothing is written.
    pub fn restart(&mut self, conversion: &Conversion) {
        self.files = conversion.files().to_vec();
        self.refused = conversion.refused().clone();
        self.finished.clear();
    }

    /// Name of the model file that the conversion writes.
    pub fn model(&self) -> &str {
        &self.output.model
    }

    /// Notes the recipes that are finished. Their bytes must be on the disk. False if there is
    /// nothing new.
    pub fn record(&mut self, conversion: &Conversion) -> bool {
        let new = conversion.finished().get(self.finished.len()..);
        let new = new.unwrap_or_default();
        self.finished.extend_from_slice(new);
        !new.is_empty()
    }

    /// Makes a new conversion go on where the one of this journal ended. `current` is the journal of
    /// the new one, and has the same state then.
    pub fn resume(
        &self,
        current: &mut ConversionJournal,
        conversion: &mut Conversion,
    ) -> Result<(), StreamError> {
        self.prepare(current, conversion)?;
        conversion.resume(&self.finished)?;
        current.record(conversion);
        Ok(())
    }

    /// Gives a new conversion the plan of this journal's, which may have fewer constants to convert.
    pub fn prepare(
        &self,
        current: &mut ConversionJournal,
        conversion: &mut Conversion,
    ) -> Result<(), StreamError> {
        self.continues(current)?;
        conversion.refuse(&self.refused)?;
        current.restart(conversion);
        match self.files == current.files {
            true => Ok(()),
            false => Err(JournalError::Damaged.into()),
        }
    }

    /// Fails unless both are about the same conversion.
    pub fn continues(&self, current: &ConversionJournal) -> Result<(), JournalError> {
        let other = |what: String| Err(JournalError::Other { what });
        if self.version != current.version {
            return other(format!("Octet {}", self.version));
        }
        let mut sources = self.sources.iter().zip(&current.sources);
        if self.sources.len() != current.sources.len() {
            return other("other source files".to_owned());
        }
        if let Some((before, _)) = sources.find(|(before, now)| before != now) {
            return other(format!(
                "another {} ({} bytes), or the file has changed since",
                before.name, before.bytes
            ));
        }
        if self.settings != current.settings {
            return other("other settings".to_owned());
        }
        if self.output != current.output {
            return other("another name or another size of its files".to_owned());
        }
        Ok(())
    }

    /// The number of recipes that it has.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Its text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the text of [`Self::to_json`].
    pub fn from_json(text: &str) -> Result<ConversionJournal, JournalError> {
        serde_json::from_str(text).map_err(|_| JournalError::Damaged)
    }
}
