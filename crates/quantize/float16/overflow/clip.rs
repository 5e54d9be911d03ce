//! A Clip node behind each activation beyond float16, and behind each such input of the model: the
//! infinity of half precision becomes ±65504.

use std::collections::HashMap;

use super::BroughtNear;
use crate::float16_numbers::LARGEST;
use crate::planned_model::RefusedConstants;
use octet_graph::{Attribute, Model, Node};
use octet_onnx::schema::{DataType, TensorProto, ValueInfoProto};

/// Clip takes its limits as inputs from this opset on.
const LIMITS_AS_INPUTS: i64 = 11;

/// The model with Clip nodes behind the inputs and nodes that give far activations.
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
    let clip = |title: &str, whole: &str, near: &str| match as_inputs {
        true => {
            let [low, high] = ends_named.each_ref().map(String::as_str);
            Node::new("Clip", title, &[whole, low, high], &[near])
        }
        false => Node::new("Clip", title, &[whole], &[near])
            .with(Attribute::float("min", -LARGEST))
            .with(Attribute::float("max", LARGEST)),
    };
    let far = |name: &str| {
        let size = *refused.far_activations().get(name)?;
        Some((size, model.graph.tensor_type(name)?))
    };
    let note = |name: &str, size: f32| {
        format!(
            "`{name}`: values to ±{size} on the samples are clipped to ±{LARGEST}, which may change the results"
        )
    };
    let mut notes = Vec::new();
    let mut near = Vec::new();
    let mut nodes = Vec::new();
    // The readers of an input read what is clipped.
    let mut clipped_inputs = HashMap::new();
    for input in &model.graph.inputs {
        let name = input.name.clone().unwrap_or_default();
        let Some((size, kind)) = far(&name).filter(|_| !model.graph.is_captured(&name)) else {
            continue;
        };
        let inside = names.fresh(&format!("{name}_clipped"));
        nodes.push(clip(&names.fresh(&format!("{name}_Clip")), &name, &inside));
        let port = ValueInfoProto::new(&inside, &kind);
        changed.graph.value_info.push(port);
        notes.push(note(&name, size));
        near.push(name.clone());
        clipped_inputs.insert(name, inside);
    }
    for mut node in changed.graph.take_nodes() {
        for input in &mut node.input {
            if let Some(inside) = clipped_inputs.get(input) {
                input.clone_from(inside);
            }
        }
        let mut clips = Vec::new();
        for output in &mut node.output {
            let Some((size, kind)) = far(output) else {
                continue;
            };
            let whole = names.fresh(&format!("{output}_unclipped"));
            clips.push(clip(
                &names.fresh(&format!("{output}_Clip")),
                &whole,
                output,
            ));
            changed
                .graph
                .value_info
                .push(ValueInfoProto::new(&whole, &kind));
            notes.push(note(output, size));
            near.push(output.clone());
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
    near.iter().for_each(|name| refused.brought_near(name));
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
