//! Ranges of a model's values: from the statistics of a calibration, or set by the caller.

use std::collections::BTreeMap;

use super::equalization::EqualizedModel;
use crate::quantize::ActivationRanges;
use crate::stats::{CalibrationStatistics, Method, Range};

/// Range of each value, by its name.
pub type ValueRanges = BTreeMap<String, Range>;

/// Source of the values' ranges.
pub(super) enum ModelRanges {
    /// A calibration.
    Statistics {
        statistics: CalibrationStatistics,
        method: Method,
        /// The model that was calibrated, if it was equalized.
        equalized: Option<EqualizedModel>,
    },
    /// Ranges that the caller set.
    Fixed(ValueRanges),
}

impl ModelRanges {
    /// The equalized model that the ranges belong to; `None` without equalization.
    pub(super) fn equalized(&self) -> Option<&EqualizedModel> {
        match self {
            ModelRanges::Statistics { equalized, .. } => equalized.as_ref(),
            ModelRanges::Fixed(_) => None,
        }
    }

    /// Statistics of the calibration.
    pub(super) fn statistics(&self) -> Option<&CalibrationStatistics> {
        match self {
            ModelRanges::Statistics { statistics, .. } => Some(statistics),
            ModelRanges::Fixed(_) => None,
        }
    }

    /// The ranges as quantization takes them.
    pub(super) fn activation_ranges(&self) -> ActivationRanges<'_> {
        match self {
            ModelRanges::Statistics {
                statistics, method, ..
            } => ActivationRanges::Observed(statistics, *method),
            ModelRanges::Fixed(ranges) => ActivationRanges::Provided(ranges),
        }
    }
}
