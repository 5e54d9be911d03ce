//! Ranges of a model's values: from the statistics of a calibration, or set by the caller.

use std::collections::BTreeMap;

use super::equalization::EqualizedModel;
use crate::quantize::ActivationRanges;
use crate::stats::{CalibrationStatistics, Method, Range};

/// Range of each value, by its name.
pub type ValueRanges = BTreeMap<String, Range>;

/// Source of the values' ranges.
pub(super) enum RangeSource {
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

impl RangeSource {
    /// The equalized model that the ranges belong to; `None` without equalization.
    pub(super) fn equalized(&self) -> Option<&EqualizedModel> {
        match self {
            RangeSource::Statistics { equalized, .. } => equalized.as_ref(),
            RangeSource::Fixed(_) => None,
        }
    }

    /// Statistics of the calibration.
    pub(super) fn statistics(&self) -> Option<&CalibrationStatistics> {
        match self {
            RangeSource::Statistics { statistics, .. } => Some(statistics),
            RangeSource::Fixed(_) => None,
        }
    }

    /// The ranges as quantization takes them.
    pub(super) fn activation_ranges(&self) -> ActivationRanges<'_> {
        match self {
            RangeSource::Statistics {
                statistics, method, ..
            } => ActivationRanges::Observed(statistics, *method),
            RangeSource::Fixed(ranges) => ActivationRanges::Provided(ranges),
        }
    }
}
