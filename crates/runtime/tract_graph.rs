//! Builds the graph that tract parses: nodes, inputs and outputs without weights.

use super::{Watched, cut_points, observe, operators, steps};
use octet_graph::{Attribute, Dim, MICROSOFT, Model, Node, tensor_type_of};
use octet_onnx::schema::{GraphProto, ModelProto, ValueInfoProto};

/// The model without weights, declared inner types and symbolic sizes; with observers.
pub(super) fn view(model: &Model, watched: &[Watched]) -> ModelProto {
    let graph = &model.graph;
    let mut nodes = graph.nodes().to_vec();
    for (node, name) in nodes.iter_mut().zip(steps::unique_names(graph)) {
        node.name = Some(name);
        // tract looks at the name only; an operator of another domain gets its qualified name.
        let foreign = match node.domain.as_deref() {
            None | Some("" | "ai.onnx" | "ai.onnx.ml") => false,
            Some(MICROSOFT) => node.op_type == "Attention",
            Some(_) => true,
        };
        if foreign {
            node.op_type = node.operator();
        }
        // A node may have both: tract uses `pads`, ONNX Runtime uses `auto_pad`.
        if node.text("auto_pad").is_some_and(|pad| pad != "NOTSET") {
            node.take("pads");
        }
    }
    let mut outputs = graph.outputs().to_vec();
    for output in outputs.iter_mut().filter_map(|o| o.name.as_mut()) {
        // tract finds outputs only among the results of nodes and the inputs.
        if graph.producer(output).is_none() && graph.initializers.contains(output) {
            let copy = format!("{output}/copy");
            nodes.push(node("Identity", output, &copy));
            *output = copy;
        }
    }
    let (settled, shape_values) = (
        graph.shape_determined(),
        cut_points::shape_values(graph.nodes().iter()),
    );
    let mut observers = Vec::new();
    for (slot, Watched { value, beside }) in watched.iter().enumerate() {
        let made = graph.producer(value);
        let others = beside.iter().filter_map(|other| graph.producer(other));
        // Behind all values that it reads; an input can be observed beside a computed value.
        let Some(producer) = made
            .filter(|_| beside.is_empty())
            .or(others.chain(made).max())
        else {
            continue;
        };
        let seen = format!("{value}/observed");
        let mut observer = node(observe::OPERATOR, value, &seen);
        observer.input.extend(beside.iter().cloned());
        observer.set(Attribute::int("slot", slot as i64));
        // A value that determines shapes must stay a constant, so its readers bypass the observer.
        let name = value.as_str();
        let aside = settled.contains(name) && shape_values.contains(name);
        for reader in graph.consumers(value).iter().filter(|_| !aside) {
            if let Some(slot) = reader.input() {
                nodes[reader.node].input[slot].clone_from(&seen);
            }
        }
        for output in outputs.iter_mut().filter_map(|o| o.name.as_mut()) {
            if output == value && !aside {
                output.clone_from(&seen);
            }
        }
        // tract runs only what an output needs: such an observer becomes an extra output behind the
        // model's own.
        if aside || graph.is_unused(value) {
            outputs.push(ValueInfoProto {
                name: Some(seen.clone()),
                ..ValueInfoProto::default()
            });
        }
        observers.push((producer, observer));
    }
    // Each observer goes right behind its producer, so that the order stays topological.
    observers.sort_by_key(|(producer, _)| *producer);
    let mut ordered = Vec::with_capacity(nodes.len() + observers.len());
    let mut waiting = observers.into_iter().peekable();
    for (index, node) in nodes.into_iter().enumerate() {
        ordered.extend(operators::in_order(node));
        while let Some((_, observer)) = waiting.next_if(|(producer, _)| *producer == index) {
            ordered.push(observer);
        }
    }
    ModelProto {
        ir_version: model.header().ir_version,
        opset_import: model.header().opset_import.clone(),
        graph: Some(GraphProto {
            node: ordered.iter().map(Node::to_proto).collect(),
            input: graph.inputs.iter().map(without_symbols).collect(),
            output: outputs,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// An input without symbolic sizes.
fn without_symbols(input: &ValueInfoProto) -> ValueInfoProto {
    let Some(mut found) = tensor_type_of(input) else {
        return input.clone();
    };
    for dim in found.shape.iter_mut().flatten() {
        if !matches!(dim, Dim::Known(size) if *size > 0) {
            *dim = Dim::Unknown;
        }
    }
    ValueInfoProto::new(input.name.as_deref().unwrap_or_default(), &found)
}

fn node(operator: &str, input: &str, output: &str) -> Node {
    Node::new(operator, output, &[input], &[output])
}
