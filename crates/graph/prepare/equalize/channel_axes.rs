//! Finds the channel axis of each value: from the layers that read or produce it, then through
//! operators that keep the axis.

use std::collections::HashMap;

use crate::operators::{ChannelPosition, ChannelRole, Operator};
use crate::{Dim, Graph, Node, TensorType, tensor_type_of};
use octet_onnx::schema::{DataType, TensorProto};

/// The channel axis of a value and the number of channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChannelAxis {
    pub(super) axis: usize,
    pub(super) channels: usize,
}

/// A graph with the known shapes and channel axes of its values.
pub(super) struct ChannelAxes<'a> {
    pub(super) graph: &'a Graph,
    /// Sizes of each float value of known rank, as far as they are known.
    pub(super) shapes: HashMap<&'a str, Vec<Option<usize>>>,
    channel_axes: HashMap<&'a str, ChannelAxis>,
}

impl<'a> ChannelAxes<'a> {
    /// Propagates channel axes until nothing changes.
    pub(super) fn new(graph: &'a Graph) -> ChannelAxes<'a> {
        let values = graph.inputs.iter().chain(graph.outputs());
        let size = |dim: Dim| match dim {
            Dim::Known(size) => Some(size),
            _ => None,
        };
        let shape = |declared: TensorType| {
            let float = declared.element == DataType::Float;
            let shape = declared.shape.filter(|_| float)?;
            Some(shape.into_iter().map(size).collect())
        };
        let shapes = values
            .chain(&graph.value_info)
            .filter_map(|value| Some((value.name.as_deref()?, shape(tensor_type_of(value)?)?)))
            .collect();
        let mut axes = ChannelAxes {
            graph,
            shapes,
            channel_axes: HashMap::new(),
        };
        loop {
            let before = axes.channel_axes.len();
            for node in graph.nodes().iter().chain(graph.nodes().iter().rev()) {
                axes.propagate(node);
            }
            if axes.channel_axes.len() == before {
                return axes;
            }
        }
    }

    /// The channel axis of a value.
    pub(super) fn channel_axis(&self, value: &str) -> Option<ChannelAxis> {
        self.channel_axes.get(value).copied()
    }

    fn propagate(&mut self, node: &'a Node) {
        let (Some(value), Some(result)) = (node.input_at(0), node.output.first()) else {
            return;
        };
        let last = |value: &str| self.shapes.get(value)?.len().checked_sub(1);
        if self.constant(node, 1).is_some() {
            let axes = match Operator::of(node).channels {
                ChannelRole::Layer(ChannelPosition::Second) => [Some(1), Some(1)],
                ChannelRole::Layer(ChannelPosition::Last) => [last(value), last(result)],
                ChannelRole::Norm(ChannelPosition::Second) => [None, Some(1)],
                ChannelRole::Norm(ChannelPosition::Last) => [None, last(result)],
                _ => [None, None],
            };
            self.set_axis(value, axes[0]);
            self.set_axis(result, axes[1]);
        }
        let along: Vec<&str> = self.same_axis(node, value, result);
        let axis = along
            .iter()
            .find_map(|value| Some(self.channel_axis(value)?.axis));
        along
            .into_iter()
            .for_each(|value| self.set_axis(value, axis));
    }

    fn set_axis(&mut self, value: &'a str, axis: Option<usize>) {
        let shape = self.shapes.get(value);
        let extent = axis.and_then(|axis| Some((axis, (*shape?.get(axis)?)?)));
        if let Some((axis, channels)) = extent {
            self.channel_axes
                .entry(value)
                .or_insert(ChannelAxis { axis, channels });
        }
    }

    /// The values of a node that share a channel axis.
    fn same_axis(&self, node: &'a Node, value: &'a str, result: &'a str) -> Vec<&'a str> {
        match Operator::of(node).channels {
            ChannelRole::Commutes => vec![value, result],
            ChannelRole::Reshapes if self.is_reshaped(value, result) => vec![value, result],
            ChannelRole::Adds
            | ChannelRole::Multiplies
            | ChannelRole::Divides
            | ChannelRole::Joins => {
                let rank = |value: &str| self.shapes.get(value).map(Vec::len);
                let alike = |value: &&str| rank(value) == rank(result);
                let values = node.input.iter().map(String::as_str).filter(alike);
                values.chain([result]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// True if two shapes differ only by axes of size 1 behind the channels.
    pub(super) fn is_reshaped(&self, value: &str, result: &str) -> bool {
        let shape = |value| self.shapes.get(value).map(Vec::as_slice);
        let (Some(one), Some(other)) = (shape(value), shape(result)) else {
            return false;
        };
        let (long, short) = if one.len() > 2 {
            (one, other)
        } else {
            (other, one)
        };
        matches!((long, short), ([_, Some(a), rest @ ..], [_, Some(b)])
                if a == b && rest.iter().all(|&extent| extent == Some(1)))
    }

    /// A float constant input.
    pub(super) fn constant(&self, node: &Node, slot: usize) -> Option<&'a TensorProto> {
        let constant = self.graph.initializers.get(node.input_at(slot)?)?;
        (constant.element() == Ok(DataType::Float)).then_some(constant)
    }

    /// A float constant input without other readers.
    pub(super) fn own(&self, node: &Node, slot: usize) -> Option<&'a TensorProto> {
        let name = node.input_at(slot)?;
        let own = self.graph.consumers(name).len() == 1 && !self.graph.is_output(name);
        self.constant(node, slot).filter(|_| own)
    }
}
