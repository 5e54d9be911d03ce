//! Samples: from files, or made at random.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::{Args, ValueEnum};
use octet::samples::{
    BadSamples, Encoded, FileStart, SampleError, SampleRef, Settings, Skipped, bytes_to_check,
    group,
};
use octet::session::{Error, Session};

use super::{Failure, files};

/// So many of the samples that were left out are named; the report names all.
const NAMED: usize = 3;

/// What becomes of samples that can't be used.
#[derive(Args)]
pub struct BadSampleOptions {
    /// What becomes of a sample that can't be read or that the model can't run: skip leaves it out and tells why, stop ends
    /// the run
    #[arg(long, value_enum, value_name = "WHAT", default_value = "skip")]
    bad_samples: Bad,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bad {
    Skip,
    Stop,
}

impl BadSampleOptions {
    /// As the samples' settings have it.
    pub fn setting(&self) -> BadSamples {
        match self.bad_samples {
            Bad::Skip => BadSamples::Skip,
            Bad::Stop => BadSamples::Stop,
        }
    }

    /// Whether after this error another sample may do.
    pub fn goes_on(&self, error: &Error) -> bool {
        self.bad_samples == Bad::Skip && matches!(error.kind(), "sample" | "engine")
    }
}

/// Which samples were left out, in a sentence; `None` where none was.
pub fn left_out(skipped: &[Skipped], used: usize) -> Option<String> {
    let named = skipped.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|one| format!("{}: {}", one.sample, one.reason))
        .collect();
    let more = skipped.len().saturating_sub(NAMED);
    let rest = match more {
        0 => String::new(),
        more => format!("; and {more} more, which the report names"),
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

/// Where samples come from. None of them is in memory before it is asked for.
pub enum Samples {
    /// Files.
    Files(Vec<SampleRef>),
    /// So many are made.
    Demo(u64),
}

impl Samples {
    /// So many random ones, or else those in these files and folders.
    pub fn of(paths: &[PathBuf], demo: Option<u64>) -> Result<Samples, Failure> {
        Ok(match demo {
            Some(count) => Samples::Demo(count),
            None if paths.is_empty() => Samples::Files(Vec::new()),
            None => {
                let found = files::expand(paths)?;
                if found.is_empty() {
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
                Samples::Files(group(&found).map_err(Failure::from)?)
            }
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Samples::Files(found) => found.len(),
            Samples::Demo(count) => *count as usize,
        }
    }

    /// Whether pictures are among them.
    pub fn have_pictures(&self) -> bool {
        match self {
            Samples::Files(found) => found.iter().any(SampleRef::is_picture),
            Samples::Demo(_) => false,
        }
    }

    /// Those that can be used as far as that can be told before they run. The others go into the settings, with the reason of
    /// each; where they are to end the run, or none is left, the first of them does.
    pub fn checked(
        self,
        session: &mut Session,
        settings: &mut Settings,
    ) -> Result<Samples, Failure> {
        let Samples::Files(found) = self else {
            return Ok(self);
        };
        let mut good = Vec::new();
        for sample in found {
            let parts = sample.parts.iter().map(|path| glimpse(path));
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

    /// The bytes of each, one after the other.
    pub fn each(&self, session: &Session) -> impl Iterator<Item = Result<Encoded, Failure>> {
        (0..self.count()).map(|index| self.get(session, index))
    }

    /// The bytes of one of them.
    pub fn get(&self, session: &Session, index: usize) -> Result<Encoded, Failure> {
        match self {
            Samples::Files(found) => encoded(&found[index]),
            Samples::Demo(_) => Ok(session.demo_sample(0, index as u64)?),
        }
    }
}

/// As much of a file as a look at a sample needs.
fn glimpse(path: &str) -> Result<FileStart, Failure> {
    let place = Path::new(path);
    let found = place.metadata();
    if found.as_ref().is_ok_and(|found| !found.is_file()) {
        // A pipe can be read once: that is the run's.
        return Ok(FileStart {
            path: path.into(),
            beginning: Bytes::new(),
            size: u64::MAX,
        });
    }
    let size = found.map_or(0, |found| found.len());
    let most = bytes_to_check(path, size);
    let mut beginning = Vec::new();
    let read = File::open(place).and_then(|file| file.take(most).read_to_end(&mut beginning));
    if read.is_err() {
        // In the words of a file that can't be read.
        beginning = files::read(place, "sample")?;
    }
    Ok(FileStart {
        path: path.into(),
        beginning: beginning.into(),
        size,
    })
}

/// The bytes of a sample.
fn encoded(sample: &SampleRef) -> Result<Encoded, Failure> {
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
