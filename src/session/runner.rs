//! Inference with a model, float or quantized: its outputs and its layer table.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::stored_profile::StoredProfile;
use super::{Error, ProgressMonitor, Session, warm_up};
use crate::graph::{Dim, Model, Node, TensorType};
use crate::prepare::{Functions, PrepareError, prepare};
use crate::profile::layers::{LayerMeasurements, LayerPort, LayerTable, ModelValues};
use crate::profile::recording::{Recording, Repeats, RunRecord};
use crate::profile::{Clock, RunStep, SystemClock, TimingSummary, clock_resolution_ms};
use crate::runtime::{self, Engine, EngineError, FloatKernels, Processor};
use crate::tensor::Tensor;
use octet_kernels::int8::Form;

/// A model that is ready to run, with any operators.
pub struct Runner {
    engine: Engine,
    model: Model,
    /// Nodes of the file that preparation removed.
    dropped: Vec<String>,
    /// Reason why a function call could not be inlined. The engine doesn't know such a node.
    not_inlined: Option<PrepareError>,
}

/// Result of a profiled run.
pub struct Profile {
    /// Outputs of the model, in the order of the graph.
    pub outputs: Vec<(String, Tensor)>,
    /// Layer table.
    pub table: LayerTable,
    /// Measured runs with all their checkpoints, for traces. Their steps are the engine's.
    pub runs: Vec<RunRecord>,
    /// Row in the table for each step of the engine.
    pub rows: Vec<usize>,
}

/// Result of repeated runs.
pub struct RepeatedRuns {
    /// Outputs of the last run, in the order of the graph.
    pub outputs: Vec<(String, Tensor)>,
    /// Time of the first run in milliseconds, with its plan.
    pub first_ms: f64,
    /// Times of the runs after it, in milliseconds.
    pub total: TimingSummary,
}

impl Session {
    /// Makes the model ready to run, unchanged. It may be quantized.
    pub fn runner(&self) -> Result<Runner, Error> {
        self.opened.require_files()?;
        let mut model = self.opened.model()?;
        Ok(match self.stage.prepared() {
            Some(ready) => {
                let not_inlined = inline_functions(&mut model);
                Runner::from_prepared(&model, ready.model.clone(), not_inlined)
            }
            None => Runner::new(model),
        })
    }

    /// Runs the model repeatedly on one sample and measures each layer; the table goes into the
    /// report. `kernels` selects those of float convolutions; by default the faster ones run.
    pub fn profile(
        &mut self,
        inputs: &[Tensor],
        repeats: Repeats,
        kernels: Option<FloatKernels>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Profile, Error> {
        let runner = self.runner()?.with_float_kernels(kernels);
        self.profiles.clear();
        let name = if self.summary().already_quantized {
            "int8"
        } else {
            "float"
        };
        self.profile_of(name, &runner, inputs, repeats, monitor)
    }

    /// Profiles another model under a name of its own, such as the quantized one, to be shown
    /// beside this one.
    pub fn profile_of(
        &mut self,
        name: &str,
        runner: &Runner,
        inputs: &[Tensor],
        repeats: Repeats,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Profile, Error> {
        let profiler = &mut self.journal.profiler;
        profiler.resume();
        profiler.begin(RunStep::Profiling);
        let profile = runner.profile(inputs, repeats, monitor);
        profiler.end();
        profiler.finish();
        let profile = profile?;
        self.profiles.retain(|stored| stored.name != name);
        self.profiles.push(StoredProfile {
            name: name.to_string(),
            table: profile.table.clone(),
            runs: profile.runs.clone(),
            rows: profile.rows.clone(),
        });
        self.journal.report.profiled(&self.profiles);
        Ok(profile)
    }
}

impl Runner {
    /// Prepares the model where possible, since that folds shape arithmetic which the engine
    /// rejects. Otherwise the model runs unchanged.
    pub fn new(mut model: Model) -> Runner {
        let not_inlined = inline_functions(&mut model);
        match prepare(model.clone()) {
            Ok(prepared) => Runner::from_prepared(&model, prepared.model, not_inlined),
            Err(_) => Runner::from_prepared(&model, model.clone(), not_inlined),
        }
    }

    /// Builds a runner for a prepared model. `from` is the model before preparation; only its node
    /// names are used.
    fn from_prepared(from: &Model, model: Model, not_inlined: Option<PrepareError>) -> Runner {
        warm_up::ensure_isa_chosen();
        let titles = |model: &Model| -> Vec<String> {
            let nodes = model.graph.nodes().iter();
            nodes.map(|n| n.title().to_string()).collect()
        };
        let remaining: std::collections::HashSet<String> = titles(&model).into_iter().collect();
        let all = titles(from).into_iter();
        let dropped = all.filter(|n| !remaining.contains(n)).collect();
        Runner {
            engine: Engine::new(model.clone(), Vec::new())
                .on_integers()
                .choosing_threads(|| SystemClock.now_ms()),
            model,
            dropped,
            not_inlined,
        }
    }

    /// Selects the kernels of float convolutions; `None` keeps the default.
    pub fn with_float_kernels(mut self, kernels: Option<FloatKernels>) -> Runner {
        if let Some(kernels) = kernels {
            let ours = kernels == FloatKernels::Octet;
            self.engine = self.engine.with_kernels(ours);
        }
        self
    }

    /// Computes integer products as ONNX Runtime does on this processor.
    pub fn emulating(mut self, processor: Processor) -> Runner {
        self.engine = self.engine.emulating(processor);
        self
    }

    /// Nodes whose sums the emulated processor may cut off, for samples of these shapes.
    pub(super) fn cut_layers(
        &self,
        inputs: &[Tensor],
        monitor: &dyn ProgressMonitor,
    ) -> Result<Vec<String>, Error> {
        let nodes = self.engine.fused(inputs, &|| monitor.cancelled());
        let nodes = nodes.map_err(|error| self.failed(error))?.into_iter();
        let cut = nodes.filter(|node| node.kernel.as_deref() == Some(Form::CutPairs.name()));
        Ok(cut.map(|node| node.node).collect())
    }

    /// The model that runs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Runs once and returns the outputs with their names.
    /// Owned tensors are freed after their last use.
    pub fn run<'a>(
        &self,
        inputs: impl Into<Cow<'a, [Tensor]>>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Vec<(String, Tensor)>, Error> {
        let outputs = self
            .engine
            .run(inputs, |_, _| {}, || monitor.cancelled())
            .map_err(|error| self.failed(error))?;
        Ok(self.named(outputs))
    }

    /// Runs again and again with the same plan, and measures each run as a whole. The first run,
    /// which makes the plan, is apart.
    pub fn repeat(
        &self,
        inputs: &[Tensor],
        runs: usize,
        monitor: &dyn ProgressMonitor,
    ) -> Result<RepeatedRuns, Error> {
        let mut first_ms = None;
        let mut times = Vec::with_capacity(runs);
        loop {
            let began = SystemClock.now_ms();
            let outputs = self.run(inputs, monitor)?;
            let ms = SystemClock.now_ms() - began;
            match first_ms {
                None => first_ms = Some(ms),
                Some(_) => times.push(ms),
            }
            if let (Some(first_ms), true) = (first_ms, times.len() >= runs) {
                return Ok(RepeatedRuns {
                    outputs,
                    first_ms,
                    total: TimingSummary::from_values(&times),
                });
            }
        }
    }

    /// Runs repeatedly and measures each layer.
    pub fn profile(
        &self,
        inputs: &[Tensor],
        repeats: Repeats,
        monitor: &dyn ProgressMonitor,
    ) -> Result<Profile, Error> {
        let steps = self.engine.steps(inputs, &|| monitor.cancelled());
        let steps = steps.map_err(|error| self.failed(error))?;
        let known = TypedModel::new(&self.model, inputs)?;
        let resolution_ms = clock_resolution_ms();
        let mut recording = Recording::start(&SystemClock, steps.steps.len(), repeats);
        let outputs = self
            .engine
            .run_timed(inputs, &mut recording, Recording::again, || {
                monitor.cancelled()
            })?;
        let (runs, resident) = recording.finish();
        let measured = LayerMeasurements {
            nodes: self.model.graph.nodes(),
            steps: &steps,
            runs: &runs,
            repeats,
            max_threads: rayon::current_num_threads(),
            resident,
            resolution_ms,
        };
        let mut table = LayerTable::new(&measured, &known);
        table.before.extend(self.dropped.iter().cloned());
        let rows = crate::profile::layers::row_of_step(&steps.steps);
        Ok(Profile {
            outputs: self.named(outputs),
            table,
            runs,
            rows,
        })
    }

    /// Relative cost of measuring: the median over `pairs` of one measured and one plain run, with
    /// the order alternating.
    pub fn overhead(
        &self,
        inputs: &[Tensor],
        pairs: usize,
        monitor: &dyn ProgressMonitor,
    ) -> Result<f64, Error> {
        let steps = self.engine.steps(inputs, &|| monitor.cancelled())?;
        let steps = steps.steps.len();
        let timed = |work: &dyn Fn() -> Result<(), EngineError>| {
            let began = SystemClock.now_ms();
            work().map(|()| SystemClock.now_ms() - began)
        };
        let plain = || {
            let outputs = self.engine.run(inputs, |_, _| {}, || monitor.cancelled());
            outputs.map(|_| ())
        };
        let measured = || {
            let once = Repeats {
                runs: 1,
                warm_up: 0,
            };
            let mut recording = Recording::start(&SystemClock, steps, once);
            let outputs = self
                .engine
                .run_timed(inputs, &mut recording, Recording::again, || {
                    monitor.cancelled()
                });
            recording.finish();
            outputs.map(|_| ())
        };
        let mut shares = Vec::with_capacity(pairs);
        // The first pair warms the caches and does not count.
        for pair in 0..=pairs {
            let (without, with) = if pair % 2 == 0 {
                let without = timed(&plain)?;
                (without, timed(&measured)?)
            } else {
                let with = timed(&measured)?;
                (timed(&plain)?, with)
            };
            if pair > 0 {
                shares.push(with / without.max(f64::MIN_POSITIVE) - 1.0);
            }
        }
        Ok(TimingSummary::from_values(&shares).median)
    }

    fn failed(&self, error: EngineError) -> Error {
        match (error, &self.not_inlined) {
            (EngineError::UnknownOperators { .. }, Some(not_inlined)) => {
                Error::Prepare(not_inlined.clone())
            }
            (error, _) => error.into(),
        }
    }

    fn named(&self, outputs: Vec<Tensor>) -> Vec<(String, Tensor)> {
        let names = self.model.graph.outputs().iter();
        let names = names.map(|o| o.name.clone().unwrap_or_default());
        names.zip(outputs).collect()
    }
}

/// Inlines the functions of a model. Returns the reason if a call remains.
fn inline_functions(model: &mut Model) -> Option<PrepareError> {
    match Functions::inline(model) {
        Ok(functions) => functions.remaining_call().cloned(),
        Err(reason) => Some(reason),
    }
}

/// Types of a model's values, for samples of certain shapes.
struct TypedModel<'a> {
    model: &'a Model,
    types: BTreeMap<String, TensorType>,
}

impl<'a> TypedModel<'a> {
    fn new(model: &'a Model, inputs: &[Tensor]) -> Result<TypedModel<'a>, Error> {
        Ok(TypedModel {
            model,
            types: runtime::infer_types_of(model, inputs)?,
        })
    }

    fn type_and_sizes(&self, name: &str) -> Option<(TensorType, Vec<usize>)> {
        let tensor_type = self
            .types
            .get(name)
            .cloned()
            .or_else(|| self.model.graph.tensor_type(name))?;
        let dims = tensor_type.shape.clone().unwrap_or_default();
        let sizes = dims.iter().map(|d| match d {
            Dim::Known(size) => *size,
            _ => 0,
        });
        let sizes = sizes.collect();
        Some((tensor_type, sizes))
    }
}

impl ModelValues for TypedModel<'_> {
    fn port(&self, name: &str) -> Option<LayerPort> {
        if name.is_empty() || self.model.graph.initializers.contains(name) {
            return None;
        }
        let (tensor_type, shape) = self.type_and_sizes(name)?;
        Some(LayerPort {
            name: name.to_string(),
            element: tensor_type.element.name().to_string(),
            shape,
        })
    }

    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        let (_, shape) = self.type_and_sizes(name)?;
        Some(shape.into_iter().map(|d| d as u64).collect())
    }

    fn readers(&self, name: &str) -> Vec<&Node> {
        let readers = self.model.graph.consumers(name).iter();
        readers
            .map(|reader| &self.model.graph.nodes()[reader.node])
            .collect()
    }

    fn maker(&self, name: &str) -> Option<&Node> {
        Some(&self.model.graph.nodes()[self.model.graph.producer(name)?])
    }
}
