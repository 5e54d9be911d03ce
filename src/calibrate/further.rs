//! Further passes over the samples of a calibration, for what its first can't see.

use std::sync::{Arc, Mutex, PoisonError};

use super::run::FeedError;
use super::{Layout, Meeting, Moments, NumpyHistogram, Observation};

/// What a further pass over the same samples looks at.
#[derive(Clone, Debug)]
pub enum Further {
    /// How often values lie where, once their ends are known.
    Histograms(Layout),
    /// What layers' weights are multiplied with: the values, and how these meet them.
    Moments(Vec<(String, Meeting)>),
}

/// What a further pass counted so far.
#[derive(Default)]
pub(super) enum Counted {
    /// The first has observations only.
    #[default]
    Nothing,
    Histograms(Vec<NumpyHistogram>),
    /// Of each watched value what its readers' weights meet. A sample is added as it runs.
    Moments(Arc<Vec<Vec<Mutex<Moments>>>>),
}

impl Counted {
    /// What a pass begins with, of values of which this was seen.
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

    /// Puts it to what was seen. Fails where it was not of the same samples.
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
                // No sample is under way, so nobody else holds them.
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
