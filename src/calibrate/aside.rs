//! Samples that are left out of a calibration, each with its reason: files that can't be read, shapes that the model doesn't
//! take, runs that fail.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::run::FeedError;
use crate::engine::EngineError;
use crate::samples::{SampleError, SampleProblem, ShapeMismatch, Skipped};

/// Tells where a model can't go on with inputs of these shapes, where that can be told.
pub type Explain = Box<dyn Fn(&[&[usize]]) -> Option<ShapeMismatch> + Send + Sync>;

/// What was set aside so far, for all passes of a calibration.
#[derive(Default)]
pub(super) struct Aside {
    explain: OnceLock<Explain>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// By the sample's place among those fed.
    samples: BTreeMap<usize, (String, FeedError)>,
    /// Shapes for which there is no plan: another sample that has them need not be tried.
    shapes: HashMap<Vec<Vec<usize>>, EngineError>,
}

impl Aside {
    /// Has this asked from here on.
    pub(super) fn explain(&self, explain: Explain) {
        let _ = self.explain.set(explain);
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, place: usize, name: String, cause: FeedError) {
        self.found().samples.insert(place, (name, cause));
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.found().samples.contains_key(&place)
    }

    /// All of them, in the order they were fed.
    pub(super) fn list(&self) -> Vec<Skipped> {
        let found = self.found();
        let told = found.samples.values().map(|(name, cause)| Skipped {
            sample: name.clone(),
            reason: reason(name, cause),
        });
        told.collect()
    }

    /// Takes out why the first was set aside.
    pub(super) fn first(&self) -> Option<FeedError> {
        let mut found = self.found();
        found.samples.pop_first().map(|(_, (_, cause))| cause)
    }

    /// Why a sample of these shapes can't be run, where one before it told.
    pub(super) fn known(&self, sample: &str, shapes: &[Vec<usize>]) -> Option<FeedError> {
        let source = self.found().shapes.get(shapes)?.clone();
        Some(self.said(sample, shapes, source))
    }

    /// The engine's failure as one of this sample.
    pub(super) fn refused(
        &self,
        sample: &str,
        shapes: &[Vec<usize>],
        source: EngineError,
    ) -> FeedError {
        // A run that failed may go well with other values.
        if !matches!(
            source,
            EngineError::Run { .. } | EngineError::Endless { .. }
        ) {
            let mut found = self.found();
            found.shapes.insert(shapes.to_vec(), source.clone());
        }
        self.said(sample, shapes, source)
    }

    fn said(&self, sample: &str, shapes: &[Vec<usize>], source: EngineError) -> FeedError {
        let given: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        match self.explain.get().and_then(|explain| explain(&given)) {
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

/// What is wrong, without the sample's name.
fn reason(sample: &str, cause: &FeedError) -> String {
    match cause {
        FeedError::Sample(SampleError::Sample { problem, .. }) => problem.message_for(sample),
        FeedError::Run { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
