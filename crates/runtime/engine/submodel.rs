//! A part of a model with an engine of its own: the body of a control flow node, or the nodes
//! between two cuts.
//!
//! Types and shapes of the inputs are known when the run arrives there. The engine is created then
//! and keeps plans for the shapes it has met.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use crate::invariant::EngineInvariant;
use crate::run_context::RunContext;
use crate::thread_choice::NowMs;
use crate::{EngineError, Watched};
use octet_graph::prepare::prepare;
use octet_graph::{Dim, Model, TensorType};
use octet_int8::Processor;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{TensorProto, ValueInfoProto};

/// The execution mode of the nodes of a part.
#[derive(Clone, Copy)]
pub(super) struct ExecutionMode {
    pub(super) kernels: bool,
    pub(super) integers: bool,
    pub(super) processor: Processor,
    pub(super) thread_clock: Option<NowMs>,
    /// Number of graphs that enclose the part.
    pub(super) depth: usize,
}

/// Number of engines that are kept, one for each set of constant integer inputs.
const MAX_ENGINES: usize = 4;

/// A longer list of integers holds data, not sizes, axes or bounds.
const MAX_SHAPE_LENGTH: usize = 64;

/// An engine, and the integer inputs that are constants in it, by their index.
type SpecializedEngine = (Vec<(usize, Tensor)>, Arc<Engine>);

pub(super) struct Submodel {
    model: Model,
    /// Names of the inputs.
    pub(super) inputs: Vec<String>,
    /// Names of the outputs.
    pub(super) outputs: Vec<String>,
    watched: Vec<Watched>,
    mode: ExecutionMode,
    /// The model has to be prepared first.
    unprepared: bool,
    /// Integer inputs become constants of the plan, because they may be sizes of its values.
    specializes: AtomicBool,
    /// The inputs that determine shapes, if known.
    shape_values: Option<BTreeSet<String>>,
    engines: Mutex<Vec<SpecializedEngine>>,
}

impl Submodel {
    /// Creates a part of a prepared model that reports some of its values. In most models, integers
    /// from earlier parts depend only on shapes, so they become constants of the plan.
    pub(super) fn prepared(
        model: Model,
        inputs: Vec<String>,
        watched: Vec<Watched>,
        shape_values: Option<BTreeSet<String>>,
        mode: ExecutionMode,
    ) -> Submodel {
        let submodel = Submodel::new(model, inputs, watched, mode, false);
        Submodel {
            shape_values,
            ..submodel
        }
    }

    /// Creates the body of a node. An iteration number changes each time, so integers become
    /// constants only if no plan exists without them.
    pub(super) fn body(model: Model, inputs: Vec<String>, mode: ExecutionMode) -> Submodel {
        Submodel::new(model, inputs, Vec::new(), mode, true)
    }

    fn new(
        mut model: Model,
        inputs: Vec<String>,
        watched: Vec<Watched>,
        mode: ExecutionMode,
        unprepared: bool,
    ) -> Submodel {
        let outputs = model.graph.outputs().iter();
        let outputs: Vec<String> = outputs.filter_map(|o| o.name.clone()).collect();
        model.graph.set_outputs(Vec::new());
        for name in &outputs {
            // An input that is also an output bypasses the engine.
            if !model.graph.is_output(name) && !inputs.contains(name) {
                model.graph.push_output(ValueInfoProto {
                    name: Some(name.clone()),
                    ..ValueInfoProto::default()
                });
            }
        }
        Submodel {
            model,
            inputs,
            outputs,
            watched,
            mode,
            unprepared,
            specializes: AtomicBool::new(!unprepared),
            shape_values: None,
            engines: Mutex::default(),
        }
    }

    /// Runs the part; the results have the order of its outputs.
    pub(super) fn run(
        &self,
        inputs: Vec<Tensor>,
        mut run: RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let place = |name: &String| self.inputs.iter().position(|input| input == name);
        let through = self
            .outputs
            .iter()
            .map(|name| inputs.get(place(name)?).cloned());
        let through: Vec<Option<Tensor>> = through.collect();
        let results = match self.idle() {
            true => Vec::new(),
            false => self.run_engine(inputs, &mut run)?,
        };
        let names = self.model.graph.outputs().iter();
        let results: Vec<(Option<&str>, Tensor)> =
            names.map(|o| o.name.as_deref()).zip(results).collect();
        let named = |name: &String| results.iter().find(|(result, _)| *result == Some(name));
        let outputs = self.outputs.iter().zip(through);
        let outputs = outputs
            .map(|(name, through)| through.or_else(|| Some(named(name)?.1.clone())))
            .collect::<Option<_>>();
        outputs.ok_or_else(|| EngineInvariant::SubmodelOutputs.into())
    }

    /// Returns true if there is nothing to compute or to report.
    pub(super) fn idle(&self) -> bool {
        self.model.graph.outputs().is_empty() && self.watched.is_empty()
    }

    fn run_engine(
        &self,
        inputs: Vec<Tensor>,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        if self.specializes.load(Ordering::Relaxed) || !inputs.iter().any(may_be_shape) {
            let (engine, fed) = self.engine(inputs)?;
            return engine.execute(Cow::Owned(fed), run.again());
        }
        let (engine, fed) = self.engine(inputs.clone())?;
        match engine.execute(Cow::Owned(fed), run.again()) {
            Err(
                EngineError::Plan { .. }
                | EngineError::Run { .. }
                | EngineError::Panicked { .. }
                | EngineError::Broken(_),
            ) => {
                self.specializes.store(true, Ordering::Relaxed);
                self.run_engine(inputs, run)
            }
            result => result,
        }
    }

    /// The engine for these inputs, and the inputs that it still needs.
    pub(super) fn engine(
        &self,
        inputs: Vec<Tensor>,
    ) -> Result<(Arc<Engine>, Vec<Tensor>), EngineError> {
        let specializes = self.specializes.load(Ordering::Relaxed);
        let inputs = inputs.into_iter().enumerate();
        let (known, fed): (Vec<_>, Vec<_>) =
            inputs.partition(|(place, input)| specializes && self.is_constant(*place, input));
        // An engine is pushed only when it is complete, so a poisoned lock still guards complete
        // engines.
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        let found = engines.iter().find(|(there, _)| *there == known);
        let engine = match found {
            Some((_, engine)) => Arc::clone(engine),
            None => {
                let engine = Arc::new(self.engine_of(&known, &fed)?);
                if engines.len() == MAX_ENGINES {
                    engines.remove(0);
                }
                engines.push((known, Arc::clone(&engine)));
                engine
            }
        };
        Ok((engine, fed.into_iter().map(|(_, input)| input).collect()))
    }

    /// Returns true if an input becomes a constant of the plan.
    fn is_constant(&self, place: usize, input: &Tensor) -> bool {
        match &self.shape_values {
            None => may_be_shape(input),
            Some(shape_values) => short(input) && shape_values.contains(&self.inputs[place]),
        }
    }

    fn engine_of(
        &self,
        known: &[(usize, Tensor)],
        fed: &[(usize, Tensor)],
    ) -> Result<Engine, EngineError> {
        let mut model = self.model.clone();
        for (place, tensor) in known {
            let constant = TensorProto::from_tensor(&self.inputs[*place], tensor);
            model.graph.initializers.insert(constant);
        }
        let port = |(place, tensor): &(usize, Tensor)| {
            let shape = Some(vec![Dim::Unknown; tensor.shape().len()]);
            let element = tensor.element_type();
            ValueInfoProto::new(&self.inputs[*place], &TensorType { element, shape })
        };
        model.graph.inputs = fed.iter().map(port).collect();
        if self.unprepared {
            let prepared = prepare(model).map_err(|error| EngineError::Plan {
                detail: error.to_string(),
            })?;
            model = prepared.model;
        }
        let engine = Engine::watching(model, self.watched.clone()).with_mode(self.mode);
        Ok(if self.unprepared {
            engine
        } else {
            engine.unpartitioned()
        })
    }
}

/// Returns true if a value may hold sizes, axes or bounds.
fn may_be_shape(tensor: &Tensor) -> bool {
    let integers = matches!(tensor.values(), Values::I64(_) | Values::I32(_));
    integers && short(tensor)
}

fn short(tensor: &Tensor) -> bool {
    tensor.shape().len() < 2 && tensor.values().len() <= MAX_SHAPE_LENGTH
}
