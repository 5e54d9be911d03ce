//! Samples from files.

use std::path::Path;

use bytes::Bytes;
use octet::samples::{Encoded, SampleRef};

use super::{Failure, files};

/// The bytes of a sample.
pub fn encoded(sample: &SampleRef) -> Result<Encoded, Failure> {
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
