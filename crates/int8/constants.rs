//! Constant folding of QuantizeLinear and DequantizeLinear.

use octet_graph::prepare::position;
use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// Folds every QuantizeLinear of a constant. Weights stored as floats thereby become integer
/// constants, as in other files.
pub(super) fn fold_quantized(model: &mut Model, watched: &[String]) {
    fold_with(model, watched, quantized);
    fold_with(model, watched, clipped);
}

/// Folds every DequantizeLinear of a constant into a float constant, so tract sees no weights of
/// other integer types.
pub(super) fn fold(model: &mut Model, watched: &[String]) {
    fold_with(model, watched, dequantized);
}

fn fold_with(
    model: &mut Model,
    watched: &[String],
    result: fn(&Graph, &Node) -> Option<TensorProto>,
) {
    let graph = &mut model.graph;
    let folded: Vec<(usize, TensorProto)> = graph
        .nodes()
        .iter()
        .enumerate()
        .filter_map(|(index, node)| Some((index, result(graph, node)?)))
        // Outputs and watched values keep their node, because the engine can show only results of
        // nodes.
        .filter(|(_, tensor)| !graph.is_output(tensor.title()))
        .filter(|(_, tensor)| !watched.iter().any(|name| name == tensor.title()))
        .collect();
    graph.remove_nodes(&folded.iter().map(|(index, _)| *index).collect());
    for (_, tensor) in folded {
        graph.initializers.insert(tensor);
    }
}

/// Scales and zero points of a node with a constant input, and their assignment to elements.
struct ElementParameters {
    scales: Vec<f32>,
    zero_points: Vec<i64>,
    block: usize,
    size: usize,
    inner: usize,
}

impl ElementParameters {
    fn new(graph: &Graph, node: &Node, shape: &[usize]) -> Option<ElementParameters> {
        let constant = |slot| graph.initializers.get(node.input_at(slot)?);
        let scale = constant(1)?;
        let scales = scale.to_f32().ok()?;
        let zero_points = match node.input_at(2) {
            Some(_) => constant(2)?.to_i64().ok()?,
            None => vec![0; scales.len()],
        };
        let half = scale.element().is_ok_and(DataType::is_half);
        if scales.is_empty() || zero_points.len() != scales.len() || half {
            return None;
        }
        let block = usize::try_from(node.int("block_size").unwrap_or(0)).ok()?;
        if scales.len() == 1 {
            let (size, inner) = (1, 1);
            return Some(ElementParameters {
                scales,
                zero_points,
                block,
                size,
                inner,
            });
        }
        let axis = position(node.int("axis").unwrap_or(1), shape.len())?;
        let outer: usize = shape[..axis].iter().product();
        let (size, inner) = (shape[axis], shape[axis + 1..].iter().product());
        let wanted = match block {
            0 => size,
            _ => outer * size.div_ceil(block) * inner,
        };
        (scales.len() == wanted).then_some(ElementParameters {
            scales,
            zero_points,
            block,
            size,
            inner,
        })
    }

    fn at(&self, index: usize) -> (f32, i64) {
        let ElementParameters {
            block, size, inner, ..
        } = *self;
        let place = match (self.scales.len(), block) {
            (1, _) => 0,
            (_, 0) => index / inner % size,
            _ => {
                let along = index / inner % size / block;
                (index / inner / size * size.div_ceil(block) + along) * inner + index % inner
            }
        };
        (self.scales[place], self.zero_points[place])
    }
}

/// Folds a DequantizeLinear exactly as the operator computes it; `None` if its input is not
/// constant or its scales do not fit.
pub(super) fn dequantized(graph: &Graph, node: &Node) -> Option<TensorProto> {
    if !node.is("DequantizeLinear") {
        return None;
    }
    let tensor = graph.initializers.get(node.input_at(0)?)?;
    let shape = tensor.shape().ok()?;
    let linear = ElementParameters::new(graph, node, &shape)?;
    let integers = tensor.to_i64().ok()?;
    let real = |(index, &integer): (usize, &i64)| {
        let (scale, zero_point) = linear.at(index);
        (integer - zero_point) as f32 * scale
    };
    let values: Vec<f32> = integers.iter().enumerate().map(real).collect();
    let name = node.output.first()?;
    (values.len() == shape.iter().product::<usize>())
        .then(|| TensorProto::from_f32(name, &shape, &values))
}

/// Folds a Clip of a constant byte tensor.
fn clipped(graph: &Graph, node: &Node) -> Option<TensorProto> {
    let constant = |slot: usize| graph.initializers.get(node.input_at(slot)?);
    let tensor = constant(0).filter(|_| node.is("Clip"))?;
    let element = tensor.element().ok()?;
    if !matches!(element, DataType::Uint8 | DataType::Int8) {
        return None;
    }
    let bound = |slot: usize, none: i64| match node.input_at(slot) {
        Some(_) => constant(slot)?.to_i64().ok()?.first().copied(),
        None => Some(none),
    };
    let (low, high) = (bound(1, i64::MIN)?, bound(2, i64::MAX)?);
    let values = tensor.to_i64().ok()?.into_iter();
    let bytes: Vec<u8> = values.map(|value| value.max(low).min(high) as u8).collect();
    let (name, shape) = (node.output.first()?, tensor.shape().ok()?);
    Some(TensorProto::from_raw(name, element, &shape, bytes.into()))
}

/// Folds a QuantizeLinear of a constant to eight bits.
fn quantized(graph: &Graph, node: &Node) -> Option<TensorProto> {
    if !node.is("QuantizeLinear") || node.int("output_dtype").unwrap_or(0) != 0 {
        return None;
    }
    let tensor = graph.initializers.get(node.input_at(0)?)?;
    let shape = tensor.shape().ok()?;
    let linear = ElementParameters::new(graph, node, &shape)?;
    let element = match node.input_at(2) {
        Some(name) => graph.initializers.get(name)?.element().ok()?,
        None => DataType::Uint8,
    };
    let (low, high) = match element {
        DataType::Uint8 => (0.0, 255.0),
        DataType::Int8 => (-128.0, 127.0),
        _ => return None,
    };
    let integer = |(index, &real): (usize, &f32)| {
        let (scale, zero_point) = linear.at(index);
        let steps = (real / scale).round_ties_even() + zero_point as f32;
        steps.clamp(low, high) as i64 as u8
    };
    let values = tensor.to_f32().ok()?;
    let bytes: Vec<u8> = values.iter().enumerate().map(integer).collect();
    let name = node.output.first()?;
    (bytes.len() == shape.iter().product::<usize>())
        .then(|| TensorProto::from_raw(name, element, &shape, bytes.into()))
}
