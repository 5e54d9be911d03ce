//! A Clip node behind each activation beyond float16: the infinity of half precision becomes ±65504.

use super::BroughtNear;
use crate::float16_numbers::LARGEST;
use crate::planned_model::RefusedConstants;
use octet_graph::{Attribute, Model, Node};
use octet_onnx::schema::{DataType, TensorProto, ValueInfoProto};

/// Clip takes its limits as inputs from this opset on.
const LIMITS_AS_INPUTS: i64 = 11;

/// The model with Clip nodes behind the nodes that produce far activations.
pub(super) fn clipped(model: &Model, refused: &mut RefusedConstants) -> Option<BroughtNear> {
    let mut changed = model.clone();
    let mut names = changed.graph.names();
    let limit = |name: &str, value: f32| {
        let bytes = value.to_le_bytes().to_vec().into();
        TensorProto::from_raw(name, DataType::Float, &[], bytes)
    };
    let as_inputs = model.opset() >= LIMITS_AS_INPUTS;
    let ends = [("lowest", -LARGEST), ("largest", LARGEST)]
        .map(|(word, value)| limit(&names.fresh(&format!("float16_{word}")), value));
    let ends_named = ends.each_ref().map(|end| end.title().to_owned());
    let mut notes = Vec::new();
    let mut nodes = Vec::new();
    for mut node in changed.graph.take_nodes() {
        let mut clips = Vec::new();
        for output in &mut node.output {
            let Some(&size) = refused.far_activations().get(output.as_str()) else {
                continue;
            };
            let Some(kind) = model.graph.tensor_type(output) else {
                continue;
            };
            let whole = names.fresh(&format!("{output}_unclipped"));
            let title = names.fresh(&format!("{output}_Clip"));
            let clip = match as_inputs {
                true => {
                    let [low, high] = ends_named.each_ref().map(String::as_str);
                    Node::new("Clip", &title, &[&whole, low, high], &[output])
                }
                false => Node::new("Clip", &title, &[&whole], &[output])
                    .with(Attribute::float("min", -LARGEST))
                    .with(Attribute::float("max", LARGEST)),
            };
            clips.push(clip);
            changed
                .graph
                .value_info
                .push(ValueInfoProto::new(&whole, &kind));
            notes.push(format!(
                "`{output}`: values to ±{size} on the samples are clipped to ±{LARGEST}, which may change the results"
            ));
            refused.brought_near(output);
            *output = whole;
        }
        if !clips.is_empty() {
            // An unnamed node is identified by its output, which has another name now.
            let title = clips[0].output[0].clone();
            node.name = node.name.filter(|name| !name.is_empty()).or(Some(title));
        }
        nodes.push(node);
        nodes.extend(clips);
    }
    changed.graph.replace_nodes(nodes);
    if notes.is_empty() {
        return None;
    }
    if as_inputs {
        for end in ends {
            changed.graph.initializers.insert(end);
        }
    }
    Some(BroughtNear {
        model: changed,
        notes,
    })
}
