//! Float weights that ONNX Runtime would round.
//!
//! If the input of a Conv, ConvTranspose or Gemm comes from a DequantizeLinear and its output goes
//! into a QuantizeLinear, ONNX Runtime rounds a float weight to 8 bits, with one scale for all
//! channels (1.32, WeightBiasQuantization). It leaves a node alone if its bias is not a constant.
//! So the bias becomes a DequantizeLinear of 32-bit integers, which hold it as well as floats.

use std::collections::HashSet;

use crate::bias;
use octet_graph::operators::{MacRule, Operator, Treatment};
use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// The largest integer of a bias; the step is as fine as that of a float of this size.
const LARGEST: f32 = (1 << 30) as f32;

/// Writes the biases of these layers as integers.
pub(super) fn keep_float_weights(model: &mut Model) {
    let layers: Vec<(usize, TensorProto)> = (0..model.graph.nodes().len())
        .filter_map(|index| Some((index, constant_bias(&model.graph, index)?)))
        .collect();
    if layers.is_empty() {
        return;
    }
    let mut names = model.graph.names();
    let mut replaced = HashSet::new();
    let mut before: Vec<Vec<Node>> = vec![Vec::new(); model.graph.nodes().len()];
    for (index, tensor) in layers {
        let Ok((floats, shape)) = tensor
            .to_f32()
            .and_then(|floats| Ok((floats, tensor.shape()?)))
        else {
            continue;
        };
        if floats.iter().any(|value| !value.is_finite()) {
            continue;
        }
        let largest = floats
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        let scale = match largest / LARGEST {
            step if step.is_normal() => step,
            _ => 1.0,
        };
        let (integers, _) = bias::integers(&floats, &[scale], 1.0, &[]);
        let fresh = |suffix: &str| names.fresh(&format!("{}{suffix}", tensor.title()));
        let [base, scale_name, output, title] = [
            "_quantized",
            "_quantized_scale",
            "_DequantizeLinear_Output",
            "_DequantizeLinear",
        ]
        .map(fresh);
        let initializers = &mut model.graph.initializers;
        initializers.insert(TensorProto::from_i32(&base, &shape, &integers));
        initializers.insert(TensorProto::from_f32(&scale_name, &[], &[scale]));
        before[index].push(Node::new(
            "DequantizeLinear",
            &title,
            &[&base, &scale_name],
            &[&output],
        ));
        replaced.insert(tensor.title().to_string());
        model.graph.edit(index, |node| {
            node.input.resize(node.input.len().max(3), String::new());
            node.input[2] = output;
        });
    }
    let nodes = model.graph.take_nodes();
    let nodes = nodes.into_iter().zip(before);
    let nodes = nodes.flat_map(|(node, mut before)| {
        before.push(node);
        before
    });
    let nodes: Vec<Node> = nodes.collect();
    model.graph.replace_nodes(nodes);
    model
        .graph
        .retain_initializers(|graph, name| !replaced.contains(name) || !graph.is_unused(name));
}

/// The constant bias of a layer whose float weight ONNX Runtime would round; zeros if it has none.
fn constant_bias(graph: &Graph, index: usize) -> Option<TensorProto> {
    let node = &graph.nodes()[index];
    let float = |name: &str| {
        let tensor = graph.initializers.get(name)?;
        (tensor.data_type == Some(DataType::Float as i32)).then_some(tensor)
    };
    let weight = float(node.input_at(1)?)?.shape().ok()?;
    let outputs = match Operator::of(node).macs {
        MacRule::Conv(1) => *weight.first()?,
        MacRule::ConvTranspose => weight.get(1)? * node.int("group").unwrap_or(1).max(1) as usize,
        MacRule::Gemm => {
            let transposed = node.int("transB").unwrap_or(0) != 0;
            *weight.get(usize::from(!transposed))?
        }
        _ => return None,
    };
    let input = &graph.nodes()[graph.producer(node.input_at(0)?)?];
    if input.op_type != "DequantizeLinear" || !is_quantized_behind(graph, index) {
        return None;
    }
    match node.input_at(2) {
        Some(bias) => float(bias).filter(|bias| bias.dims.len() == 1).cloned(),
        None => {
            let name = format!("{}_bias", node.title());
            Some(TensorProto::from_f32(
                &name,
                &[outputs],
                &vec![0.0; outputs],
            ))
        }
    }
}

/// True if the only path behind a node leads into a QuantizeLinear, with clamps between them.
fn is_quantized_behind(graph: &Graph, index: usize) -> bool {
    let mut node = &graph.nodes()[index];
    loop {
        let [output] = node.output.as_slice() else {
            return false;
        };
        let Some(reader) = graph.only_consumer(output) else {
            return false;
        };
        node = &graph.nodes()[reader.node];
        match Operator::of(node).treatment {
            _ if node.op_type == "QuantizeLinear" => return true,
            Some(Treatment::Clamp) => {}
            _ => return false,
        }
    }
}
