//! The header of a file of shards: everything that decides which files belong together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::ShardError;

/// Largest number of shards of one source.
const MOST_SHARDS: u32 = 100_000;
/// Largest number of samples in all.
pub(super) const MOST_SAMPLES: u64 = 1 << 31;

/// Work that shards divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedWork {
    /// A calibration.
    Calibration,
    /// A comparison.
    Comparison,
    /// A search under a budget.
    Search,
}

/// Name and checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIdentity {
    /// Name without folder; it may differ between shards.
    pub name: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// One of `count` shards; `number` counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub number: u32,
    /// Number of all shards.
    pub count: u32,
}

impl Shard {
    /// The only shard.
    pub const WHOLE: Shard = Shard {
        number: 1,
        count: 1,
    };

    /// True if the sample at this place of the list belongs to the shard.
    pub fn holds(&self, place: usize) -> bool {
        place % self.count as usize == self.number as usize - 1
    }

    /// Place in the list of a shard's sample.
    pub fn place(&self, sample: usize) -> u64 {
        sample as u64 * u64::from(self.count) + u64::from(self.number) - 1
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let numbers = text.split_once('/').map(|(a, b)| (a.parse(), b.parse()));
        match numbers {
            Some((Ok(number), Ok(count)))
                if (1..=count).contains(&number) && count <= MOST_SHARDS =>
            {
                Ok(Shard { number, count })
            }
            _ => Err(ShardError::Shard(text.into())),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// The shards of one source of samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceShards {
    /// Number of all shards.
    pub count: u32,
    /// The shards that are here: first and last of each run of numbers, from 1.
    pub shards: Vec<[u32; 2]>,
}

impl SourceShards {
    /// One shard.
    pub fn of(shard: Shard) -> SourceShards {
        SourceShards {
            count: shard.count,
            shards: vec![[shard.number; 2]],
        }
    }

    /// The numbers in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.shards.iter().flat_map(|&[a, b]| a..=b)
    }

    /// Sets the shards. A complete source no longer tells how it was divided.
    pub(super) fn set(&mut self, numbers: &[u32]) {
        if numbers.len() as u64 == u64::from(self.count) {
            *self = SourceShards::of(Shard::WHOLE);
        } else {
            self.shards = runs(numbers.iter().copied());
        }
    }

    /// The numbers that are missing, in words; `None` if there are none.
    pub fn missing(&self) -> Option<String> {
        let mut here = self.numbers().peekable();
        let missing = (1..=self.count).filter(|&number| here.next_if_eq(&number).is_none());
        let named: Vec<String> = runs(missing)
            .iter()
            .map(|&[a, b]| {
                if a == b {
                    format!("{a}")
                } else {
                    format!("{a} to {b}")
                }
            })
            .collect();
        (!named.is_empty()).then(|| format!("the shards {} of {}", named.join(", "), self.count))
    }

    fn is_sound(&self) -> bool {
        let mut last = 0;
        let rising = self.shards.iter().all(|&[a, b]| {
            let sound = last < a && a <= b && b <= self.count;
            last = b;
            sound
        });
        rising && (1..=MOST_SHARDS).contains(&self.count)
    }
}

/// Runs of consecutive numbers.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => runs.push([number; 2]),
        }
    }
    runs
}

/// A sample that a shard left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedSample {
    /// Source of the sample.
    pub source: String,
    /// Place in the list of the source.
    pub place: u64,
    /// Name of the sample.
    pub sample: String,
    /// Reason.
    pub reason: String,
}

/// StatsHeader of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatsHeader {
    /// The work.
    pub work: SharedWork,
    /// Version of the Octet that observed.
    pub octet: String,
    /// The model and its data files; with a comparison the quantized model, too.
    pub model: Vec<FileIdentity>,
    /// Settings that the statistics depend on.
    pub settings: serde_json::Value,
    /// Number of the pass over the samples, from 1.
    pub pass: u32,
    /// Content of the pass, in words.
    pub content: String,
    /// Checksums of the complete earlier passes.
    pub after: Vec<String>,
    /// Shards by the name of their source.
    pub sources: BTreeMap<String, SourceShards>,
    /// Number of samples that count.
    pub samples: u64,
    /// Samples that were left out.
    pub skipped: Vec<SkippedSample>,
    /// Sum of the checksums of all samples that were read: equal for equal samples.
    pub digest: String,
    /// Instruction sets of the machines. With different ones floats differ in their last bits.
    pub processors: BTreeSet<String>,
}

impl StatsHeader {
    /// Fails if a part is not what a header may hold.
    pub(super) fn check(&self) -> Result<(), ShardError> {
        let digest = u128::from_str_radix(&self.digest, 16).is_ok();
        match () {
            () if !self.sources.values().all(SourceShards::is_sound) => Err(ShardError::Header(
                "its list of shards is out of order".into(),
            )),
            () if self.samples > MOST_SAMPLES || !digest => {
                Err(ShardError::Header("its counts are not numbers".into()))
            }
            () => Ok(()),
        }
    }

    /// Fails if a shard is missing.
    pub fn require_complete(&self) -> Result<(), ShardError> {
        for (name, source) in &self.sources {
            if let Some(missing) = source.missing() {
                return Err(ShardError::Missing {
                    source_name: described(name),
                    missing,
                });
            }
        }
        Ok(())
    }

    /// Fails if the files belong to different work. `first` and `other` are their names.
    pub fn require_alike(
        &self,
        first: &str,
        other: &str,
        found: &StatsHeader,
    ) -> Result<(), ShardError> {
        let checksums = |header: &StatsHeader| -> String {
            let all = header.model.iter();
            let all =
                all.map(|file| format!("{} {}", file.name, file.sha256.get(..12).unwrap_or("")));
            all.collect::<Vec<_>>().join(", ")
        };
        let same_model = self.model.len() == found.model.len()
            && self
                .model
                .iter()
                .zip(&found.model)
                .all(|(a, b)| a.sha256 == b.sha256);
        let settings = differing(&self.settings, &found.settings);
        let parts = [
            (
                "work",
                self.work == found.work,
                format!("{:?}", self.work),
                format!("{:?}", found.work),
            ),
            ("model", same_model, checksums(self), checksums(found)),
            (
                "version of Octet",
                self.octet == found.octet,
                self.octet.clone(),
                found.octet.clone(),
            ),
            (
                "setting",
                settings.is_none(),
                settings.clone().map_or(String::new(), |both| both.0),
                settings.map_or(String::new(), |both| both.1),
            ),
            (
                "pass",
                self.pass == found.pass,
                self.pass.to_string(),
                found.pass.to_string(),
            ),
            (
                "content",
                self.content == found.content,
                self.content.clone(),
                found.content.clone(),
            ),
            (
                "earlier pass",
                self.after == found.after,
                self.after.join(", "),
                found.after.join(", "),
            ),
        ];
        match parts.into_iter().find(|(_, same, _, _)| !same) {
            None => Ok(()),
            Some((what, _, wanted, found)) => Err(ShardError::Other {
                what,
                first: first.into(),
                other: other.into(),
                found,
                wanted,
            }),
        }
    }
}

/// A source in words.
pub(super) fn described(source: &str) -> String {
    format!("the samples `{source}`")
}

/// The first part of two documents that differs, as `key: value` of each.
fn differing(first: &serde_json::Value, other: &serde_json::Value) -> Option<(String, String)> {
    use serde_json::Value;
    if first == other {
        return None;
    }
    if let (Value::Object(a), Value::Object(b)) = (first, other) {
        for key in a.keys().chain(b.keys()) {
            let side = |object: &serde_json::Map<String, Value>| {
                object.get(key).cloned().unwrap_or(Value::Null)
            };
            if let Some((one, two)) = differing(&side(a), &side(b)) {
                let under = |text: String| match text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.contains(": ")
                {
                    true => format!("{key}.{text}"),
                    false => format!("{key}: {text}"),
                };
                return Some((under(one), under(two)));
            }
        }
    }
    Some((first.to_string(), other.to_string()))
}
