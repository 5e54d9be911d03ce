//! Logits: 16 bits for the scores that a network ends in.

use super::super::plan::{Plan, RangeOrigin};
use octet_graph::Model;

/// Outputs with more axes than these (batch, position, class) count as images.
const MOST_AXES: usize = 3;

/// Gives 16 bits to the model's output scores, and returns a note for each.
///
/// With 256 steps two classes tie. Rounding a final Softmax is the largest error of many networks
/// that otherwise suit 8 bits. Only the DequantizeLinear behind it reads these integers, so 16 bits
/// cost little. Images keep 8 bits: each of their values is one of many, and the operator before
/// them is most of the work. `with_ranges` lists the tensors with computed ranges.
pub(super) fn refine_logits(model: &Model, plan: &mut Plan, with_ranges: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    let outputs = model.graph.outputs().iter();
    for name in outputs.filter_map(|output| output.name.as_ref()) {
        let shape = model.graph.tensor_type(name).and_then(|t| t.shape);
        let scores = shape.is_some_and(|shape| shape.len() <= MOST_AXES);
        let quantized = plan.forms.iter().any(|(tensor, _)| tensor == name);
        let is_found = with_ranges.contains(name);
        let fixed = matches!(plan.ranges.get(name), Some(RangeOrigin::Fixed(..)));
        let Some(represented) = plan.representations.get_mut(name) else {
            continue;
        };
        let free = !represented.typed && (is_found || (fixed && !represented.is_chosen()));
        let wide = represented.element.with_16_bits();
        if scores && quantized && free && represented.element != wide {
            represented.element = wide;
            if is_found {
                represented.range = None;
            }
            notes.push(format!(
                "`{name}` has 16 bits: it is an output of the model, and close scores would tie in 256 steps"
            ));
        }
    }
    notes
}
