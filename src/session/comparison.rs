//! Comparison of a quantized model with this session's float model.

use super::{Error, ProgressMonitor, Runner, Session};
use crate::compare::{CompareError, Comparing, Comparison};
use crate::tensor::Tensor;

impl Session {
    /// Begins a comparison of this float model with a model quantized from it.
    pub fn begin_comparison(&mut self, quantized: &Runner) -> Result<Comparing, Error> {
        self.profiler.resume();
        self.prepare()?;
        let ready = self.prepared.as_ref().ok_or(Error::NotCalibrated)?;
        self.profiler.begin("Comparison");
        Ok(Comparing::new(
            ready.model.clone(),
            quantized.model().clone(),
        )?)
    }

    /// Ends the comparison and puts its results into the report.
    pub fn finish_comparison(&mut self, result: &Comparison) {
        self.profiler.finish();
        self.report.compared(Some(result));
        self.comparison = Some(result.clone());
        self.comparisons
            .insert(self.result_settings.clone(), result.clone());
    }

    /// Sets the current result's settings. Restores its comparison if these settings were compared
    /// before; drops that of other settings.
    pub(super) fn restore_comparison(&mut self, settings: &crate::quantize::Settings) {
        self.result_settings = serde_json::to_string(settings).unwrap_or_default();
        self.comparison = self.comparisons.get(&self.result_settings).cloned();
        self.report.compared(self.comparison.as_ref());
    }
}

/// Runs one sample through a comparison. `label` is its class, if known.
pub fn compare_sample(
    comparing: &mut Comparing,
    inputs: &[Tensor],
    label: Option<usize>,
    monitor: &dyn ProgressMonitor,
) -> Result<(), Error> {
    Ok(comparing.feed(inputs, label, || monitor.cancelled())?)
}

impl From<CompareError> for Error {
    fn from(error: CompareError) -> Error {
        match error {
            CompareError::Engine(error) => error.into(),
            CompareError::Prepare(error) => Error::Prepare(error),
            other => Error::Compare(other),
        }
    }
}
