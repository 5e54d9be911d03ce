//! Folds per-channel scales and shifts into the convolution or matrix product before them: batch
//! norms, and multiplications and additions of a constant.
//!
//! y = (x − mean) · factor + shift, per channel. With x = W·v + c this is y = (factor·W)·v +
//! (factor·(c − mean) + shift). The weights of each output channel are scaled and the bias moves.
//! Computed in f64 and rounded once.

use std::collections::HashSet;

use crate::operators::{ChannelPosition, ChannelRole, Operator};
use crate::{Graph, LayerWeightLayout, Names, Node, Slot, Use};
use octet_onnx::schema::{DataType, TensorProto};
use octet_onnx::tensor::TensorError;

/// Counts of folded nodes.
#[derive(Default)]
pub(super) struct FoldCounts {
    pub(super) norms: usize,
    pub(super) constants: usize,
}

/// Folds until nothing changes, so that chains of such nodes vanish too.
pub(super) fn fold(graph: &mut Graph) -> Result<FoldCounts, TensorError> {
    let mut folded = FoldCounts::default();
    loop {
        let before = folded.norms + folded.constants;
        fold_once(graph, &mut folded)?;
        if folded.norms + folded.constants == before {
            return Ok(folded);
        }
    }
}

fn fold_once(graph: &mut Graph, count: &mut FoldCounts) -> Result<(), TensorError> {
    let mut names = graph.names();
    let mut gone = HashSet::new();
    for i in 0..graph.nodes().len() {
        let Some(slot) = scaled_slot(graph, &graph.nodes()[i]) else {
            continue;
        };
        let Some(source) = graph.nodes()[i]
            .input_at(slot)
            .and_then(|x| graph.producer(x))
        else {
            continue;
        };
        if gone.contains(&source) || !only_user(graph, source, (i, slot)) {
            continue;
        }
        let Some(layer) = folded(graph, source, i, slot)? else {
            continue;
        };
        replace(graph, &mut names, source, i, layer);
        gone.insert(i);
        match graph.nodes()[i].is("BatchNormalization") {
            true => count.norms += 1,
            false => count.constants += 1,
        }
    }
    graph.remove_nodes(&gone);
    Ok(())
}

/// The input slot of the value that a node scales and shifts; `None` for any other node.
fn scaled_slot(graph: &Graph, node: &Node) -> Option<usize> {
    let constant = |slot| {
        node.input_at(slot)
            .is_some_and(|name| graph.initializers.contains(name))
    };
    if node.is("BatchNormalization") {
        return (node.int("training_mode") != Some(1)).then_some(0);
    }
    let role = Operator::of(node).channels;
    let commutes = role == ChannelRole::Multiplies || node.is("Add");
    let reads_first = commutes || role == ChannelRole::Divides || node.is("Sub");
    if reads_first && constant(1) {
        Some(0)
    } else {
        (commutes && constant(0)).then_some(1)
    }
}

/// True if only that slot reads the layer's output, and the node has a first output and uses no
/// other.
fn only_user(graph: &Graph, layer: usize, (norm, slot): (usize, usize)) -> bool {
    let value = &graph.nodes()[layer].output[0];
    let Some((first, others)) = graph.nodes()[norm].output.split_first() else {
        return false;
    };
    let extra = others.iter().any(|o| !o.is_empty() && !graph.is_unused(o)) || first.is_empty();
    let reader = Use {
        node: norm,
        slot: Slot::Input(slot),
    };
    !extra && !graph.is_output(value) && graph.consumers(value) == [reader]
}

/// Transform of each channel: (x − mean) · factor + shift.
struct ChannelAffine {
    mean: Vec<f64>,
    factor: Vec<f64>,
    shift: Vec<f64>,
}

fn float<'a>(graph: &'a Graph, node: &Node, slot: usize) -> Option<&'a TensorProto> {
    node.input_at(slot)
        .and_then(|name| graph.initializers.get(name))
        .filter(|t| t.element() == Ok(DataType::Float))
}

/// A constant as one number for each of `count` channels along `axis` of a value of this rank.
/// `None` if it varies along another axis.
pub fn constant_per_channel(
    constant: &TensorProto,
    count: usize,
    rank: usize,
    axis: usize,
) -> Result<Option<Vec<f64>>, TensorError> {
    let shape = constant.shape()?;
    // Broadcasting aligns shapes at their ends: one number, or one for each channel.
    let channel = (shape.len() + axis).checked_sub(rank);
    let fits = shape
        .iter()
        .enumerate()
        .all(|(axis, &size)| size == 1 || (Some(axis) == channel && size == count));
    if shape.len() > rank || !fits {
        return Ok(None);
    }
    let values = constant.to_f32()?;
    Ok(Some(match values[..] {
        [one] => vec![f64::from(one); count],
        _ => values.into_iter().map(f64::from).collect(),
    }))
}

/// The transform that a node applies to the `count` channels of a value of this rank; `None` if it
/// applies none.
fn affine(
    graph: &Graph,
    node: &Node,
    slot: usize,
    count: usize,
    rank: usize,
) -> Result<Option<ChannelAffine>, TensorError> {
    if node.is("BatchNormalization") {
        let mut numbers = Vec::with_capacity(4);
        for slot in 1..5 {
            let Some(tensor) = float(graph, node, slot) else {
                return Ok(None);
            };
            let values = tensor.to_f32()?;
            if values.len() != count {
                return Ok(None);
            }
            numbers.push(Vec::from_iter(values.into_iter().map(f64::from)));
        }
        let [scale, shift, mean, variance] = &mut numbers[..] else {
            return Ok(None);
        };
        let epsilon = f64::from(node.float("epsilon").unwrap_or(1e-5));
        let factor = scale
            .iter()
            .zip(variance)
            .map(|(s, v)| *s / (*v + epsilon).sqrt())
            .collect();
        let (mean, shift) = (std::mem::take(mean), std::mem::take(shift));
        return Ok(Some(ChannelAffine {
            mean,
            factor,
            shift,
        }));
    }
    let Some(constant) = float(graph, node, 1 - slot) else {
        return Ok(None);
    };
    let Some(numbers) = constant_per_channel(constant, count, rank, 1)? else {
        return Ok(None);
    };
    let (zeros, ones) = (vec![0.0; count], vec![1.0; count]);
    let (factor, shift) = match Operator::of(node).channels {
        ChannelRole::Multiplies => (numbers, zeros.clone()),
        ChannelRole::Divides => (numbers.into_iter().map(f64::recip).collect(), zeros.clone()),
        _ if node.is("Add") => (ones, numbers),
        _ => (ones, numbers.into_iter().map(|n| -n).collect()),
    };
    Ok(Some(ChannelAffine {
        mean: zeros,
        factor,
        shift,
    }))
}

struct FoldedLayer {
    weight: TensorProto,
    bias: TensorProto,
}

/// The layer's weight and bias with the following node folded in; `None` if that is impossible.
fn folded(
    graph: &Graph,
    layer: usize,
    norm: usize,
    slot: usize,
) -> Result<Option<FoldedLayer>, TensorError> {
    let (layer, norm) = (&graph.nodes()[layer], &graph.nodes()[norm]);
    let Some(weight) = float(graph, layer, 1) else {
        return Ok(None);
    };
    let shape = weight.shape()?;
    // A MatMul has no bias that could take the shift.
    let is_matmul = Operator::of(layer).channels == ChannelRole::Layer(ChannelPosition::Last);
    let Some(joins) = LayerWeightLayout::from_node(layer, &shape).filter(|_| !is_matmul) else {
        return Ok(None);
    };
    let count = joins.outputs;
    let bias = match (layer.input_at(2), float(graph, layer, 2)) {
        (None, _) => vec![0.0; count],
        (Some(_), Some(bias)) => bias.to_f32()?,
        (Some(_), None) => return Ok(None),
    };
    let Some(ChannelAffine {
        mean,
        factor,
        shift,
    }) = affine(graph, norm, slot, count, shape.len())?
    else {
        return Ok(None);
    };
    if bias.len() != count {
        return Ok(None);
    }
    let beta = f64::from(
        layer
            .float("beta")
            .filter(|_| layer.is("Gemm"))
            .unwrap_or(1.0),
    );
    // Gemm computes alpha · product + beta · bias, so the new bias is divided by beta.
    if beta == 0.0 || !factor.iter().all(|f| f.is_finite()) {
        return Ok(None);
    }
    let bias: Vec<f32> = (0..count)
        .map(|c| {
            let moved = beta * f64::from(bias[c]) - mean[c];
            ((moved * factor[c] + shift[c]) / beta) as f32
        })
        .collect();
    let name = weight.name.as_deref().unwrap_or_default();
    let scaled = weight.changed_f32(name, |first, mut values| {
        let mut at = first;
        while !values.is_empty() {
            let (_, output) = joins.of_window(at / joins.taps);
            let (run, rest) = values.split_at_mut(values.len().min(joins.taps - at % joins.taps));
            for value in &mut *run {
                *value = (f64::from(*value) * factor[output]) as f32;
            }
            at += run.len();
            values = rest;
        }
    })?;
    Ok(Some(FoldedLayer {
        weight: scaled,
        bias: TensorProto::from_f32("", &[count], &bias),
    }))
}

/// Gives the layer its folded constants and the output of the folded node. Constants with other
/// readers stay for them.
fn replace(graph: &mut Graph, names: &mut Names, layer: usize, norm: usize, folded: FoldedLayer) {
    let output = graph.nodes()[norm].output[0].clone();
    let shared = |name: &str| graph.consumers(name).len() > 1 || graph.is_output(name);
    let FoldedLayer {
        mut weight,
        mut bias,
    } = folded;
    let old = weight.name.clone().unwrap_or_default();
    if shared(&old) {
        weight.name = Some(names.fresh(&format!("{old}_folded")));
    }
    let bias_name = match graph.nodes()[layer].input_at(2) {
        Some(old) if shared(old) => names.fresh(&format!("{old}_folded")),
        Some(old) => old.to_owned(),
        None => names.fresh(&format!("{old}_bias")),
    };
    bias.name = Some(bias_name.clone());
    graph.edit(layer, |node| {
        node.set_input(1, weight.name.clone().unwrap_or_default());
        node.input.truncate(3);
        node.set_input(2, bias_name);
        node.output[0] = output;
    });
    graph.initializers.insert(weight);
    graph.initializers.insert(bias);
}
