//! Samples from files, or random ones.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::{Args, ValueEnum};
use octet::samples::{
    BadSamples, Encoded, FileStart, InputSpec, MOST_ROWS, SampleError, SampleRef, SampleSettings,
    Skipped, bytes_to_check, group, is_text, table_rows,
};
use octet::session::{Error, ErrorKind, Session};
use octet_host::fs::{self, File};

use super::texts::TextOptions;
use super::{Failure, files};

/// The number of skipped samples that are named in a note; the report names all.
const NAMED_SKIPPED: usize = 3;

/// The option for samples that can't be used.
#[derive(Args)]
pub struct BadSampleOptions {
    /// Action for a sample that can't be read or that the model can't run: skip leaves it out and
    /// reports it, stop ends the run
    #[arg(long, value_enum, value_name = "WHAT", default_value = "skip")]
    bad_samples: BadSampleAction,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BadSampleAction {
    Skip,
    Stop,
}

impl BadSampleOptions {
    /// The value for the samples' settings.
    pub fn setting(&self) -> BadSamples {
        match self.bad_samples {
            BadSampleAction::Skip => BadSamples::Skip,
            BadSampleAction::Stop => BadSamples::Stop,
        }
    }

    /// True if the run goes on after this error, without the sample.
    pub fn continues_after(&self, error: &Error) -> bool {
        self.bad_samples == BadSampleAction::Skip
            && matches!(error.kind(), ErrorKind::Sample | ErrorKind::Engine)
    }
}

/// A sentence on the samples that were left out; `None` if there are none.
pub fn left_out(skipped: &[Skipped], used: usize) -> Option<String> {
    let named = skipped.iter().take(NAMED_SKIPPED);
    let named: Vec<String> = named
        .map(|one| format!("{}: {}", one.sample, one.reason))
        .collect();
    let more = skipped.len().saturating_sub(NAMED_SKIPPED);
    let rest = match more {
        0 => String::new(),
        more => format!("; and {more} more, listed in the report"),
    };
    (!skipped.is_empty()).then(|| {
        let all = skipped.len() + used;
        format!(
            "{} of {all} samples were left out: {}{rest}",
            skipped.len(),
            named.join("; ")
        )
    })
}

/// A source of samples. A sample is read into memory only when it is needed.
#[derive(Clone)]
pub enum Samples {
    /// Files.
    Files(SampleFiles),
    /// Random samples, by their numbers.
    Demo(Vec<u64>),
}

/// Files, grouped into samples.
#[derive(Clone, Default)]
pub struct SampleFiles {
    refs: Vec<SampleRef>,
    /// Files of texts, which become samples with the model's tokenizer, and tables.
    texts: Vec<String>,
    /// Content of the tokenized texts and of the rows, by the names of their files.
    tokenized: BTreeMap<String, Bytes>,
}

impl Samples {
    /// Random samples, or those in files and folders.
    pub fn new(paths: &[PathBuf], demo: Option<u64>) -> Result<Samples, Failure> {
        Ok(match demo {
            Some(count) => Samples::Demo((0..count).collect()),
            None if paths.is_empty() => Samples::Files(SampleFiles::default()),
            None => {
                let expanded = files::expand(paths)?;
                if expanded.is_empty() {
                    let places: Vec<_> = paths
                        .iter()
                        .map(|path| path.display().to_string())
                        .collect();
                    return Err(Failure::input(format!(
                        "{}: {}",
                        places.join(", "),
                        SampleError::None
                    )));
                }
                let (texts, others): (Vec<_>, Vec<_>) =
                    expanded.into_iter().partition(|path| is_text(path));
                let refs = match others.is_empty() {
                    true => Vec::new(),
                    false => group(&others).map_err(Failure::from)?,
                };
                Samples::Files(SampleFiles {
                    refs,
                    texts,
                    ..SampleFiles::default()
                })
            }
        })
    }

    /// Turns files of texts, or tables, into samples of the model.
    pub fn tokenized(
        self,
        session: &Session,
        model: &Path,
        options: &TextOptions,
    ) -> Result<Samples, Failure> {
        let Samples::Files(mut files) = self else {
            return Ok(self);
        };
        if !files.texts.is_empty() {
            let inputs = session.input_specs();
            files.tokenized = match session.summary().rows {
                true => rows(&files.texts, &inputs)?,
                false => options.tokenize(model, &inputs, &files.texts)?,
            };
            let parts = files.refs.iter().flat_map(|sample| &sample.parts);
            let paths: Vec<String> = parts.chain(files.tokenized.keys()).cloned().collect();
            files.refs = group(&paths).map_err(Failure::from)?;
        }
        Ok(Samples::Files(files))
    }

    /// The names of all samples, in order.
    pub fn names(&self) -> Vec<String> {
        match self {
            Samples::Files(files) => files.refs.iter().map(|one| one.name.clone()).collect(),
            Samples::Demo(numbers) => numbers.iter().map(u64::to_string).collect(),
        }
    }

    /// The samples for which `keeps` holds, by their places in the order.
    pub fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        let mut place = 0;
        let mut next = || {
            place += 1;
            keeps(place - 1)
        };
        match self {
            Samples::Files(files) => files.refs.retain(|_| next()),
            Samples::Demo(numbers) => numbers.retain(|_| next()),
        }
    }

    /// The number of samples.
    pub fn count(&self) -> usize {
        match self {
            Samples::Files(files) => files.refs.len(),
            Samples::Demo(numbers) => numbers.len(),
        }
    }

    /// True if images are among them.
    pub fn have_pictures(&self) -> bool {
        match self {
            Samples::Files(files) => files.refs.iter().any(SampleRef::is_picture),
            Samples::Demo(_) => false,
        }
    }

    /// Keeps the samples that pass the checks possible before a run. The others go into the
    /// settings with their reasons. The first of them is an error if bad samples stop the run, or
    /// if no sample is left.
    pub fn usable(
        self,
        session: &mut Session,
        settings: &mut SampleSettings,
    ) -> Result<Samples, Failure> {
        let Samples::Files(mut files) = self else {
            return Ok(self);
        };
        let mut good = Vec::new();
        for sample in std::mem::take(&mut files.refs) {
            let parts = sample.parts.iter().map(|path| files.start(path));
            let parts = parts.collect::<Result<Vec<_>, Failure>>()?;
            match session.check(&sample.name, &parts, settings) {
                Ok(()) => good.push(sample),
                Err(misfit) => settings.skipped.push(Skipped {
                    sample: misfit.sample,
                    reason: misfit.reason,
                }),
            }
            if settings.bad_samples == BadSamples::Stop && !settings.skipped.is_empty() {
                break;
            }
        }
        match settings.skipped.first() {
            Some(first) if settings.bad_samples == BadSamples::Stop || good.is_empty() => Err(
                Failure::input(format!("sample {}: {}", first.sample, first.reason)),
            ),
            _ => Ok(Samples::Files(SampleFiles {
                refs: good,
                ..files
            })),
        }
    }

    /// The bytes of each sample, one after the other.
    pub fn each(&self, session: &Session) -> impl Iterator<Item = Result<Encoded, Failure>> {
        (0..self.count()).map(|index| self.get(session, index))
    }

    /// The bytes of one sample.
    pub fn get(&self, session: &Session, index: usize) -> Result<Encoded, Failure> {
        match self {
            Samples::Files(files) => files.read(index),
            Samples::Demo(numbers) => Ok(session.demo_sample(0, numbers[index])?),
        }
    }
}

impl SampleFiles {
    /// The part of a file that the check of a sample needs.
    fn start(&self, path: &str) -> Result<FileStart, Failure> {
        match self.tokenized.get(path) {
            Some(bytes) => Ok(FileStart {
                path: path.into(),
                beginning: bytes.clone(),
                size: bytes.len() as u64,
            }),
            None => file_start(path),
        }
    }

    /// Reads the bytes of a sample.
    fn read(&self, index: usize) -> Result<Encoded, Failure> {
        let sample = &self.refs[index];
        let read = |path: &String| {
            let bytes = match self.tokenized.get(path) {
                Some(bytes) => bytes.clone(),
                None => Bytes::from(files::read(Path::new(path), "sample")?),
            };
            Ok((path.clone(), bytes))
        };
        let parts = sample.parts.iter().map(read);
        Ok(Encoded {
            name: sample.name.clone(),
            parts: parts.collect::<Result<_, Failure>>()?,
        })
    }
}

/// The rows of tables, by the names of their files.
fn rows(tables: &[String], inputs: &[InputSpec]) -> Result<BTreeMap<String, Bytes>, Failure> {
    let mut all = BTreeMap::new();
    for table in tables {
        let bytes = files::read(Path::new(table), "table")?;
        let rows = table_rows(table, &bytes, inputs, MOST_ROWS);
        all.extend(rows.map_err(Failure::from)?);
    }
    Ok(all)
}

/// The part of a file on disk that the check of a sample needs.
fn file_start(path: &str) -> Result<FileStart, Failure> {
    let place = Path::new(path);
    let metadata = fs::metadata(place);
    if metadata.as_ref().is_ok_and(|metadata| !metadata.is_file()) {
        // A pipe can be read only once, by the run itself.
        return Ok(FileStart {
            path: path.into(),
            beginning: Bytes::new(),
            size: u64::MAX,
        });
    }
    let size = metadata.map_or(0, |metadata| metadata.len());
    let most = bytes_to_check(path, size);
    let mut beginning = Vec::new();
    let read = File::open(place).and_then(|file| file.take(most).read_to_end(&mut beginning));
    if read.is_err() {
        // Returns the error message for an unreadable file.
        beginning = files::read(place, "sample")?;
    }
    Ok(FileStart {
        path: path.into(),
        beginning: beginning.into(),
        size,
    })
}
