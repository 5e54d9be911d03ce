//! Weights that are moved after their DequantizeLinear become constants in the final layout.

use std::collections::HashMap;

use octet_kernels::int8::permute;

use crate::pattern::attributes::permutation;
use octet_graph::operators::{Operator, Property};
use octet_graph::prepare::{infer, position};
use octet_graph::{Attribute, Graph, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// True for nodes that a constant can pass: they keep all values and may permute axes.
pub(super) fn is_data_movement(node: &Node) -> bool {
    let operator = Operator::of(node);
    operator.has(Property::ChangesForm) && operator.has(Property::MovesData)
}

/// Replaces every such node by a DequantizeLinear of a new constant.
pub(super) fn fold_moved(graph: &mut Graph) {
    let nodes = graph.nodes().iter().enumerate();
    let mut makers: HashMap<String, usize> = nodes
        .filter(|(_, node)| node.is("DequantizeLinear"))
        .filter(|(_, node)| {
            let integers = node.input_at(0);
            integers.is_some_and(|name| graph.initializers.contains(name))
        })
        .filter_map(|(index, node)| Some((node.output.first()?.clone(), index)))
        .collect();
    let reads = |node: &Node| {
        node.input_at(0)
            .is_some_and(|name| makers.contains_key(name))
    };
    if !graph
        .nodes()
        .iter()
        .any(|node| is_data_movement(node) && reads(node))
    {
        return;
    }
    let types = infer(graph);
    let mut names = graph.names();
    for index in 0..graph.nodes().len() {
        let node = &graph.nodes()[index];
        let maker = node.input_at(0).and_then(|name| makers.get(name));
        let Some(maker) = maker
            .filter(|_| is_data_movement(node))
            .map(|&at| &graph.nodes()[at])
        else {
            continue;
        };
        let shape = node
            .output
            .first()
            .and_then(|name| types.get(name)?.sizes());
        let Some((tensor, axis)) =
            shape.and_then(|shape| moved_constant(node, maker, &shape, graph))
        else {
            continue;
        };
        let name = names.fresh(&format!("{}_moved", tensor.title()));
        let mut moved = Node {
            name: node.name.clone(),
            output: node.output.clone(),
            ..maker.clone()
        };
        moved.input[0] = name.clone();
        if let Some(axis) = axis {
            moved.set(Attribute::int("axis", axis as i64));
        }
        makers.extend(moved.output.first().map(|output| (output.clone(), index)));
        graph.edit(index, |node| *node = moved);
        graph.initializers.insert(TensorProto {
            name: Some(name),
            ..tensor
        });
    }
}

/// The moved constant in the node's shape, with the axis of its per-channel scales.
fn moved_constant(
    node: &Node,
    maker: &Node,
    to: &[usize],
    graph: &Graph,
) -> Option<(TensorProto, Option<usize>)> {
    let tensor = graph.initializers.get(maker.input_at(0)?)?;
    let element = tensor.element().ok()?;
    let bytes = matches!(element, DataType::Uint8 | DataType::Int8);
    if !bytes || maker.int("block_size").unwrap_or(0) != 0 {
        return None;
    }
    let from = tensor.shape().ok()?;
    let scales = graph.initializers.get(maker.input_at(1)?)?;
    let axis = match scales.element_count().ok()? {
        1 => None,
        _ => Some(position(maker.int("axis").unwrap_or(1), from.len())?),
    };
    let values = tensor.to_i64().ok()?;
    let mut raw: Vec<u8> = values.iter().map(|&value| value as u8).collect();
    let axis = if node.is("Transpose") {
        let order = permutation(node, from.len()).ok()?;
        let source = std::mem::replace(&mut raw, vec![0; values.len()]);
        permute(&source, &from, &order, &mut raw).ok()?;
        axis.and_then(|axis| order.iter().position(|&at| at == axis))
    } else {
        match axis {
            // The matching axis has the same size and as many elements before it.
            Some(axis) => {
                let before = |shape: &[usize], axis: usize| shape[..axis].iter().product::<usize>();
                let same =
                    |&at: &usize| to[at] == from[axis] && before(to, at) == before(&from, axis);
                Some((0..to.len()).find(same)?)
            }
            None => None,
        }
    };
    let whole = to.iter().product::<usize>() == raw.len();
    whole.then(|| {
        (
            TensorProto::from_raw(tensor.title(), element, to, raw.into()),
            axis,
        )
    })
}
