//! The samples of a shard: their division.

use clap::Args;
use octet::session::Checksum;
use octet::shards::{Shard, ShardError, ShardSamples};

use super::Failure;
use super::samples::Samples;

/// Options of a shard.
#[derive(Args)]
pub struct ShardOptions {
    /// Shard to run: its number and the count of all. The shard has every COUNT-th sample
    #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
    shard: String,
    /// Name of the samples, if --samples are those of this shard only: shards of one name are
    /// divisions of the same samples, and those of different names add up
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

impl ShardOptions {
    /// The shard.
    pub fn shard(&self) -> Result<Shard, Failure> {
        let parsed = self.shard.parse();
        parsed.map_err(|error: ShardError| Failure::usage(error.to_string()))
    }

    /// Bookkeeping for these samples, which are all samples or, with a source, those of the shard.
    pub fn begin(&self, demo: Option<u64>, samples: &Samples) -> Result<ShardSamples, Failure> {
        let source = match &self.source {
            Some(name) => name.clone(),
            None => list_identity(demo, samples),
        };
        Ok(ShardSamples::new(source, self.shard()?))
    }

    /// The samples of the shard that `seen` names. With a source, all of them are.
    pub fn divide(&self, seen: &mut ShardSamples, samples: Samples) -> Samples {
        match self.source {
            Some(_) => {
                seen.name(samples.names());
                samples
            }
            None => divide(seen, samples),
        }
    }
}

/// Identity of a list of samples: their names below their common folder.
pub fn list_identity(demo: Option<u64>, samples: &Samples) -> String {
    if let Some(count) = demo {
        return format!("{count} random samples");
    }
    let names = samples.names();
    let folder = |name: &str| name.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let first = names.first().map_or("", String::as_str);
    let mut common = folder(first);
    for name in &names {
        while common > 0 && !name.as_bytes().starts_with(&first.as_bytes()[..common]) {
            common = folder(&first[..common - 1]);
        }
    }
    let mut checksum = Checksum::new();
    for name in &names {
        checksum.add(&name.as_bytes()[common..]);
        checksum.add(&[0]);
    }
    format!("{} files {}", names.len(), &checksum.finish()[..16])
}

/// The samples of the shard, of a list of all.
pub fn divide(seen: &mut ShardSamples, mut samples: Samples) -> Samples {
    let shard = seen.shard();
    samples.retain(|place| shard.holds(place));
    seen.name(samples.names());
    samples
}
