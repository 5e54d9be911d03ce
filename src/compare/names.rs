//! Values that a quantized model has under other names than the float model it was made from.
//!
//! A node in half precision whose result is wanted in float32 makes it under a name of its own, and a Cast gives it the name it had. Once
//! all is float32 that Cast goes, and the name with it. The node still has its own name: by that its values are known again.

use std::collections::{HashMap, HashSet};

use crate::graph::{Graph, Model, Uses};
use crate::onnx::schema::NodeProto;

/// Gives what nodes of the quantized model make the names that the float model has for it, where neither knows the other's.
pub(super) fn give_back(float: &Model, quantized: &mut Model) {
    let (before, after) = (float.graph.uses(), quantized.graph.uses());
    let makers: HashMap<&str, &NodeProto> = float
        .graph
        .nodes
        .iter()
        .map(|node| (node.title(), node))
        .collect();
    // Names of nodes need not be unique.
    let (mut renamed, mut taken) = (HashMap::new(), HashSet::new());
    for node in &quantized.graph.nodes {
        let maker = makers.get(node.title());
        let Some(maker) = maker.filter(|maker| maker.op_type == node.op_type) else {
            continue;
        };
        for (found, wanted) in node.output.iter().zip(&maker.output) {
            // What is quantized stands for what the integers are of, which a folded Relu may have made.
            let mut readers = after.consumers(found).iter();
            let quantizes =
                |&(reader, _): &(usize, usize)| quantized.graph.nodes[reader].is("QuantizeLinear");
            let known = readers.any(quantizes)
                || is_known(&float.graph, &before, found)
                || is_known(&quantized.graph, &after, wanted)
                || after.is_output(found);
            if !known && !found.is_empty() && !wanted.is_empty() && taken.insert(wanted) {
                renamed.insert(found.clone(), wanted.clone());
            }
        }
    }
    let graph = &mut quantized.graph;
    for output in graph.nodes.iter_mut().flat_map(|node| &mut node.output) {
        if let Some(name) = renamed.get(output) {
            output.clone_from(name);
        }
    }
    graph.replace_all_uses(&renamed);
}

fn is_known(graph: &Graph, uses: &Uses, name: &str) -> bool {
    let is_fed = || graph.inputs.iter().any(|i| i.name.as_deref() == Some(name));
    uses.producer(name).is_some() || graph.initializers.contains(name) || is_fed()
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
        let mut made = Vec::new();
        for &(operator, title, output) in nodes {
            made.push(NodeProto::new(operator, title, &[read], &[output]));
            read = output;
        }
        let graph = GraphProto {
            input: vec![named("x")],
            output: vec![named(read)],
            node: made,
            ..Default::default()
        };
        Model::from_proto(ModelProto::of_graph(graph, 17)).unwrap()
    }

    #[test]
    fn what_a_node_of_the_same_name_makes_is_the_same_value_unless_either_model_knows_the_other() {
        let float = model(&[
            ("Tanh", "first", "a"),
            ("Relu", "second", "b"),
            ("Exp", "third", "c"),
            ("Sin", "fourth", "y"),
        ]);
        let mut quantized = model(&[
            ("Tanh", "first", "a_float16"),
            // What comes before a Relu makes its result where that is folded.
            ("Exp", "third", "b"),
            ("Cos", "fourth", "z"),
            ("Tanh", "first", "again"),
            ("Sin", "fifth", "y"),
        ]);
        give_back(&float, &mut quantized);
        let made = quantized.graph.nodes.iter().map(|node| &node.output[0]);
        assert_eq!(made.collect::<Vec<_>>(), ["a", "b", "z", "again", "y"]);
        assert_eq!(quantized.graph.nodes[1].input, ["a"]);
    }
}
