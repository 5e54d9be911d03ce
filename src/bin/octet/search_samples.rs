//! The samples of a search: those that calibrate and choose, and those that verify.

use std::collections::HashMap;
use std::path::PathBuf;

use octet::quantize::Settings;
use octet::samples::{Encoded, SampleSettings, Skipped};
use octet::search::{Half, SearchSample, halves};
use octet::session::Session;

use super::samples::{BadSampleOptions, Samples, left_out};
use super::search::SearchCommand;
use super::{Failure, labels};

/// The halves of the samples. A sample is read into memory only when it is needed.
pub struct SearchSamples<'a> {
    choosing: Samples,
    held: Samples,
    labels: HashMap<String, usize>,
    bad: &'a BadSampleOptions,
    /// Settings of the samples.
    pub reading: SampleSettings,
}

impl<'a> SearchSamples<'a> {
    /// Lists the samples of a command, and divides them. Returns a sentence on the proposed
    /// preprocessing, too.
    pub fn read(
        command: &'a SearchCommand,
        settings: &Settings,
        session: &mut Session,
    ) -> Result<(SearchSamples<'a>, Option<String>), Failure> {
        let labels = match &command.labels {
            Some(path) => labels::read(path)?,
            None => HashMap::new(),
        };
        let reading = SampleSettings {
            bad_samples: command.bad.setting(),
            ..command.images.settings()?
        };
        let images = settings.images.as_ref();
        let (mut reading, proposed) = command.images.proposed(session, images, reading)?;
        let mut read = |paths: &[PathBuf]| -> Result<Samples, Failure> {
            let samples = Samples::new(paths, None)?;
            let samples = samples.tokenized(session, &command.model, &command.texts)?;
            samples.usable(session, &mut reading)
        };
        let all = read(&command.samples)?;
        let have_pictures = all.have_pictures();
        let (choosing, held) = match command.verify.is_empty() {
            false => (all, read(&command.verify)?),
            true => {
                let (choosing, held) = halves(all.count(), command.seed);
                let (mut first, mut second) = (all.clone(), all);
                first.retain(|place| choosing.binary_search(&place).is_ok());
                second.retain(|place| held.binary_search(&place).is_ok());
                (first, second)
            }
        };
        let samples = SearchSamples {
            choosing,
            held,
            labels,
            bad: &command.bad,
            reading,
        };
        Ok((samples, proposed.filter(|_| have_pictures)))
    }

    /// The samples of a half.
    pub fn half(&self, half: Half) -> &Samples {
        match half {
            Half::Choosing => &self.choosing,
            Half::Held => &self.held,
        }
    }

    /// Number of samples of both halves.
    pub fn count(&self) -> usize {
        self.choosing.count() + self.held.count()
    }

    /// A sentence on the samples that were left out before a run.
    pub fn left_out(&self) -> Option<String> {
        left_out(&self.reading.skipped, self.count())
    }

    /// True if both halves have labels.
    pub fn labelled(&self) -> bool {
        [&self.choosing, &self.held].into_iter().all(|half| {
            let mut names = half.names().into_iter();
            names.any(|name| labels::of(&self.labels, &name).is_some())
        })
    }

    /// Decodes a sample, or says why it is left out.
    pub fn decode(
        &self,
        session: &Session,
        sample: &Encoded,
    ) -> Result<Result<SearchSample, Skipped>, Failure> {
        match session.decode(sample, &self.reading) {
            Ok(inputs) => Ok(Ok(SearchSample {
                label: labels::of(&self.labels, &sample.name),
                name: sample.name.clone(),
                inputs,
            })),
            Err(error) if self.bad.continues_after(&error) => Ok(Err(Skipped {
                sample: sample.name.clone(),
                reason: error.to_string(),
            })),
            Err(error) => Err(Failure::from(error)),
        }
    }

    /// All samples of a half that can be decoded.
    pub fn decoded(&self, session: &Session, half: Half) -> Result<Vec<SearchSample>, Failure> {
        let mut decoded = Vec::new();
        for sample in self.half(half).each(session) {
            decoded.extend(self.decode(session, &sample?)?.ok());
        }
        Ok(decoded)
    }
}
