//! Samples: from files, or made at random.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use octet::samples::{Encoded, SampleError, SampleRef, group};
use octet::session::Session;

use super::{Failure, files};

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
