//! The sums of a comparison over some of the samples. They are exact, so those of shards merge to
//! the sums of one run, in any order.

use serde::{Deserialize, Serialize};

use super::Comparing;
use super::boxes::Detector;
use super::difference::Difference;
use super::outputs::OutputSums;
use super::value_statistics::ValueStatistics;
use super::warnings::InputSums;

/// Sums over the samples of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonSums {
    samples: u64,
    /// `Err` is the reason why only the outputs are compared; empty if nothing else was asked for.
    layers: Result<Vec<ValueStatistics>, String>,
    outputs: Vec<OutputSums>,
    detector: Option<Detector>,
    inputs: Vec<InputSums>,
    split: Option<[Vec<Difference>; 2]>,
}

/// Sums that don't belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum OtherSums {
    #[error("they have different numbers of {0}, so they come from other models")]
    Count(&'static str),
    #[error(
        "the output {0} is of another kind there, as its first sample shows: give labels to all shards or to none, \
         and samples of like shapes"
    )]
    Kind(usize),
    #[error(
        "only one of them splits the error into weights and activations: give --split to all shards or to none"
    )]
    Split,
    #[error("the sums are not understood: {0}")]
    Damaged(String),
}

impl ComparisonSums {
    /// The binary form.
    pub fn bytes(&self) -> Result<Vec<u8>, OtherSums> {
        serde_json::to_vec(self).map_err(|error| OtherSums::Damaged(error.to_string()))
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<ComparisonSums, OtherSums> {
        serde_json::from_slice(bytes).map_err(|error| OtherSums::Damaged(error.to_string()))
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Fails unless all lists have the lengths of `other`.
    fn require_alike(&self, other: &ComparisonSums) -> Result<(), OtherSums> {
        let lengths = |sums: &ComparisonSums| {
            let split = sums
                .split
                .as_ref()
                .map(|both| both.each_ref().map(Vec::len));
            (sums.outputs.len(), sums.inputs.len(), split)
        };
        let ((outputs, inputs, split), found) = (lengths(self), lengths(other));
        if let (Ok(all), Ok(more)) = (&self.layers, &other.layers)
            && all.len() != more.len()
        {
            return Err(OtherSums::Count("layers"));
        }
        match found {
            (count, _, _) if count != outputs => Err(OtherSums::Count("outputs")),
            (_, count, _) if count != inputs => Err(OtherSums::Count("inputs")),
            (_, _, found) if found != split => Err(OtherSums::Split),
            _ => Ok(()),
        }
    }

    /// Adds the sums over other samples. On an error the sums are of no use.
    pub fn merge(&mut self, other: &ComparisonSums) -> Result<(), OtherSums> {
        self.require_alike(other)?;
        self.samples = self.samples.saturating_add(other.samples);
        match (&mut self.layers, &other.layers) {
            (Ok(all), Ok(more)) => {
                for (all, more) in all.iter_mut().zip(more) {
                    all.merge(more);
                }
            }
            // Of several reasons the least, so that the order does not matter.
            (Err(reason), Err(other)) => {
                if other < reason {
                    reason.clone_from(other);
                }
            }
            (Ok(_), Err(reason)) => self.layers = Err(reason.clone()),
            (Err(_), Ok(_)) => {}
        }
        for (at, (all, more)) in self.outputs.iter_mut().zip(&other.outputs).enumerate() {
            if !all.merge(more) {
                return Err(OtherSums::Kind(at));
            }
        }
        match (&mut self.detector, &other.detector) {
            (Some(all), Some(more)) => {
                if !all.merge(more) {
                    return Err(OtherSums::Kind(0));
                }
            }
            (None, more) => self.detector.clone_from(more),
            (Some(_), None) => {}
        }
        for (all, more) in self.inputs.iter_mut().zip(&other.inputs) {
            all.merge(more);
        }
        let split = self
            .split
            .iter_mut()
            .flatten()
            .zip(other.split.iter().flatten());
        for (all, more) in split {
            for (all, more) in all.iter_mut().zip(more) {
                all.merge(more);
            }
        }
        Ok(())
    }
}

impl Comparing {
    /// The sums over the samples so far.
    pub fn sums(&self) -> ComparisonSums {
        let (outputs, detector) = self.outputs.sums();
        ComparisonSums {
            samples: self.samples as u64,
            layers: match &self.layers {
                Ok(layers) => Ok(layers.sums.clone()),
                Err(reason) => Err(reason.clone().unwrap_or_default()),
            },
            outputs,
            detector,
            inputs: self.inputs.sums(),
            split: self.split.as_ref().map(|split| split.sums()),
        }
    }

    /// Replaces the samples of this comparison by those of the sums.
    pub fn replace(&mut self, sums: ComparisonSums) -> Result<(), OtherSums> {
        self.sums().require_alike(&sums)?;
        match (&mut self.layers, sums.layers) {
            (Ok(layers), Ok(sums)) => layers.sums = sums,
            (layers, Err(reason)) => {
                *layers = Err(Some(reason).filter(|reason| !reason.is_empty()))
            }
            (Err(_), Ok(_)) => {}
        }
        self.outputs.replace(sums.outputs, sums.detector);
        self.inputs.replace(sums.inputs);
        if let (Some(split), Some(sums)) = (&mut self.split, sums.split) {
            split.replace(sums);
        }
        self.samples = usize::try_from(sums.samples).unwrap_or(usize::MAX);
        Ok(())
    }
}
