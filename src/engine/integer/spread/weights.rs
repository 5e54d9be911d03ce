//! Weights that are moved after they were dequantized: constants that lie as they are wanted.

use std::collections::HashMap;

use crate::graph::Graph;
use crate::onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

/// Gives every such node a constant, and a DequantizeLinear of it in the node's place.
pub(super) fn moved(graph: &mut Graph) {
    let names = graph.nodes.iter().enumerate();
    let mut makers: HashMap<String, usize> = names
        .filter(|(_, node)| node.is("DequantizeLinear"))
        .filter_map(|(index, node)| Some((node.output.first()?.clone(), index)))
        .collect();
    let mut names = graph.names();
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let maker = node.input_at(0).and_then(|name| makers.get(name));
        let Some((tensor, axis)) = maker.and_then(|&at| placed(node, &graph.nodes[at], graph))
        else {
            continue;
        };
        let maker = &graph.nodes[maker.copied().unwrap_or(index)];
        let name = names.fresh(&format!("{}_moved", tensor.title()));
        let mut inputs = maker.input.clone();
        inputs[0] = name.clone();
        let node = NodeProto {
            name: node.name.clone(),
            input: inputs,
            output: node.output.clone(),
            ..maker.clone()
        };
        let node = match axis {
            Some(axis) => {
                let mut node = node;
                node.set(AttributeProto::int("axis", axis as i64));
                node
            }
            None => node,
        };
        makers.extend(node.output.first().map(|output| (output.clone(), index)));
        graph.nodes[index] = node;
        graph.initializers.insert(TensorProto {
            name: Some(name),
            ..tensor
        });
    }
}

/// The constant that stands behind what a node moves, moved, and the axis its scales are along if they are several.
fn placed(
    node: &NodeProto,
    maker: &NodeProto,
    graph: &Graph,
) -> Option<(TensorProto, Option<usize>)> {
    let tensor = graph.initializers.get(maker.input_at(0)?)?;
    let bytes = [DataType::Uint8, DataType::Int8];
    if !bytes.contains(&tensor.element().ok()?) || maker.int("block_size").unwrap_or(0) != 0 {
        return None;
    }
    let shape = tensor.shape().ok()?;
    let scales = graph.initializers.get(maker.input_at(1)?)?;
    let axis = match scales.element_count().ok()? {
        1 => None,
        _ => Some(place(maker.int("axis").unwrap_or(1), shape.len())?),
    };
    if node.is("Transpose") {
        let order = order(node, shape.len())?;
        let values = transposed(&tensor.to_i64().ok()?, &shape, &order);
        let raw: Vec<u8> = values.iter().map(|&value| value as u8).collect();
        let turned: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let axis = axis.and_then(|axis| order.iter().position(|&at| at == axis));
        let element = tensor.element().ok()?;
        return Some((
            TensorProto::from_raw(tensor.title(), element, &turned, raw.into()),
            axis,
        ));
    }
    let other = reshaped(node, &shape, graph)?;
    let axis = match axis {
        // As many numbers before it, and as many along it.
        Some(axis) => {
            let before = |shape: &[usize], axis: usize| shape[..axis].iter().product::<usize>();
            let same = |&at: &usize| {
                other[at] == shape[axis] && before(&other, at) == before(&shape, axis)
            };
            Some((0..other.len()).find(same)?)
        }
        None => None,
    };
    let dims = other.iter().map(|&size| size as i64).collect();
    let tensor = TensorProto {
        dims,
        ..tensor.clone()
    };
    Some((tensor, axis))
}

fn place(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

fn order(node: &NodeProto, rank: usize) -> Option<Vec<usize>> {
    let Some(given) = node.ints("perm") else {
        return Some((0..rank).rev().collect());
    };
    let order: Vec<usize> = given
        .iter()
        .map(|&axis| place(axis, rank))
        .collect::<Option<_>>()?;
    (0..rank)
        .all(|axis| order.contains(&axis))
        .then_some(order)
        .filter(|order| order.len() == rank)
}

fn transposed(values: &[i64], shape: &[usize], order: &[usize]) -> Vec<i64> {
    let steps: Vec<usize> = order
        .iter()
        .map(|&axis| shape[axis + 1..].iter().product())
        .collect();
    let mut places = vec![0; order.len()];
    let mut at = 0;
    let mut made = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        made.push(values[at]);
        // The next place: the last axis first.
        for axis in (0..order.len()).rev() {
            places[axis] += 1;
            at += steps[axis];
            if places[axis] < shape[order[axis]] {
                break;
            }
            at -= steps[axis] * places[axis];
            places[axis] = 0;
        }
    }
    made
}

/// The shape that a node gives to numbers that stay in their order.
fn reshaped(node: &NodeProto, shape: &[usize], graph: &Graph) -> Option<Vec<usize>> {
    let list = |key: &str| match node.ints(key) {
        Some(list) => Some(list.to_vec()),
        None => graph.initializers.get(node.input_at(1)?)?.to_i64().ok(),
    };
    let count: usize = shape.iter().product();
    let made: Vec<usize> = if node.is("Identity") {
        shape.to_vec()
    } else if node.is("Flatten") {
        let axis = node.int("axis").unwrap_or(1);
        let axis = if axis == shape.len() as i64 {
            shape.len()
        } else {
            place(axis, shape.len())?
        };
        let outer = shape[..axis].iter().product();
        vec![outer, shape[axis..].iter().product()]
    } else if node.is("Squeeze") {
        let axes = match list("axes") {
            Some(axes) => axes
                .iter()
                .map(|&axis| place(axis, shape.len()))
                .collect::<Option<Vec<_>>>()?,
            None => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
        };
        let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
        kept.map(|axis| shape[axis]).collect()
    } else if node.is("Unsqueeze") {
        let axes = list("axes")?;
        let rank = shape.len() + axes.len();
        let axes: Vec<usize> = axes
            .iter()
            .map(|&axis| place(axis, rank))
            .collect::<Option<_>>()?;
        let mut rest = shape.iter();
        (0..rank)
            .map(|axis| match axes.contains(&axis) {
                true => Some(1),
                false => rest.next().copied(),
            })
            .collect::<Option<_>>()?
    } else if node.is("Reshape") {
        let wanted = list("shape")?;
        let zeros = node.int("allowzero").unwrap_or(0) != 0;
        let known = |(at, &size): (usize, &i64)| match size {
            0 if !zeros => shape.get(at).copied(),
            -1 => Some(1),
            size => usize::try_from(size).ok(),
        };
        let mut made: Vec<usize> = wanted
            .iter()
            .enumerate()
            .map(known)
            .collect::<Option<_>>()?;
        if let Some(rest) = wanted.iter().position(|&size| size == -1) {
            made[rest] = count.checked_div(made.iter().product())?;
        }
        made
    } else {
        return None;
    };
    (made.iter().product::<usize>() == count).then_some(made)
}
