//! Stages of a session's model, and the transitions between them.
//!
//! Each stage is a type that owns all that it has, and a transition consumes the stage before. No
//! error loses a stage: a transition that fails leaves the one before, or returns to it.

use super::calibrated::{Calibrated, Resting};
use super::calibrating::{Calibrating, CalibrationChoices, CalibrationSummary};
use super::error::{Error, OrderError};
use super::journal::Journal;
use super::opened::OpenedModel;
use super::prepared::PreparedModel;
use super::ranges::{ModelRanges, ValueRanges};
use crate::broken_invariant::BrokenInvariant;
use crate::profile::Profiler;
use crate::samples::SampleSettings;
use crate::stats::Method;

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

impl From<Resting> for Stage {
    fn from(Resting { prepared, ranges }: Resting) -> Stage {
        match ranges {
            Some(ranges) => Stage::Calibrated(Calibrated { prepared, ranges }),
            None => Stage::Prepared(prepared),
        }
    }
}

impl Stage {
    /// Prepares the model if that has not happened, and stays at this stage otherwise. Returns the
    /// prepared model and the ranges in use.
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
        let calibrated = |prepared, ranges| Stage::Calibrated(Calibrated { prepared, ranges });
        *self = match std::mem::take(self) {
            Stage::Opened => calibrated(opened.prepare(profiler)?, ranges),
            Stage::Prepared(prepared) => calibrated(prepared, ranges),
            Stage::Calibrated(done) => calibrated(done.prepared, ranges),
            Stage::Calibrating(mut calibrating) => {
                calibrating.earlier = Some(ranges);
                Stage::Calibrating(calibrating)
            }
        };
        Ok(())
    }

    /// Prepares the model and begins a calibration; drops an unfinished one.
    pub(super) fn begin_calibration(
        &mut self,
        opened: &mut OpenedModel,
        samples: SampleSettings,
        choices: CalibrationChoices,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        let (prepared, ranges) = match std::mem::take(self) {
            Stage::Opened => (opened.prepare(&mut journal.profiler)?, None),
            Stage::Prepared(prepared) => (prepared, None),
            Stage::Calibrating(calibrating) => calibrating.stop(),
            Stage::Calibrated(Calibrated { prepared, ranges }) => (prepared, Some(ranges)),
        };
        let resting = Resting { prepared, ranges };
        match Calibrating::begin(resting, opened, samples, choices, journal) {
            Ok(calibrating) => {
                *self = Stage::Calibrating(calibrating);
                Ok(())
            }
            Err((resting, error)) => {
                *self = resting.into();
                Err(error)
            }
        }
    }

    /// Drops a calibration that has begun.
    pub(super) fn stop_calibration(&mut self) {
        *self = match std::mem::take(self) {
            Stage::Calibrating(calibrating) => {
                let (prepared, ranges) = calibrating.stop();
                Resting { prepared, ranges }.into()
            }
            other => other,
        };
    }

    /// The calibration that has begun.
    pub(super) fn calibrating(&mut self) -> Result<&mut Calibrating, OrderError> {
        match self {
            Stage::Calibrating(calibrating) => Ok(calibrating),
            _ => Err(OrderError::NotCalibrating),
        }
    }

    /// Ends a calibration with the ranges of a method. One that lacks samples or a pass goes on.
    pub(super) fn finish_calibration(
        &mut self,
        method: Method,
        journal: &mut Journal,
    ) -> Result<CalibrationSummary, Error> {
        let calibrating = match std::mem::take(self) {
            Stage::Calibrating(calibrating) => calibrating,
            other => {
                *self = other;
                return Err(OrderError::NotCalibrating.into());
            }
        };
        if let Err(error) = calibrating.require_passes(method) {
            *self = Stage::Calibrating(calibrating);
            return Err(error);
        }
        match calibrating.finish(method, journal) {
            Ok((calibrated, summary)) => {
                *self = Stage::Calibrated(calibrated);
                Ok(summary)
            }
            Err((resting, error)) => {
                *self = resting.into();
                Err(error)
            }
        }
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
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::quantize::Settings;
    use crate::session::{ErrorKind, Export, ModelFile, Session, warm_up};

    fn opened() -> Session {
        Session::open(ModelFile::new("m.onnx", warm_up().unwrap().into())).unwrap()
    }

    fn feed(session: &mut Session) {
        let sample = session.demo_sample(0, 0).unwrap();
        session.feed(vec![sample], &()).unwrap();
    }

    fn file(session: &mut Session) -> Vec<u8> {
        let result = session.quantize(&Settings::default()).unwrap();
        result.model.as_slice().concat()
    }

    #[test]
    fn calls_out_of_order_are_refused_and_say_what_comes_first() {
        let mut session = opened();
        let refused = [
            session.feed(Vec::new(), &()).unwrap_err(),
            session.settle().unwrap_err(),
            session.begin_extra_pass(Method::MinMax, false).unwrap_err(),
            session.finish_calibration(Method::MinMax).unwrap_err(),
            session.quantize(&Settings::default()).err().unwrap(),
            session.export(Export::Csv).unwrap_err(),
        ];
        let begin = "calibration has not begun; choose samples and settings and begin it";
        let wanted = [
            begin,
            begin,
            begin,
            begin,
            "there are no ranges yet; calibrate with some samples first",
            "there is no profile yet; profile the model first",
        ];
        for (error, wanted) in refused.iter().zip(wanted) {
            assert_eq!(
                (error.kind(), &*error.to_string()),
                (ErrorKind::Order, wanted)
            );
        }
        assert!(matches!(session.stage, Stage::Opened));
    }

    #[test]
    fn earlier_ranges_stay_until_a_calibration_ends() {
        let mut session = opened();
        session
            .begin_calibration(SampleSettings::default())
            .unwrap();
        feed(&mut session);
        session.finish_calibration(Method::MinMax).unwrap();
        assert!(matches!(session.stage, Stage::Calibrated(_)));
        let first = file(&mut session);
        session
            .begin_calibration(SampleSettings::default())
            .unwrap();
        let lacking = session.finish_calibration(Method::MinMax).unwrap_err();
        assert!(matches!(lacking, Error::NoSamples), "{lacking}");
        assert!(matches!(session.stage, Stage::Calibrating(_)));
        assert!(file(&mut session) == first);
        // Ranges that are set meanwhile are used, and the calibration goes on.
        session.set_ranges(BTreeMap::new()).unwrap();
        assert!(session.quantize(&Settings::default()).is_err());
        feed(&mut session);
        session.finish_calibration(Method::MinMax).unwrap();
        assert!(file(&mut session) == first);
    }

    #[test]
    fn a_calibration_whose_passes_differ_is_dropped_and_the_ranges_before_it_stay() {
        let mut session = opened();
        session.set_ranges(BTreeMap::new()).unwrap();
        session
            .begin_calibration(SampleSettings::default())
            .unwrap();
        feed(&mut session);
        let method = "ort-percentile".parse().unwrap();
        assert!(session.begin_extra_pass(method, false).unwrap());
        feed(&mut session);
        feed(&mut session);
        let error = session.finish_calibration(method).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample, "{error}");
        let Stage::Calibrated(Calibrated { ranges, .. }) = &session.stage else {
            panic!("the stage before the calibration is lost");
        };
        assert!(matches!(ranges, ModelRanges::Fixed(_)));
    }
}
