//! Bodies of If, Loop and Scan in the schemes without samples: they lie in the main graph while a
//! scheme rewrites it.

use std::collections::HashSet;

use super::QuantizeError;
use super::planned_model::PlannedModel;
use super::stays_float::StaysFloat;
use octet_graph::{FlatModel, Model};

/// Plans a model together with its bodies. With `typed`, the types of the values in bodies are
/// inferred, as those of the main graph are already.
pub(super) fn with_bodies(
    model: &Model,
    typed: bool,
    plan: &dyn Fn(&Model) -> Result<PlannedModel, QuantizeError>,
) -> Result<PlannedModel, QuantizeError> {
    let Some(flat) = FlatModel::new(model, typed)? else {
        return plan(model);
    };
    let (mut quantized, recipes) = plan(&flat.model)?;
    let mut computed: HashSet<String> = HashSet::new();
    for planned in &recipes {
        computed.extend(planned.outputs.iter().cloned());
        computed.extend(planned.views.iter().map(|(name, ..)| name.clone()));
    }
    flat.restore(&mut quantized.model.graph, &computed);
    // A choice for each node of the flat model: control nodes have two.
    let mut nodes = flat.model.graph.nodes().iter();
    quantized.nodes.retain_mut(|choice| {
        let Some(node) = nodes.next() else {
            return true;
        };
        let unsupported = matches!(
            choice.reason,
            Some(StaysFloat::OfOperator(_) | StaysFloat::NoWeight)
        );
        if FlatModel::control_index(node).is_some() && unsupported {
            choice.reason = Some(StaysFloat::RunsBodies);
        }
        !FlatModel::is_first_marker(node)
    });
    Ok((quantized, recipes))
}
