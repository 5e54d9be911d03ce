//! Holding the quantized model against this session's float model.

use super::{Error, Runner, Session, Watch};
use crate::compare::{CompareError, Comparing, Comparison};
use crate::tensor::Tensor;

impl Session {
    /// Begins a comparison of this float model with one that was quantized from it.
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

    /// Ends it; what was found goes into the report.
    pub fn finish_comparison(&mut self, found: &Comparison) {
        self.profiler.finish();
        self.report.compared(Some(found));
        self.comparison = Some(found.clone());
        self.compared.insert(self.made_with.clone(), found.clone());
    }

    /// What was found of another result is not of this one; where this one was made before, what was found then is.
    pub(super) fn compared_as(&mut self, settings: &crate::quantize::Settings) {
        self.made_with = serde_json::to_string(settings).unwrap_or_default();
        self.comparison = self.compared.get(&self.made_with).cloned();
        self.report.compared(self.comparison.as_ref());
    }
}

/// Runs a sample in a comparison; `label` is its class, where that is known.
pub fn compare_sample(
    comparing: &mut Comparing,
    inputs: &[Tensor],
    label: Option<usize>,
    watch: &dyn Watch,
) -> Result<(), Error> {
    Ok(comparing.feed(inputs, label, || watch.cancelled())?)
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
