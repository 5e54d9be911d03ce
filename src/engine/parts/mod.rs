//! Partition: a model runs in parts, split at control flow nodes (If, Loop, Scan) and where shapes
//! depend on values.
//!
//! The results of such a node may have any shape, known when it has run. So a part ends there, and
//! the next part is planned with the actual shapes. A part keeps its plans for the shapes it has
//! met. Nodes that don't lead to a cut run in the last part, so few values pass between parts.

mod cut;
mod seams;

use std::borrow::Cow;
use std::sync::Arc;

use super::control::{Control, Held, Piece};
use super::execute::Run;
use super::integer::FusedNode;
use super::plan::Plan;
use super::run::Engine;
use super::steps::{Offset, Step, StepValue, Steps};
use super::{EngineError, Watched};
use crate::onnx::schema::{NodeProto, TensorProto};
use crate::tensor::Tensor;
pub(super) use cut::cut;
pub(super) use seams::telling;

/// Reason in the list of nodes why a control flow node doesn't run on integers.
const REASON: &str = "it holds graphs of its own, which are computed by themselves";

pub(super) struct Parts {
    parts: Vec<Part>,
    /// Names of the model's inputs and outputs.
    inputs: Vec<String>,
    outputs: Vec<String>,
}

struct Part {
    piece: Piece,
    /// Indices of the part's nodes in the model.
    nodes: Vec<usize>,
    /// For each value that the part watches, its index among all watched values.
    slots: Vec<usize>,
    /// Watched values that all exist before this part runs.
    seen: Vec<(usize, Watched)>,
    /// The control flow node that ends the part, if any.
    end: Option<End>,
    /// Values without readers after this part.
    freed: Vec<String>,
}

struct End {
    place: usize,
    node: NodeProto,
    control: Control,
    /// The node is listed as one that runs in float.
    integers: bool,
    /// The inputs of the node and the values that its graphs capture.
    reads: Vec<String>,
}

/// A part that is about to run.
pub(super) struct Next<'a> {
    /// `None` if the part has nothing to compute before its control flow node.
    engine: Option<&'a Engine>,
    inputs: &'a [Tensor],
    nodes: &'a [usize],
    slots: &'a [usize],
    end: Option<&'a End>,
    held: &'a Held,
}

impl Parts {
    pub(super) fn run(
        &self,
        inputs: Cow<'_, [Tensor]>,
        run: Run,
    ) -> Result<Vec<Tensor>, EngineError> {
        let held = self.walk(inputs, run, false, &mut |_| Ok(()))?;
        let outputs = self.outputs.iter().map(|name| held.get(name).cloned());
        outputs
            .collect::<Option<_>>()
            .ok_or_else(|| EngineError::Run {
                detail: "an output of the model was not made".to_owned(),
            })
    }

    /// The names of each part's inputs and outputs.
    #[cfg(test)]
    pub(super) fn handed(&self) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
        let pieces = self.parts.iter().map(|part| &part.piece);
        pieces.map(|piece| (piece.inputs.clone(), piece.outputs.clone()))
    }

    /// Visits all parts, and runs those that a later part needs values from.
    pub(super) fn each(
        &self,
        inputs: &[Tensor],
        run: Run,
        mut look: impl FnMut(&Next) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let walked = self.walk(inputs.into(), run, true, &mut look);
        walked.map(|_| ())
    }

    fn walk(
        &self,
        inputs: Cow<'_, [Tensor]>,
        mut run: Run,
        only_look: bool,
        look: &mut dyn FnMut(&Next) -> Result<(), EngineError>,
    ) -> Result<Held, EngineError> {
        let mut held: Held = self
            .inputs
            .iter()
            .cloned()
            .zip(inputs.into_owned())
            .collect();
        let (mut steps, mut fused) = (0, 0);
        for (place, part) in self.parts.iter().enumerate() {
            part.show(&held, &mut run);
            let fed = part.fed(&mut held)?;
            let (engine, fed) = match part.piece.idle() {
                true => (None, fed),
                false => {
                    let (engine, fed) = part.piece.engine(fed)?;
                    (Some(engine), fed)
                }
            };
            look(&Next {
                engine: engine.as_deref(),
                inputs: &fed,
                nodes: &part.nodes,
                slots: &part.slots,
                end: part.end.as_ref(),
                held: &held,
            })?;
            if only_look && place + 1 == self.parts.len() {
                break;
            }
            if let Some(engine) = engine {
                let plan = engine.plan(&fed)?;
                let made = part.run(&engine, fed, (steps, fused), &mut run)?;
                held.extend(part.piece.outputs.iter().cloned().zip(made));
                steps += plan.steps();
                fused += plan.fused.len();
            }
            if let Some(end) = &part.end {
                let made = end.run(&held, steps, &mut run)?;
                steps += 1;
                fused += usize::from(end.integers);
                let names = end.node.output.iter().cloned();
                held.extend(names.zip(made).filter(|(name, _)| !name.is_empty()));
            }
            for name in &part.freed {
                held.remove(name);
            }
        }
        Ok(held)
    }
}

impl Part {
    /// Reports watched values that exist already.
    fn show(&self, held: &Held, run: &mut Run) {
        for (slot, Watched { value, beside }) in &self.seen {
            let Some(first) = held.get(value) else {
                continue;
            };
            let all = std::iter::once(value).chain(beside);
            let floats = all.map(|name| held.get(name)?.as_f32());
            if let Some(floats) = floats.collect::<Option<Vec<&[f32]>>>() {
                (run.see)(*slot, &floats, first.shape());
            }
        }
    }

    /// Collects the inputs of the part; values without further readers are moved.
    fn fed(&self, held: &mut Held) -> Result<Vec<Tensor>, EngineError> {
        let read = |name: &String| {
            self.end
                .as_ref()
                .is_some_and(|end| end.reads.contains(name))
        };
        let inputs = self.piece.inputs.iter().map(|name| {
            let last = self.freed.contains(name) && !read(name);
            let found = match last {
                true => held.remove(name),
                false => held.get(name).cloned(),
            };
            found.ok_or_else(|| EngineError::Run {
                detail: format!("the value `{name}` was not made"),
            })
        });
        inputs.collect()
    }

    /// Runs the part; `steps` and `fused` count the steps and list entries of earlier parts.
    fn run(
        &self,
        engine: &Engine,
        fed: Vec<Tensor>,
        (steps, fused): (usize, usize),
        run: &mut Run,
    ) -> Result<Vec<Tensor>, EngineError> {
        let Run {
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
        let run = Run {
            see: &mut |slot, values, shape| see(slots[slot], values, shape),
            stop: run.stop,
            timing: offset.as_mut().map(|offset| offset as _),
            clock: clocked.as_mut().map(|clock| clock as _),
            turns: run.turns,
        };
        engine.execute(Cow::Owned(fed), run)
    }
}

impl End {
    fn run(&self, held: &Held, step: usize, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        if let Some(timing) = &mut run.timing {
            timing.begin(step);
        }
        let made = self.control.run(held, run);
        if let Some(timing) = &mut run.timing {
            timing.end(step);
        }
        made
    }
}

impl Next<'_> {
    /// The plan of the part, and the slots of its watched values.
    pub(super) fn plan(&self) -> Result<Option<(Arc<Plan>, Option<Vec<usize>>)>, EngineError> {
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
    pub(super) fn add_steps(&self, all: &mut Steps) -> Result<(), EngineError> {
        let made = self
            .engine
            .map(|engine| engine.steps(self.inputs, &|| false));
        let made = made.transpose()?.unwrap_or_default();
        let global = |node: Option<usize>| node.and_then(|node| self.nodes.get(node).copied());
        all.steps.extend(made.steps.into_iter().map(|step| Step {
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
            all.steps.push(Step {
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
    fn read<'a>(&'a self, end: &'a End) -> impl Iterator<Item = &'a Tensor> {
        end.reads.iter().filter_map(|name| self.held.get(name))
    }
}
