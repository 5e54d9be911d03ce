//! Partition: a model runs in parts, split at control flow nodes (If, Loop, Scan) and where shapes
//! depend on values.
//!
//! The results of such a node may have any shape, known when it has run. So a part ends there, and
//! the next part is planned with the actual shapes. A part keeps its plans for the shapes it has
//! met. Nodes that don't lead to a cut run in the last part, so few values pass between parts.

use std::borrow::Cow;
use std::sync::Arc;

use super::Engine;
use super::control_node::{ControlNode, LiveValues};
use super::submodel::Submodel;
use crate::invariant::EngineInvariant;
use crate::plan::ExecutionPlan;
use crate::plan_step::{PlanStep, StepValue};
use crate::run_context::RunContext;
use crate::steps::{Offset, PlanSteps};
use crate::{EngineError, Watched};
use octet_graph::Node;
use octet_int8::FusedNode;
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::TensorProto;

/// Reason in the list of nodes why a control flow node doesn't run on integers.
const REASON: &str = "it is a control flow node; its graphs run separately";

pub(super) struct Partition {
    pub(super) parts: Vec<GraphPart>,
    /// Names of the model's inputs and outputs.
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
}

pub(super) struct GraphPart {
    pub(super) submodel: Submodel,
    /// Indices of the part's nodes in the model.
    pub(super) nodes: Vec<usize>,
    /// For each value that the part watches, its index among all watched values.
    pub(super) slots: Vec<usize>,
    /// Watched values that all exist before this part runs.
    pub(super) ready_values: Vec<(usize, Watched)>,
    /// The control flow node that ends the part, if any.
    pub(super) end: Option<ControlEnd>,
    /// Values without readers after this part.
    pub(super) freed: Vec<String>,
}

pub(super) struct ControlEnd {
    pub(super) place: usize,
    pub(super) node: Node,
    pub(super) control: ControlNode,
    /// The node is listed as one that runs in float.
    pub(super) integers: bool,
    /// The inputs of the node and the values that its graphs capture.
    pub(super) reads: Vec<String>,
}

/// A part that is about to run.
pub(super) struct PendingPart<'a> {
    /// `None` if the part has nothing to compute before its control flow node.
    engine: Option<&'a Engine>,
    inputs: &'a [Tensor],
    nodes: &'a [usize],
    slots: &'a [usize],
    end: Option<&'a ControlEnd>,
    live: &'a LiveValues,
}

impl Partition {
    pub(super) fn run(
        &self,
        inputs: Cow<'_, [Tensor]>,
        run: RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let live = self.walk(inputs, run, false, &mut |_| Ok(()))?;
        let outputs = self.outputs.iter().map(|name| live.get(name).cloned());
        outputs
            .collect::<Option<_>>()
            .ok_or_else(|| EngineInvariant::ModelOutputs.into())
    }

    /// The names of each part's inputs and outputs.
    #[cfg(test)]
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
        let submodels = self.parts.iter().map(|part| &part.submodel);
        submodels.map(|submodel| (submodel.inputs.clone(), submodel.outputs.clone()))
    }

    /// Visits all parts, and runs those that a later part needs values from.
    pub(super) fn visit(
        &self,
        inputs: &[Tensor],
        run: RunContext,
        mut visit: impl FnMut(&PendingPart) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let walked = self.walk(inputs.into(), run, true, &mut visit);
        walked.map(|_| ())
    }

    fn walk(
        &self,
        inputs: Cow<'_, [Tensor]>,
        mut run: RunContext,
        only_visit: bool,
        visit: &mut dyn FnMut(&PendingPart) -> Result<(), EngineError>,
    ) -> Result<LiveValues, EngineError> {
        let mut live: LiveValues = self
            .inputs
            .iter()
            .cloned()
            .zip(inputs.into_owned())
            .collect();
        let (mut steps, mut fused) = (0, 0);
        for (place, part) in self.parts.iter().enumerate() {
            part.report_ready(&live, &mut run);
            let fed = part.take_inputs(&mut live)?;
            let (engine, fed) = match part.submodel.idle() {
                true => (None, fed),
                false => {
                    let (engine, fed) = part.submodel.engine(fed)?;
                    (Some(engine), fed)
                }
            };
            visit(&PendingPart {
                engine: engine.as_deref(),
                inputs: &fed,
                nodes: &part.nodes,
                slots: &part.slots,
                end: part.end.as_ref(),
                live: &live,
            })?;
            if only_visit && place + 1 == self.parts.len() {
                break;
            }
            if let Some(engine) = engine {
                let plan = engine.plan(&fed)?;
                let made = part.run(&engine, fed, (steps, fused), &mut run)?;
                live.extend(part.submodel.outputs.iter().cloned().zip(made));
                steps += plan.steps();
                fused += plan.fused.len();
            }
            if let Some(end) = &part.end {
                let made = end.run(&live, steps, &mut run)?;
                steps += 1;
                fused += usize::from(end.integers);
                let names = end.node.output.iter().cloned();
                live.extend(names.zip(made).filter(|(name, _)| !name.is_empty()));
            }
            for name in &part.freed {
                live.remove(name);
            }
        }
        Ok(live)
    }
}

impl GraphPart {
    /// Reports watched values that exist already.
    fn report_ready(&self, live: &LiveValues, run: &mut RunContext) {
        for (slot, Watched { value, beside }) in &self.ready_values {
            let Some(first) = live.get(value) else {
                continue;
            };
            let all = std::iter::once(value).chain(beside);
            let floats = all.map(|name| live.get(name)?.as_f32());
            if let Some(floats) = floats.collect::<Option<Vec<&[f32]>>>() {
                (run.see)(*slot, &floats, first.shape());
            }
        }
    }

    /// Collects the inputs of the part; values without further readers are moved.
    fn take_inputs(&self, live: &mut LiveValues) -> Result<Vec<Tensor>, EngineError> {
        let read = |name: &String| {
            self.end
                .as_ref()
                .is_some_and(|end| end.reads.contains(name))
        };
        let inputs = self.submodel.inputs.iter().map(|name| {
            let last = self.freed.contains(name) && !read(name);
            let found = match last {
                true => live.remove(name),
                false => live.get(name).cloned(),
            };
            found.ok_or_else(|| EngineInvariant::LiveValue(name.clone()).into())
        });
        inputs.collect()
    }

    /// Runs the part; `steps` and `fused` count the steps and list entries of earlier parts.
    fn run(
        &self,
        engine: &Engine,
        fed: Vec<Tensor>,
        (steps, fused): (usize, usize),
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let RunContext {
            see, timing, clock, ..
        } = run;
        let slots = &self.slots;
        let mut clocked = clock
            .as_mut()
            .map(|clock| move |step: usize| clock(fused + step));
        let mut offset = timing.as_mut().map(|timing| Offset {
            timing: &mut **timing,
            steps,
        });
        let run = RunContext {
            see: &mut |slot, values, shape| see(slots[slot], values, shape),
            stop: run.stop,
            timing: offset.as_mut().map(|offset| offset as _),
            clock: clocked.as_mut().map(|clock| clock as _),
            iterations: run.iterations,
        };
        engine.execute(Cow::Owned(fed), run)
    }
}

impl ControlEnd {
    fn run(
        &self,
        live: &LiveValues,
        step: usize,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        if let Some(timing) = &mut run.timing {
            timing.begin(step);
        }
        let made = self.control.run(live, run);
        if let Some(timing) = &mut run.timing {
            timing.end(step);
        }
        made
    }
}

impl PendingPart<'_> {
    /// The plan of the part, and the slots of its watched values.
    pub(super) fn plan(
        &self,
    ) -> Result<Option<(Arc<ExecutionPlan>, Option<Vec<usize>>)>, EngineError> {
        let plan = self.engine.map(|engine| engine.plan(self.inputs));
        Ok(plan
            .transpose()?
            .map(|plan| (plan, Some(self.slots.to_vec()))))
    }

    /// The list of the part's nodes; `regions` counts the regions of earlier parts.
    pub(super) fn fused(&self, regions: usize) -> Result<Vec<FusedNode>, EngineError> {
        let plan = self.engine.map(|engine| engine.plan(self.inputs));
        let mut fused = plan
            .transpose()?
            .map_or_else(Vec::new, |plan| plan.fused.clone());
        for region in fused.iter_mut().filter_map(|node| node.region.as_mut()) {
            *region += regions;
        }
        if let Some(end) = self.end.filter(|end| end.integers) {
            let shapes = self.read(end).map(|tensor| tensor.shape().to_vec());
            let types = self
                .read(end)
                .map(|tensor| tensor.element_type().name().to_owned());
            fused.push(FusedNode {
                node: end.node.title().to_owned(),
                operator: end.node.operator(),
                fused: Vec::new(),
                operation: String::new(),
                region: None,
                kernel: None,
                inputs: types.collect(),
                output: "unknown".to_owned(),
                input_shapes: shapes.collect(),
                output_shape: Vec::new(),
                reason: Some(REASON.to_owned()),
            });
        }
        Ok(fused)
    }

    /// Appends the steps of the part.
    pub(super) fn add_steps(&self, all: &mut PlanSteps) -> Result<(), EngineError> {
        let made = self
            .engine
            .map(|engine| engine.steps(self.inputs, &|| false));
        let made = made.transpose()?.unwrap_or_default();
        let global = |node: Option<usize>| node.and_then(|node| self.nodes.get(node).copied());
        all.steps
            .extend(made.steps.into_iter().map(|step| PlanStep {
                node: global(step.node),
                ..step
            }));
        let found = made.layers.into_iter().zip(made.reasons);
        for (&node, (layer, reason)) in self.nodes.iter().zip(found) {
            // A node computed in several parts is counted in the first.
            all.layers[node] = all.layers[node].or(global(layer));
            all.reasons[node] = all.reasons[node].take().or(reason);
        }
        if let Some(end) = self.end {
            let value = |tensor: &Tensor| StepValue {
                element: tensor.element_type().name().to_owned(),
                shape: tensor.shape().to_vec(),
                bytes: TensorProto::from_tensor("", tensor).byte_len().unwrap_or(0) as u64,
            };
            all.steps.push(PlanStep {
                node: Some(end.place),
                kernel: end.node.operator(),
                product: false,
                on_integers: false,
                inputs: self.read(end).map(value).collect(),
                outputs: Vec::new(),
            });
            all.layers[end.place] = Some(end.place);
            if end.integers {
                all.reasons[end.place] = Some(REASON.to_owned());
            }
        }
        Ok(())
    }

    /// The inputs of the control flow node that exist before the part runs.
    fn read<'a>(&'a self, end: &'a ControlEnd) -> impl Iterator<Item = &'a Tensor> {
        end.reads.iter().filter_map(|name| self.live.get(name))
    }
}
