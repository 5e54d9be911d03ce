//! A search, step by step.

use std::collections::BTreeMap;

use super::bisection::Bisection;
use super::budget::Metric;
use super::choose::{Choices, SearchResult, settings_of};
use super::divided::{PendingPass, SharedSearch};
use super::interval::Estimate;
use super::judge::Judge;
use super::measure::{FloatRuns, in_parallel};
use super::measurements::NoisePass;
use super::prepare::PreparedSearch;
use super::sensitivities::Sensitivities;
use super::{Bits, SearchError, SearchOptions, SearchedModel};
use crate::quantize::{Quantized, Scheme, Settings};
use crate::runtime::Engine;
use crate::tensor::Tensor;

/// A sample of a search.
#[derive(Clone, Debug)]
pub struct SearchSample {
    /// Name of the sample.
    pub name: String,
    /// Its tensors, in the order of the model's inputs.
    pub inputs: Vec<Tensor>,
    /// Its class, if known.
    pub label: Option<usize>,
}

/// Progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SearchProgress {
    /// The name of the stage.
    pub stage: &'static str,
    /// Parts of the stage that are done.
    pub done: usize,
    /// Parts of the stage.
    pub of: usize,
}

/// The stage of a search.
pub(super) enum SearchStage {
    Tensors,
    Float(Vec<super::segments::ValuesByName>),
    Noises {
        pass: NoisePass,
        order: Vec<usize>,
        done: usize,
    },
    Outputs,
    Choosing(Bisection),
    Done,
}

/// A search under way.
pub struct BudgetSearch {
    pub(super) options: SearchOptions,
    pub(super) base: Settings,
    pub(super) choosing: Vec<SearchSample>,
    pub(super) held: Vec<SearchSample>,
    pub(super) judge: Judge,
    pub(super) metric: Metric,
    pub(super) float_outputs: [Vec<Vec<Tensor>>; 2],
    pub(super) stage: SearchStage,
    pub(super) known: Option<PreparedSearch>,
    pub(super) float: Option<FloatRuns>,
    pub(super) choices: Option<Choices>,
    pub(super) measured_points: BTreeMap<usize, (Estimate, f64)>,
    pub(super) result: Option<(SearchResult, Quantized)>,
    /// Measurements of shards, if shards share the search.
    pub(super) shared: Option<SharedSearch>,
}

impl BudgetSearch {
    /// Begins a search. `choosing` are the samples that calibrated and choose, `held` the others.
    pub fn new(
        model: &dyn SearchedModel,
        settings: &Settings,
        options: SearchOptions,
        choosing: Vec<SearchSample>,
        held: Vec<SearchSample>,
    ) -> Result<BudgetSearch, SearchError> {
        if choosing.is_empty() || held.is_empty() {
            return Err(SearchError::TooFewSamples(choosing.len() + held.len()));
        }
        BudgetSearch::checked(model, settings, options, choosing, held)
    }

    /// Begins a search, whatever the number of samples.
    pub(super) fn checked(
        model: &dyn SearchedModel,
        settings: &Settings,
        options: SearchOptions,
        choosing: Vec<SearchSample>,
        held: Vec<SearchSample>,
    ) -> Result<BudgetSearch, SearchError> {
        if settings.scheme != Scheme::Static {
            return Err(SearchError::Scheme);
        }
        if settings.tunes() {
            return Err(SearchError::Learned);
        }
        if !options.weights.contains(&Bits::Eight) || !options.activations.contains(&Bits::Eight) {
            return Err(SearchError::NoEight);
        }
        let metric = options.metric.unwrap_or(Metric::Sqnr);
        Ok(BudgetSearch {
            judge: Judge::new(model.model()),
            metric,
            base: settings.clone(),
            options,
            choosing,
            held,
            float_outputs: [Vec::new(), Vec::new()],
            stage: SearchStage::Tensors,
            known: None,
            float: None,
            choices: None,
            measured_points: BTreeMap::new(),
            result: None,
            shared: None,
        })
    }

    /// The progress so far.
    pub fn progress(&self) -> SearchProgress {
        let samples = self.choosing.len().min(self.options.measured);
        let (stage, done, of) = match &self.stage {
            SearchStage::Tensors => ("quantizing", 0, 1),
            SearchStage::Float(values) => ("float model", values.len(), samples),
            SearchStage::Noises { pass, order, done } => {
                let stage = match pass {
                    NoisePass::First => "single tensors",
                    NoisePass::Others | NoisePass::Four => "worst tensors",
                };
                (stage, *done, order.len())
            }
            SearchStage::Outputs => ("float outputs", 0, 1),
            SearchStage::Choosing(bisection) => {
                let points = self
                    .choices
                    .as_ref()
                    .map_or(1, |choices| choices.points.len());
                let left = (bisection.high - bisection.low + 1).ilog2() as usize;
                let all = points.ilog2() as usize + 2;
                ("points of the curve", all.saturating_sub(left + 1), all)
            }
            SearchStage::Done => ("done", 1, 1),
        };
        SearchProgress { stage, done, of }
    }

    /// The result, once the search is done: with the quantized model of the chosen point.
    pub fn result(&self) -> Option<(&SearchResult, &Quantized)> {
        self.result
            .as_ref()
            .map(|(result, quantized)| (result, quantized))
    }

    /// The measured sensitivities.
    pub fn sensitivities(&self, name: &str) -> Option<Sensitivities> {
        let known = self.known.as_ref()?;
        let samples = self.choosing.len().min(self.options.measured);
        let mut file = Sensitivities::new(name, samples, known.times);
        file.tensors.clone_from(&known.found);
        Some(file)
    }

    /// Makes one step; `stop` ends it with an error and leaves the search as it was. Returns false
    /// once the search is done, or needs measurements of shards.
    pub fn step(
        &mut self,
        model: &dyn SearchedModel,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<bool, SearchError> {
        let batch = rayon::current_num_threads().max(1);
        match std::mem::replace(&mut self.stage, SearchStage::Done) {
            SearchStage::Tensors => {
                self.stage = SearchStage::Tensors;
                self.known = Some(self.tensors(model)?);
                self.stage = match (&self.options.sensitivities, &self.shared) {
                    (Some(_), _) => SearchStage::Outputs,
                    (None, None) => SearchStage::Float(Vec::new()),
                    (None, Some(_)) => {
                        self.local_errors(stop)?;
                        self.first_stage()?
                    }
                };
            }
            SearchStage::Float(mut values) => {
                let (begin, known) = (values.len(), self.known()?);
                let samples = &self.choosing[..self.choosing.len().min(self.options.measured)];
                let end = samples.len().min(begin + batch);
                let run = |sample: &SearchSample| known.segmented.run(&sample.inputs, stop);
                values.extend(in_parallel(&samples[begin..end], run)?);
                if end < samples.len() {
                    self.stage = SearchStage::Float(values);
                } else {
                    self.local_errors(stop)?;
                    self.float = Some(FloatRuns::new(&self.known()?.outputs, values));
                    self.stage = self.first_stage()?;
                }
            }
            SearchStage::Noises { pass, order, done } => {
                let end = match self.shared {
                    Some(_) => order.len(),
                    None => order.len().min(done + batch),
                };
                let Some(noises) = self.noises(pass, &order[done..end], stop)? else {
                    let places = order;
                    self.wait_for(PendingPass::Noises { pass, places });
                    return Ok(false);
                };
                let known = self.known_mut()?;
                for (&place, noise) in order[done..end].iter().zip(noises) {
                    known.take_noise(place, pass, noise);
                }
                self.stage = match end < order.len() {
                    true => SearchStage::Noises {
                        pass,
                        order,
                        done: end,
                    },
                    false => self.stage_behind(pass)?,
                };
            }
            SearchStage::Outputs => {
                self.stage = SearchStage::Outputs;
                // The float values of the measured samples are no longer needed.
                self.float = None;
                let engine = Engine::new(model.model().clone(), Vec::new());
                let run = |sample: &SearchSample| engine.run(&sample.inputs[..], |_, _| {}, stop);
                let choosing = match self.shared {
                    // The first sample shows the kinds of the outputs; shards run the others.
                    Some(_) => &self.choosing[..1],
                    None => &self.choosing[..],
                };
                let outputs = [in_parallel(choosing, run)?, in_parallel(&self.held, run)?];
                self.float_outputs = outputs;
                self.choose_metric()?;
                self.curve(model)?;
                self.begin_choosing(model, stop)?;
            }
            SearchStage::Choosing(bisection) => self.bisect(model, bisection, stop)?,
            SearchStage::Done => return Ok(false),
        }
        Ok(!matches!(self.stage, SearchStage::Done) && self.pending().is_none())
    }

    /// The noises of tensors; none if shards have not measured them yet.
    fn noises(
        &self,
        pass: NoisePass,
        places: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<f64>>, SearchError> {
        if let Some(shared) = &self.shared {
            let noise = |&place: &usize| shared.known.noise(pass, place);
            return Ok(places.iter().map(noise).collect());
        }
        let noises = self.known()?.noises(self.float()?, pass, places, stop)?;
        Ok(Some(noises))
    }

    pub(super) fn known(&self) -> Result<&PreparedSearch, SearchError> {
        self.known
            .as_ref()
            .ok_or_else(|| SearchError::Other("the search has not begun".into()))
    }

    pub(super) fn known_mut(&mut self) -> Result<&mut PreparedSearch, SearchError> {
        self.known
            .as_mut()
            .ok_or_else(|| SearchError::Other("the search has not begun".into()))
    }

    pub(super) fn float(&self) -> Result<&FloatRuns, SearchError> {
        self.float
            .as_ref()
            .ok_or_else(|| SearchError::Other("no float values are known".into()))
    }

    pub(super) fn choices(&self) -> Result<&Choices, SearchError> {
        self.choices
            .as_ref()
            .ok_or_else(|| SearchError::Other("no curve is known".into()))
    }

    fn choose_metric(&mut self) -> Result<(), SearchError> {
        let classes = self.judge.has_classes(&self.float_outputs[0][0]);
        let labelled = |samples: &[SearchSample]| samples.iter().any(|one| one.label.is_some());
        let labels = match &self.shared {
            Some(shared) => shared.samples.labelled,
            None => labelled(&self.choosing) && labelled(&self.held),
        };
        self.metric = match self.options.metric {
            Some(metric) => metric,
            None => self.options.budget.metric(labels, classes),
        };
        match self.metric {
            Metric::Labels if !labels => Err(SearchError::NoLabels),
            Metric::Labels | Metric::Agreement | Metric::Kl if !classes => {
                Err(SearchError::NoClasses)
            }
            _ => Ok(()),
        }
    }

    fn curve(&mut self, model: &dyn SearchedModel) -> Result<(), SearchError> {
        let known = self.known()?;
        let groups: Vec<_> = known
            .tensors
            .iter()
            .map(|tensor| tensor.group.clone())
            .collect();
        let float_bytes = model.float_bytes() as f64;
        let choices = Choices::new(
            &groups,
            &known.found,
            &known.costs,
            float_bytes,
            &self.options,
        );
        self.choices = Some(choices);
        Ok(())
    }

    pub(super) fn settings_for(&self, known: &PreparedSearch, choice: &[Bits]) -> Settings {
        let names = known.tensors.iter().map(|tensor| tensor.group.name.clone());
        let choice: Vec<(String, Bits)> = names.zip(choice.iter().copied()).collect();
        settings_of(&self.base, &known.groups, &choice)
    }
}
