//! Samples skipped by a calibration, each with its reason: an unreadable file, shapes that the
//! model does not accept, or a failed run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::error::FeedError;
use crate::runtime::EngineError;
use crate::samples::{SampleError, SampleProblem, ShapeMismatch, Skipped};

/// Explains why the model does not accept inputs of these shapes. Returns `None` if the cause is
/// unknown.
pub type ExplainShapes = Box<dyn Fn(&[&[usize]]) -> Option<ShapeMismatch> + Send + Sync>;

/// The samples skipped so far, over all passes of a calibration.
#[derive(Default)]
pub(super) struct SkippedSamples {
    explain: OnceLock<ExplainShapes>,
    state: Mutex<SkippedState>,
}

#[derive(Default)]
struct SkippedState {
    /// Name and error of each skipped sample, by its index in the order of feeding.
    samples: BTreeMap<usize, (String, FeedError)>,
    /// Shapes for which no plan can be built. Later samples of these shapes are skipped without a
    /// try.
    shapes: HashMap<Vec<Vec<usize>>, EngineError>,
}

impl SkippedSamples {
    /// Sets the function that explains refused shapes.
    pub(super) fn explain(&self, explain: ExplainShapes) {
        let _ = self.explain.set(explain);
    }

    fn state(&self) -> MutexGuard<'_, SkippedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, place: usize, name: String, cause: FeedError) {
        self.state().samples.insert(place, (name, cause));
    }

    pub(super) fn contains(&self, place: usize) -> bool {
        self.state().samples.contains_key(&place)
    }

    /// Lists the skipped samples in the order of feeding.
    pub(super) fn list(&self) -> Vec<Skipped> {
        let state = self.state();
        let list = state.samples.values().map(|(name, cause)| Skipped {
            sample: name.clone(),
            reason: reason(name, cause),
        });
        list.collect()
    }

    /// Removes the first skipped sample and returns its error.
    pub(super) fn take_first(&self) -> Option<FeedError> {
        let mut state = self.state();
        state.samples.pop_first().map(|(_, (_, cause))| cause)
    }

    /// Returns the error for a sample of these shapes if an earlier sample of these shapes was
    /// refused.
    pub(super) fn known_error(&self, sample: &str, shapes: &[Vec<usize>]) -> Option<FeedError> {
        let source = self.state().shapes.get(shapes)?.clone();
        Some(self.sample_error(sample, shapes, source))
    }

    /// Turns the engine's error into the error of this sample, and remembers shapes without a plan.
    pub(super) fn run_error(
        &self,
        sample: &str,
        shapes: &[Vec<usize>],
        source: EngineError,
    ) -> FeedError {
        // A failed run depends on the values, so other samples of these shapes are still tried.
        if !matches!(
            source,
            EngineError::Run { .. } | EngineError::Endless { .. }
        ) {
            let mut state = self.state();
            state.shapes.insert(shapes.to_vec(), source.clone());
        }
        self.sample_error(sample, shapes, source)
    }

    fn sample_error(&self, sample: &str, shapes: &[Vec<usize>], source: EngineError) -> FeedError {
        let shapes_of_inputs: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        match self
            .explain
            .get()
            .and_then(|explain| explain(&shapes_of_inputs))
        {
            Some(refusal) => FeedError::Sample(SampleError::Sample {
                sample: sample.into(),
                problem: SampleProblem::rejected_shapes(shapes, &refusal),
            }),
            None => FeedError::Run {
                sample: sample.into(),
                source,
            },
        }
    }
}

/// The error's text without the sample's name.
fn reason(sample: &str, cause: &FeedError) -> String {
    match cause {
        FeedError::Sample(SampleError::Sample { problem, .. }) => problem.message_for(sample),
        FeedError::Run { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
