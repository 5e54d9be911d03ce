//! Additions of a quantized and a float value, for targets that add integers only to integers.

use octet_graph::{Model, Node};

/// Lets an Add read floats in place of integers where another computed input is float.
pub(crate) fn read_floats_beside_floats(model: &mut Model) {
    let graph = &model.graph;
    let source = |name: &str| graph.producer(name).map(|id| &graph.nodes()[id]);
    let pair = |name: &str| {
        let read = source(name).filter(|node| node.is("DequantizeLinear"))?;
        source(read.input_at(0)?)
            .filter(|node| node.is("QuantizeLinear"))?
            .input_at(0)
    };
    let is_constant = |name: &String| {
        let read = source(name).filter(|node| node.is("DequantizeLinear"));
        let stored = read.and_then(|node| node.input_at(0)).unwrap_or(name);
        graph.initializers.contains(stored)
    };
    let mixed = |node: &Node| {
        let mut computed = node.input.iter().filter(|name| !is_constant(name));
        node.is("Add") && computed.any(|name| pair(name).is_none())
    };
    let mut changes = Vec::new();
    for (id, node) in graph
        .nodes()
        .iter()
        .enumerate()
        .filter(|(_, node)| mixed(node))
    {
        for (slot, name) in node.input.iter().enumerate() {
            if let Some(float) = pair(name) {
                changes.push((id, slot, float.to_owned()));
            }
        }
    }
    for (id, slot, float) in changes {
        model.graph.edit(id, |node| node.set_input(slot, float));
    }
    remove_unread_pairs(model);
}

/// Removes pairs whose result nothing reads any more.
fn remove_unread_pairs(model: &mut Model) {
    loop {
        let graph = &model.graph;
        let is_unread = |node: &Node| {
            let linear = node.is("DequantizeLinear") || node.is("QuantizeLinear");
            linear && node.output.iter().all(|name| graph.is_unused(name))
        };
        let kept: Vec<Node> = graph
            .nodes()
            .iter()
            .filter(|node| !is_unread(node))
            .cloned()
            .collect();
        if kept.len() == graph.nodes().len() {
            break;
        }
        model.graph.replace_nodes(kept);
    }
    let before = model.graph.clone();
    model.graph.retain_initializers(|graph, name| {
        !graph.is_unused(name)
            || before
                .inputs
                .iter()
                .any(|input| input.name.as_deref() == Some(name))
    });
}
