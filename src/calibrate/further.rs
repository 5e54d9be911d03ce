//! Extra passes over the samples of a calibration, for statistics that need those of the first
//! pass.

use std::sync::{Arc, Mutex, PoisonError};

use super::run::FeedError;
use super::{Layout, Meeting, Moments, NumpyHistogram, Observation};

/// Statistics that an extra pass over the same samples collects.
#[derive(Clone, Debug)]
pub enum Further {
    /// Histograms with fixed edges, which need the minimum and maximum first.
    Histograms(Layout),
    /// Gram matrices of the inputs of layers: the watched values and the layout of each reader.
    Moments(Vec<(String, Meeting)>),
}

/// Statistics that the current pass has collected so far.
#[derive(Default)]
pub(super) enum Counted {
    /// The first pass has no extra statistics.
    #[default]
    Nothing,
    Histograms(Vec<NumpyHistogram>),
    /// Input Gram matrices per watched value, one per layout. Each sample is added while it runs.
    Moments(Arc<Vec<Vec<Mutex<Moments>>>>),
}

impl Counted {
    /// Empty statistics for a pass over values with the statistics `seen`.
    pub(super) fn nothing(further: Further, watched: &[String], seen: &[Observation]) -> Counted {
        match further {
            Further::Histograms(layout) => {
                let empty = |seen| NumpyHistogram::new(layout, seen);
                Counted::Histograms(seen.iter().map(empty).collect())
            }
            Further::Moments(wanted) => {
                let empty = |(name, seen): (&String, &Observation)| {
                    let own = wanted.iter().filter(|(value, _)| value == name);
                    let begun =
                        own.map(|(_, meeting)| Moments::new(meeting.clone(), seen.magnitude()));
                    begun.map(Mutex::new).collect()
                };
                Counted::Moments(Arc::new(watched.iter().zip(seen).map(empty).collect()))
            }
        }
    }

    /// Adds the results to the statistics of the first pass. Returns an error if the samples
    /// differ.
    pub(super) fn end(self, watched: &[String], seen: &mut [Observation]) -> Result<(), FeedError> {
        match self {
            Counted::Nothing => {}
            Counted::Histograms(counted) => {
                for ((tensor, seen), counted) in watched.iter().zip(seen).zip(counted) {
                    let (first, again) = (seen.finite_count(), counted.total());
                    if first != again && !counted.edges().is_empty() {
                        let tensor = tensor.clone();
                        return Err(FeedError::OtherSamples {
                            tensor,
                            first,
                            again,
                        });
                    }
                    seen.set_second_pass(counted);
                }
            }
            Counted::Moments(moments) => {
                // No sample is running, so this is the only reference.
                let moments = Arc::into_inner(moments).unwrap_or_default();
                for (seen, moments) in seen.iter_mut().zip(moments) {
                    for moments in moments {
                        let ended = moments.into_inner();
                        seen.add_moments(ended.unwrap_or_else(PoisonError::into_inner));
                    }
                }
            }
        }
        Ok(())
    }
}
