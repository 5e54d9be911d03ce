//! A search that shards share.
//!
//! Every process makes the same steps with what all shards measured so far. Where a measurement is
//! missing, the search stops with a [`PendingPass`]. Each shard measures its part of that pass, and
//! the search begins again with all parts.

use super::measure::{FloatRuns, in_parallel};
use super::measurements::{Half, JudgedModel, Measurements, NoisePass};
use super::prepare::LOCAL_SAMPLES;
use super::run::{BudgetSearch, SearchSample};
use super::{SearchError, SearchOptions, SearchedModel};
use crate::graph::Model;
use crate::quantize::Settings;
use crate::runtime::Engine;

/// The samples of a search that shards share.
#[derive(Clone, Debug)]
pub struct DividedSamples {
    /// The first samples of those that choose: [`DividedSamples::needed`] of them.
    pub first: Vec<SearchSample>,
    /// Number of samples that choose, and of those that are held out.
    pub count: [usize; 2],
    /// True if both halves have labels.
    pub labelled: bool,
}

impl DividedSamples {
    /// Number of samples that every shard needs: those that show the sensitivities.
    pub fn needed(options: &SearchOptions) -> usize {
        options.measured.max(LOCAL_SAMPLES)
    }
}

/// Measurements of shards so far, and the next pass.
pub(super) struct SharedSearch {
    pub(super) samples: DividedSamples,
    pub(super) known: Measurements,
    pub(super) pending: Option<PendingPass>,
}

/// Measurements that a search needs next.
#[derive(Clone, Debug)]
pub enum PendingPass {
    /// The noise of each of these tensors.
    Noises {
        /// The pass over tensors.
        pass: NoisePass,
        /// The places of the tensors.
        places: Vec<usize>,
    },
    /// The errors of quantized models on a half of the samples.
    Errors {
        /// The half.
        half: Half,
        /// The models and their settings.
        models: Vec<(JudgedModel, Settings)>,
    },
}

impl PendingPass {
    /// The content of the pass, in words.
    pub fn content(&self) -> String {
        match self {
            PendingPass::Noises { pass, .. } => match pass {
                NoisePass::First => "noises on the first sample".into(),
                NoisePass::Others => "noises of the worst tensors on the other samples".into(),
                NoisePass::Four => "noises with 4 bits".into(),
            },
            PendingPass::Errors { models, .. } => match models.first() {
                Some((JudgedModel::Point(point), _)) => format!("errors of point {point}"),
                _ => "errors of the choice".into(),
            },
        }
    }
}

/// The float model and the quantized ones of a pass, ready to run.
pub struct ErrorRuns<'a> {
    search: &'a BudgetSearch,
    half: Half,
    float: Engine,
    models: Vec<(JudgedModel, Engine)>,
}

impl BudgetSearch {
    /// Begins a search that shards share, with what they measured so far.
    pub fn divided(
        model: &dyn SearchedModel,
        settings: &Settings,
        options: SearchOptions,
        samples: DividedSamples,
        known: Measurements,
    ) -> Result<BudgetSearch, SearchError> {
        let [choosing, held] = samples.count;
        if choosing == 0 || held == 0 {
            return Err(SearchError::TooFewSamples(choosing + held));
        }
        let first = samples.first.clone();
        let mut search = BudgetSearch::checked(model, settings, options, first, Vec::new())?;
        search.shared = Some(SharedSearch {
            samples,
            known,
            pending: None,
        });
        Ok(search)
    }

    /// The measurements that are needed before the search can go on.
    pub fn pending(&self) -> Option<&PendingPass> {
        self.shared.as_ref()?.pending.as_ref()
    }

    /// Number of samples that choose, and of those that verify.
    pub(super) fn counts(&self) -> [usize; 2] {
        match &self.shared {
            Some(shared) => shared.samples.count,
            None => [self.choosing.len(), self.held.len()],
        }
    }

    /// Stops the search until a pass is measured.
    pub(super) fn wait_for(&mut self, pass: PendingPass) {
        if let Some(shared) = &mut self.shared {
            shared.pending = Some(pass);
        }
    }

    /// Measures the noises of some of the tensors of the pending pass.
    pub fn measure_noises(
        &self,
        places: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Measurements, SearchError> {
        let mut measured = Measurements::default();
        let Some(PendingPass::Noises { pass, .. }) = self.pending() else {
            return Ok(measured);
        };
        if places.is_empty() {
            return Ok(measured);
        }
        let known = self.known()?;
        let samples = &self.choosing[..self.choosing.len().min(self.options.measured)];
        let run = |sample: &SearchSample| known.segmented.run(&sample.inputs, stop);
        let values = in_parallel(samples, run)?;
        let float = FloatRuns::new(&known.outputs, values);
        let noises = known.noises(&float, *pass, places, stop)?;
        for (&place, noise) in places.iter().zip(noises) {
            measured.add_noise(*pass, place, noise);
        }
        Ok(measured)
    }

    /// Quantizes the models of the pending pass.
    pub fn error_runs(&self, model: &dyn SearchedModel) -> Result<ErrorRuns<'_>, SearchError> {
        let (half, models) = match self.pending() {
            Some(PendingPass::Errors { half, models }) => (*half, models.as_slice()),
            _ => (Half::Choosing, &[][..]),
        };
        let engine = |(judged, settings): &(JudgedModel, Settings)| {
            let quantized = model.quantize(settings)?;
            Ok((*judged, integer_engine(&quantized.model)))
        };
        Ok(ErrorRuns {
            search: self,
            half,
            float: Engine::new(model.model().clone(), Vec::new()),
            models: models
                .iter()
                .map(engine)
                .collect::<Result<_, SearchError>>()?,
        })
    }
}

/// The engine of a quantized model whose outputs are judged.
pub(super) fn integer_engine(model: &Model) -> Engine {
    Engine::new(model.clone(), Vec::new()).on_integers()
}

impl ErrorRuns<'_> {
    /// The half of the samples.
    pub fn half(&self) -> Half {
        self.half
    }

    /// Runs all models on samples, each with its place in its half.
    pub fn add(
        &self,
        samples: &[(usize, SearchSample)],
        into: &mut Measurements,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let errors = in_parallel(samples, |(_, sample)| {
            let run = |engine: &Engine| engine.run(&sample.inputs[..], |_, _| {}, stop);
            let float = run(&self.float)?;
            let judge = |(judged, engine): &(JudgedModel, Engine)| {
                let outputs = run(engine)?;
                let sums = self.search.judge.compare(&float, &outputs, sample.label);
                Ok((*judged, sums))
            };
            self.models.iter().map(judge).collect::<Result<Vec<_>, _>>()
        })?;
        for ((place, _), errors) in samples.iter().zip(errors) {
            for (judged, sums) in errors {
                into.add_error(self.half, judged, *place, sums);
            }
        }
        Ok(())
    }
}
