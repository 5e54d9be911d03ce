//! Finer integers where a network ends.

use super::super::plan::{Plan, RangeSource};
use crate::graph::Model;

/// Outputs with more axes than these (batch, position, class) are images.
const MOST_AXES: usize = 3;

/// Gives 16 bits to the scores that the model ends in, and says so: a sentence each. In 256 steps two classes tie, and
/// rounding a last Softmax is the largest error of many networks that eight bits suit; nothing reads these integers but
/// the DequantizeLinear behind them. Images stay as they are: there each value is one of many, and the operator that
/// makes them is most of the work. `found` are the tensors whose ranges were found.
pub(super) fn refine_outputs(model: &Model, plan: &mut Plan, found: &[String]) -> Vec<String> {
    let mut said = Vec::new();
    let outputs = model.graph.outputs.iter();
    for name in outputs.filter_map(|output| output.name.as_ref()) {
        let shape = model.graph.tensor_type(name).and_then(|t| t.shape);
        let scores = shape.is_some_and(|shape| shape.len() <= MOST_AXES);
        let quantized = plan.forms.iter().any(|(form, _)| form == name);
        let is_found = found.contains(name);
        let fixed = matches!(plan.ranges.get(name), Some(RangeSource::Fixed(..)));
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
            said.push(format!(
                "`{name}` has 16 bits: the model ends in it, and scores that are near each other would tie in 256 steps"
            ));
        }
    }
    said
}
