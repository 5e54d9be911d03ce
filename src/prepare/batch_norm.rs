//! Batch norms become part of the convolution or matrix product before them.
//!
//! y = (x − mean) · s + b with s = scale / √(variance + ε), per channel. Where x = W·v + c, that is
//! y = (s·W)·v + (s·(c − mean) + b): the weights of each output channel scaled, the bias moved.
//! Computed in f64 and rounded once.

use std::collections::HashSet;

use crate::graph::{Graph, Names, Uses};
use crate::onnx::schema::{DataType, NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// Folds every batch norm it can. Returns how many.
pub(super) fn fold(graph: &mut Graph) -> Result<usize, TensorError> {
    let uses = graph.uses();
    let mut names = graph.names();
    let mut gone = HashSet::new();
    for i in 0..graph.nodes.len() {
        if !graph.nodes[i].is("BatchNormalization")
            || graph.nodes[i].int("training_mode") == Some(1)
        {
            continue;
        }
        let Some(source) = graph.nodes[i].input_at(0).and_then(|x| uses.producer(x)) else {
            continue;
        };
        if gone.contains(&source) || !only_user(graph, &uses, source, i) {
            continue;
        }
        let Some(layer) = folded(graph, source, i)? else {
            continue;
        };
        replace(graph, &uses, &mut names, source, i, layer);
        gone.insert(i);
    }
    graph.remove_nodes(&gone);
    Ok(gone.len())
}

/// Whether the layer's result goes to the batch norm only, and only its first output is used.
fn only_user(graph: &Graph, uses: &Uses, layer: usize, norm: usize) -> bool {
    let value = &graph.nodes[layer].output[0];
    let extra = graph.nodes[norm]
        .output
        .iter()
        .skip(1)
        .any(|o| !o.is_empty() && (uses.is_output(o) || !uses.consumers(o).is_empty()));
    !extra && !uses.is_output(value) && uses.consumers(value) == [(norm, 0)]
}

struct Layer {
    weight: TensorProto,
    bias: TensorProto,
}

/// The weights of the layer with the batch norm in them; `None` where that can't be.
fn folded(graph: &Graph, layer: usize, norm: usize) -> Result<Option<Layer>, TensorError> {
    let (layer, norm) = (&graph.nodes[layer], &graph.nodes[norm]);
    let float = |node: &NodeProto, slot: usize| {
        node.input_at(slot)
            .and_then(|name| graph.initializers.get(name))
            .filter(|t| t.element() == Ok(DataType::Float))
    };
    let (Some(scale), Some(shift), Some(mean), Some(variance), Some(weight)) = (
        float(norm, 1),
        float(norm, 2),
        float(norm, 3),
        float(norm, 4),
        float(layer, 1),
    ) else {
        return Ok(None);
    };
    let shape = weight.shape()?;
    let Some(channel) = channels(layer, &shape) else {
        return Ok(None);
    };
    let count = scale.element_count()?;
    let bias = match (layer.input_at(2), float(layer, 2)) {
        (None, _) => vec![0.0; count],
        (Some(_), Some(bias)) => bias.to_f32()?,
        (Some(_), None) => return Ok(None),
    };
    let (scale, shift, mean, variance) = (
        scale.to_f32()?,
        shift.to_f32()?,
        mean.to_f32()?,
        variance.to_f32()?,
    );
    let sizes = [
        shift.len(),
        mean.len(),
        variance.len(),
        bias.len(),
        channel.count,
    ];
    if sizes.iter().any(|&size| size != count) {
        return Ok(None);
    }
    let epsilon = f64::from(norm.float("epsilon").unwrap_or(1e-5));
    let beta = f64::from(
        layer
            .float("beta")
            .filter(|_| layer.is("Gemm"))
            .unwrap_or(1.0),
    );
    let factor: Vec<f64> = scale
        .iter()
        .zip(&variance)
        .map(|(&s, &v)| f64::from(s) / (f64::from(v) + epsilon).sqrt())
        .collect();
    // Gemm multiplies its bias by beta and its product by alpha: the first is undone here.
    if beta == 0.0 || !factor.iter().all(|f| f.is_finite()) {
        return Ok(None);
    }
    let bias: Vec<f32> = (0..count)
        .map(|c| {
            let moved = beta * f64::from(bias[c]) - f64::from(mean[c]);
            ((moved * factor[c] + f64::from(shift[c])) / beta) as f32
        })
        .collect();
    let mut values = weight.to_f32()?;
    for (at, value) in values.iter_mut().enumerate() {
        *value = (f64::from(*value) * factor[(channel.of)(at, &channel)]) as f32;
    }
    let name = |t: &TensorProto| t.name.clone().unwrap_or_default();
    Ok(Some(Layer {
        weight: TensorProto::from_f32(&name(weight), &shape, &values),
        bias: TensorProto::from_f32("", &[count], &bias),
    }))
}

/// How the output channels lie in a weight.
struct Channels {
    count: usize,
    /// Elements from one index of the channel axis to the next.
    step: usize,
    /// Sizes of the channel axis and, for transposed convolutions, of a group's inputs.
    axis: usize,
    group_inputs: usize,
    of: fn(usize, &Channels) -> usize,
}

fn channels(layer: &NodeProto, shape: &[usize]) -> Option<Channels> {
    let after = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let plain = |axis: usize| Channels {
        count: shape[axis],
        step: after(axis),
        axis: shape[axis],
        group_inputs: 1,
        of: |at, c| at / c.step % c.axis,
    };
    if layer.is("Conv") && shape.len() >= 3 {
        Some(plain(0))
    } else if layer.is("ConvTranspose") && shape.len() >= 3 {
        // [inputs, outputs / group, …]: the group is told by the input.
        let group = usize::try_from(layer.int("group").unwrap_or(1))
            .ok()
            .filter(|&g| g > 0)?;
        (shape[0] % group == 0).then(|| Channels {
            count: shape[1] * group,
            step: after(1),
            axis: shape[1],
            group_inputs: shape[0] / group,
            of: |at, c| {
                let input = at / (c.step * c.axis);
                input / c.group_inputs * c.axis + at / c.step % c.axis
            },
        })
    } else if layer.is("Gemm") && shape.len() == 2 {
        Some(plain(if layer.int("transB").unwrap_or(0) != 0 {
            0
        } else {
            1
        }))
    } else {
        None
    }
}

/// Gives the layer its new weights and the batch norm's output. Weights others use stay for them.
fn replace(
    graph: &mut Graph,
    uses: &Uses,
    names: &mut Names,
    layer: usize,
    norm: usize,
    folded: Layer,
) {
    let output = graph.nodes[norm].output[0].clone();
    let shared = |name: &str| uses.consumers(name).len() > 1 || uses.is_output(name);
    let Layer {
        mut weight,
        mut bias,
    } = folded;
    let old = weight.name.clone().unwrap_or_default();
    if shared(&old) {
        weight.name = Some(names.fresh(&format!("{old}_folded")));
    }
    let bias_name = match graph.nodes[layer].input_at(2) {
        Some(old) if shared(old) => names.fresh(&format!("{old}_folded")),
        Some(old) => old.to_owned(),
        None => names.fresh(&format!("{old}_bias")),
    };
    bias.name = Some(bias_name.clone());
    let node = &mut graph.nodes[layer];
    node.input[1] = weight.name.clone().unwrap_or_default();
    node.input.resize(3, String::new());
    node.input[2] = bias_name;
    node.output[0] = output;
    graph.initializers.insert(weight);
    graph.initializers.insert(bias);
}
