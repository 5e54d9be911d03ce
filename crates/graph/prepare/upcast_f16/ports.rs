//! Restores the types of inputs and outputs, with a Cast between each of them and the float32
//! graph.

use std::collections::HashMap;

use super::Upcast;
use crate::{Graph, Model, Names, Node, Use};
use octet_onnx::schema::{DataType, ValueInfoProto};
use octet_onnx::tensor::TensorError;

impl Upcast {
    /// Restores the 16-bit types of inputs, outputs and remaining float weights in a model that was
    /// made from the upcast one.
    ///
    /// A model in half precision already has Casts at its ports; these are removed. A port that is
    /// no longer float32 keeps its type. Returns a sentence on the weights that had to be rounded.
    pub fn restore(&self, model: &mut Model) -> Result<Option<String>, TensorError> {
        let graph = &mut model.graph;
        let mut names = graph.names();
        let rounded = self.restore_weights(graph, &mut names)?;
        let mut casts = Vec::new();
        for (name, element) in &self.inputs {
            if graph.edit_ports(|inputs, _| retyped(inputs, name, *element)) {
                casts.extend(input_cast(graph, &mut names, name, *element));
            }
        }
        graph.insert(0, casts);
        for (name, element) in &self.outputs {
            if graph.edit_ports(|_, outputs| retyped(outputs, name, *element)) {
                let cast = output_cast(graph, &mut names, name, *element);
                graph.extend(cast);
            }
        }
        let element = self.element.map_or("", DataType::name);
        Ok((rounded > 0).then(|| {
            let weights = match rounded {
                1 => "1 weight that stays float was".to_owned(),
                many => format!("{many} weights that stay float were"),
            };
            format!(
                "{weights} rounded to {element}, the original type, because scales of channels \
                 were folded in"
            )
        }))
    }
}

/// Changes the type of a float32 value; false if there is none of this name.
fn retyped(values: &mut [ValueInfoProto], name: &str, element: DataType) -> bool {
    let mut named = values
        .iter_mut()
        .filter(|v| v.name.as_deref() == Some(name));
    let float = |value: &&mut ValueInfoProto| {
        let known = crate::tensor_type_of(value);
        known.is_some_and(|known| known.element == DataType::Float)
    };
    match named.next().filter(float) {
        Some(value) => {
            value.set_element(element);
            true
        }
        None => false,
    }
}

pub(super) fn cast(names: &mut Names, from: &str, to: &str, element: DataType) -> Node {
    let title = names.fresh(&format!("{to}_Cast"));
    Node::cast(&title, from, to, element)
}

/// A new name for the float32 form of a 16-bit value.
fn widened(names: &mut Names, name: &str) -> String {
    names.fresh(&format!("{name}_float32"))
}

/// The Cast behind a 16-bit input, if a node reads it as float32.
fn input_cast(
    graph: &mut Graph,
    names: &mut Names,
    input: &str,
    element: DataType,
) -> Option<Node> {
    let narrows = |reader: &&Use| {
        let node = &graph.nodes()[reader.node];
        let output = node.output.first().map_or("", String::as_str);
        reader.is_input(0)
            && node.is("Cast")
            && node.int("to") == Some(element as i64)
            && !graph.is_output(output)
    };
    let readers = graph.consumers(input);
    let idle: Vec<usize> = readers
        .iter()
        .filter(narrows)
        .map(|reader| reader.node)
        .collect();
    let narrowed = idle
        .iter()
        .filter_map(|&index| graph.nodes()[index].output.first());
    let narrowed: HashMap<String, String> = narrowed
        .map(|output| (output.clone(), input.to_owned()))
        .collect();
    let is_read = readers.len() > idle.len();
    graph.remove_nodes(&idle.into_iter().collect());
    let float = is_read.then(|| widened(names, input));
    if let Some(float) = &float {
        graph.replace_uses(input, float);
    }
    graph.replace_all_uses(&narrowed);
    Some(cast(names, input, &float?, DataType::Float))
}

/// The Cast before a 16-bit output, if one is needed.
fn output_cast(
    graph: &mut Graph,
    names: &mut Names,
    output: &str,
    element: DataType,
) -> Option<Node> {
    let is_fed = |value: &ValueInfoProto| value.name.as_deref() == Some(output);
    if graph.inputs.iter().any(is_fed) {
        return None;
    }
    let Some(maker) = graph.producer(output) else {
        let float = widened(names, output);
        let mut constant = graph.initializers.remove(output)?;
        constant.name = Some(float.clone());
        graph.initializers.insert(constant);
        graph.replace_uses(output, &float);
        return Some(cast(names, &float, output, element));
    };
    let node = &graph.nodes()[maker];
    let source = node.input_at(0).unwrap_or_default().to_owned();
    let is_narrow = graph.tensor_type(&source).map(|known| known.element) == Some(element);
    if let Some(before) = graph.producer(&source)
        && node.is("Cast")
        && is_narrow
        && graph.consumers(output).is_empty()
        && !graph.is_output(&source)
    {
        graph.edit(before, |node| rename(node, &source, output));
        graph.remove_nodes(&[maker].into());
        graph.replace_uses(&source, output);
        return None;
    }
    let float = widened(names, output);
    graph.edit(maker, |node| rename(node, output, &float));
    graph.replace_uses(output, &float);
    Some(cast(names, &float, output, element))
}

fn rename(node: &mut Node, old: &str, new: &str) {
    for output in node.output.iter_mut().filter(|name| *name == old) {
        new.clone_into(output);
    }
}
