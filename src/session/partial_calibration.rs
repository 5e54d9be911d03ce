//! Calibrations that several runs share: each run observes some of the samples and gives away what
//! it has collected; another continues with all of it.
//!
//! Every run makes the same calls in the same order, so a shared calibration has the passes and the
//! result of a single one: [`Session::begin_calibration`], then for each complete pass
//! [`Session::complete_pass`] and [`Session::begin_extra_pass`].

use super::Session;
use super::error::Error;
use super::stage::Stage;
use crate::samples::{SampleSettings, Skipped};
use crate::stats::{Method, PassStatistics};

/// Passes that a calibration needs, beyond the first.
#[derive(Clone, Copy, Debug)]
pub struct PassNeeds {
    /// Method of the ranges.
    pub method: Method,
    /// True for Gram matrices.
    pub moments: bool,
    /// Strength of equalization.
    pub equalize: Option<f32>,
}

impl PassNeeds {
    /// The needs of settings.
    pub fn of(settings: &crate::quantize::Settings) -> PassNeeds {
        PassNeeds {
            method: settings.method.unwrap_or_default(),
            moments: settings.needs_gram_matrices(),
            equalize: settings.equalizes(),
        }
    }
}

impl Session {
    /// Begins a calibration whose first passes other runs have completed. Each comes with its number
    /// of samples. Returns true if another pass over the samples is needed.
    pub fn continue_calibration<'a>(
        &mut self,
        samples: SampleSettings,
        needs: &PassNeeds,
        complete: impl IntoIterator<Item = (&'a PassStatistics, usize)>,
    ) -> Result<bool, Error> {
        self.equalize(needs.equalize);
        self.begin_calibration(samples)?;
        for (collected, count) in complete {
            self.complete_pass(collected, count)?;
            if !self.begin_extra_pass(needs.method, needs.moments)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Number of samples that the current pass has completed.
    pub fn samples_done(&self) -> usize {
        match &self.stage {
            Stage::Calibrating(calibrating) => calibrating.samples_done(),
            _ => 0,
        }
    }

    /// Samples that the calibration has skipped, each with its reason.
    pub fn samples_skipped(&self) -> Vec<Skipped> {
        match &self.stage {
            Stage::Calibrating(calibrating) => calibrating.samples_skipped(),
            _ => Vec::new(),
        }
    }

    /// Statistics of the current pass over the samples of this run. All of them must have
    /// ended.
    pub fn collected(&mut self) -> Result<PassStatistics, Error> {
        self.stage.calibrating()?.collected()
    }

    /// Completes the current pass with what other runs collected over `samples` samples in all. It
    /// replaces the samples of this run.
    pub fn complete_pass(
        &mut self,
        collected: &PassStatistics,
        samples: usize,
    ) -> Result<(), Error> {
        self.stage.calibrating()?.complete_pass(collected, samples)
    }
}
