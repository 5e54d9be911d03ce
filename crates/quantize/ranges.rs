//! Ranges of activations, from a calibration or provided by the caller.

use std::collections::BTreeMap;

use super::settings::{Representation, Settings};
use octet_stats::{CalibrationStatistics, Method, Range, SecondPassMissing};

/// The ranges of activations, or the statistics to compute them from.
#[derive(Clone, Copy, Debug)]
pub enum ActivationRanges<'a> {
    /// Final ranges by value name.
    Provided(&'a BTreeMap<String, Range>),
    /// Calibrated statistics and the default method, which a tensor's settings may override.
    Observed(&'a CalibrationStatistics, Method),
}

impl ActivationRanges<'_> {
    /// The method for tensors without their own; `None` for provided ranges.
    pub(super) fn method(&self, settings: &Settings) -> Option<Method> {
        match self {
            ActivationRanges::Provided(_) => None,
            ActivationRanges::Observed(_, method) => Some(settings.method.unwrap_or(*method)),
        }
    }

    /// The method for a tensor with this representation; `None` for provided ranges.
    pub(super) fn method_of(&self, represented: &Representation) -> Option<Method> {
        match self {
            ActivationRanges::Provided(_) => None,
            ActivationRanges::Observed(_, method) => Some(represented.method.unwrap_or(*method)),
        }
    }

    /// The range of `value` for a tensor with this representation; `None` for an unknown value.
    pub(super) fn range_of(
        &self,
        value: &str,
        represented: &Representation,
    ) -> Result<Option<Range>, SecondPassMissing> {
        match self {
            ActivationRanges::Provided(ranges) => Ok(ranges.get(value).copied()),
            ActivationRanges::Observed(observations, method) => {
                let method = represented.method.unwrap_or(*method);
                let seen = observations.get(value);
                seen.map(|seen| method.range(seen, &represented.target()))
                    .transpose()
            }
        }
    }
}
