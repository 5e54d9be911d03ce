//! Runs: each by the plan for its input shapes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tract_onnx::prelude::*;
use tract_onnx::tract_core::plan;

use super::integer::operator::Integers;
use super::integer::{self, FusedNode};
use super::observe::Observe;
use super::panics::caught;
use super::plan::{Plan, Route};
use super::steps::{self, Steps, Timing, Untimed};
use super::{EngineError, Watched, chain, indices, values};
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
    fed: Vec<(usize, usize)>,
    /// Whether convolutions are run by our kernels.
    pub(super) kernels: bool,
    /// Whether quantized nodes run on integers.
    pub(super) integers: bool,
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
            plans: Mutex::default(),
        }
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
        let see = |slot: usize, values: &[&[f32]], shape: &[usize]| see(slot, values[0], shape);
        let untimed = (&HashMap::new(), &mut Untimed);
        self.execute(inputs.into(), see, stop, untimed, None)
    }

    /// The nodes of a quantized model, those that run on integers and those that don't, for inputs of these
    /// shapes.
    pub fn fused(&self, inputs: &[Tensor]) -> Result<Vec<FusedNode>, EngineError> {
        Ok(self.plan(inputs)?.fused.clone())
    }

    /// Runs one sample with a clock for the steps inside integer regions.
    pub fn run_clocked(
        &self,
        inputs: &[Tensor],
        clock: StepClock,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let untimed = (&HashMap::new(), &mut Untimed);
        self.execute(inputs.into(), |_, _, _| {}, stop, untimed, Some(clock))
    }

    /// The same; `see` is given a watched value followed by those beside it.
    pub fn run_beside<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[&[f32]]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let see = |slot: usize, values: &[&[f32]], _: &[usize]| see(slot, values);
        let untimed = (&HashMap::new(), &mut Untimed);
        self.execute(inputs.into(), see, stop, untimed, None)
    }

    /// The steps that samples of these shapes take, in their order.
    pub fn steps(&self, inputs: &[Tensor]) -> Result<Steps, EngineError> {
        let plan = self.plan(inputs)?;
        Ok(steps::of_plan(&plan.run, &self.model.graph, plan.regions()))
    }

    /// Runs one sample several times, as long as `again` says so; `timing` hears of every step.
    pub fn run_timed<T: Timing>(
        &self,
        inputs: &[Tensor],
        timing: &mut T,
        mut again: impl FnMut(&mut T) -> bool,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let plan = self.plan(inputs)?;
        let places = steps::places(&plan.run, plan.regions());
        loop {
            let outputs =
                self.execute(inputs.into(), |_, _, _| {}, &stop, (&places, timing), None)?;
            if !again(timing) {
                return Ok(outputs);
            }
        }
    }

    /// How samples of these shapes will run. Makes the plan, if there is none for them yet.
    pub fn route(&self, inputs: &[Tensor]) -> Result<Route, EngineError> {
        Ok(Route(self.plan(inputs)?))
    }

    /// Runs one sample for at most about `budget_ms`, or to its end, to tell how fast it goes. `now_ms` is a clock.
    pub fn probe<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        budget_ms: f64,
        now_ms: impl Fn() -> f64,
        see: impl FnMut(usize, &[f32]),
    ) -> Result<Probe, EngineError> {
        let inputs = inputs.into();
        let work = self.route(&inputs)?.outline(|_| 0).work;
        let began = now_ms();
        // Asked before every operator: how many there were, and when the last was asked for.
        let begun = Cell::new(0);
        let stop = || {
            if now_ms() - began > budget_ms {
                return true;
            }
            begun.set(begun.get() + 1);
            false
        };
        let share = match self.run(inputs, see, stop) {
            Ok(_) => 1.0,
            Err(EngineError::Stopped) => {
                let done: u64 = work.iter().take(begun.get()).sum();
                done as f64 / work.iter().sum::<u64>().max(1) as f64
            }
            Err(error) => return Err(error),
        };
        let ms = now_ms() - began;
        Ok(Probe { share, ms })
    }

    fn execute(
        &self,
        inputs: Cow<'_, [Tensor]>,
        mut see: impl FnMut(usize, &[&[f32]], &[usize]),
        stop: impl Fn() -> bool,
        (places, timing): (&HashMap<usize, usize>, &mut impl Timing),
        mut clock: Option<StepClock>,
    ) -> Result<Vec<Tensor>, EngineError> {
        let run_error = |error: TractError| {
            if error.root_cause().is::<Stop>() {
                return EngineError::Stopped;
            }
            EngineError::Run {
                detail: chain(&error),
            }
        };
        let plan = self.plan(&inputs)?;
        caught(|| {
            for &(slot, index) in &self.fed {
                let fed = inputs.get(index);
                if let Some((tensor, values)) = fed.and_then(|t| Some((t, t.as_f32()?))) {
                    see(slot, &[values], tensor.shape());
                }
            }
            let fed = values::fed(inputs).map_err(run_error)?;
            let outputs = plan
                .run
                .spawn()
                .and_then(|mut state| {
                    state.run_plan_with_eval(fed, |context, op_state, node, inputs| {
                        if stop() {
                            return Err(TractError::new(Stop));
                        }
                        if let Some(observer) = node.op_as::<Observe>() {
                            let seen = inputs.iter().map(|input| input.cast_to::<f32>());
                            let seen: TVec<_> = seen.collect::<TractResult<_>>()?;
                            let slices =
                                seen.iter().map(|s| s.try_as_plain_ram()?.as_slice::<f32>());
                            let slices = slices.collect::<TractResult<TVec<_>>>()?;
                            see(observer.slot, &slices, inputs[0].shape());
                        }
                        if let (Some(region), Some(clock)) = (node.op_as::<Integers>(), &mut clock)
                            && let Some(steps) = plan.steps.get(region.place)
                        {
                            let mut clock = |step: usize| clock(steps[step]);
                            return region.run(&inputs, Some(&mut clock));
                        }
                        indices::check(node, &inputs)?;
                        let Some(&step) = places.get(&node.id) else {
                            return plan::eval(context, op_state, node, inputs);
                        };
                        if let Some(region) = node.op_as::<Integers>() {
                            return timed(region, &inputs, step, timing);
                        }
                        timing.begin(step);
                        let outputs = plan::eval(context, op_state, node, inputs);
                        timing.end(step);
                        outputs
                    })
                })
                .map_err(run_error)?;
            // Behind the model's own are values that are watched only.
            outputs
                .iter()
                .take(self.model.graph.outputs.len())
                .map(values::from_tract)
                .collect::<TractResult<_>>()
                .map_err(run_error)
        })
    }
}

/// Runs a region whose first step is `first`.
fn timed(
    region: &Integers,
    inputs: &[TValue],
    first: usize,
    timing: &mut impl Timing,
) -> TractResult<TVec<TValue>> {
    // The clock hears which step an instruction was of when it is done: then the next begins.
    let mut left = region.instructions();
    timing.begin(first);
    let outputs = region.run(
        inputs,
        Some(&mut |step| {
            timing.end(first + step);
            left = left.saturating_sub(1);
            if left > 0 {
                timing.begin(first + step);
            }
        }),
    );
    if left > 0 {
        timing.end(first);
    }
    outputs
}

#[derive(Debug)]
struct Stop;

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped on request")
    }
}

impl std::error::Error for Stop {}
