//! The schemes without samples on a model whose large constants are still in files.
//!
//! The graph is the file's own: of the preparation only the passes that read no weights are done, and
//! none for blocks in the precision of the model. Where the other passes change nothing, the result
//! is that of the same scheme in memory.

use super::QuantizeError;
use super::planned_model::{PlannedModel, RefusedConstants};
use super::recipe::PlannedRecipe;
use super::scheme::plan;
use super::settings::{Scheme, Settings, without_effect, without_meaning};
use super::without_samples::compute;
use octet_graph::prepare::prepare_without_weights;
use octet_graph::{Graph, Model};
use octet_onnx::schema::ValueInfoProto;

/// Constants with at least this many bytes are computed piece by piece; smaller ones at once.
const LARGE: u64 = octet_onnx::skeleton::LARGE;

/// Quantizes a model by a scheme that needs no samples. The recipes compute the large constants of the
/// result. Constants in `refused` stay as they are; small ones that can't be computed are added.
pub fn plan_streamed(
    model: &Model,
    settings: &Settings,
    refused: &mut RefusedConstants,
) -> Result<PlannedModel, QuantizeError> {
    if settings.scheme == Scheme::Static {
        return Err(QuantizeError::NotStreamed);
    }
    let is_own = settings.keeps_types();
    let mut typed = model.clone();
    let upcast = match is_own {
        true => None,
        false => Some(prepare_without_weights(&mut typed)?),
    };
    let is_small = |planned: &PlannedRecipe| {
        let bytes = planned.source.stored_bytes();
        !planned.source.is_external() && bytes.is_ok_and(|bytes| bytes < LARGE)
    };
    let planned = |refused: &RefusedConstants| plan(&typed, settings, refused, None);
    let (mut quantized, mut recipes) = compute(&planned, refused, &is_small)?;
    if let Some(upcast) = upcast {
        upcast.restore(&mut quantized.model)?;
        for planned in recipes
            .iter_mut()
            .filter(|planned| planned.source.is_external())
        {
            // The bytes in the file have their own type.
            if let Some(element) = planned.source.widened_from() {
                planned.source.data_type = Some(element as i32);
            }
        }
        let graph = &mut quantized.model.graph;
        graph.value_info = remaining_declarations(graph, &model.graph.value_info);
    }
    quantized.notes.extend(without_effect(settings, &typed));
    quantized.notes.extend(without_meaning(settings));
    Ok((quantized, recipes))
}

/// Declared types of the values that the graph still computes. Element types are updated, since a
/// scheme may have changed them.
pub fn remaining_declarations(graph: &Graph, declared: &[ValueInfoProto]) -> Vec<ValueInfoProto> {
    let elements = graph.element_types();
    let again = declared.iter().filter_map(|value| {
        let name = value.name.as_deref()?;
        graph.producer(name)?;
        let mut value = value.clone();
        if let Some(&element) = elements.get(name) {
            value.set_element(element);
        }
        Some(value)
    });
    again.collect()
}
