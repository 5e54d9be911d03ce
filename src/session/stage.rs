//! Stages of a session's model after it was opened, and the transitions between them.
//!
//! Each stage owns all that it has. A transition consumes a stage and returns the next one with the
//! result of the call, so that no error loses a stage.

use super::calibrating::Calibrating;
use super::error::{Error, OrderError};
use super::opened::OpenedModel;
use super::prepared::PreparedModel;
use super::ranges::{ModelRanges, ValueRanges};
use crate::broken_invariant::BrokenInvariant;
use crate::profile::Profiler;

/// Stage after a transition, and the result of the call.
pub(super) type Transition<T> = (Stage, Result<T, Error>);

/// Stage of a session's model.
#[derive(Default)]
pub(super) enum Stage {
    /// Nothing but the opened model.
    #[default]
    Opened,
    /// The prepared model, without ranges.
    Prepared(PreparedModel),
    /// A calibration has begun.
    Calibrating(Calibrating),
    /// The prepared model with ranges of its values.
    Calibrated(Calibrated),
}

/// A prepared model with ranges of its values.
pub(super) struct Calibrated {
    pub(super) prepared: PreparedModel,
    pub(super) ranges: ModelRanges,
}

impl Stage {
    /// Stage of a prepared model outside a calibration.
    pub(super) fn resting(prepared: PreparedModel, ranges: Option<ModelRanges>) -> Stage {
        match ranges {
            Some(ranges) => Stage::Calibrated(Calibrated { prepared, ranges }),
            None => Stage::Prepared(prepared),
        }
    }

    /// The prepared model, and the ranges of its values if there are any. A calibration that has
    /// begun is dropped.
    pub(super) fn into_prepared(
        self,
        opened: &mut OpenedModel,
        profiler: &mut Profiler,
    ) -> Result<(PreparedModel, Option<ModelRanges>), Error> {
        Ok(match self {
            Stage::Opened => (opened.prepare(profiler)?, None),
            Stage::Prepared(prepared) => (prepared, None),
            Stage::Calibrating(calibrating) => calibrating.stop(),
            Stage::Calibrated(Calibrated { prepared, ranges }) => (prepared, Some(ranges)),
        })
    }

    /// Prepares the model if that has not happened, and stays at this stage otherwise.
    pub(super) fn prepare(
        &mut self,
        opened: &mut OpenedModel,
        profiler: &mut Profiler,
    ) -> Result<(&mut PreparedModel, Option<&ModelRanges>), Error> {
        if let Stage::Opened = self {
            *self = Stage::Prepared(opened.prepare(profiler)?);
        }
        match self {
            Stage::Opened => Err(BrokenInvariant::NotPrepared.into()),
            Stage::Prepared(prepared) => Ok((prepared, None)),
            Stage::Calibrating(calibrating) => {
                Ok((&mut calibrating.prepared, calibrating.earlier.as_ref()))
            }
            Stage::Calibrated(done) => Ok((&mut done.prepared, Some(&done.ranges))),
        }
    }

    /// Sets ranges in place of a calibration. A calibration that has begun goes on.
    pub(super) fn set_ranges(
        &mut self,
        ranges: ValueRanges,
        opened: &mut OpenedModel,
        profiler: &mut Profiler,
    ) -> Result<(), Error> {
        let ranges = ModelRanges::Fixed(ranges);
        *self = match std::mem::take(self) {
            Stage::Opened => Stage::resting(opened.prepare(profiler)?, Some(ranges)),
            Stage::Prepared(prepared) => Stage::resting(prepared, Some(ranges)),
            Stage::Calibrated(done) => Stage::resting(done.prepared, Some(ranges)),
            Stage::Calibrating(mut calibrating) => {
                calibrating.earlier = Some(ranges);
                Stage::Calibrating(calibrating)
            }
        };
        Ok(())
    }

    /// The prepared model; `None` before preparation.
    pub(super) fn prepared(&self) -> Option<&PreparedModel> {
        match self {
            Stage::Opened => None,
            Stage::Prepared(prepared) => Some(prepared),
            Stage::Calibrating(calibrating) => Some(&calibrating.prepared),
            Stage::Calibrated(done) => Some(&done.prepared),
        }
    }

    /// Ranges in use. During a calibration these are the earlier ones.
    pub(super) fn ranges(&self) -> Option<&ModelRanges> {
        match self {
            Stage::Opened | Stage::Prepared(_) => None,
            Stage::Calibrating(calibrating) => calibrating.earlier.as_ref(),
            Stage::Calibrated(done) => Some(&done.ranges),
        }
    }

    /// The calibration that has begun.
    pub(super) fn calibrating(&mut self) -> Result<&mut Calibrating, OrderError> {
        match self {
            Stage::Calibrating(calibrating) => Ok(calibrating),
            _ => Err(OrderError::NotCalibrating),
        }
    }
}
