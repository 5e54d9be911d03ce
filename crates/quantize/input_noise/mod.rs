//! Input noise: the path from the model's inputs to the first weights, and the noise that rounding
//! on it adds to the first layers.
//!
//! A table's columns can differ widely, such as years beside fractions. Either the weights or
//! constants before them even this out. One scale for all columns then leaves nothing of the small
//! ones, and the error of the whole value does not show it. The measure is the noise in the first
//! layer's outputs relative to their variance.

mod noise;

use std::collections::BTreeMap;

pub(super) use noise::InputNoise;

use octet_graph::operators::{ChannelPosition, ChannelRole, Operator};
use octet_graph::prepare::constant_per_channel;
use octet_graph::{LayerWeightLayout, Model, Node};

/// A layer that reads a model input, directly or through arithmetic with constants.
#[derive(Debug)]
struct InputPath<'a> {
    node: &'a Node,
    weight: &'a str,
    /// The channel axis of its input.
    axis: usize,
    /// The values on the path, the layer's own input first. Each has the derivative of the layer's
    /// input with respect to it, per channel.
    values: Vec<(&'a str, Vec<f64>)>,
    constants: Vec<PathConstant<'a>>,
}

/// A constant on the path.
#[derive(Debug)]
struct PathConstant<'a> {
    name: &'a str,
    /// The derivative of the layer's input with respect to the constant, per channel. It excludes
    /// the factor `times`, the value that the constant multiplies, if any.
    gain: Vec<f64>,
    times: Option<&'a str>,
}

/// The values between the model's inputs and the first weights, with their channel axes.
pub fn input_path_axes(model: &Model) -> BTreeMap<String, usize> {
    let values = |path: InputPath<'_>| {
        let axis = path.axis;
        let names = path.values.into_iter();
        names
            .map(move |(name, _)| (name.to_string(), axis))
            .collect::<Vec<_>>()
    };
    input_paths(model).into_iter().flat_map(values).collect()
}

fn input_paths(model: &Model) -> Vec<InputPath<'_>> {
    let nodes = model.graph.nodes().iter();
    nodes.filter_map(|node| input_path(model, node)).collect()
}

fn input_path<'a>(model: &'a Model, node: &'a Node) -> Option<InputPath<'a>> {
    let graph = &model.graph;
    let weight = node.input_at(1)?;
    let weight_layout =
        LayerWeightLayout::from_node(node, &graph.initializers.get(weight)?.shape().ok()?)?;
    if node.int("transA").unwrap_or(0) != 0 {
        return None;
    }
    let mut value = node.input_at(0)?;
    let rank = graph.tensor_type(value)?.shape?.len();
    let axis = match Operator::of(node).channels {
        ChannelRole::Layer(ChannelPosition::Last) => rank.checked_sub(1)?,
        _ => 1,
    };
    let mut gains = vec![1.0; weight_layout.inputs];
    let mut values = vec![(value, gains.clone())];
    let mut constants = Vec::new();
    while !graph
        .inputs
        .iter()
        .any(|input| input.name.as_deref() == Some(value))
    {
        let producer = &graph.nodes()[graph.producer(value)?];
        let constant = |slot: usize| graph.initializers.get(producer.input_at(slot)?);
        let (from, tensor) = match (constant(0), constant(1)) {
            (None, Some(tensor)) => (producer.input_at(0)?, tensor),
            (Some(tensor), None) if !producer.is("Div") => (producer.input_at(1)?, tensor),
            _ => return None,
        };
        if producer.is("Add") || producer.is("Sub") {
            constants.push(PathConstant {
                name: tensor.title(),
                gain: gains.clone(),
                times: None,
            });
        } else if producer.is("Mul") || producer.is("Div") {
            let numbers = constant_per_channel(tensor, weight_layout.inputs, rank, axis).ok()??;
            // The derivative with respect to the factor: that of x / d is x / d², up to the sign.
            let (by, change): (Vec<f64>, Vec<f64>) = match producer.is("Mul") {
                true => (numbers, vec![1.0; weight_layout.inputs]),
                false => numbers.iter().map(|d| (1.0 / d, 1.0 / (d * d))).unzip(),
            };
            constants.push(PathConstant {
                name: tensor.title(),
                gain: gains.iter().zip(change).map(|(g, c)| g * c).collect(),
                times: Some(from),
            });
            for (gain, by) in gains.iter_mut().zip(by) {
                *gain *= by;
            }
        } else {
            return None;
        }
        value = from;
        values.push((value, gains.clone()));
    }
    Some(InputPath {
        node,
        weight,
        axis,
        values,
        constants,
    })
}

#[cfg(test)]
mod tests {
    use super::noise::tests::{divided, model};
    use super::*;

    #[test]
    fn a_path_has_arithmetic_with_constants_only() {
        let (known, _) = divided(&[1.0, 2.0], [0.0, 0.0], [1.0, 1.0]);
        let axes = input_path_axes(&known);
        assert_eq!(axes.keys().collect::<Vec<_>>(), ["c", "n", "x"]);
        assert!(axes.values().all(|&axis| axis == 1));
        // A product of two values ends the path, and so does an operator other than arithmetic with
        // constants.
        for node in [
            ["Mul", "x", "x", "n"],
            ["Relu", "x", "", "n"],
            ["Div", "m", "x", "n"],
        ] {
            let other = model(&[node], &[("m", [1.0, 1.0])]);
            assert!(input_path_axes(&other).is_empty(), "{node:?}");
        }
    }
}
