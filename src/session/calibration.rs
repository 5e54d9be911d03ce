//! Calibration: the calls between the first sample and the ranges of all values.

use super::calibrating::CalibrationSummary;
use super::error::Error;
use super::progress::ProgressMonitor;
use super::stage::Stage;
use super::{Session, ValueRanges};
use crate::quantize;
use crate::samples::{self, Encoded};
use crate::stats::{Method, Range};
use crate::tune::unnamed_file;

impl Session {
    /// Sets the strength of equalization for later calibrations; `None` turns it off. It needs one
    /// extra pass: see [`Session::begin_extra_pass`].
    pub fn equalize(&mut self, strength: Option<f32>) {
        self.choices.equalize = strength;
    }

    /// Makes later calibrations record every layer of every sample in the report. For large models
    /// this adds many records.
    pub fn checkpoint_layers(&mut self, each: bool) {
        self.choices.each_layer = each;
    }

    /// Prepares the model and begins a calibration; drops an unfinished one.
    ///
    /// It observes every value that any settings may need. Settings can therefore change afterwards
    /// without another calibration.
    pub fn begin_calibration(&mut self, samples: samples::SampleSettings) -> Result<(), Error> {
        self.comparisons.clear();
        self.learned.clear();
        self.journal.profiler.resume();
        self.stage
            .begin_calibration(&mut self.opened, samples, self.choices, &mut self.journal)
    }

    /// Runs some samples. It may be called repeatedly; the result does not depend on how the
    /// samples are divided into calls.
    pub fn feed(
        &mut self,
        samples: Vec<Encoded>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<(), Error> {
        let calibrating = self.stage.calibrating()?;
        let fed = calibrating.feed(samples, &self.journal, monitor);
        self.journal.record_checkpoints();
        fed
    }

    /// Starts a sample and, where threads are available, returns before it ends, so that the next
    /// one can be read meanwhile.
    ///
    /// Returns false, and starts nothing, once another sample has failed. [`Session::settle`]
    /// returns the errors of the samples started so far.
    pub fn begin_sample(
        &mut self,
        sample: Encoded,
        monitor: &'static dyn ProgressMonitor,
    ) -> Result<bool, Error> {
        let calibrating = self.stage.calibrating()?;
        Ok(calibrating.begin_sample(sample, &self.journal, monitor))
    }

    /// Number of samples that were started and have not ended.
    pub fn samples_under_way(&self) -> usize {
        match &self.stage {
            Stage::Calibrating(calibrating) => calibrating.under_way(),
            _ => 0,
        }
    }

    /// Ranges of the observed values, from the samples that have ended.
    pub fn ranges_so_far(&self) -> Vec<(&str, Option<Range>)> {
        match &self.stage {
            Stage::Calibrating(calibrating) => calibrating.ranges_so_far(),
            _ => Vec::new(),
        }
    }

    /// Returns the first error of the samples started by [`Session::begin_sample`]. All of them
    /// must have ended.
    pub fn settle(&mut self) -> Result<(), Error> {
        let settled = self.stage.calibrating()?.settle();
        self.journal.record_checkpoints();
        settled
    }

    /// Begins an extra pass over the samples if one is needed, and returns whether it did.
    ///
    /// Three things need one: a method of two passes, Gram matrices for GPTQ (`moments`), and
    /// equalization. After a true result, feed the same samples again before the calibration is
    /// finished.
    pub fn begin_extra_pass(&mut self, method: Method, moments: bool) -> Result<bool, Error> {
        self.stage.calibrating()?.begin_extra_pass(method, moments)
    }

    /// Drops a calibration that has begun. The ranges from before stay in use.
    pub fn stop_calibration(&mut self) {
        self.stage.stop_calibration();
    }

    /// Ends the calibration. From here on the model can be quantized.
    pub fn finish_calibration(&mut self, method: Method) -> Result<CalibrationSummary, Error> {
        self.stage.finish_calibration(method, &mut self.journal)
    }

    /// Calibrates for these settings in one call: runs the samples once for each pass that the
    /// settings need.
    ///
    /// `decoding` sets how samples become tensors. Its default takes arrays unchanged and prepares
    /// images as for ImageNet classifiers. A caller that reads samples one by one, shows progress
    /// or can be cancelled calls the steps itself, beginning with [`Session::begin_calibration`].
    pub fn calibrate(
        &mut self,
        samples: &[Encoded],
        decoding: &samples::SampleSettings,
        settings: &quantize::Settings,
    ) -> Result<CalibrationSummary, Error> {
        let method = settings.method.unwrap_or_default();
        self.equalize(settings.equalizes());
        self.begin_calibration(decoding.clone())?;
        self.feed(samples.to_vec(), &())?;
        while self.begin_extra_pass(method, settings.needs_gram_matrices())? {
            self.feed(samples.to_vec(), &())?;
        }
        let done = self.finish_calibration(method)?;
        if settings.tunes() {
            let mut tuning = self.begin_tuning(settings, &unnamed_file)?;
            for sample in samples {
                tuning.add(self.decode(sample, decoding)?)?;
            }
            self.tune(tuning, &())?;
        }
        Ok(done)
    }

    /// Sets ranges from elsewhere in place of a calibration.
    pub fn set_ranges(&mut self, ranges: ValueRanges) -> Result<CalibrationSummary, Error> {
        self.learned.clear();
        let values = ranges.len();
        self.stage
            .set_ranges(ranges, &mut self.opened, &mut self.journal.profiler)?;
        let prepared = self.stage.prepared().map(|model| model.done.clone());
        Ok(CalibrationSummary {
            samples: 0,
            skipped: Vec::new(),
            values,
            prepared: prepared.unwrap_or_default(),
        })
    }
}
