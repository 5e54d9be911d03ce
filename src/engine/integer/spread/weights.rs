//! Weights that are moved after they were dequantized: constants that lie as they are wanted.

use std::collections::HashMap;

use octet_kernels::int8::permute;

use crate::engine::integer::pattern::order;
use crate::graph::Graph;
use crate::onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};
use crate::prepare::{infer, position};

/// What a constant can be moved by: it keeps all numbers, in their order or in that of other axes.
const MOVING: [&str; 6] = [
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Transpose",
];

pub(super) fn moves(node: &NodeProto) -> bool {
    MOVING.iter().any(|operator| node.is(operator))
}

/// Gives every such node a constant, and a DequantizeLinear of it in the node's place.
pub(super) fn moved(graph: &mut Graph) {
    let nodes = graph.nodes.iter().enumerate();
    let mut makers: HashMap<String, usize> = nodes
        .filter(|(_, node)| node.is("DequantizeLinear"))
        .filter(|(_, node)| {
            let integers = node.input_at(0);
            integers.is_some_and(|name| graph.initializers.contains(name))
        })
        .filter_map(|(index, node)| Some((node.output.first()?.clone(), index)))
        .collect();
    let reads = |node: &NodeProto| {
        node.input_at(0)
            .is_some_and(|name| makers.contains_key(name))
    };
    if !graph.nodes.iter().any(|node| moves(node) && reads(node)) {
        return;
    }
    let types = infer(graph);
    let mut names = graph.names();
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let maker = node.input_at(0).and_then(|name| makers.get(name));
        let Some(maker) = maker.filter(|_| moves(node)).map(|&at| &graph.nodes[at]) else {
            continue;
        };
        let shape = node
            .output
            .first()
            .and_then(|name| types.get(name)?.sizes());
        let Some((tensor, axis)) = shape.and_then(|shape| placed(node, maker, &shape, graph))
        else {
            continue;
        };
        let name = names.fresh(&format!("{}_moved", tensor.title()));
        let mut moved = NodeProto {
            name: node.name.clone(),
            output: node.output.clone(),
            ..maker.clone()
        };
        moved.input[0] = name.clone();
        if let Some(axis) = axis {
            moved.set(AttributeProto::int("axis", axis as i64));
        }
        makers.extend(moved.output.first().map(|output| (output.clone(), index)));
        graph.nodes[index] = moved;
        graph.initializers.insert(TensorProto {
            name: Some(name),
            ..tensor
        });
    }
}

/// The constant that stands behind what a node moves into this shape, moved, and the axis its scales are along if they are several.
fn placed(
    node: &NodeProto,
    maker: &NodeProto,
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
        let order = order(node, from.len()).ok()?;
        let given = std::mem::replace(&mut raw, vec![0; values.len()]);
        permute(&given, &from, &order, &mut raw).ok()?;
        axis.and_then(|axis| order.iter().position(|&at| at == axis))
    } else {
        match axis {
            // As many numbers before it, and as many along it.
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
