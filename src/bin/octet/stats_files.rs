//! Files of statistics on disk: what they are bound to, and the passes that are complete.

use std::io::Read;
use std::path::{Path, PathBuf};

use octet::quantize::Settings;
use octet::session::{Checksum, PassNeeds, Session};
use octet::shards::{CompletePasses, FileIdentity, ShardError, StatsFile, StatsHeader};
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

/// Reads the header of a file of statistics alone.
pub fn read_header(path: &Path) -> Result<StatsHeader, Failure> {
    let unreadable = |error: std::io::Error| {
        let why = files::system_message(&error);
        Failure::input(format!(
            "can't read the statistics {}: {why}; check the path",
            path.display()
        ))
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let header = octet::shards::read_header(&mut file).map_err(unreadable)?;
    header.map_err(|error| refused(path, &error))
}

/// The failure for a file of statistics that can't be used.
pub fn refused(path: &Path, error: &octet::shards::ShardError) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// Reads the files of a calibration's complete passes.
pub fn complete_passes(
    paths: &[PathBuf],
    model: &[FileIdentity],
) -> Result<CompletePasses, Failure> {
    let mut all = CompletePasses::default();
    for path in paths {
        let added = all.add(&path.display().to_string(), read(path)?, model);
        added.map_err(|error| match error {
            ShardError::Other { .. } => Failure::input(error.to_string()),
            error => refused(path, &error),
        })?;
    }
    Ok(all)
}

/// Fails if the passes were observed with other settings than `bound`.
pub fn require_settings(
    complete: &CompletePasses,
    bound: &serde_json::Value,
) -> Result<(), Failure> {
    let checked = complete.require_settings(bound, "this command");
    checked.map_err(|error| Failure::usage(error.to_string()))
}

/// Calibrates a session with the merged statistics of other runs.
pub fn calibrate(
    session: &mut Session,
    options: &QuantizeOptions,
    settings: &Settings,
    progress: &Progress,
) -> Result<(), Failure> {
    let model = model_files(&options.model, session)?;
    let complete = complete_passes(&options.stats, &model)?;
    let Some(first) = complete.first() else {
        return Ok(());
    };
    let reading = complete.reading();
    require_settings(&complete, &super::observe::bound(settings, &reading)?)?;
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
    let skipped = complete.skipped();
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

fn unfinished(error: ShardError) -> Failure {
    Failure::unfinished(error.to_string())
}

/// Writes a file of statistics and prints a line on it.
pub fn write(
    out: &Path,
    option: &str,
    header: StatsHeader,
    payload: Vec<u8>,
) -> Result<(), Failure> {
    let file = StatsFile { header, payload };
    let bytes = file.to_bytes().map_err(unfinished)?;
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
