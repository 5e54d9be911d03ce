//! The last stage: a prepared model with ranges of its values.

use super::prepared::PreparedModel;
use super::ranges::ModelRanges;

/// A prepared model with ranges of its values.
pub(super) struct Calibrated {
    pub(super) prepared: PreparedModel,
    pub(super) ranges: ModelRanges,
}

/// A prepared model outside a calibration, with the ranges of its values if there are any.
pub(super) struct Resting {
    pub(super) prepared: PreparedModel,
    pub(super) ranges: Option<ModelRanges>,
}
