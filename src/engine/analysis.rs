//! Infers types and shapes in tract's inference model, operator by operator, with numeric sizes
//! only.
//!
//! If sizes don't fit, tract continues with symbolic expressions and computes with them for
//! minutes. This inference stops at such an operator.

use std::collections::BTreeSet;
use std::fmt;

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::{DimFact, Factoid, InferenceFact, InferenceOp, ShapeFactoid};
use tract_onnx::tract_hir::internal::*;

use super::indices;

/// An operator whose output sizes are not numbers.
#[derive(Debug)]
pub(super) struct Unfit {
    /// The name of the node in tract's model.
    pub(super) node: String,
    /// The shapes of its inputs.
    pub(super) found: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}`: sizes of {} don't fit", self.node, self.found)
    }
}

impl std::error::Error for Unfit {}

/// Infers until nothing changes; the first contradiction is an error.
pub(super) fn whole(model: &mut InferenceModel) -> TractResult<()> {
    follow(model, |_, error| Err(error))
}

/// Infers past contradictions; the results of such nodes stay unknown.
pub(super) fn as_far_as_known(model: &mut InferenceModel) {
    // The callback never returns an error.
    let _ = follow(model, |_, _| Ok(()));
}

fn follow(
    model: &mut InferenceModel,
    mut failed: impl FnMut(usize, TractError) -> TractResult<()>,
) -> TractResult<()> {
    let mut open: BTreeSet<usize> = (0..model.nodes.len()).collect();
    while let Some(id) = open.pop_first() {
        let changed = match one(model, id) {
            Ok(changed) => changed,
            Err(error) => {
                let name = &model.nodes[id].name;
                failed(id, error.context(format!("at the node `{name}`")))?;
                continue;
            }
        };
        for Changed { outlet, sound } in changed {
            if !sound
                && !model.nodes[outlet.node].outputs[outlet.slot]
                    .successors
                    .is_empty()
            {
                let error = unfit(model, id);
                failed(id, error)?;
                continue;
            }
            let readers = &model.nodes[outlet.node].outputs[outlet.slot].successors;
            open.extend(readers.iter().map(|reader| reader.node));
            open.insert(outlet.node);
            open.remove(&id);
        }
    }
    Ok(())
}

/// A value whose fact became more specific.
struct Changed {
    outlet: OutletId,
    /// All known sizes are numbers.
    sound: bool,
}

/// Applies the rules of one operator and returns the values that changed.
fn one(model: &mut InferenceModel, id: usize) -> TractResult<Vec<Changed>> {
    let node = &model.nodes[id];
    ensure!(
        node.op.nboutputs()? == node.outputs.len(),
        "it makes another number of values than are named"
    );
    let inputs = node.inputs.clone();
    let read: TVec<InferenceFact> = inputs
        .iter()
        .map(|&input| model.outlet_fact(input).cloned())
        .collect::<TractResult<_>>()?;
    let made: TVec<InferenceFact> = node.outputs.iter().map(|o| o.fact.clone()).collect();
    let read: TVec<&InferenceFact> = read.iter().collect();
    let made: TVec<&InferenceFact> = made.iter().collect();
    let op = &mut model.nodes[id].op;
    let (before, after, _) = match is_computed(&op.name(), &read)? {
        true => op.infer(read, made, tvec!())?,
        false => op.infer_facts(read, made, tvec!())?,
    };
    let count = model.nodes[id].outputs.len();
    let outputs = (0..count).map(|slot| OutletId::new(id, slot));
    let outlets = inputs.iter().copied().chain(outputs);
    let mut changed = Vec::new();
    for (outlet, found) in outlets.zip(before.into_iter().chain(after)) {
        let old = model.outlet_fact(outlet)?;
        let fact = old.unify(&found)?;
        if fact == *old {
            continue;
        }
        let (fact, sound) = in_numbers(fact);
        if fact != *old || !sound {
            model.set_outlet_fact(outlet, fact)?;
            changed.push(Changed { outlet, sound });
        }
    }
    Ok(changed)
}

/// Returns true if tract may evaluate an operator once all its inputs are known. Gather and Scatter
/// are excluded, because an index out of range panics; a Gather from a list is checked here
/// instead. Fails if axes of Squeeze or Unsqueeze are out of range.
fn is_computed(name: &str, read: &[&InferenceFact]) -> TractResult<bool> {
    if let (true, [value, axes]) = (name.contains("squeeze") || name.contains("Squeeze"), read)
        && let (Some(rank), Some(axes)) = (value.shape.rank().concretize(), axes.value.concretize())
    {
        let more = if name.starts_with('U') { axes.len() } else { 0 };
        indices::inside(&axes, rank as usize + more, true)?;
    }
    if !name.starts_with("Gather") && !name.starts_with("Scatter") {
        return Ok(true);
    }
    let values: Option<TVec<Arc<Tensor>>> = read.iter().map(|f| f.value.concretize()).collect();
    match values.as_deref() {
        Some([list, places]) if name == "Gather" && list.rank() == 1 => {
            indices::inside(places, list.len(), true)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Removes symbolic sizes from a fact; returns false if there were any.
fn in_numbers(mut fact: InferenceFact) -> (InferenceFact, bool) {
    let named = |dim: &DimFact| dim.concretize().is_some_and(|dim| dim.to_i64().is_err());
    if !fact.shape.dims().any(named) {
        return (fact, true);
    }
    let dims: TVec<DimFact> = fact
        .shape
        .dims()
        .map(|dim| match named(dim) {
            true => DimFact::default(),
            false => dim.clone(),
        })
        .collect();
    fact.shape = match fact.shape.is_open() {
        true => ShapeFactoid::open(dims),
        false => ShapeFactoid::closed(dims),
    };
    (fact, false)
}

fn unfit(model: &InferenceModel, id: usize) -> TractError {
    let node = &model.nodes[id];
    let shapes = node.inputs.iter().map(|&input| {
        let fact = model.outlet_fact(input);
        fact.map_or_else(|_| "?".to_owned(), |fact| format!("{:?}", fact.shape))
    });
    let found = shapes.collect::<Vec<_>>().join(" and ");
    TractError::new(Unfit {
        node: node.name.clone(),
        found,
    })
}

/// Fails if an operator with readers makes sizes that are not numbers, or if constant indices are
/// out of range.
pub(super) fn ensure_numbers(
    source: &InferenceModel,
    node: &Node<InferenceFact, Box<dyn InferenceOp>>,
    target: &TypedModel,
    made: &[OutletId],
) -> TractResult<()> {
    for (&outlet, output) in made.iter().zip(&node.outputs) {
        let fact = target.outlet_fact(outlet)?;
        let numbers = fact.shape.iter().all(|dim| dim.to_i64().is_ok());
        if !numbers && !output.successors.is_empty() {
            return Err(unfit(source, node.id));
        }
        // tract evaluates an operator with constant inputs before a run.
        let wired = target.node(outlet.node);
        let read: TVec<&TypedFact> = target.node_input_facts(outlet.node)?;
        let constants: Option<TVec<TValue>> = read
            .iter()
            .map(|fact| Some(fact.konst.clone()?.into_tvalue()))
            .collect();
        if let Some(constants) = constants.filter(|constants| constants.len() > 1) {
            indices::check(wired, &constants)?;
        }
    }
    Ok(())
}
