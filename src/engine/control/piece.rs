//! A part of a model with an engine of its own: the body of a control flow node, or the nodes
//! between two cuts.
//!
//! Types and shapes of the inputs are known when the run arrives there. The engine is created then
//! and keeps plans for the shapes it has met.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::execute::Run;
use super::super::run::Engine;
use super::super::{EngineError, Watched};
use crate::graph::{Dim, Model, TensorType};
use crate::onnx::schema::{TensorProto, ValueInfoProto};
use crate::prepare::prepare;
use crate::tensor::{Tensor, Values};

/// The execution mode of the nodes of a part.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Form {
    pub(in crate::engine) kernels: bool,
    pub(in crate::engine) integers: bool,
    /// Number of graphs that enclose the part.
    pub(in crate::engine) depth: usize,
}

/// Number of engines that are kept, one for each set of constant integer inputs.
const ENGINES: usize = 4;

/// A longer list of integers holds data, not sizes, axes or bounds.
const TOLD: usize = 64;

/// An engine, and the integer inputs that are constants in it, by their index.
type Told = (Vec<(usize, Tensor)>, Arc<Engine>);

pub(in crate::engine) struct Piece {
    model: Model,
    /// Names of the inputs.
    pub(in crate::engine) inputs: Vec<String>,
    /// Names of the outputs.
    pub(in crate::engine) outputs: Vec<String>,
    watched: Vec<Watched>,
    form: Form,
    /// The model has to be prepared first.
    raw: bool,
    /// Integer inputs become constants of the plan, because they may be sizes of its values.
    tells: AtomicBool,
    /// The inputs that determine shapes, if known.
    telling: Option<BTreeSet<String>>,
    engines: Mutex<Vec<Told>>,
}

impl Piece {
    /// Creates a part of a prepared model that reports some of its values. In most models, integers
    /// from earlier parts depend only on shapes, so they become constants of the plan.
    pub(in crate::engine) fn prepared(
        model: Model,
        inputs: Vec<String>,
        watched: Vec<Watched>,
        telling: Option<BTreeSet<String>>,
        form: Form,
    ) -> Piece {
        let piece = Piece::new(model, inputs, watched, form, false);
        Piece { telling, ..piece }
    }

    /// Creates the body of a node. An iteration number changes each time, so integers become
    /// constants only if no plan exists without them.
    pub(super) fn body(model: Model, inputs: Vec<String>, form: Form) -> Piece {
        Piece::new(model, inputs, Vec::new(), form, true)
    }

    fn new(
        mut model: Model,
        inputs: Vec<String>,
        watched: Vec<Watched>,
        form: Form,
        raw: bool,
    ) -> Piece {
        let outputs = std::mem::take(&mut model.graph.outputs);
        let outputs: Vec<String> = outputs.into_iter().filter_map(|o| o.name).collect();
        for name in &outputs {
            let known = model
                .graph
                .outputs
                .iter()
                .any(|o| o.name.as_ref() == Some(name));
            // An input that is also an output bypasses the engine.
            if !known && !inputs.contains(name) {
                model.graph.outputs.push(ValueInfoProto {
                    name: Some(name.clone()),
                    ..ValueInfoProto::default()
                });
            }
        }
        Piece {
            model,
            inputs,
            outputs,
            watched,
            form,
            raw,
            tells: AtomicBool::new(!raw),
            telling: None,
            engines: Mutex::default(),
        }
    }

    /// Runs the part; the results have the order of its outputs.
    pub(in crate::engine) fn run(
        &self,
        inputs: Vec<Tensor>,
        mut run: Run,
    ) -> Result<Vec<Tensor>, EngineError> {
        let place = |name: &String| self.inputs.iter().position(|input| input == name);
        let through = self
            .outputs
            .iter()
            .map(|name| inputs.get(place(name)?).cloned());
        let through: Vec<Option<Tensor>> = through.collect();
        let made = match self.idle() {
            true => Vec::new(),
            false => self.made(inputs, &mut run)?,
        };
        let names = self.model.graph.outputs.iter();
        let made: Vec<(Option<&str>, Tensor)> =
            names.map(|o| o.name.as_deref()).zip(made).collect();
        let named = |name: &String| made.iter().find(|(made, _)| *made == Some(name));
        let outputs = self.outputs.iter().zip(through);
        let outputs = outputs
            .map(|(name, through)| through.or_else(|| Some(named(name)?.1.clone())))
            .collect::<Option<_>>();
        outputs.ok_or_else(|| EngineError::Run {
            detail: "a part of the model made fewer values than it has outputs".to_owned(),
        })
    }

    /// Returns true if there is nothing to compute or to report.
    pub(in crate::engine) fn idle(&self) -> bool {
        self.model.graph.outputs.is_empty() && self.watched.is_empty()
    }

    fn made(&self, inputs: Vec<Tensor>, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        if self.tells.load(Ordering::Relaxed) || !inputs.iter().any(told) {
            let (engine, fed) = self.engine(inputs)?;
            return engine.execute(Cow::Owned(fed), run.again());
        }
        let (engine, fed) = self.engine(inputs.clone())?;
        match engine.execute(Cow::Owned(fed), run.again()) {
            Err(
                EngineError::Plan { .. } | EngineError::Run { .. } | EngineError::Panicked { .. },
            ) => {
                self.tells.store(true, Ordering::Relaxed);
                self.made(inputs, run)
            }
            made => made,
        }
    }

    /// The engine for these inputs, and the inputs that it still needs.
    pub(in crate::engine) fn engine(
        &self,
        inputs: Vec<Tensor>,
    ) -> Result<(Arc<Engine>, Vec<Tensor>), EngineError> {
        let tells = self.tells.load(Ordering::Relaxed);
        let inputs = inputs.into_iter().enumerate();
        let (known, fed): (Vec<_>, Vec<_>) =
            inputs.partition(|(place, input)| tells && self.tells(*place, input));
        // An engine is pushed only when it is complete, so a poisoned lock still guards complete
        // engines.
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        let found = engines.iter().find(|(there, _)| *there == known);
        let engine = match found {
            Some((_, engine)) => Arc::clone(engine),
            None => {
                let engine = Arc::new(self.engine_of(&known, &fed)?);
                if engines.len() == ENGINES {
                    engines.remove(0);
                }
                engines.push((known, Arc::clone(&engine)));
                engine
            }
        };
        Ok((engine, fed.into_iter().map(|(_, input)| input).collect()))
    }

    /// Returns true if an input becomes a constant of the plan.
    fn tells(&self, place: usize, input: &Tensor) -> bool {
        match &self.telling {
            None => told(input),
            Some(telling) => short(input) && telling.contains(&self.inputs[place]),
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
            ValueInfoProto::of(&self.inputs[*place], &TensorType { element, shape })
        };
        model.graph.inputs = fed.iter().map(port).collect();
        if self.raw {
            let prepared = prepare(model).map_err(|error| EngineError::Plan {
                detail: error.to_string(),
            })?;
            model = prepared.model;
        }
        let engine = Engine::watching(model, self.watched.clone()).in_form(self.form);
        Ok(if self.raw { engine } else { engine.whole() })
    }
}

/// Returns true if a value may hold sizes, axes or bounds.
fn told(tensor: &Tensor) -> bool {
    let integers = matches!(tensor.values(), Values::I64(_) | Values::I32(_));
    integers && short(tensor)
}

fn short(tensor: &Tensor) -> bool {
    tensor.shape().len() < 2 && tensor.values().len() <= TOLD
}
