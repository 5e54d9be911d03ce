//! What the model's inputs go through before weights meet them, and what rounding there adds to what the weights make.
//!
//! Nothing has made the channels of an input alike: a table has years beside shares, and either the weights undo it or constants
//! before them. One scale for all then leaves nothing of the small ones, and no error of the value as a whole shows it. What
//! counts is what is added to the sums that the weights make, against how these vary.

mod additions;

use std::collections::BTreeMap;

pub(super) use additions::Additions;

use crate::graph::{Joins, Model, Uses};
use crate::onnx::schema::NodeProto;
use crate::prepare::constant_per_channel;

/// A layer whose input is one of the model's, or made of one by constants alone.
#[derive(Debug)]
struct Inlet<'a> {
    node: &'a NodeProto,
    weight: &'a str,
    /// The axis of its input's channels.
    axis: usize,
    /// The values on the way, the layer's own input first: by how much the layer's input grows with each, channel by channel.
    way: Vec<(&'a str, Vec<f64>)>,
    constants: Vec<Met<'a>>,
}

/// A constant on the way.
#[derive(Debug)]
struct Met<'a> {
    name: &'a str,
    /// By how much the layer's input grows with it, channel by channel: times the value it is multiplied with, where there is one.
    growth: Vec<f64>,
    times: Option<&'a str>,
}

/// The values between the model's inputs and the first weights, and the axis of their channels.
pub fn inlet_axes(model: &Model) -> BTreeMap<String, usize> {
    let values = |inlet: Inlet<'_>| {
        let axis = inlet.axis;
        let names = inlet.way.into_iter();
        names
            .map(move |(name, _)| (name.to_string(), axis))
            .collect::<Vec<_>>()
    };
    inlets(model).into_iter().flat_map(values).collect()
}

fn inlets(model: &Model) -> Vec<Inlet<'_>> {
    let uses = model.graph.uses();
    let nodes = model.graph.nodes.iter();
    nodes.filter_map(|node| inlet(model, &uses, node)).collect()
}

fn inlet<'a>(model: &'a Model, uses: &Uses, node: &'a NodeProto) -> Option<Inlet<'a>> {
    let graph = &model.graph;
    let weight = node.input_at(1)?;
    let joins = Joins::of(node, &graph.initializers.get(weight)?.shape().ok()?)?;
    if node.int("transA").unwrap_or(0) != 0 {
        return None;
    }
    let mut value = node.input_at(0)?;
    let rank = graph.tensor_type(value)?.shape?.len();
    let axis = match node.is("MatMul") {
        true => rank.checked_sub(1)?,
        false => 1,
    };
    let mut gains = vec![1.0; joins.inputs];
    let mut way = vec![(value, gains.clone())];
    let mut constants = Vec::new();
    while !graph
        .inputs
        .iter()
        .any(|input| input.name.as_deref() == Some(value))
    {
        let maker = &graph.nodes[uses.producer(value)?];
        let constant = |slot: usize| graph.initializers.get(maker.input_at(slot)?);
        let (from, tensor) = match (constant(0), constant(1)) {
            (None, Some(tensor)) => (maker.input_at(0)?, tensor),
            (Some(tensor), None) if !maker.is("Div") => (maker.input_at(1)?, tensor),
            _ => return None,
        };
        if maker.is("Add") || maker.is("Sub") {
            constants.push(Met {
                name: tensor.title(),
                growth: gains.clone(),
                times: None,
            });
        } else if maker.is("Mul") || maker.is("Div") {
            let numbers = constant_per_channel(tensor, joins.inputs, rank, axis).ok()??;
            // What a change of the factor changes: of x / d it is x / d².
            let (by, change): (Vec<f64>, Vec<f64>) = match maker.is("Mul") {
                true => (numbers, vec![1.0; joins.inputs]),
                false => numbers.iter().map(|d| (1.0 / d, 1.0 / (d * d))).unzip(),
            };
            constants.push(Met {
                name: tensor.title(),
                growth: gains.iter().zip(change).map(|(g, c)| g * c).collect(),
                times: Some(from),
            });
            for (gain, by) in gains.iter_mut().zip(by) {
                *gain *= by;
            }
        } else {
            return None;
        }
        value = from;
        way.push((value, gains.clone()));
    }
    Some(Inlet {
        node,
        weight,
        axis,
        way,
        constants,
    })
}

#[cfg(test)]
mod tests {
    use super::additions::tests::{divided, model};
    use super::*;

    #[test]
    fn what_constants_alone_make_of_an_input_is_on_the_way() {
        let (known, _) = divided(&[1.0, 2.0], [0.0, 0.0], [1.0, 1.0]);
        let axes = inlet_axes(&known);
        assert_eq!(axes.keys().collect::<Vec<_>>(), ["c", "n", "x"]);
        assert!(axes.values().all(|&axis| axis == 1));
        // A product of two values ends it, and so does anything that is no arithmetic with constants.
        for node in [
            ["Mul", "x", "x", "n"],
            ["Relu", "x", "", "n"],
            ["Div", "m", "x", "n"],
        ] {
            let other = model(&[node], &[("m", [1.0, 1.0])]);
            assert!(inlet_axes(&other).is_empty(), "{node:?}");
        }
    }
}
