//! The complete passes of a calibration: their files belong together, and a session continues with them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::error::ShardError;
use super::file::StatsFile;
use super::header::{FileIdentity, SharedWork, SkippedSample, StatsHeader};
use super::merge::check_together;
use crate::profile::environment;
use crate::quantize::Settings;
use crate::samples::{AudioSettings, SampleSettings, Skipped};
use crate::session::{self, PassNeeds, Session};
use crate::stats::PassStatistics;

/// The complete passes of a calibration, in order.
#[derive(Clone, Debug, Default)]
pub struct CompletePasses {
    passes: Vec<(StatsHeader, PassStatistics)>,
    identities: Vec<String>,
}

/// Content of a calibration's statistics, for the page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedStatistics {
    /// Number of samples in all.
    pub samples: u64,
    /// Number of samples that were left out.
    pub skipped: usize,
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Number of complete passes over the samples.
    pub passes: usize,
    /// True if the samples are random.
    pub demo: bool,
}

impl CompletePasses {
    /// Merges the files of each pass. The files may be in any order.
    pub fn merged(
        mut files: Vec<(String, StatsFile)>,
        model: &[FileIdentity],
    ) -> Result<CompletePasses, ShardError> {
        files.sort_by_key(|(_, file)| file.header.pass);
        let mut all = CompletePasses::default();
        for files in files.chunk_by(|(_, a), (_, b)| a.header.pass == b.header.pass) {
            let headers = files.iter();
            let headers = headers.map(|(name, file)| (name.clone(), file.header.clone()));
            let header = check_together(&headers.collect::<Vec<_>>())?;
            if header.work != SharedWork::Calibration {
                return Err(ShardError::NotCalibration);
            }
            let mut collected: Option<PassStatistics> = None;
            for (name, file) in files {
                let more = PassStatistics::from_bytes(&file.payload)?;
                let Some(collected) = &mut collected else {
                    collected = Some(more);
                    continue;
                };
                let merged = collected.merge(&more);
                merged.map_err(|cause| ShardError::Statistics {
                    first: files[0].0.clone(),
                    other: name.clone(),
                    cause: cause.to_string(),
                })?;
            }
            let payload = collected.map_or(Vec::new(), |collected| collected.bytes());
            all.add(&files[0].0, StatsFile { header, payload }, model)?;
        }
        Ok(all)
    }

    /// Content of the statistics.
    pub fn summary(&self) -> SharedStatistics {
        let first = self.first();
        SharedStatistics {
            samples: first.map_or(0, |first| first.samples),
            skipped: first.map_or(0, |first| first.skipped.len()),
            sources: first.map_or_else(Vec::new, |first| first.sources.keys().cloned().collect()),
            passes: self.passes.len(),
            demo: self.reading().demo,
        }
    }

    /// Adds the file of the next pass. It must be complete and belong to the model and to the passes
    /// before.
    pub fn add(
        &mut self,
        name: &str,
        file: StatsFile,
        model: &[FileIdentity],
    ) -> Result<(), ShardError> {
        file.header.require_complete()?;
        let (wanted, whole) = match self.first() {
            Some(first) => (first, "the earlier pass"),
            None => (&file.header, "the model"),
        };
        let wanted = StatsHeader {
            work: SharedWork::Calibration,
            model: model.to_vec(),
            pass: self.passes.len() as u32 + 1,
            after: self.identities.clone(),
            content: file.header.content.clone(),
            ..wanted.clone()
        };
        if file.header.work != SharedWork::Calibration {
            return Err(ShardError::NotCalibration);
        }
        wanted.require_alike(whole, name, &file.header)?;
        self.require_same_samples(&file.header)?;
        let collected = PassStatistics::from_bytes(&file.payload)?;
        self.identities.push(file.identity());
        self.passes.push((file.header, collected));
        Ok(())
    }

    /// The header of the first pass.
    pub fn first(&self) -> Option<&StatsHeader> {
        self.passes.first().map(|(header, _)| header)
    }

    /// Number of passes.
    pub fn count(&self) -> usize {
        self.passes.len()
    }

    /// Identities of the files, to which a later pass is bound.
    pub fn identities(&self) -> &[String] {
        &self.identities
    }

    /// Samples that the first pass skipped.
    pub fn skipped(&self) -> Vec<Skipped> {
        let skipped = self.first().map_or(&[][..], |first| &first.skipped);
        let one = |one: &SkippedSample| Skipped {
            sample: one.sample.clone(),
            reason: one.reason.clone(),
        };
        skipped.iter().map(one).collect()
    }

    /// Fails if a later pass saw other samples than the first.
    fn require_same_samples(&self, header: &StatsHeader) -> Result<(), ShardError> {
        let Some(first) = self.first() else {
            return Ok(());
        };
        let same = (&first.sources, &first.digest, first.samples)
            == (&header.sources, &header.digest, header.samples);
        match same {
            true => Ok(()),
            false => Err(ShardError::OtherSamples {
                found: header.samples,
                wanted: first.samples,
            }),
        }
    }

    /// Fails if the passes were observed with other settings than `bound`, those of `what`.
    pub fn require_settings(
        &self,
        bound: &serde_json::Value,
        what: &str,
    ) -> Result<(), ShardError> {
        let Some(first) = self.first() else {
            return Ok(());
        };
        let wanted = StatsHeader {
            settings: bound.clone(),
            ..first.clone()
        };
        wanted.require_alike(what, "the file of the first pass", first)
    }

    /// The settings by which the first pass read its samples.
    pub fn reading(&self) -> SampleSettings {
        let Some(first) = self.first() else {
            return SampleSettings::default();
        };
        let [image, audio] = ["image", "audio"].map(|key| first.settings[key].clone());
        SampleSettings {
            image: serde_json::from_value(image).unwrap_or_default(),
            audio: serde_json::from_value(audio).unwrap_or_default(),
            demo: first.settings["demo"].as_bool().unwrap_or(false),
            ..SampleSettings::default()
        }
    }

    /// Enters the passes into a session. Returns true if the settings need another pass.
    pub fn enter(
        &self,
        session: &mut Session,
        samples: SampleSettings,
        needs: &PassNeeds,
    ) -> Result<bool, session::Error> {
        let complete = self.passes.iter();
        let complete = complete.map(|(header, collected)| (collected, header.samples as usize));
        session.continue_calibration(samples, needs, complete)
    }
}

/// The settings that the statistics of a calibration depend on.
pub fn bound_settings(
    settings: &Settings,
    reading: &SampleSettings,
) -> Result<serde_json::Value, ShardError> {
    let unwritten = |error: serde_json::Error| ShardError::Header(error.to_string());
    let mut bound = json!({
        "image": serde_json::to_value(&reading.image).map_err(unwritten)?,
        "demo": reading.demo,
        "equalize": settings.equalizes(),
    });
    // The usual rate of sound is not written, since most models take none.
    if reading.audio != AudioSettings::default() {
        bound["audio"] = serde_json::to_value(&reading.audio).map_err(unwritten)?;
    }
    Ok(bound)
}

/// Architecture and instruction sets of this machine, as the kernels use them.
pub fn processor() -> String {
    let here = environment(1);
    let mut words = vec![here.architecture];
    words.extend(here.instructions);
    words.join(" ")
}
