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
pub(super) struct SizeMismatch {
    /// The name of the node in tract's model.
    pub(super) node: String,
    /// The shapes of its inputs.
    pub(super) input_shapes: String,
}

impl fmt::Display for SizeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "node `{}`: sizes of {} don't fit",
            self.node, self.input_shapes
        )
    }
}

impl std::error::Error for SizeMismatch {}

/// Infers until nothing changes; the first contradiction is an error.
pub(super) fn infer_all(model: &mut InferenceModel) -> TractResult<()> {
    infer(model, |_, error| Err(error))
}

/// Infers past contradictions; the results of such nodes stay unknown.
pub(super) fn infer_known(model: &mut InferenceModel) {
    // The callback never returns an error.
    let _ = infer(model, |_, _| Ok(()));
}

fn infer(
    model: &mut InferenceModel,
    mut failed: impl FnMut(usize, TractError) -> TractResult<()>,
) -> TractResult<()> {
    let mut open: BTreeSet<usize> = (0..model.nodes.len()).collect();
    while let Some(id) = open.pop_first() {
        let changed = match infer_node(model, id) {
            Ok(changed) => changed,
            Err(error) => {
                let name = &model.nodes[id].name;
                failed(id, error.context(format!("at the node `{name}`")))?;
                continue;
            }
        };
        for ChangedFact { outlet, is_numeric } in changed {
            if !is_numeric
                && !model.nodes[outlet.node].outputs[outlet.slot]
                    .successors
                    .is_empty()
            {
                let error = size_mismatch(model, id);
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
struct ChangedFact {
    outlet: OutletId,
    /// All known sizes are numbers.
    is_numeric: bool,
}

/// Applies the rules of one operator and returns the values that changed.
fn infer_node(model: &mut InferenceModel, id: usize) -> TractResult<Vec<ChangedFact>> {
    let node = &model.nodes[id];
    ensure!(
        node.op.nboutputs()? == node.outputs.len(),
        "it has another number of outputs than the model names"
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
        let (fact, is_numeric) = numeric(fact);
        if fact != *old || !is_numeric {
            model.set_outlet_fact(outlet, fact)?;
            changed.push(ChangedFact { outlet, is_numeric });
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
fn numeric(mut fact: InferenceFact) -> (InferenceFact, bool) {
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

fn size_mismatch(model: &InferenceModel, id: usize) -> TractError {
    let node = &model.nodes[id];
    let shapes = node.inputs.iter().map(|&input| {
        let fact = model.outlet_fact(input);
        fact.map_or_else(|_| "?".to_owned(), |fact| format!("{:?}", fact.shape))
    });
    let input_shapes = shapes.collect::<Vec<_>>().join(" and ");
    TractError::new(SizeMismatch {
        node: node.name.clone(),
        input_shapes,
    })
}

/// Fails if an operator with readers makes sizes that are not numbers, or if constant indices are
/// out of range.
pub(super) fn ensure_numeric(
    source: &InferenceModel,
    node: &Node<InferenceFact, Box<dyn InferenceOp>>,
    target: &TypedModel,
    made: &[OutletId],
) -> TractResult<()> {
    for (&outlet, output) in made.iter().zip(&node.outputs) {
        let fact = target.outlet_fact(outlet)?;
        let numbers = fact.shape.iter().all(|dim| dim.to_i64().is_ok());
        if !numbers && !output.successors.is_empty() {
            return Err(size_mismatch(source, node.id));
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
