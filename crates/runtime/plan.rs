//! Plans: a model prepared for inputs of certain shapes, built at the first sample with these
//! shapes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tract_onnx::prelude::*;
use tract_onnx::tract_core::plan::SimplePlan;

use super::cost_estimate::{self, CostEstimate};
use super::inference::SizeMismatch;
use super::int8::{GraphData, matmul_nbits};
use super::load::{WeightMode, load};
use super::panics::caught;
use super::run_context::RunContext;
use super::steps::{self, RegionSteps};
use super::thread_choice::{NowMs, ThreadChoice};
use super::{EngineError, Watched, chain, dedup_im2col, float, infer_types_of, typed, weights};
use octet_graph::{Model, Node};
use octet_int8::{FloatEvaluator, Fused, FusedNode, Processor, Scope};
use octet_onnx::in_memory::Tensor;

/// A plan for some shapes, and for a quantized model the list of its nodes.
pub(super) struct ExecutionPlan {
    pub(super) run: Arc<TypedSimplePlan>,
    pub(super) fused: Vec<FusedNode>,
    /// For each integer region, the indices of its steps in `fused`.
    pub(super) steps: Vec<Vec<usize>>,
    /// The number of threads, if the runs are measured.
    pub(super) threads: ThreadChoice,
}

impl ExecutionPlan {
    /// Number of steps in a run.
    pub(super) fn steps(&self) -> usize {
        let regions = self.regions();
        let places = steps::places(&self.run, regions);
        let counted = places.keys().map(|&id| {
            let inside = regions.steps_of(&self.run.model().nodes[id]);
            inside.map_or(1, <[usize]>::len)
        });
        counted.sum()
    }

    pub(super) fn regions(&self) -> RegionSteps<'_> {
        RegionSteps {
            fused: &self.fused,
            steps: &self.steps,
        }
    }
}

/// The plans that samples of certain shapes run by: one for a whole model, or one for each part. A
/// part maps its watched values to those of the model.
pub struct RunPlan(pub(super) Vec<(Arc<ExecutionPlan>, Option<Vec<usize>>)>);

impl RunPlan {
    /// Memory and work of a run. `remembered` returns how many bytes the caller keeps of each
    /// watched value.
    pub fn cost_estimate(&self, remembered: impl Fn(usize) -> u64) -> CostEstimate {
        let plans = self.0.iter().map(|(plan, slots)| {
            let place = |slot: usize| slots.as_ref().map_or(slot, |slots| slots[slot]);
            cost_estimate::from_plan(&plan.run, |slot| remembered(place(slot)))
        });
        plans.reduce(CostEstimate::then).unwrap_or_default()
    }
}

/// Number of plans that are kept; a new one replaces the oldest.
const MAX_PLANS: usize = 4;

/// Plans one model without control flow, for each set of input shapes.
pub(super) struct ModelPlanner {
    pub(super) model: Model,
    pub(super) watched: Vec<Watched>,
    /// Watched values that are inputs of the model: (slot, index of the input).
    pub(super) watched_inputs: Vec<(usize, usize)>,
    /// Our float kernels run the convolutions.
    pub(super) kernels: bool,
    /// Quantized nodes run on integers.
    pub(super) integers: bool,
    /// The processor whose integer products are computed.
    pub(super) processor: Processor,
    /// The clock by which a plan chooses its number of threads; without it, all are used.
    pub(super) thread_clock: Option<NowMs>,
    plans: Mutex<Vec<(Vec<Vec<usize>>, Arc<ExecutionPlan>)>>,
}

impl ModelPlanner {
    /// A planner without plans, for a model that runs in float.
    pub(super) fn new(model: Model, watched: Vec<Watched>) -> ModelPlanner {
        let position = |name: &String| {
            let mut inputs = model.graph.inputs.iter();
            inputs.position(|input| input.name.as_ref() == Some(name))
        };
        let watched_inputs = watched
            .iter()
            .enumerate()
            .filter(|(_, watched)| watched.beside.is_empty())
            .filter_map(|(slot, watched)| Some((slot, position(&watched.value)?)))
            .collect();
        ModelPlanner {
            model,
            watched,
            watched_inputs,
            // Native builds use tract's kernels, which are tuned for each processor.
            kernels: cfg!(target_family = "wasm"),
            integers: false,
            processor: Processor::Exact,
            thread_clock: None,
            plans: Mutex::default(),
        }
    }

    pub(super) fn plan(&self, inputs: &[Tensor]) -> Result<Arc<ExecutionPlan>, EngineError> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|t| t.shape().to_vec()).collect();
        // A plan is pushed only when it is complete, so a poisoned lock still guards complete
        // plans.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = plans.iter().find(|(known, _)| *known == shapes) {
            return Ok(plan.clone());
        }
        if plans.len() == MAX_PLANS {
            plans.remove(0);
        }
        let plan = Arc::new(caught(|| self.make_plan(inputs))?);
        plans.push((shapes, plan.clone()));
        Ok(plan)
    }

    fn make_plan(&self, inputs: &[Tensor]) -> Result<ExecutionPlan, EngineError> {
        let names = self
            .watched
            .iter()
            .flat_map(|w| std::iter::once(&w.value).chain(&w.beside));
        let watched: Vec<String> = names.cloned().collect();
        let in_float = || match octet_int8::has_integers(&self.model) {
            true => {
                let (model, beside) = in_float(&self.model, &watched);
                self.make_run(&model, inputs, &beside)
            }
            false => self.make_run(
                &octet_int8::decomposed(&self.model),
                inputs,
                &GraphData::default(),
            ),
        };
        let scope = match self.integers {
            true => Scope::Integers,
            false => Scope::Defined,
        };
        if !self.integers && !octet_int8::has_integer_operators(&self.model) {
            let run = in_float()?;
            return Ok(ExecutionPlan {
                run,
                fused: Vec::new(),
                steps: Vec::new(),
                threads: ThreadChoice::default(),
            });
        }
        let mode = (scope, self.processor);
        let fused = fuse(&self.model, inputs, &watched, mode).and_then(|(fused, data)| {
            let run = self.make_run(&fused.model, inputs, &data)?;
            Ok(ExecutionPlan {
                run,
                fused: fused.nodes,
                steps: fused.steps,
                threads: ThreadChoice::default(),
            })
        });
        // A model that can't be planned on integers may run in float; the list gives the reason.
        fused.or_else(|error| {
            let run = in_float()?;
            Ok(ExecutionPlan {
                run,
                fused: octet_int8::all_float(&self.model, &error.to_string()),
                steps: Vec::new(),
                threads: ThreadChoice::default(),
            })
        })
    }

    fn make_run(
        &self,
        model: &Model,
        inputs: &[Tensor],
        beside: &GraphData,
    ) -> Result<Arc<TypedSimplePlan>, EngineError> {
        let values = WeightMode::Values {
            kernels: self.kernels,
        };
        let loaded = load(model, &self.watched, values, beside, Some(inputs))?;
        let made = || -> TractResult<Arc<TypedSimplePlan>> {
            let mut typed = typed::typed(loaded.model)?;
            if self.kernels {
                typed = float::with_kernels(&typed)?;
            }
            let mut typed = weights::optimized(typed)?;
            dedup_im2col::dedup(&mut typed);
            SimplePlan::new(typed)
        };
        made().map_err(|error| refused(model, &error))
    }
}

/// Evaluates the int8 compiler's tables with tract.
struct TableEvaluator;

impl FloatEvaluator for TableEvaluator {
    fn evaluate(&self, model: Model, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        let run = RunContext {
            see: &mut |_, _, _| {},
            stop: &|| false,
            timing: None,
            clock: None,
            iterations: &Cell::new(0),
        };
        let planner = ModelPlanner::new(model, Vec::new());
        let outputs = planner.execute(Cow::Owned(inputs), run);
        outputs.map_err(|error| error.to_string())
    }
}

/// The model for float execution.
fn in_float(model: &Model, watched: &[String]) -> (Model, GraphData) {
    let mut model = model.clone();
    let blocks = matmul_nbits::replace(&mut model, watched);
    octet_int8::rewrite_for_floats(&mut model, watched);
    let programs = Vec::new();
    (model, GraphData { programs, blocks })
}

/// Compiles all matches for inputs of these types and shapes.
fn fuse(
    model: &Model,
    inputs: &[Tensor],
    watched: &[String],
    mode: (Scope, Processor),
) -> Result<(Fused, GraphData), EngineError> {
    let titles: HashSet<&str> = model.graph.nodes().iter().map(Node::title).collect();
    let mut rewritten = model.clone();
    let blocks = matmul_nbits::replace(&mut rewritten, watched);
    octet_int8::rewrite_for_integers(&mut rewritten, watched);
    let types = infer_types_of(&rewritten, inputs)?;
    let mut fused = octet_int8::compile(rewritten, &types, watched, mode, &TableEvaluator)
        .map_err(|error| EngineError::Plan {
            detail: format!("the graph with integer regions is not valid: {error}"),
        })?;
    // Nodes that the compiler inserted are not listed.
    for node in &mut fused.nodes {
        node.fused.retain(|title| titles.contains(title.as_str()));
    }
    let programs = std::mem::take(&mut fused.programs);
    Ok((fused, GraphData { programs, blocks }))
}

/// The reason why tract can't plan a model: the operator whose shapes don't fit, or tract's own
/// chain of errors.
fn refused(model: &Model, error: &TractError) -> EngineError {
    let Some(SizeMismatch { node, input_shapes }) = error.root_cause().downcast_ref() else {
        return EngineError::Plan {
            detail: chain(error),
        };
    };
    let mut names = steps::unique_names(&model.graph).into_iter();
    let place = names.position(|name| name == *node);
    let known = place.and_then(|place| model.graph.nodes().get(place));
    EngineError::Node {
        operator: known.map_or_else(|| "an operator".to_owned(), Node::operator),
        node: known.map_or(node.as_str(), Node::title).to_owned(),
        what: "the shape of its inputs".to_owned(),
        actual: input_shapes.clone(),
        expected: "compatible and determined by the shapes of the samples".to_owned(),
    }
}
