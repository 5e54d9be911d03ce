//! Statistics that one pass over some of the samples collected. Those of disjoint samples merge
//! exactly, in any order.

use std::collections::BTreeMap;
use std::fmt;

use crate::stored::{DamagedStatistics, StatisticsReader, Stored, put};
use crate::{CalibrationStatistics, HistogramLayout, InputGram, NumpyHistogram, TensorStatistics};

/// Statistics of a pass, by the name of the value.
#[derive(Clone, Debug, PartialEq)]
pub enum PassStatistics {
    /// A first pass, or the one after equalization.
    Tensors(CalibrationStatistics),
    /// Histograms with edges from the first pass.
    Histograms(BTreeMap<String, NumpyHistogram>),
    /// Gram matrices with steps from the first pass, one for each layer that reads the value.
    InputGrams(BTreeMap<String, Vec<InputGram>>),
}

/// Kind of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassContent {
    /// Ends, histograms and channel statistics.
    Tensors,
    /// Histograms of this layout.
    Histograms(HistogramLayout),
    /// Gram matrices.
    InputGrams,
}

impl fmt::Display for PassContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassContent::Tensors => f.write_str("tensors"),
            PassContent::InputGrams => f.write_str("gram-matrices"),
            PassContent::Histograms(HistogramLayout { bins, magnitudes }) => {
                let of = if *magnitudes { "magnitudes" } else { "values" };
                write!(f, "histograms of {of} in {bins} bins")
            }
        }
    }
}

/// Two passes that can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherStatistics {
    /// The passes collect different things.
    #[error("one holds {0} and the other {1}")]
    Content(PassContent, PassContent),
    /// One has a value that the other lacks.
    #[error("only one of them holds the value `{0}`")]
    Value(String),
    /// A value was counted with different edges or steps.
    #[error("the value `{0}` was counted with other edges, which follow from other first passes")]
    Edges(String),
}

impl PassStatistics {
    /// Kind of the pass.
    pub fn content(&self) -> PassContent {
        match self {
            PassStatistics::Tensors(_) => PassContent::Tensors,
            PassStatistics::InputGrams(_) => PassContent::InputGrams,
            PassStatistics::Histograms(counted) => PassContent::Histograms(
                counted
                    .values()
                    .next()
                    .map_or(EMPTY_LAYOUT, NumpyHistogram::layout),
            ),
        }
    }

    /// Adds the statistics of other samples. On an error nothing has changed.
    pub fn merge(&mut self, other: &PassStatistics) -> Result<(), OtherStatistics> {
        let contents = (self.content(), other.content());
        if contents.0 != contents.1 {
            return Err(OtherStatistics::Content(contents.0, contents.1));
        }
        match (self, other) {
            (PassStatistics::Tensors(all), PassStatistics::Tensors(more)) => {
                same_values(all, more)?;
                for (all, more) in all.values_mut().zip(more.values()) {
                    all.merge(more);
                }
            }
            (PassStatistics::Histograms(all), PassStatistics::Histograms(more)) => {
                same_values(all, more)?;
                let unlike = all.iter().zip(more.values());
                let mut unlike = unlike.filter(|((_, all), more)| !all.has_edges_of(more));
                if let Some(((name, _), _)) = unlike.next_back() {
                    return Err(OtherStatistics::Edges(name.clone()));
                }
                for (all, more) in all.values_mut().zip(more.values()) {
                    all.merge(more);
                }
            }
            (PassStatistics::InputGrams(all), PassStatistics::InputGrams(more)) => {
                same_values(all, more)?;
                for ((name, all), more) in all.iter().zip(more.values()) {
                    let alike = all.iter().zip(more).all(|(all, more)| all.is_alike(more));
                    if all.len() != more.len() || !alike {
                        return Err(OtherStatistics::Edges(name.clone()));
                    }
                }
                for (all, more) in all.values_mut().flatten().zip(more.values().flatten()) {
                    all.merge(more);
                }
            }
            _ => return Err(OtherStatistics::Content(contents.0, contents.1)),
        }
        Ok(())
    }

    /// The binary form. Equal statistics have equal bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            PassStatistics::Tensors(all) => {
                out.push(0);
                store_all(all, &mut out);
            }
            PassStatistics::Histograms(all) => {
                out.push(1);
                store_all(all, &mut out);
            }
            PassStatistics::InputGrams(all) => {
                out.push(2);
                store_all(all, &mut out);
            }
        }
        out
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<PassStatistics, DamagedStatistics> {
        let mut reader = StatisticsReader::new(bytes);
        let read = match reader.byte()? {
            0 => PassStatistics::Tensors(load_all::<TensorStatistics>(&mut reader)?),
            1 => PassStatistics::Histograms(load_all(&mut reader)?),
            2 => PassStatistics::InputGrams(load_all(&mut reader)?),
            _ => return Err(DamagedStatistics("the kind of the pass is unknown")),
        };
        reader.end()?;
        Ok(read)
    }
}

/// Layout of a pass over a model without values.
const EMPTY_LAYOUT: HistogramLayout = HistogramLayout {
    bins: 0,
    magnitudes: false,
};

fn same_values<T>(
    all: &BTreeMap<String, T>,
    more: &BTreeMap<String, T>,
) -> Result<(), OtherStatistics> {
    let lacking = |one: &BTreeMap<String, T>, other: &BTreeMap<String, T>| {
        one.keys().find(|name| !other.contains_key(*name)).cloned()
    };
    match lacking(all, more).or_else(|| lacking(more, all)) {
        Some(name) => Err(OtherStatistics::Value(name)),
        None => Ok(()),
    }
}

fn store_all<T: Stored>(all: &BTreeMap<String, T>, out: &mut Vec<u8>) {
    put(out, all.len() as u64);
    for (name, one) in all {
        put(out, name.len() as u64);
        out.extend(name.as_bytes());
        one.store(out);
    }
}

fn load_all<T: Stored>(
    from: &mut StatisticsReader<'_>,
) -> Result<BTreeMap<String, T>, DamagedStatistics> {
    let mut all = BTreeMap::new();
    for _ in 0..from.length(2)? {
        let name = from.text()?;
        if all.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(DamagedStatistics("the names are not in order"));
        }
        all.insert(name, T::load(from)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
