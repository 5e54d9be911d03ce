//! A model in parts that run one after another, so that a change of one tensor is computed from its
//! part on, with the values before it reused.
//!
//! A cut lies between two nodes. Only values of 32-bit floats may cross it: integers often determine
//! shapes, which the engine must see to plan the part behind them. A part is skipped if neither it
//! nor any of its inputs changed.

use std::collections::{BTreeMap, HashSet};

use super::tensors::{TensorChange, changed};
use crate::graph::Model;
use crate::onnx::schema::{DataType, ValueInfoProto};
use crate::runtime::{Engine, EngineError};
use crate::tensor::Tensor;

/// ValuesByName by name.
pub type ValuesByName = BTreeMap<String, Tensor>;

struct ModelPart {
    model: Model,
    engine: Engine,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// A model in parts.
pub struct SegmentedModel {
    segments: Vec<ModelPart>,
    /// Inputs of the whole model.
    pub inputs: HashSet<String>,
    input_order: Vec<String>,
    /// The values that a run returns.
    pub measured: Vec<String>,
}

/// A part with changes.
pub struct ChangedSegments(Vec<Option<Engine>>);

impl SegmentedModel {
    /// Cuts a prepared model into about `parts` parts with equal work; `work` gives that of a node.
    pub fn new(
        model: &Model,
        measured: &[String],
        parts: usize,
        work: impl Fn(usize) -> f64,
    ) -> SegmentedModel {
        let nodes = model.graph.nodes();
        let cuts = cuts(model, parts, work);
        let inputs: Vec<String> = model
            .graph
            .inputs
            .iter()
            .filter_map(|input| input.name.clone())
            .filter(|name| !model.graph.initializers.contains(name))
            .collect();
        let ends = cuts.iter().copied().chain([nodes.len()]);
        let mut begin = 0;
        let mut segments = Vec::new();
        for end in ends {
            segments.push(ModelPart::new(model, measured, begin, end));
            begin = end;
        }
        SegmentedModel {
            segments,
            inputs: inputs.iter().cloned().collect(),
            input_order: inputs,
            measured: measured.to_vec(),
        }
    }

    /// Runs the float model and returns all values that cross a cut, inputs and measured ones.
    pub fn run(
        &self,
        inputs: &[Tensor],
        stop: &dyn Fn() -> bool,
    ) -> Result<ValuesByName, EngineError> {
        let mut values: ValuesByName = self
            .input_order
            .iter()
            .cloned()
            .zip(inputs.iter().cloned())
            .collect();
        for segment in &self.segments {
            let made = segment.run(&segment.engine, &values, &ValuesByName::new(), stop)?;
            values.extend(made);
        }
        Ok(values)
    }

    /// Prepares a change, for [`SegmentedModel::run_changed`].
    pub fn change(&self, change: TensorChange<'_>) -> ChangedSegments {
        let group = &change.tensor.group;
        let touched = |segment: &ModelPart| {
            let graph = &segment.model.graph;
            let biases = group.biases.iter().map(|(_, name)| name);
            let mut constants = std::iter::once(&group.name).chain(biases);
            match group.is_constant {
                true => constants.any(|name| graph.initializers.contains(name)),
                false => group.members.iter().any(|name| {
                    let fed = self.inputs.contains(name) && segment.inputs.contains(name);
                    graph.producer(name).is_some() || fed
                }),
            }
        };
        let engine = |segment: &ModelPart| {
            touched(segment)
                .then(|| Engine::new(changed(&segment.model, change, &self.inputs), Vec::new()))
        };
        ChangedSegments(self.segments.iter().map(engine).collect())
    }

    /// Runs the changed model on a sample whose float values are known. Returns the measured values
    /// that differ.
    pub fn run_changed(
        &self,
        parts: &ChangedSegments,
        float: &ValuesByName,
        stop: &dyn Fn() -> bool,
    ) -> Result<ValuesByName, EngineError> {
        let mut other = ValuesByName::new();
        for (segment, part) in self.segments.iter().zip(&parts.0) {
            let fed = segment.inputs.iter().any(|name| other.contains_key(name));
            let engine = match part {
                Some(part) => part,
                None if fed => &segment.engine,
                None => continue,
            };
            let made = segment.run(engine, float, &other, stop)?;
            other.extend(made);
        }
        other.retain(|name, _| self.measured.contains(name));
        Ok(other)
    }
}

impl ModelPart {
    fn new(model: &Model, measured: &[String], begin: usize, end: usize) -> ModelPart {
        let graph = &model.graph;
        let nodes = &graph.nodes()[begin..end];
        let made: HashSet<&str> = nodes
            .iter()
            .flat_map(|n| &n.output)
            .map(String::as_str)
            .collect();
        let mut inputs: Vec<String> = Vec::new();
        for node in nodes {
            for name in node.input.iter().chain(&node.captured()) {
                let outside = !name.is_empty()
                    && !made.contains(name.as_str())
                    && !graph.initializers.contains(name);
                if outside && !inputs.contains(name) {
                    inputs.push(name.clone());
                }
            }
        }
        let outputs = nodes.iter().flat_map(|node| &node.output).filter(|name| {
            let later = graph
                .consumers(name)
                .iter()
                .any(|reader| reader.node >= end);
            !name.is_empty() && (later || measured.contains(name))
        });
        let outputs: Vec<String> = outputs.cloned().collect();
        let port = |name: &String| match graph.tensor_type(name) {
            Some(known) => ValueInfoProto::new(name, &known),
            None => ValueInfoProto {
                name: Some(name.clone()),
                ..ValueInfoProto::default()
            },
        };
        let mut part = model.clone();
        part.graph.replace_nodes(nodes.to_vec());
        part.graph.inputs = inputs.iter().map(port).collect();
        part.graph.set_outputs(outputs.iter().map(port).collect());
        part.graph.remove_unused();
        ModelPart {
            engine: Engine::new(part.clone(), Vec::new()),
            model: part,
            inputs,
            outputs,
        }
    }

    fn run(
        &self,
        engine: &Engine,
        float: &ValuesByName,
        other: &ValuesByName,
        stop: &dyn Fn() -> bool,
    ) -> Result<ValuesByName, EngineError> {
        let value = |name: &String| other.get(name).or_else(|| float.get(name)).cloned();
        let inputs: Vec<Tensor> = self.inputs.iter().filter_map(value).collect();
        let outputs = engine.run(inputs, |_, _| {}, stop)?;
        Ok(self.outputs.iter().cloned().zip(outputs).collect())
    }
}

/// The places of the cuts, as the index of the first node behind each.
fn cuts(model: &Model, parts: usize, work: impl Fn(usize) -> f64) -> Vec<usize> {
    let graph = &model.graph;
    let nodes = graph.nodes();
    let is_float = |name: &str| {
        let known = graph.tensor_type(name);
        known.is_some_and(|known| known.element == DataType::Float)
    };
    // The number of values that cross each place and are no floats, by their ends.
    let mut changes = vec![0i64; nodes.len() + 2];
    for (index, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            let last = graph.consumers(name).iter().map(|reader| reader.node).max();
            if let Some(last) = last.filter(|_| !is_float(name)) {
                changes[index + 1] += 1;
                changes[last + 1] -= 1;
            }
        }
    }
    let mut open = 0;
    let allowed: Vec<bool> = changes
        .iter()
        .map(|change| {
            open += change;
            open == 0
        })
        .collect();
    let all: f64 = (0..nodes.len()).map(&work).sum();
    let step = all / parts.max(1) as f64;
    let (mut found, mut done, mut next) = (Vec::new(), 0.0, step);
    for index in 0..nodes.len().saturating_sub(1) {
        done += work(index);
        if done >= next && allowed[index + 1] {
            found.push(index + 1);
            next = done + step;
        }
    }
    found
}
