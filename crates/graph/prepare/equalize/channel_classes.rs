//! Groups channels into classes that share a factor.

use std::collections::{HashMap, HashSet};

use super::channel_axes::{ChannelAxes, ChannelAxis};
use super::node_rules::{AbsorbingConstant, NodeRule};
use crate::{Graph, Model};
use octet_onnx::schema::TensorProto;

/// The channels of a graph's values in classes (union-find). All channels of a class share a
/// factor.
pub(super) struct ChannelClasses<'a> {
    pub(super) rules: Vec<NodeRule<'a>>,
    axes: ChannelAxes<'a>,
    /// Index of each value's first channel.
    first_index: HashMap<&'a str, usize>,
    /// Parent of each channel in its class, or the channel itself. Index 0 is the class of channels
    /// that can have no factor.
    parents: Vec<usize>,
}

/// The class of channels that can have no factor.
pub(super) const FIXED: usize = 0;

impl<'a> ChannelClasses<'a> {
    pub(super) fn new(graph: &'a Graph) -> ChannelClasses<'a> {
        let axes = ChannelAxes::new(graph);
        let rules: Vec<NodeRule<'_>> = graph.nodes().iter().map(|node| axes.rule(node)).collect();
        let mut channel_classes = ChannelClasses {
            rules: Vec::new(),
            axes,
            first_index: HashMap::new(),
            parents: vec![FIXED],
        };
        let ports = graph.inputs.iter().chain(graph.outputs());
        let ports: Vec<&str> = ports.filter_map(|port| port.name.as_deref()).collect();
        let outputs = graph.nodes().iter().flat_map(|node| &node.output);
        for value in ports.iter().copied().chain(outputs.map(String::as_str)) {
            channel_classes.add(value);
        }
        ports.into_iter().for_each(|port| channel_classes.fix(port));
        let captured = |value: &&str| graph.is_captured(value);
        let inner: Vec<&str> = channel_classes
            .first_index
            .keys()
            .copied()
            .filter(captured)
            .collect();
        inner
            .into_iter()
            .for_each(|value| channel_classes.fix(value));
        for (node, rule) in graph.nodes().iter().zip(&rules) {
            for &(part, whole, offset) in &rule.tied {
                channel_classes.tie(part, whole, offset);
            }
            let tied = rule.tied.iter().flat_map(|&(part, whole, _)| [part, whole]);
            let allowed: HashSet<&str> = tied.chain(rule.free.iter().copied()).collect();
            for value in node.input.iter().chain(&node.output) {
                if !allowed.contains(value.as_str()) {
                    channel_classes.fix(value);
                }
            }
        }
        channel_classes.rules = rules;
        // Compress all paths: from here on every parent is the class.
        for index in 0..channel_classes.parents.len() {
            channel_classes.parents[index] = channel_classes.class_at(index);
        }
        channel_classes
    }

    /// The classes of a value's channels; empty if its channels are unknown.
    pub(super) fn classes(&self, value: &str) -> &[usize] {
        let place = self
            .first_index
            .get(value)
            .zip(self.axes.channel_axis(value));
        let classes = place.and_then(|(&begin, channel_axis)| {
            self.parents.get(begin..begin + channel_axis.channels)
        });
        classes.unwrap_or_default()
    }

    /// Constants that can absorb factors.
    pub(super) fn constants<'m>(
        &'m self,
        model: &'m Model,
    ) -> impl Iterator<Item = (&'m AbsorbingConstant<'a>, &'m TensorProto)> {
        let nodes = self.rules.iter().zip(model.graph.nodes());
        nodes.flat_map(|(rule, node)| {
            let tensor = |slot| model.graph.initializers.get(node.input_at(slot)?);
            let constants = rule.constants.iter();
            constants.filter_map(move |constant| Some((constant, tensor(constant.slot)?)))
        })
    }

    /// Values with a channel that can have a factor, and their channel axis.
    pub(super) fn movable(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.first_index.keys().filter_map(|&value| {
            let movable = self.classes(value).iter().any(|&class| class != FIXED);
            let ChannelAxis { axis, .. } = self.axes.channel_axis(value)?;
            movable.then_some((value, axis))
        })
    }

    /// Upper bound of the class indices.
    pub(super) fn count(&self) -> usize {
        self.parents.len()
    }

    fn add(&mut self, value: &'a str) {
        if let Some(ChannelAxis { channels, .. }) = self.axes.channel_axis(value)
            && !self.first_index.contains_key(value)
        {
            let begin = self.parents.len();
            self.first_index.insert(value, begin);
            self.parents.extend(begin..begin + channels);
        }
    }

    fn fix(&mut self, value: &str) {
        if let (Some(&begin), Some(ChannelAxis { channels, .. })) =
            (self.first_index.get(value), self.axes.channel_axis(value))
        {
            (begin..begin + channels).for_each(|channel| self.join(channel, FIXED));
        }
    }

    fn tie(&mut self, part: &str, whole: &str, offset: usize) {
        let place = |value: &str| {
            Some((
                *self.first_index.get(value)?,
                self.axes.channel_axis(value)?.channels,
            ))
        };
        match (place(part), place(whole)) {
            (Some((one, channels)), Some((other, all))) if offset + channels <= all => {
                (0..channels)
                    .for_each(|channel| self.join(one + channel, other + offset + channel));
            }
            _ => {
                self.fix(part);
                self.fix(whole);
            }
        }
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.class_at(one), self.class_at(other));
        self.parents[one.max(other)] = one.min(other);
    }

    fn class_at(&mut self, mut index: usize) -> usize {
        while self.parents[index] != index {
            self.parents[index] = self.parents[self.parents[index]];
            index = self.parents[index];
        }
        index
    }
}
