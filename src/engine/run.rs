//! Runs: each by the plan for its input shapes.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};

use super::control::{self, Form};
use super::execute::Run;
use super::integer::{self, FusedNode};
use super::parts::{self, Parts};
use super::plan::{Plan, Route};
use super::steps::{self, Steps, Timing};
use super::{EngineError, Watched};
use crate::graph::Model;
use crate::tensor::Tensor;

/// How far a run came before it was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// The share of the work that was done, 0 to 1.
    pub share: f64,
    /// How long that took.
    pub ms: f64,
}

/// Called when a step of an integer region is done, with its place in [`Engine::fused`]'s list.
pub type StepClock<'a> = &'a mut dyn FnMut(usize);

/// Runs one model, watching some of its values.
pub struct Engine {
    pub(super) model: Model,
    pub(super) watched: Vec<Watched>,
    /// Watched values that are fed, not made: (slot, index of the input).
    pub(super) fed: Vec<(usize, usize)>,
    /// Whether convolutions are run by our kernels.
    pub(super) kernels: bool,
    /// Whether quantized nodes run on integers.
    pub(super) integers: bool,
    /// So many graphs are around it.
    depth: usize,
    /// A model that holds graphs, or whose sizes follow from values, runs in parts.
    parts: OnceLock<Option<Parts>>,
    pub(super) plans: Mutex<Vec<(Vec<Vec<usize>>, Arc<Plan>)>>,
}

impl Engine {
    /// An engine for a prepared model that reports the values of `watched`. A quantized model runs in float,
    /// as its QuantizeLinear and DequantizeLinear say.
    pub fn new(model: Model, watched: Vec<String>) -> Engine {
        Engine::watching(model, watched.into_iter().map(Watched::from).collect())
    }

    /// The same engine, which runs a quantized model on integers wherever that is possible. A watched value is
    /// there in float, so nothing is fused over it.
    pub fn on_integers(mut self) -> Engine {
        self.integers = integer::has_integers(&self.model);
        self
    }

    /// An engine that reports each value of `watched` together with those beside it.
    pub fn watching(model: Model, watched: Vec<Watched>) -> Engine {
        let position = |name: &String| {
            model
                .graph
                .inputs
                .iter()
                .position(|i| i.name.as_ref() == Some(name))
        };
        let fed = watched
            .iter()
            .enumerate()
            .filter(|(_, watched)| watched.beside.is_empty())
            .filter_map(|(slot, watched)| Some((slot, position(&watched.value)?)))
            .collect();
        Engine {
            model,
            watched,
            fed,
            // Natively tract has better ones, made for each processor.
            kernels: cfg!(target_family = "wasm"),
            integers: false,
            depth: 0,
            parts: OnceLock::new(),
            plans: Mutex::default(),
        }
    }

    /// The same engine, which runs its nodes in this form.
    pub(super) fn in_form(self, form: Form) -> Engine {
        Engine {
            kernels: form.kernels,
            integers: form.integers,
            depth: form.depth,
            ..self
        }
    }

    /// The same engine for what is a part already.
    pub(super) fn whole(self) -> Engine {
        Engine {
            parts: OnceLock::from(None),
            ..self
        }
    }

    /// The parts of a model that holds graphs, or whose sizes follow from values; made once.
    pub(super) fn parts(&self) -> Result<Option<&Parts>, EngineError> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts.as_ref());
        }
        let form = Form {
            kernels: self.kernels,
            integers: self.integers,
            depth: self.depth,
        };
        let made = parts::cut(&self.model, &self.watched, form)?;
        Ok(self.parts.get_or_init(|| made).as_ref())
    }

    /// Runs convolutions by our float kernels, or all in tract: not by which is faster here.
    pub fn with_kernels(mut self, ours: bool) -> Engine {
        self.kernels = ours;
        self
    }

    /// Runs one sample, its tensors in the order of the model's inputs; those that are given up are freed as soon as the
    /// engine has done with them.
    ///
    /// Each watched value goes to `see` with its place in `watched`, once a run, as soon as it is
    /// made. `stop` is asked before every operator.
    pub fn run<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[f32]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.run_shaped(inputs, |slot, values, _| see(slot, values), stop)
    }

    /// The same; `see` is told the shape of each watched value, too.
    pub fn run_shaped<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[f32], &[usize]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let mut see = |slot: usize, values: &[&[f32]], shape: &[usize]| see(slot, values[0], shape);
        self.begin(inputs.into(), &mut see, &stop, None, None)
    }

    /// The nodes of a quantized model, those that run on integers and those that don't, for inputs of these
    /// shapes. A model that holds graphs is run to know what they make: `stop` is asked as in [`Engine::run`].
    pub fn fused(
        &self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<FusedNode>, EngineError> {
        let Some(parts) = self.parts()? else {
            return Ok(self.plan(inputs)?.fused.clone());
        };
        let mut all: Vec<FusedNode> = Vec::new();
        self.look(parts, inputs, stop, |part| {
            let regions = all.iter().filter_map(|node| node.region);
            let regions = regions.max().map_or(0, |last| last + 1);
            all.extend(part.fused(regions)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Runs one sample with a clock for the steps inside integer regions.
    pub fn run_clocked(
        &self,
        inputs: &[Tensor],
        clock: StepClock,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.begin(inputs.into(), &mut |_, _, _| {}, &stop, None, Some(clock))
    }

    /// The same; `see` is given a watched value followed by those beside it.
    pub fn run_beside<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[&[f32]]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let mut see = |slot: usize, values: &[&[f32]], _: &[usize]| see(slot, values);
        self.begin(inputs.into(), &mut see, &stop, None, None)
    }

    /// The steps that samples of these shapes take, in their order. A model that holds graphs is run to know what they make, until
    /// `stop` says so.
    pub fn steps(&self, inputs: &[Tensor], stop: &dyn Fn() -> bool) -> Result<Steps, EngineError> {
        let graph = &self.model.graph;
        let Some(parts) = self.parts()? else {
            let plan = self.plan(inputs)?;
            return Ok(steps::of_plan(&plan.run, graph, plan.regions()));
        };
        let mut all = Steps {
            steps: Vec::new(),
            layers: vec![None; graph.nodes.len()],
            reasons: vec![None; graph.nodes.len()],
        };
        self.look(parts, inputs, stop, |part| part.add_steps(&mut all))?;
        Ok(all)
    }

    /// Runs one sample several times, as long as `again` says so; `timing` hears of every step.
    pub fn run_timed<T: Timing>(
        &self,
        inputs: &[Tensor],
        timing: &mut T,
        mut again: impl FnMut(&mut T) -> bool,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        loop {
            let outputs =
                self.begin(inputs.into(), &mut |_, _, _| {}, &stop, Some(timing), None)?;
            if !again(timing) {
                return Ok(outputs);
            }
        }
    }

    /// How samples of these shapes will run. Makes the plan, if there is none for them yet. A model that holds graphs is run to know
    /// what they make, until `stop` says so.
    pub fn route(&self, inputs: &[Tensor], stop: &dyn Fn() -> bool) -> Result<Route, EngineError> {
        let Some(parts) = self.parts()? else {
            return Ok(Route(vec![(self.plan(inputs)?, None)]));
        };
        let mut plans = Vec::new();
        self.look(parts, inputs, stop, |part| {
            plans.extend(part.plan()?);
            Ok(())
        })?;
        Ok(Route(plans))
    }

    /// Runs one sample on its route for at most about `budget_ms`, or to its end, to tell how fast it goes. `now_ms` is a clock; `stop` ends
    /// it with nothing told.
    pub fn probe<'a>(
        &self,
        route: &Route,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        budget_ms: f64,
        now_ms: impl Fn() -> f64,
        see: impl FnMut(usize, &[f32]),
        stop: &dyn Fn() -> bool,
    ) -> Result<Probe, EngineError> {
        let work = route.outline(|_| 0).work;
        let began = now_ms();
        // Asked before every operator: how many there were, and when the last was asked for.
        let begun = Cell::new(0);
        let over = || {
            if stop() || now_ms() - began > budget_ms {
                return true;
            }
            begun.set(begun.get() + 1);
            false
        };
        let share = match self.run(inputs, see, over) {
            Ok(_) => 1.0,
            Err(EngineError::Stopped) if !stop() => {
                let done: u64 = work.iter().take(begun.get()).sum();
                done as f64 / work.iter().sum::<u64>().max(1) as f64
            }
            Err(error) => return Err(error),
        };
        let ms = now_ms() - began;
        Ok(Probe { share, ms })
    }

    /// Looks at the parts of a model, which is run so far that each knows what it is given, unless `stop` ends that.
    fn look(
        &self,
        parts: &Parts,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
        look: impl FnMut(&parts::Next) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let run = Run {
            see: &mut |_, _, _| {},
            stop,
            timing: None,
            clock: None,
            turns: &Cell::new(control::TURNS),
        };
        parts.each(inputs, run, look)
    }

    fn begin(
        &self,
        inputs: Cow<'_, [Tensor]>,
        see: &mut dyn FnMut(usize, &[&[f32]], &[usize]),
        stop: &dyn Fn() -> bool,
        timing: Option<&mut dyn Timing>,
        clock: Option<StepClock>,
    ) -> Result<Vec<Tensor>, EngineError> {
        let turns = Cell::new(control::TURNS);
        // Borrowed anew, each for as long as the turns are there.
        let run = Run {
            see,
            stop,
            timing: match timing {
                Some(timing) => Some(&mut *timing),
                None => None,
            },
            clock: match clock {
                Some(clock) => Some(&mut *clock),
                None => None,
            },
            turns: &turns,
        };
        self.execute(inputs, run)
    }
}
