//! Extra passes over the samples of a calibration, for statistics that need those of the first
//! pass.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::FeedError;
use crate::broken_invariant::BrokenInvariant;
use crate::stats::{HistogramLayout, Im2colView, InputGram, NumpyHistogram, TensorStatistics};

/// Statistics that an extra pass over the same samples collects.
#[derive(Clone, Debug)]
pub enum ExtraPass {
    /// Histograms with fixed edges, which need the minimum and maximum first.
    Histograms(HistogramLayout),
    /// Gram matrices of the inputs of layers: the watched values and the layout of each reader.
    InputGrams(Vec<(String, Im2colView)>),
}

/// Statistics that the current pass has collected so far.
#[derive(Default)]
pub(super) enum ExtraStatistics {
    /// The first pass has no extra statistics.
    #[default]
    Nothing,
    Histograms(Vec<NumpyHistogram>),
    /// Input Gram matrices per watched value, one per layout. Each sample is added while it runs.
    InputGrams(Arc<Vec<Vec<Mutex<InputGram>>>>),
}

impl ExtraStatistics {
    /// Empty statistics for a pass over values with the statistics `stats`.
    pub(super) fn new(
        further: ExtraPass,
        watched: &[String],
        stats: &[TensorStatistics],
    ) -> ExtraStatistics {
        match further {
            ExtraPass::Histograms(layout) => {
                let empty = |stats| NumpyHistogram::new(layout, stats);
                ExtraStatistics::Histograms(stats.iter().map(empty).collect())
            }
            ExtraPass::InputGrams(wanted) => {
                let empty = |(name, stats): (&String, &TensorStatistics)| {
                    let own = wanted.iter().filter(|(value, _)| value == name);
                    let begun =
                        own.map(|(_, meeting)| InputGram::new(meeting.clone(), stats.magnitude()));
                    begun.map(Mutex::new).collect()
                };
                ExtraStatistics::InputGrams(Arc::new(
                    watched.iter().zip(stats).map(empty).collect(),
                ))
            }
        }
    }

    /// Adds the results to the statistics of the first pass. Returns an error if the samples
    /// differ.
    pub(super) fn end(
        self,
        watched: &[String],
        stats: &mut [TensorStatistics],
    ) -> Result<(), FeedError> {
        match self {
            ExtraStatistics::Nothing => {}
            ExtraStatistics::Histograms(counted) => {
                for ((tensor, stats), counted) in watched.iter().zip(stats).zip(counted) {
                    let (first, again) = (stats.finite_count(), counted.total());
                    if first != again && !counted.edges().is_empty() {
                        let tensor = tensor.clone();
                        return Err(FeedError::OtherSamples {
                            tensor,
                            first,
                            again,
                        });
                    }
                    stats.set_second_pass(counted);
                }
            }
            ExtraStatistics::InputGrams(grams) => {
                // No sample is running, so this is the only reference.
                let grams = Arc::into_inner(grams).ok_or(BrokenInvariant::SharedGrams)?;
                for (stats, grams) in stats.iter_mut().zip(grams) {
                    for grams in grams {
                        let ended = grams.into_inner();
                        stats.add_input_gram(ended.unwrap_or_else(PoisonError::into_inner));
                    }
                }
            }
        }
        Ok(())
    }
}
