//! Groups channels into classes that share a factor.

use std::collections::{HashMap, HashSet};

use super::role::{Constant, Role};
use super::span::{Known, Span};
use crate::graph::{Graph, Model, Uses};
use crate::onnx::schema::TensorProto;

/// The channels of a graph's values in classes (union-find). All channels of a class share a
/// factor.
pub(super) struct Ties<'a> {
    pub(super) roles: Vec<Role<'a>>,
    known: Known<'a>,
    /// Index of each value's first channel.
    begins: HashMap<&'a str, usize>,
    /// Parent of each channel in its class, or the channel itself. Index 0 is the class of channels
    /// that can have no factor.
    before: Vec<usize>,
}

/// The class of channels that can have no factor.
pub(super) const FIXED: usize = 0;

impl<'a> Ties<'a> {
    pub(super) fn of(graph: &'a Graph, uses: &'a Uses) -> Ties<'a> {
        let known = Known::of(graph, uses);
        let roles: Vec<Role<'_>> = graph.nodes.iter().map(|node| known.role(node)).collect();
        let mut ties = Ties {
            roles: Vec::new(),
            known,
            begins: HashMap::new(),
            before: vec![FIXED],
        };
        let ports = graph.inputs.iter().chain(&graph.outputs);
        let ports: Vec<&str> = ports.filter_map(|port| port.name.as_deref()).collect();
        let made = graph.nodes.iter().flat_map(|node| &node.output);
        for value in ports.iter().copied().chain(made.map(String::as_str)) {
            ties.add(value);
        }
        ports.into_iter().for_each(|port| ties.fix(port));
        let captured = |value: &&str| uses.is_captured(value);
        let inner: Vec<&str> = ties.begins.keys().copied().filter(captured).collect();
        inner.into_iter().for_each(|value| ties.fix(value));
        for (node, role) in graph.nodes.iter().zip(&roles) {
            for &(part, whole, behind) in &role.tied {
                ties.tie(part, whole, behind);
            }
            let tied = role.tied.iter().flat_map(|&(part, whole, _)| [part, whole]);
            let known: HashSet<&str> = tied.chain(role.free.iter().copied()).collect();
            for value in node.input.iter().chain(&node.output) {
                if !known.contains(value.as_str()) {
                    ties.fix(value);
                }
            }
        }
        ties.roles = roles;
        // Compress all paths: from here on every parent is the class.
        for index in 0..ties.before.len() {
            ties.before[index] = ties.class_at(index);
        }
        ties
    }

    /// The classes of a value's channels; empty if its channels are unknown.
    pub(super) fn classes(&self, value: &str) -> &[usize] {
        let place = self.begins.get(value).zip(self.known.span(value));
        let classes =
            place.and_then(|(&begin, span)| self.before.get(begin..begin + span.channels));
        classes.unwrap_or_default()
    }

    /// Constants that can absorb factors.
    pub(super) fn constants<'m>(
        &'m self,
        model: &'m Model,
    ) -> impl Iterator<Item = (&'m Constant<'a>, &'m TensorProto)> {
        let nodes = self.roles.iter().zip(&model.graph.nodes);
        nodes.flat_map(|(role, node)| {
            let tensor = |slot| model.graph.initializers.get(node.input_at(slot)?);
            let constants = role.constants.iter();
            constants.filter_map(move |constant| Some((constant, tensor(constant.slot)?)))
        })
    }

    /// Values with a channel that can have a factor, and their channel axis.
    pub(super) fn movable(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.begins.keys().filter_map(|&value| {
            let movable = self.classes(value).iter().any(|&class| class != FIXED);
            let Span { axis, .. } = self.known.span(value)?;
            movable.then_some((value, axis))
        })
    }

    /// Upper bound of the class indices.
    pub(super) fn count(&self) -> usize {
        self.before.len()
    }

    fn add(&mut self, value: &'a str) {
        if let Some(Span { channels, .. }) = self.known.span(value)
            && !self.begins.contains_key(value)
        {
            let begin = self.before.len();
            self.begins.insert(value, begin);
            self.before.extend(begin..begin + channels);
        }
    }

    fn fix(&mut self, value: &str) {
        if let (Some(&begin), Some(Span { channels, .. })) =
            (self.begins.get(value), self.known.span(value))
        {
            (begin..begin + channels).for_each(|channel| self.join(channel, FIXED));
        }
    }

    fn tie(&mut self, part: &str, whole: &str, behind: usize) {
        let place =
            |value: &str| Some((*self.begins.get(value)?, self.known.span(value)?.channels));
        match (place(part), place(whole)) {
            (Some((one, channels)), Some((other, all))) if behind + channels <= all => {
                (0..channels)
                    .for_each(|channel| self.join(one + channel, other + behind + channel));
            }
            _ => {
                self.fix(part);
                self.fix(whole);
            }
        }
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.class_at(one), self.class_at(other));
        self.before[one.max(other)] = one.min(other);
    }

    fn class_at(&mut self, mut index: usize) -> usize {
        while self.before[index] != index {
            self.before[index] = self.before[self.before[index]];
            index = self.before[index];
        }
        index
    }
}
