//! The container: a magic number, the lengths, the header, the statistics, and a checksum of all.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use super::error::ShardError;
use super::header::StatsHeader;
use crate::session::hexadecimal;

const MAGIC: &[u8; 8] = b"octstats";
/// Version of the format.
pub const FORMAT: u32 = 1;
/// Magic number, version, length of the header, length of the statistics.
const PREFIX: usize = 8 + 4 + 4 + 8;
const CHECKSUM: usize = 32;
/// Largest header; ten million skipped samples would need more.
const LARGEST_HEADER: usize = 1 << 30;

/// A file whose checksum fits.
#[derive(Clone, Debug)]
pub struct StatsFile {
    /// The header.
    pub header: StatsHeader,
    /// The statistics in binary form.
    pub payload: Vec<u8>,
}

struct Lengths {
    header: usize,
    payload: usize,
}

fn lengths(prefix: &[u8]) -> Result<Lengths, ShardError> {
    let known = prefix.len().min(MAGIC.len());
    if prefix[..known] != MAGIC[..known] || known == 0 {
        return Err(ShardError::NotStats);
    }
    let number = |from: usize, to: usize| {
        let mut bytes = [0; 8];
        let read = prefix
            .get(from..to)
            .ok_or(ShardError::Cut("its lengths are missing"))?;
        bytes[..to - from].copy_from_slice(read);
        Ok::<u64, ShardError>(u64::from_le_bytes(bytes))
    };
    let found = number(8, 12)? as u32;
    if found != FORMAT {
        return Err(ShardError::Format {
            found,
            known: FORMAT,
        });
    }
    Ok(Lengths {
        header: number(12, 16)? as usize,
        payload: usize::try_from(number(16, 24)?).unwrap_or(usize::MAX),
    })
}

fn header_of(bytes: &[u8]) -> Result<StatsHeader, ShardError> {
    let header: StatsHeader =
        serde_json::from_slice(bytes).map_err(|error| ShardError::Header(error.to_string()))?;
    header.check()?;
    Ok(header)
}

/// Reads the header alone, without the checksum, so that many files can be checked before any of
/// them is read.
pub fn read_header(from: &mut impl Read) -> Result<Result<StatsHeader, ShardError>, io::Error> {
    let mut prefix = Vec::new();
    from.take(PREFIX as u64).read_to_end(&mut prefix)?;
    let lengths = match lengths(&prefix) {
        Ok(lengths) => lengths,
        Err(error) => return Ok(Err(error)),
    };
    let mut header = Vec::new();
    from.take(lengths.header.min(LARGEST_HEADER) as u64)
        .read_to_end(&mut header)?;
    Ok(match header.len() == lengths.header {
        true => header_of(&header),
        false => Err(ShardError::Cut("its header is not complete")),
    })
}

impl StatsFile {
    /// Reads a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<StatsFile, ShardError> {
        let Lengths { header, payload } = lengths(&bytes[..bytes.len().min(PREFIX)])?;
        let whole = PREFIX
            .checked_add(header)
            .and_then(|sum| sum.checked_add(payload));
        let whole = whole.and_then(|sum| sum.checked_add(CHECKSUM));
        if whole != Some(bytes.len()) {
            return Err(ShardError::Cut("its length is not the one that it states"));
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if Sha256::digest(content)[..] != *checksum {
            return Err(ShardError::Checksum);
        }
        Ok(StatsFile {
            header: header_of(&content[PREFIX..][..header])?,
            payload: content[PREFIX + header..].to_vec(),
        })
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ShardError> {
        let header = serde_json::to_vec(&self.header)
            .map_err(|error| ShardError::Header(error.to_string()))?;
        let mut out = Vec::with_capacity(PREFIX + header.len() + self.payload.len() + CHECKSUM);
        out.extend(MAGIC);
        out.extend(FORMAT.to_le_bytes());
        out.extend((header.len() as u32).to_le_bytes());
        out.extend((self.payload.len() as u64).to_le_bytes());
        out.extend(header);
        out.extend(&self.payload);
        let checksum = Sha256::digest(&out);
        out.extend(checksum);
        Ok(out)
    }

    /// Checksum of what a later pass depends on: the statistics and the samples.
    pub fn identity(&self) -> String {
        let mut checksum = Sha256::new();
        checksum.update(&self.payload);
        checksum.update(self.header.samples.to_le_bytes());
        checksum.update(self.header.digest.as_bytes());
        hexadecimal(&checksum.finalize())
    }
}
