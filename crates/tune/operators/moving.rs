//! Operators that only move values.
//!
//! The engine runs such a node once with numbered inputs, so its result tells from where each value
//! comes. A second run with negative numbers tells constants from values.

use octet_graph::Node;
use octet_graph::operators::{Operator, Property};
use octet_onnx::in_memory::{Tensor, Values};
use octet_runtime::Engine;
use octet_training::reverse::{NOWHERE, ReverseOperation, ValueGather};

use super::Builder;
use crate::segments::GraphSegment;

/// The largest number up to which a float is exact.
const EXACT: usize = 1 << 24;

/// Operators that move values, besides those with a property that says so.
const MOVING: [&str; 6] = [
    "Concat",
    "DepthToSpace",
    "GatherND",
    "Pad",
    "Resize",
    "SpaceToDepth",
];

/// True for an operator that moves the values of its first input; Concat moves those of all.
pub(crate) fn moves(node: &Node) -> bool {
    let operator = Operator::of(node);
    operator.has(Property::ChangesForm)
        || operator.has(Property::SelectsElements)
        || MOVING.iter().any(|name| node.is(name))
}

pub(super) fn compile(builder: &mut Builder, index: usize, node: &Node) -> Option<()> {
    let moved = if node.is("Concat") {
        node.input.len()
    } else {
        1
    };
    let values = (0..moved).map(|slot| builder.at(node, slot));
    let values = values.collect::<Option<Vec<usize>>>()?;
    let numbered = |sign: f32| -> Option<Vec<Tensor>> {
        let mut first = 0;
        let tensor = |&value: &usize| {
            let shape = builder.shape(value).to_vec();
            let count: usize = shape.iter().product();
            let numbers = first..first + count;
            first += count;
            (first < EXACT).then_some(())?;
            let numbers = numbers.map(|number| sign * (number + 1) as f32);
            Tensor::new(shape, Values::F32(numbers.collect()))
        };
        values.iter().map(tensor).collect()
    };
    // The other inputs are sizes, axes, bounds and constants.
    let mut known = Vec::new();
    for name in node.input[moved..].iter().filter(|name| !name.is_empty()) {
        if builder.graph().initializers.contains(name) {
            continue;
        }
        let integers = builder.integers(name)?;
        let shape = builder.types.get(name.as_str())?.sizes()?;
        known.push((name.as_str(), Tensor::new(shape, Values::I64(integers))?));
    }
    let known: Vec<(&str, &Tensor)> = known.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let outputs: Vec<&String> = node.output.iter().filter(|name| !name.is_empty()).collect();
    let segment =
        GraphSegment::of_node(index, outputs.iter().map(|name| name.to_string()).collect());
    let run = |sign: f32| -> Option<Vec<Tensor>> {
        let tensors = numbered(sign)?;
        let named = node.input.iter().map(String::as_str).zip(&tensors);
        let mut distinct: Vec<(&str, &Tensor)> = Vec::new();
        for (name, tensor) in named {
            // A value that is joined to itself keeps its last numbers.
            distinct.retain(|(known, _)| *known != name);
            distinct.push((name, tensor));
        }
        let model = segment.model(builder.model, &distinct, &known);
        let tensors: Vec<Tensor> = distinct
            .iter()
            .map(|(_, tensor)| (*tensor).clone())
            .collect();
        Engine::new(model, Vec::new())
            .run(tensors, |_, _| {}, || false)
            .ok()
    };
    let (results, negatives) = (run(1.0)?, run(-1.0)?);
    let total: usize = values
        .iter()
        .map(|&value| builder.shape(value).iter().product::<usize>())
        .sum();
    for ((name, result), negative) in outputs.into_iter().zip(&results).zip(&negatives) {
        let of = gather(result.as_f32()?, negative.as_f32()?, total)?;
        let value = builder.push(ReverseOperation::Gather(of), &values, result.shape());
        builder.name(name, value);
    }
    Some(())
}

/// The places of values, from the results for numbered and for negative inputs.
fn gather(result: &[f32], negative: &[f32], total: usize) -> Option<ValueGather> {
    let mut constant = None;
    let place = |(&one, &other): (&f32, &f32)| -> Option<u32> {
        if one == -other && one >= 1.0 && one <= total as f32 && one.fract() == 0.0 {
            return Some(one as u32 - 1);
        }
        // All constants are alike, as the padding of Pad is.
        let same = one == other && *constant.get_or_insert(one) == one;
        same.then_some(NOWHERE)
    };
    let places = result.iter().zip(negative).map(place);
    let places = places.collect::<Option<Vec<u32>>>()?;
    let in_order = places
        .iter()
        .enumerate()
        .all(|(at, &place)| at == place as usize);
    Some(ValueGather {
        places: (!in_order || places.len() != total).then_some(places),
        constant: constant.unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_for_numbered_inputs_tell_the_places() {
        let of = |one: &[f32], other: &[f32]| gather(one, other, 3);
        let moved = of(&[3.0, 0.5, 1.0], &[-3.0, 0.5, -1.0]).unwrap();
        assert_eq!(
            (moved.places, moved.constant),
            (Some(vec![2, NOWHERE, 0]), 0.5)
        );
        assert_eq!(
            of(&[1.0, 2.0, 3.0], &[-1.0, -2.0, -3.0]).unwrap().places,
            None
        );
        assert!(of(&[1.0], &[-1.0]).unwrap().places.is_some());
        // Two constants, a value between two places, and a value that is no place.
        assert!(of(&[0.5, 0.7], &[0.5, 0.7]).is_none());
        assert!(of(&[1.5], &[-1.5]).is_none());
        assert!(of(&[4.0], &[-4.0]).is_none());
        assert!(of(&[1.0], &[2.0]).is_none());
    }
}
