//! The files that a conversion piece by piece writes: hidden parts beside the result, which get their
//! names when all are complete. A journal makes a later run go on where an earlier one ended.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use octet::onnx::Pieces;
use octet::quantize::Settings;
use octet::stream::{Conversion, ConversionJournal, OutputFiles, StreamError};
use octet_host::fs::{self, File, OpenOptions};
use octet_host::time::Instant;

use super::stream_source::Source;
use super::write_behind::{WriteBehind, WrittenPart};
use super::{Failure, files, targets};

/// The journal is written after this many bytes or this time.
const JOURNAL_BYTES: u64 = 512 << 20;
const JOURNAL_TIME: Duration = Duration::from_secs(5);

/// The note on a journal that does not fit.
const DISCARDED: &str =
    "an unfinished conversion of another model, or with other settings, was discarded";

/// The parts of a result, and their journal.
pub struct PartFiles {
    out: PathBuf,
    parts: Vec<Part>,
    journal: Option<JournalFile>,
    /// True if the parts stay when the run ends: they have their names, or a journal.
    kept: bool,
}

struct Part {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    bytes: u64,
}

struct JournalFile {
    path: PathBuf,
    journal: ConversionJournal,
    written: Instant,
    /// Bytes of the result since then.
    bytes: u64,
}

impl PartFiles {
    /// Opens the parts. If an earlier run left parts of the same conversion, it goes on; returns a
    /// note then, or if it can't.
    pub fn open(
        out: &Path,
        conversion: &mut Conversion,
        source: &Source,
        settings: &Settings,
        output: &OutputFiles,
    ) -> Result<(PartFiles, Option<String>), Failure> {
        let sources = source.paths();
        let check =
            |path: &Path| targets::check(&[(path, "--out")], &source.model_path(), &sources);
        check(out)?;
        for data in conversion.files() {
            check(&out.with_file_name(&data.name))?;
        }
        let current = ConversionJournal::new(
            env!("CARGO_PKG_VERSION"),
            source.identities(),
            settings,
            output,
            conversion,
        );
        let name = ConversionJournal::file_name(&output.model);
        let mut parts = PartFiles {
            out: out.to_path_buf(),
            parts: Vec::new(),
            journal: Some(JournalFile {
                path: out.with_file_name(format!(".{name}")),
                journal: current,
                written: Instant::now(),
                bytes: 0,
            }),
            // Until they are locked, the parts may belong to another run.
            kept: true,
        };
        parts.create(conversion)?;
        let note = parts.resume(conversion)?;
        parts.kept = false;
        if conversion.finished().is_empty() {
            parts.clear()?;
        }
        Ok((parts, note))
    }

    /// Opens all parts, with the contents that they have.
    fn create(&mut self, conversion: &Conversion) -> Result<(), Failure> {
        for data in conversion.files() {
            let path = self.out.with_file_name(&data.name);
            let temporary = self.out.with_file_name(format!(".{}.part", data.name));
            let created = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&temporary);
            let file = created.map_err(|error| unwritable(&path, data.bytes, &error))?;
            if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
                return Err(Failure::unfinished(format!(
                    "another run of Octet writes {} now: wait for its end, or choose another --out",
                    path.display()
                )));
            }
            self.parts.push(Part {
                path,
                temporary,
                file,
                bytes: data.bytes,
            });
        }
        Ok(())
    }

    /// Empties all parts, and gives them their sizes.
    fn clear(&mut self) -> Result<(), Failure> {
        for part in &self.parts {
            let sized = part.file.set_len(0);
            let sized = sized.and_then(|()| part.file.set_len(part.bytes));
            sized.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
        }
        if let Some(journal) = &self.journal {
            let _ = fs::remove_file(&journal.path);
        }
        Ok(())
    }

    /// Goes on where the journal of an earlier run ended.
    fn resume(&mut self, conversion: &mut Conversion) -> Result<Option<String>, Failure> {
        let Some(file) = &mut self.journal else {
            return Ok(None);
        };
        let Ok(text) = fs::read_to_string(&file.path) else {
            return Ok(None);
        };
        let planned = conversion.files().to_vec();
        let before = ConversionJournal::from_json(&text).map_err(StreamError::from);
        let prepared = before.and_then(|before| {
            before.prepare(&mut file.journal, conversion)?;
            Ok(before)
        });
        let Ok(before) = prepared else {
            return Ok(Some(DISCARDED.to_owned()));
        };
        if planned != conversion.files() {
            // The earlier run found constants that can't be converted.
            self.parts.clear();
            self.create(conversion)?;
        }
        let whole = self.parts.iter().all(|part| {
            let length = part.file.metadata().map(|found| found.len());
            length.is_ok_and(|length| length == part.bytes)
        });
        let Some(file) = self.journal.as_mut().filter(|_| whole) else {
            return Ok(None);
        };
        if before.resume(&mut file.journal, conversion).is_err() {
            return Ok(Some(DISCARDED.to_owned()));
        }
        let (done, all) = conversion.progress();
        Ok((done > 0).then(|| {
            format!(
                "an earlier run was not finished: this one goes on after {} of {} MB",
                done / 1_000_000,
                all / 1_000_000
            )
        }))
    }

    /// Begins again with other files, after the plan changed.
    pub fn restart(&mut self, conversion: &Conversion) -> Result<(), Failure> {
        self.remove();
        if let Some(file) = &mut self.journal {
            file.journal.restart(conversion);
            (file.written, file.bytes) = (Instant::now(), 0);
        }
        self.parts.clear();
        self.create(conversion)?;
        self.clear()
    }

    /// Starts to write the parts on another thread.
    pub fn writer(&self) -> Result<WriteBehind, Failure> {
        let part = |part: &Part| {
            let file = part.file.try_clone();
            Ok(WrittenPart {
                path: part.path.clone(),
                file: file.map_err(|error| unwritable(&part.path, part.bytes, &error))?,
                bytes: part.bytes,
            })
        };
        let parts: Result<_, Failure> = self.parts.iter().map(part).collect();
        Ok(WriteBehind::start(parts?))
    }

    /// Counts bytes that were handed to the writer.
    pub fn note_bytes(&mut self, bytes: u64) {
        if let Some(file) = &mut self.journal {
            file.bytes += bytes;
        }
    }

    /// Writes the journal, if it is time or if the run ends `now`.
    pub fn note_progress(
        &mut self,
        conversion: &Conversion,
        writer: &mut WriteBehind,
        now: bool,
    ) -> Result<(), Failure> {
        let Some(file) = &mut self.journal else {
            return Ok(());
        };
        let is_due = file.bytes >= JOURNAL_BYTES || file.written.elapsed() >= JOURNAL_TIME;
        if (now || is_due) && file.journal.record(conversion) {
            writer.write_journal(file.path.clone(), file.journal.to_json())?;
            (file.written, file.bytes) = (Instant::now(), 0);
        }
        Ok(())
    }

    /// Ends a run that a signal interrupted. The parts stay if a later run can go on.
    pub fn interrupted(mut self, conversion: &Conversion, mut writer: WriteBehind) -> Failure {
        let noted = self.note_progress(conversion, &mut writer, true);
        let noted = noted.and_then(|()| writer.finish());
        let has_journal = self.journal.is_some() && !conversion.finished().is_empty();
        self.kept = noted.is_ok() && has_journal;
        let (done, all) = conversion.progress();
        Failure::unfinished(match self.kept {
            true => format!(
                "interrupted after {} of {} MB: run the same command again to go on, or delete the hidden parts beside {}",
                done / 1_000_000,
                all / 1_000_000,
                self.out.display()
            ),
            false => "interrupted: nothing was left behind; run the command again".to_owned(),
        })
    }

    /// Writes the model file and gives all files their names, the model last.
    pub fn finish(mut self, model: &Pieces) -> Result<(), Failure> {
        for part in &self.parts {
            // Some file systems report a full disk only here.
            let synced = part.file.sync_all();
            synced.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
        }
        let beside = files::prepare(&self.out, model.as_slice(), "--out")?;
        for part in &self.parts {
            let moved = fs::rename(&part.temporary, &part.path);
            moved.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
        }
        self.kept = true;
        beside.finish()?;
        if let Some(journal) = &self.journal {
            let _ = fs::remove_file(&journal.path);
        }
        Ok(())
    }

    fn remove(&self) {
        for part in &self.parts {
            let _ = fs::remove_file(&part.temporary);
        }
        if let Some(journal) = &self.journal {
            let _ = fs::remove_file(&journal.path);
        }
    }
}

impl Drop for PartFiles {
    fn drop(&mut self) {
        if !self.kept {
            self.remove();
        }
    }
}

pub(super) fn unwritable(path: &Path, bytes: u64, error: &io::Error) -> Failure {
    Failure::unfinished(format!(
        "can't write {} ({bytes} bytes): {}; free some space or choose another --out (nothing was \
         left behind)",
        path.display(),
        files::system_message(error)
    ))
}
