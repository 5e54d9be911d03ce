//! Files of statistics on disk: what they are bound to, and the passes that are complete.

use std::io::Read;
use std::path::{Path, PathBuf};

use octet::profile::environment;
use octet::quantize::Settings;
use octet::samples::{SampleSettings, Skipped};
use octet::session::{Checksum, PassNeeds, Session};
use octet::shards::{FileIdentity, Payload, SkippedSample, StatsFile, StatsHeader};
use octet::stats::PassStatistics;
use octet_host::fs::File;

use super::calibration::failure_of;
use super::progress::Progress;
use super::quantize::QuantizeOptions;
use super::samples::left_out;
use super::{Failure, files, open};

/// Bytes of a file that are hashed at a time.
const PORTION: usize = 1 << 20;

/// Reads a file of statistics.
pub fn read(path: &Path) -> Result<StatsFile, Failure> {
    let bytes = files::read(path, "statistics")?;
    StatsFile::from_bytes(&bytes).map_err(|error| refused(path, &error))
}

/// The failure for a file of statistics that can't be used.
pub fn refused(path: &Path, error: &octet::shards::ShardError) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// The complete passes of a calibration, in order.
pub struct CompletePasses {
    /// Each pass with its header.
    pub passes: Vec<(StatsHeader, PassStatistics)>,
    /// Identities of the files, to which a later pass is bound.
    pub identities: Vec<String>,
}

impl CompletePasses {
    /// Reads the files of all passes. Each must be complete and belong to the one before.
    pub fn read(paths: &[PathBuf], model: &[FileIdentity]) -> Result<CompletePasses, Failure> {
        let mut all = CompletePasses {
            passes: Vec::new(),
            identities: Vec::new(),
        };
        for path in paths {
            let file = read(path)?;
            let refuse = |error| refused(path, &error);
            file.header.require_complete().map_err(refuse)?;
            let mut wanted = match all.passes.first() {
                Some((first, _)) => first.clone(),
                None => file.header.clone(),
            };
            wanted.model = model.to_vec();
            wanted.pass = all.passes.len() as u32 + 1;
            wanted.after.clone_from(&all.identities);
            wanted.content.clone_from(&file.header.content);
            let whole = match all.passes.is_empty() {
                true => "the model",
                false => "the earlier pass",
            };
            let name = path.display().to_string();
            wanted
                .require_alike(whole, &name, &file.header)
                .map_err(|error| Failure::input(error.to_string()))?;
            all.require_same_samples(path, &file.header)?;
            let Payload::Calibration(collected) = Payload::of(&file).map_err(refuse)? else {
                return Err(Failure::input(format!(
                    "{}: these are sums of a comparison; name files of octet observe",
                    path.display()
                )));
            };
            all.identities.push(file.identity());
            all.passes.push((file.header, collected));
        }
        Ok(all)
    }

    /// Fails if a later pass saw other samples than the first.
    fn require_same_samples(&self, path: &Path, header: &StatsHeader) -> Result<(), Failure> {
        let Some((first, _)) = self.passes.first() else {
            return Ok(());
        };
        let same = (&first.sources, &first.digest, first.samples)
            == (&header.sources, &header.digest, header.samples);
        match same {
            true => Ok(()),
            false => Err(Failure::input(format!(
                "{}: its {} samples are not the {} of the first pass; observe the same samples in every pass",
                path.display(),
                header.samples,
                first.samples
            ))),
        }
    }

    /// Fails if the passes were observed with other settings than `bound`.
    pub fn require_settings(&self, bound: &serde_json::Value) -> Result<(), Failure> {
        let Some((first, _)) = self.passes.first() else {
            return Ok(());
        };
        let wanted = StatsHeader {
            settings: bound.clone(),
            ..first.clone()
        };
        wanted
            .require_alike("this command", "the file of the first pass", first)
            .map_err(|error| Failure::usage(error.to_string()))
    }

    /// Enters the passes into a session. Returns true if the settings need another pass.
    pub fn enter(
        &self,
        session: &mut Session,
        samples: octet::samples::SampleSettings,
        needs: &PassNeeds,
    ) -> Result<bool, octet::session::Error> {
        let complete = self.passes.iter();
        let complete = complete.map(|(header, collected)| (collected, header.samples as usize));
        session.continue_calibration(samples, needs, complete)
    }
}

/// Calibrates a session with the merged statistics of other runs.
pub fn calibrate(
    session: &mut Session,
    options: &QuantizeOptions,
    settings: &Settings,
    progress: &Progress,
) -> Result<(), Failure> {
    let model = model_files(&options.model, session)?;
    let complete = CompletePasses::read(&options.stats, &model)?;
    let Some((first, _)) = complete.passes.first() else {
        return Ok(());
    };
    let mut bound = first.settings.clone();
    bound["equalize"] = serde_json::to_value(settings.equalizes())?;
    complete.require_settings(&bound)?;
    let reading = SampleSettings {
        image: serde_json::from_value(bound["image"].take()).unwrap_or_default(),
        demo: bound["demo"].as_bool().unwrap_or(false),
        ..SampleSettings::default()
    };
    let named = |error| failure_of(options, error);
    let needs = PassNeeds::of(settings);
    if complete.enter(session, reading, &needs).map_err(named)? {
        let content = session.collected().map_err(named)?.content();
        return Err(Failure::usage(format!(
            "these settings need another pass over the samples ({content}): call octet observe with these settings \
             and --after {}, merge its shards, and add the file to --stats",
            options
                .stats
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        )));
    }
    let skipped: Vec<Skipped> = first.skipped.iter().map(skipped_sample).collect();
    session
        .finish_calibration(needs.method)
        .map_err(|error| match (error, skipped.first()) {
            (octet::session::Error::NoSamples, Some(one)) => {
                Failure::input(format!("sample {}: {}", one.sample, one.reason))
            }
            (error, _) => named(error),
        })?;
    if let Some(texts) = left_out(&skipped, first.samples as usize) {
        progress.note(&texts);
    }
    Ok(())
}

fn skipped_sample(one: &SkippedSample) -> Skipped {
    Skipped {
        sample: one.sample.clone(),
        reason: one.reason.clone(),
    }
}

/// Writes a file of statistics and prints a line on it.
pub fn write(
    out: &Path,
    option: &str,
    header: StatsHeader,
    payload: Vec<u8>,
) -> Result<(), Failure> {
    let file = StatsFile { header, payload };
    let bytes = file
        .to_bytes()
        .map_err(|error| Failure::unfinished(error.to_string()))?;
    files::write(out, &[&bytes], option)?;
    files::print(&format!(
        "{}: {} bytes, pass {} ({}), {} samples, {} skipped\n",
        out.display(),
        bytes.len(),
        file.header.pass,
        file.header.content,
        file.header.samples,
        file.header.skipped.len()
    ))
}

/// Names and checksums of a model's files.
pub fn model_files(path: &Path, session: &Session) -> Result<Vec<FileIdentity>, Failure> {
    let summary = session.summary();
    let mut all = vec![FileIdentity {
        name: summary.name.clone(),
        sha256: summary.sha256.clone(),
    }];
    for file in open::data(path, session) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        all.push(FileIdentity {
            name: name.into_owned(),
            sha256: checksum(&file)?,
        });
    }
    Ok(all)
}

fn checksum(path: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| {
        let why = files::system_message(&error);
        Failure::input(format!(
            "can't read the model's weights {}: {why}; check the file",
            path.display()
        ))
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut checksum = Checksum::new();
    let mut portion = vec![0; PORTION];
    loop {
        match file.read(&mut portion).map_err(unreadable)? {
            0 => return Ok(checksum.finish()),
            read => checksum.add(&portion[..read]),
        }
    }
}

/// Architecture and instruction sets of this machine, as the kernels use them.
pub fn processor() -> String {
    let here = environment(1);
    let mut words = vec![here.architecture];
    words.extend(here.instructions);
    words.join(" ")
}
