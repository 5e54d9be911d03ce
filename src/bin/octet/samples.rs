//! Samples from files, or random ones.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::{Args, ValueEnum};
use octet::samples::{
    BadSamples, Encoded, FileStart, SampleError, SampleRef, SampleSettings, Skipped,
    bytes_to_check, group,
};
use octet::session::{Error, ErrorKind, Session};

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
pub enum Samples {
    /// Files, grouped into samples.
    Files(Vec<SampleRef>),
    /// A number of random samples.
    Demo(u64),
}

impl Samples {
    /// Random samples, or those in files and folders.
    pub fn new(paths: &[PathBuf], demo: Option<u64>) -> Result<Samples, Failure> {
        Ok(match demo {
            Some(count) => Samples::Demo(count),
            None if paths.is_empty() => Samples::Files(Vec::new()),
            None => {
                let refs = files::expand(paths)?;
                if refs.is_empty() {
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
                Samples::Files(group(&refs).map_err(Failure::from)?)
            }
        })
    }

    /// The number of samples.
    pub fn count(&self) -> usize {
        match self {
            Samples::Files(refs) => refs.len(),
            Samples::Demo(count) => *count as usize,
        }
    }

    /// True if images are among them.
    pub fn have_pictures(&self) -> bool {
        match self {
            Samples::Files(refs) => refs.iter().any(SampleRef::is_picture),
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
        let Samples::Files(refs) = self else {
            return Ok(self);
        };
        let mut good = Vec::new();
        for sample in refs {
            let parts = sample.parts.iter().map(|path| file_start(path));
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
            _ => Ok(Samples::Files(good)),
        }
    }

    /// The bytes of each sample, one after the other.
    pub fn each(&self, session: &Session) -> impl Iterator<Item = Result<Encoded, Failure>> {
        (0..self.count()).map(|index| self.get(session, index))
    }

    /// The bytes of one sample.
    pub fn get(&self, session: &Session, index: usize) -> Result<Encoded, Failure> {
        match self {
            Samples::Files(refs) => read_sample(&refs[index]),
            Samples::Demo(_) => Ok(session.demo_sample(0, index as u64)?),
        }
    }
}

/// The part of a file that the check of a sample needs.
fn file_start(path: &str) -> Result<FileStart, Failure> {
    let place = Path::new(path);
    let metadata = place.metadata();
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

/// Reads the bytes of a sample.
fn read_sample(sample: &SampleRef) -> Result<Encoded, Failure> {
    let read = |path: &String| {
        Ok((
            path.clone(),
            Bytes::from(files::read(Path::new(path), "sample")?),
        ))
    };
    let parts = sample
        .parts
        .iter()
        .map(read)
        .collect::<Result<_, Failure>>()?;
    Ok(Encoded {
        name: sample.name.clone(),
        parts,
    })
}
