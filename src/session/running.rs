//! Inference with a model, float or quantized: its outputs and its layer table.

use std::collections::BTreeMap;

use super::{Error, Session, Watch, warm_up};
use crate::engine::{self, Engine, EngineError, FloatKernels};
use crate::graph::{Dim, Model, TensorType, Uses};
use crate::onnx::schema::NodeProto;
use crate::prepare::{Functions, PrepareError, prepare};
use crate::profile::layers::{LayerTable, Measured, Port, Values};
use crate::profile::recording::{Recording, Repeats, Run};
use crate::profile::trace::Traced;
use crate::profile::{Clock, Spread, SystemClock, clock_resolution_ms};
use crate::samples::{self, Encoded};
use crate::tensor::Tensor;

/// A model that is ready to run, with any operators.
pub struct Runner {
    engine: Engine,
    model: Model,
    /// Nodes of the file that preparation removed.
    dropped: Vec<String>,
    /// Reason why a function call could not be inlined. The engine doesn't know such a node.
    left: Option<PrepareError>,
}

/// Result of a profiled run.
pub struct Profile {
    /// Outputs of the model, in the order of the graph.
    pub outputs: Vec<(String, Tensor)>,
    /// Layer table.
    pub table: LayerTable,
    /// Measured runs with all their checkpoints, for traces. Their steps are the engine's.
    pub runs: Vec<Run>,
    /// Row in the table for each step of the engine.
    pub rows: Vec<usize>,
}

/// A profile that the session stores for the report and exports.
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) table: LayerTable,
    pub(super) runs: Vec<Run>,
    pub(super) rows: Vec<usize>,
}

impl Kept {
    pub(super) fn traced(&self) -> Traced<'_> {
        Traced {
            name: &self.name,
            table: &self.table,
            runs: &self.runs,
            rows: &self.rows,
        }
    }
}

impl Session {
    /// Makes the model ready to run, unchanged. It may be quantized.
    pub fn runner(&self) -> Result<Runner, Error> {
        if !self.wanted_files.is_empty() {
            return Err(Error::FilesMissing {
                files: self.wanted_files.clone(),
            });
        }
        let mut model = Model::from_proto(self.header.clone())?;
        Ok(match &self.prepared {
            Some(ready) => {
                let left = left(&mut model);
                Runner::prepared(&model, ready.model.clone(), left)
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
        watch: &dyn Watch,
    ) -> Result<Profile, Error> {
        let runner = self.runner()?.by(kernels);
        self.profiles.clear();
        let name = if self.card.already_quantized {
            "int8"
        } else {
            "float"
        };
        self.profile_of(name, &runner, inputs, repeats, watch)
    }

    /// Profiles another model under a name of its own, such as the quantized one, to be shown
    /// beside this one.
    pub fn profile_of(
        &mut self,
        name: &str,
        runner: &Runner,
        inputs: &[Tensor],
        repeats: Repeats,
        watch: &dyn Watch,
    ) -> Result<Profile, Error> {
        self.profiler.resume();
        self.profiler.begin("Profiling");
        let profile = runner.profile(inputs, repeats, watch);
        self.profiler.end();
        self.profiler.finish();
        let profile = profile?;
        self.profiles.retain(|kept| kept.name != name);
        self.profiles.push(Kept {
            name: name.to_string(),
            table: profile.table.clone(),
            runs: profile.runs.clone(),
            rows: profile.rows.clone(),
        });
        self.report.profiled(&self.profiles);
        Ok(profile)
    }

    /// Decodes a sample for the model's inputs.
    pub fn decode(
        &self,
        sample: &Encoded,
        settings: &samples::Settings,
    ) -> Result<Vec<Tensor>, Error> {
        Ok(samples::decode(sample, &self.input_specs(), settings)?)
    }
}

impl Runner {
    /// Prepares the model where possible, since that folds shape arithmetic which the engine
    /// rejects. Otherwise the model runs unchanged.
    pub fn new(mut model: Model) -> Runner {
        let left = left(&mut model);
        match prepare(model.clone()) {
            Ok(prepared) => Runner::prepared(&model, prepared.model, left),
            Err(_) => Runner::prepared(&model, model.clone(), left),
        }
    }

    /// Builds a runner for a prepared model. `from` is the model before preparation; only its node
    /// names are used.
    fn prepared(from: &Model, model: Model, left: Option<PrepareError>) -> Runner {
        warm_up::form_chosen();
        let titles = |model: &Model| -> Vec<String> {
            let nodes = model.graph.nodes.iter();
            nodes.map(|n| n.title().to_string()).collect()
        };
        let kept: std::collections::HashSet<String> = titles(&model).into_iter().collect();
        let all = titles(from).into_iter();
        let dropped = all.filter(|n| !kept.contains(n)).collect();
        Runner {
            engine: Engine::new(model.clone(), Vec::new()).on_integers(),
            model,
            dropped,
            left,
        }
    }

    /// Selects the kernels of float convolutions; `None` keeps the default.
    pub fn by(mut self, kernels: Option<FloatKernels>) -> Runner {
        if let Some(kernels) = kernels {
            let ours = kernels == FloatKernels::Octet;
            self.engine = self.engine.with_kernels(ours);
        }
        self
    }

    /// The model that runs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Runs once and returns the outputs with their names.
    pub fn run(
        &self,
        inputs: &[Tensor],
        watch: &dyn Watch,
    ) -> Result<Vec<(String, Tensor)>, Error> {
        let outputs = self
            .engine
            .run(inputs, |_, _| {}, || watch.cancelled())
            .map_err(|error| self.failed(error))?;
        Ok(self.named(outputs))
    }

    /// Runs repeatedly and measures each layer.
    pub fn profile(
        &self,
        inputs: &[Tensor],
        repeats: Repeats,
        watch: &dyn Watch,
    ) -> Result<Profile, Error> {
        let steps = self.engine.steps(inputs, &|| watch.cancelled());
        let steps = steps.map_err(|error| self.failed(error))?;
        let known = Known::new(&self.model, inputs)?;
        let resolution_ms = clock_resolution_ms();
        let mut recording = Recording::start(&SystemClock, steps.steps.len(), repeats);
        let outputs = self
            .engine
            .run_timed(inputs, &mut recording, Recording::again, || {
                watch.cancelled()
            })?;
        let (runs, resident) = recording.finish();
        let measured = Measured {
            nodes: &self.model.graph.nodes,
            steps: &steps,
            runs: &runs,
            repeats,
            resident,
            resolution_ms,
        };
        let mut table = LayerTable::of(&measured, &known);
        table.before.extend(self.dropped.iter().cloned());
        let rows = crate::profile::layers::row_of_each(&steps.steps);
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
        watch: &dyn Watch,
    ) -> Result<f64, Error> {
        let steps = self.engine.steps(inputs, &|| watch.cancelled())?;
        let steps = steps.steps.len();
        let timed = |work: &dyn Fn() -> Result<(), EngineError>| {
            let began = SystemClock.now_ms();
            work().map(|()| SystemClock.now_ms() - began)
        };
        let plain = || {
            let made = self.engine.run(inputs, |_, _| {}, || watch.cancelled());
            made.map(|_| ())
        };
        let measured = || {
            let once = Repeats {
                runs: 1,
                warm_up: 0,
            };
            let mut recording = Recording::start(&SystemClock, steps, once);
            let made = self
                .engine
                .run_timed(inputs, &mut recording, Recording::again, || {
                    watch.cancelled()
                });
            recording.finish();
            made.map(|_| ())
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
        Ok(Spread::of(&shares).median)
    }

    fn failed(&self, error: EngineError) -> Error {
        match (error, &self.left) {
            (EngineError::UnknownOperators { .. }, Some(left)) => Error::Prepare(left.clone()),
            (error, _) => error.into(),
        }
    }

    fn named(&self, outputs: Vec<Tensor>) -> Vec<(String, Tensor)> {
        let names = self.model.graph.outputs.iter();
        let names = names.map(|o| o.name.clone().unwrap_or_default());
        names.zip(outputs).collect()
    }
}

/// Inlines the functions of a model. Returns the reason if a call remains.
fn left(model: &mut Model) -> Option<PrepareError> {
    match Functions::write_out(model) {
        Ok(functions) => functions.left().cloned(),
        Err(reason) => Some(reason),
    }
}

/// Types and uses of a model's values, for samples of certain shapes.
struct Known<'a> {
    model: &'a Model,
    uses: Uses,
    types: BTreeMap<String, TensorType>,
}

impl<'a> Known<'a> {
    fn new(model: &'a Model, inputs: &[Tensor]) -> Result<Known<'a>, Error> {
        Ok(Known {
            model,
            uses: model.graph.uses(),
            types: engine::infer_types_of(model, inputs)?,
        })
    }

    fn found(&self, name: &str) -> Option<(TensorType, Vec<usize>)> {
        let found = self
            .types
            .get(name)
            .cloned()
            .or_else(|| self.model.graph.tensor_type(name))?;
        let dims = found.shape.clone().unwrap_or_default();
        let sizes = dims.iter().map(|d| match d {
            Dim::Known(size) => *size,
            _ => 0,
        });
        let sizes = sizes.collect();
        Some((found, sizes))
    }
}

impl Values for Known<'_> {
    fn port(&self, name: &str) -> Option<Port> {
        if name.is_empty() || self.model.graph.initializers.contains(name) {
            return None;
        }
        let (found, shape) = self.found(name)?;
        Some(Port {
            name: name.to_string(),
            element: found.element.name().to_string(),
            shape,
        })
    }

    fn shape(&self, name: &str) -> Option<Vec<u64>> {
        let (_, shape) = self.found(name)?;
        Some(shape.into_iter().map(|d| d as u64).collect())
    }

    fn readers(&self, name: &str) -> Vec<&NodeProto> {
        let readers = self.uses.consumers(name).iter();
        readers
            .map(|&(node, _)| &self.model.graph.nodes[node])
            .collect()
    }

    fn maker(&self, name: &str) -> Option<&NodeProto> {
        Some(&self.model.graph.nodes[self.uses.producer(name)?])
    }
}
