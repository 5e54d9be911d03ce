//! Runs of a model, each by the plan for the shapes of its inputs.
//!
//! A model with control flow runs in parts, each with an engine of its own.

mod body;
mod control_node;
mod if_node;
mod loop_node;
mod partition;
mod partitioner;
mod scan_node;
mod slices;
mod submodel;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use crate::plan::{ExecutionPlan, ModelPlanner, RunPlan};
use crate::run_context::{RunContext, StepClock};
use crate::steps::{self, PlanSteps, Timing};
use crate::thread_choice::NowMs;
use crate::{EngineError, Watched};
use control_node::MAX_ITERATIONS;
use octet_graph::Model;
use octet_int8::{FusedNode, Processor};
use octet_onnx::in_memory::Tensor;
use partition::{Partition, PendingPart};
use submodel::ExecutionMode;

/// Progress of a run that ended at a time limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Fraction of the work that was done, 0 to 1.
    pub share: f64,
    /// Time that the run took.
    pub ms: f64,
}

/// Runs one model and reports some of its values.
pub struct Engine {
    planner: ModelPlanner,
    /// Number of graphs that enclose this model.
    depth: usize,
    /// The partition of a model with control flow, or with shapes that depend on values.
    partition: OnceLock<Option<Partition>>,
}

impl Engine {
    /// Creates an engine for a prepared model that reports the values of `watched`. A quantized
    /// model runs in float: QuantizeLinear and DequantizeLinear run as ONNX defines them.
    pub fn new(model: Model, watched: Vec<String>) -> Engine {
        Engine::watching(model, watched.into_iter().map(Watched::from).collect())
    }

    /// Runs a quantized model on integers wherever that is possible. A watched value stays float,
    /// so no pattern spans it.
    pub fn on_integers(mut self) -> Engine {
        self.planner.integers = octet_int8::has_integers(&self.planner.model);
        self
    }

    /// Computes integer products as ONNX Runtime does on this processor. The emulation is slow.
    pub fn emulating(mut self, processor: Processor) -> Engine {
        self.planner.processor = processor;
        self
    }

    /// Creates an engine that reports each value of `watched` together with the values `beside` it.
    pub fn watching(model: Model, watched: Vec<Watched>) -> Engine {
        Engine {
            planner: ModelPlanner::new(model, watched),
            depth: 0,
            partition: OnceLock::new(),
        }
    }

    /// Takes over the execution mode of another engine.
    fn with_mode(mut self, mode: ExecutionMode) -> Engine {
        self.planner.kernels = mode.kernels;
        self.planner.integers = mode.integers;
        self.planner.processor = mode.processor;
        self.planner.thread_clock = mode.thread_clock;
        self.depth = mode.depth;
        self
    }

    /// Marks the model as one that needs no partition.
    fn unpartitioned(self) -> Engine {
        Engine {
            partition: OnceLock::from(None),
            ..self
        }
    }

    /// The partition of a model with control flow, or with shapes that depend on values; computed
    /// once.
    fn partition(&self) -> Result<Option<&Partition>, EngineError> {
        if let Some(partition) = self.partition.get() {
            return Ok(partition.as_ref());
        }
        let mode = ExecutionMode {
            kernels: self.planner.kernels,
            integers: self.planner.integers,
            processor: self.planner.processor,
            thread_clock: self.planner.thread_clock,
            depth: self.depth,
        };
        let made = partitioner::partition(&self.planner.model, &self.planner.watched, mode)?;
        Ok(self.partition.get_or_init(|| made).as_ref())
    }

    /// Chooses our float kernels or tract's for convolutions, instead of the default of the
    /// platform.
    pub fn with_kernels(mut self, ours: bool) -> Engine {
        self.planner.kernels = ours;
        self
    }

    /// Chooses the number of threads by the times of the runs, on this clock. Repeated runs then use
    /// the number that is fastest at present. Results don't depend on it.
    pub fn choosing_threads(mut self, now_ms: NowMs) -> Engine {
        self.planner.thread_clock = Some(now_ms);
        self
    }

    /// Runs one sample, its tensors in the order of the model's inputs. Owned tensors are freed
    /// after their last use.
    ///
    /// Each watched value goes to `see` with its index in `watched`, once a run, as soon as it is
    /// computed. `stop` is called before every operator.
    pub fn run<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[f32]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.run_shaped(inputs, |slot, values, _| see(slot, values), stop)
    }

    /// Like [`Engine::run`]; `see` also gets the shape of each watched value.
    pub fn run_shaped<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[f32], &[usize]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let mut see = |slot: usize, values: &[&[f32]], shape: &[usize]| see(slot, values[0], shape);
        self.begin(inputs.into(), &mut see, &stop, None, None)
    }

    /// All nodes of a quantized model, for inputs of these shapes: what each became on integers, or
    /// why it runs in float. A model with control flow is run to learn its shapes; `stop` is called
    /// as in [`Engine::run`].
    pub fn fused(
        &self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<FusedNode>, EngineError> {
        let Some(partition) = self.partition()? else {
            return Ok(self.plan(inputs)?.fused.clone());
        };
        let mut all: Vec<FusedNode> = Vec::new();
        self.visit(partition, inputs, stop, |part| {
            let regions = all.iter().filter_map(|node| node.region);
            let regions = regions.max().map_or(0, |last| last + 1);
            all.extend(part.fused(regions)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Runs one sample and calls `clock` after each step inside an integer region.
    pub fn run_clocked(
        &self,
        inputs: &[Tensor],
        clock: StepClock,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        self.begin(inputs.into(), &mut |_, _, _| {}, &stop, None, Some(clock))
    }

    /// Like [`Engine::run`]; `see` gets a watched value followed by the values beside it.
    pub fn run_beside<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        mut see: impl FnMut(usize, &[&[f32]]),
        stop: impl Fn() -> bool,
    ) -> Result<Vec<Tensor>, EngineError> {
        let mut see = |slot: usize, values: &[&[f32]], _: &[usize]| see(slot, values);
        self.begin(inputs.into(), &mut see, &stop, None, None)
    }

    /// The steps of a run for inputs of these shapes, in order. A model with control flow is run to
    /// learn its shapes; `stop` can end that run.
    pub fn steps(
        &self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<PlanSteps, EngineError> {
        let graph = &self.planner.model.graph;
        let Some(partition) = self.partition()? else {
            let plan = self.plan(inputs)?;
            return Ok(steps::from_plan(&plan.run, graph, plan.regions()));
        };
        let mut all = PlanSteps {
            steps: Vec::new(),
            layers: vec![None; graph.nodes().len()],
            reasons: vec![None; graph.nodes().len()],
        };
        self.visit(partition, inputs, stop, |part| part.add_steps(&mut all))?;
        Ok(all)
    }

    /// Runs one sample again and again while `again` returns true; `timing` is called for every
    /// step.
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

    /// The plans that samples of these shapes run by; builds those that don't exist yet. A model
    /// with control flow is run to learn its shapes; `stop` can end that run.
    pub fn run_plan(
        &self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<RunPlan, EngineError> {
        let Some(partition) = self.partition()? else {
            return Ok(RunPlan(vec![(self.plan(inputs)?, None)]));
        };
        let mut plans = Vec::new();
        self.visit(partition, inputs, stop, |part| {
            plans.extend(part.plan()?);
            Ok(())
        })?;
        Ok(RunPlan(plans))
    }

    /// Measures the speed: runs one sample for about `budget_ms` at most, or to its end. `now_ms`
    /// is a clock. `stop` ends the run without a result.
    pub fn probe<'a>(
        &self,
        run_plan: &RunPlan,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        budget_ms: f64,
        now_ms: impl Fn() -> f64,
        see: impl FnMut(usize, &[f32]),
        stop: &dyn Fn() -> bool,
    ) -> Result<Probe, EngineError> {
        let work = run_plan.cost_estimate(|_| 0).work;
        let began = now_ms();
        // Called before every operator: counts the operators that started.
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

    /// Visits the parts of a model. It runs each part that a later one needs inputs from; `stop`
    /// can end that run.
    fn visit(
        &self,
        partition: &Partition,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
        visit: impl FnMut(&PendingPart) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let run = RunContext {
            see: &mut |_, _, _| {},
            stop,
            timing: None,
            clock: None,
            iterations: &Cell::new(MAX_ITERATIONS),
        };
        partition.visit(inputs, run, visit)
    }

    fn begin(
        &self,
        inputs: Cow<'_, [Tensor]>,
        see: &mut dyn FnMut(usize, &[&[f32]], &[usize]),
        stop: &dyn Fn() -> bool,
        timing: Option<&mut dyn Timing>,
        clock: Option<StepClock>,
    ) -> Result<Vec<Tensor>, EngineError> {
        let iterations = Cell::new(MAX_ITERATIONS);
        // Borrowed anew for the lifetime of the iteration counter.
        let run = RunContext {
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
            iterations: &iterations,
        };
        self.execute(inputs, run)
    }

    fn execute(
        &self,
        inputs: Cow<'_, [Tensor]>,
        run: RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        match self.partition()? {
            Some(partition) => partition.run(inputs, run),
            None => self.planner.execute(inputs, run),
        }
    }

    fn plan(&self, inputs: &[Tensor]) -> Result<Arc<ExecutionPlan>, EngineError> {
        self.planner.plan(inputs)
    }
}
