//! Restores value names that differ between a quantized model and its float model.
//!
//! In half precision, a node whose result is needed in float32 has an output of another name, and a
//! Cast restores the original name. Upcasting removes that Cast and the name with it. The node
//! keeps its own title, which identifies its values.

use std::collections::{HashMap, HashSet};

use crate::graph::{Graph, Model, Node, Use};
use crate::quantize::DIVIDED;

/// Renames outputs of nodes in the quantized model to their float names. A name that the other
/// model uses for something else stays.
pub(super) fn restore(float: &Model, quantized: &mut Model) {
    let makers: HashMap<&str, &Node> = float
        .graph
        .nodes()
        .iter()
        .map(|node| (node.title(), node))
        .collect();
    // Titles of nodes need not be unique.
    let (mut renamed, mut taken) = (HashMap::new(), HashSet::new());
    for node in quantized.graph.nodes() {
        let maker = makers.get(node.title());
        let Some(maker) = maker.filter(|maker| maker.op_type == node.op_type) else {
            continue;
        };
        for (current, wanted) in node.output.iter().zip(&maker.output) {
            // A quantized value may be the output of a folded Relu and keeps its name.
            let mut readers = quantized.graph.consumers(current).iter();
            let quantizes =
                |reader: &Use| quantized.graph.nodes()[reader.node].is("QuantizeLinear");
            let known = readers.any(quantizes)
                || is_known(&float.graph, current)
                || is_known(&quantized.graph, wanted)
                || quantized.graph.is_output(current)
                // A power of two lies between both values.
                || current.starts_with(&format!("{wanted}{DIVIDED}"));
            if !known && !current.is_empty() && !wanted.is_empty() && taken.insert(wanted) {
                renamed.insert(current.clone(), wanted.clone());
            }
        }
    }
    let graph = &mut quantized.graph;
    graph.edit_all(|_, node| node.rename_outputs(&renamed));
    graph.replace_all_uses(&renamed);
}

fn is_known(graph: &Graph, name: &str) -> bool {
    let is_fed = || graph.inputs.iter().any(|i| i.name.as_deref() == Some(name));
    graph.producer(name).is_some() || graph.initializers.contains(name) || is_fed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::{GraphProto, ModelProto, ValueInfoProto};

    fn model(nodes: &[(&str, &str, &str)]) -> Model {
        let named = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        };
        let mut read = "x";
        let mut outputs = Vec::new();
        for &(operator, title, output) in nodes {
            outputs.push(Node::new(operator, title, &[read], &[output]));
            read = output;
        }
        let graph = GraphProto {
            input: vec![named("x")],
            output: vec![named(read)],
            node: outputs.iter().map(Node::to_proto).collect(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn what_a_node_of_the_same_name_makes_is_the_same_value_unless_either_model_knows_the_other() {
        let float = model(&[
            ("Tanh", "first", "a"),
            ("Relu", "second", "b"),
            ("Exp", "third", "c"),
            ("Sin", "fourth", "d"),
            ("Neg", "divided", "y"),
        ]);
        let mut quantized = model(&[
            ("Tanh", "first", "a_float16"),
            // With the Relu folded, the node before it produces the Relu's output.
            ("Exp", "third", "b"),
            ("Cos", "fourth", "z"),
            ("Tanh", "first", "again"),
            ("Sin", "fifth", "e"),
            ("Neg", "divided", "y_rescaled_1"),
            ("Neg", "sixth", "last"),
        ]);
        restore(&float, &mut quantized);
        let outputs = quantized.graph.nodes().iter().map(|node| &node.output[0]);
        assert_eq!(
            outputs.collect::<Vec<_>>(),
            ["a", "b", "z", "again", "e", "y_rescaled_1", "last"]
        );
        assert_eq!(quantized.graph.nodes()[1].input, ["a"]);
    }
}
