//! Comparison of a quantized model with this session's float model.

use super::{Error, ProgressMonitor, Runner, Session};
use crate::compare::{CompareError, Comparing, Comparison, SampleAnswers};
use crate::graph::Model;
use crate::profile::RunStep;
use crate::quantize::Settings;
use crate::tensor::Tensor;

/// Comparisons of a session's results.
#[derive(Default)]
pub(super) struct Comparisons {
    /// Comparison of the latest result.
    latest: Option<Comparison>,
    /// Comparisons of results since the last calibration began, by their settings.
    by_settings: Vec<(Settings, Comparison)>,
    /// Settings of the latest result.
    settings: Option<Settings>,
}

impl Comparisons {
    /// Comparison of the latest result.
    pub(super) fn latest(&self) -> Option<&Comparison> {
        self.latest.as_ref()
    }

    /// Forgets all but the latest comparison.
    pub(super) fn clear(&mut self) {
        self.by_settings.clear();
    }

    /// Sets the current result's settings. Returns its comparison if these settings were compared
    /// before; that of other settings is no longer the latest.
    pub(super) fn restore(&mut self, settings: &Settings) -> Option<&Comparison> {
        self.settings = Some(settings.clone());
        let mut known = self.by_settings.iter();
        let known = known.find(|(compared, _)| compared == settings);
        self.latest = known.map(|(_, comparison)| comparison.clone());
        self.latest.as_ref()
    }

    fn add(&mut self, result: &Comparison) {
        self.latest = Some(result.clone());
        if let Some(settings) = &self.settings {
            self.by_settings
                .retain(|(compared, _)| compared != settings);
            self.by_settings.push((settings.clone(), result.clone()));
        }
    }
}

impl Session {
    /// Begins a comparison of this float model with a model quantized from it.
    pub fn begin_comparison(&mut self, quantized: &Runner) -> Result<Comparing, Error> {
        self.compared_by(quantized, Comparing::new)
    }

    /// Begins a comparison of the outputs alone.
    pub fn begin_output_comparison(&mut self, quantized: &Runner) -> Result<Comparing, Error> {
        self.compared_by(quantized, Comparing::of_outputs)
    }

    fn compared_by(
        &mut self,
        quantized: &Runner,
        begin: fn(Model, Model) -> Result<Comparing, CompareError>,
    ) -> Result<Comparing, Error> {
        self.journal.profiler.resume();
        let (ready, _) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        self.journal.profiler.begin(RunStep::Comparison);
        Ok(begin(ready.model.clone(), quantized.model().clone())?)
    }

    /// Ends a comparison whose results do not belong into the report.
    pub fn leave_comparison(&mut self) {
        self.journal.profiler.finish();
    }

    /// Ends the comparison and puts its results into the report.
    pub fn finish_comparison(&mut self, result: &Comparison) {
        self.journal.profiler.finish();
        self.journal.report.compared(Some(result));
        self.comparisons.add(result);
    }
}

/// Runs one sample through a comparison and returns what both models answer. `label` is its class,
/// if known.
pub fn compare_sample(
    comparing: &mut Comparing,
    inputs: &[Tensor],
    label: Option<usize>,
    monitor: &dyn ProgressMonitor,
) -> Result<SampleAnswers, Error> {
    Ok(comparing.feed(inputs, label, || monitor.cancelled())?)
}
