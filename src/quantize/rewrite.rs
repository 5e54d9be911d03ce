//! A graph as it is rewritten, node by node, for the schemes that need no calibration.
//!
//! Each node is either written anew or copied with the reason why it stays float. Values keep their
//! names; constants that nobody reads any more are left out; what a subgraph reads stays.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::integers::Quantity;
use super::settings::unknown_node;
use super::{MICROSOFT, NodeChoice, QuantizeError, Quantized, QuantizedTensor, refuse_quantized};
use crate::graph::{Model, Names, Uses};
use crate::onnx::schema::{DataType, NodeProto, TensorProto};
use crate::onnx::tensor::TensorError;

/// Why operators stay as they are that multiply with nothing.
pub(super) const NO_WEIGHT: &str = "it has no weight";

/// Why a node is not written anew.
#[derive(Debug)]
pub(super) enum Stop {
    /// It stays float, for this reason.
    Keep(&'static str),
    /// It stays float, for this reason, but was written with other names of its values.
    Written(&'static str),
    /// The model can't be quantized at all.
    Fail(QuantizeError),
}

impl From<&'static str> for Stop {
    fn from(reason: &'static str) -> Stop {
        Stop::Keep(reason)
    }
}

impl From<TensorError> for Stop {
    fn from(error: TensorError) -> Stop {
        Stop::Fail(error.into())
    }
}

impl From<QuantizeError> for Stop {
    fn from(error: QuantizeError) -> Stop {
        Stop::Fail(error)
    }
}

/// A constant that can be quantized: float32, finite and not empty.
pub(super) struct Weight<'a> {
    pub(super) name: &'a str,
    pub(super) tensor: &'a TensorProto,
    pub(super) shape: Vec<usize>,
}

/// The graph as it is being rewritten.
pub(super) struct Rewriter<'a> {
    pub(super) model: &'a Model,
    pub(super) uses: Uses,
    names: Names,
    element: HashMap<&'a str, DataType>,
    keep_float: &'a [String],
    operators: Option<&'a [String]>,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    choices: Vec<NodeChoice>,
    tensors: Vec<QuantizedTensor>,
    pub(super) made: HashMap<(String, String), Quantity>,
}

impl<'a> Rewriter<'a> {
    /// Refuses models that are quantized already and names of nodes that are not there.
    pub(super) fn new(
        model: &'a Model,
        keep_float: &'a [String],
        operators: Option<&'a [String]>,
    ) -> Result<Rewriter<'a>, QuantizeError> {
        refuse_quantized(model)?;
        check_names(model, keep_float)?;
        let graph = &model.graph;
        Ok(Rewriter {
            model,
            uses: graph.uses(),
            names: graph.names(),
            element: graph.element_types(),
            keep_float,
            operators,
            nodes: Vec::with_capacity(graph.nodes.len()),
            constants: Vec::new(),
            choices: Vec::with_capacity(graph.nodes.len()),
            tensors: Vec::new(),
            made: HashMap::new(),
        })
    }

    /// Hands every node to `rewrite`, copies those that stay, and puts the model together.
    pub(super) fn run(
        mut self,
        mut rewrite: impl FnMut(&mut Rewriter<'a>, &'a NodeProto) -> Result<(), Stop>,
    ) -> Result<Quantized, QuantizeError> {
        let model = self.model;
        for node in &model.graph.nodes {
            let done = match self.excluded(node) {
                Some(reason) => Err(Stop::Keep(reason)),
                None => rewrite(&mut self, node),
            };
            let reason = match done {
                Ok(()) => None,
                Err(Stop::Keep(reason)) => {
                    self.nodes.push(node.clone());
                    Some(reason.to_owned())
                }
                Err(Stop::Written(reason)) => Some(reason.to_owned()),
                Err(Stop::Fail(error)) => return Err(error),
            };
            self.choices.push(NodeChoice {
                node: node.title().to_owned(),
                operator: node.operator(),
                quantized: reason.is_none(),
                reason,
            });
        }
        self.finish()
    }

    /// Why the settings keep a node float.
    fn excluded(&self, node: &NodeProto) -> Option<&'static str> {
        if self.keep_float.iter().any(|name| name == node.title()) {
            return Some("the settings keep it float");
        }
        let wanted = self.operators?;
        let operator = node.operator();
        (!wanted.contains(&operator)).then_some("the settings leave its operator float")
    }

    /// The wanted name, or one like it that is still free.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// Adds a node after those that are there.
    pub(super) fn push(&mut self, node: NodeProto) {
        self.nodes.push(node);
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, tensor: TensorProto) {
        self.constants.push(tensor);
    }

    /// Adds a line to the table of quantized tensors.
    pub(super) fn report(&mut self, tensor: QuantizedTensor) {
        self.tensors.push(tensor);
    }

    /// The element type of a value or constant; `None` where it is not known or no tensor.
    pub(super) fn element(&self, name: &str) -> Option<DataType> {
        self.element.get(name).copied()
    }

    /// That a value is known to be float32.
    pub(super) fn is_float(&self, name: &str) -> bool {
        self.element(name) == Some(DataType::Float)
    }

    /// That input and output of a node are float32 activations.
    pub(super) fn float_activations(&self, node: &NodeProto) -> Result<(), Stop> {
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        if !self.is_float(input) || !self.is_float(output) {
            return Err("it does not work on float32 values".into());
        }
        if self.model.graph.initializers.contains(input) {
            return Err("what it reads is a constant".into());
        }
        Ok(())
    }

    /// The constant in an input slot, if it can be quantized.
    pub(super) fn weight(&self, node: &'a NodeProto, slot: usize) -> Result<Weight<'a>, Stop> {
        let name = node.input_at(slot).unwrap_or_default();
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            return Err("its weight is not a constant".into());
        };
        if !self.is_float(name) {
            return Err("its weight is not float32".into());
        }
        let (mut empty, mut finite) = (true, true);
        tensor.each_f32_block(|block| {
            empty &= block.is_empty();
            // Without an early end, so that it becomes vector code.
            finite &= block
                .iter()
                .fold(true, |all, value| all & value.is_finite());
        })?;
        if empty {
            return Err("its weight is empty".into());
        }
        if !finite {
            return Err(
                "a constant of it is infinite or not a number, which has no integer".into(),
            );
        }
        let shape = tensor.shape()?;
        Ok(Weight {
            name,
            tensor,
            shape,
        })
    }

    /// Why the node with the largest constants stays float: of all reasons the one that matters most. The constant of an Add
    /// may be as large as the weight before it, but nobody asks for its reason.
    fn heaviest_reason(&self) -> String {
        let constants = &self.model.graph.initializers;
        let weight = |node: &NodeProto| -> usize {
            let read = node.input.iter().filter_map(|name| constants.get(name));
            read.filter_map(|tensor| tensor.byte_len().ok()).sum()
        };
        let nodes = self.model.graph.nodes.iter().zip(&self.choices);
        let heaviest = nodes.max_by_key(|(node, choice)| {
            let weighs = choice.reason.as_deref() != Some(NO_WEIGHT);
            (weighs, weight(node))
        });
        let reason = heaviest.and_then(|(_, choice)| choice.reason.clone());
        reason.unwrap_or_else(|| "it has no nodes".to_owned())
    }

    fn finish(self) -> Result<Quantized, QuantizeError> {
        if self.choices.iter().all(|choice| !choice.quantized) {
            let reason = self.heaviest_reason();
            return Err(QuantizeError::Nothing { reason });
        }
        let mut out = self.model.clone();
        let before = &self.uses;
        out.graph.nodes = self.nodes;
        let after = out.graph.uses();
        // Constants that were used and are not any more; those nobody ever read are not our business.
        let gone: HashSet<String> = out
            .graph
            .initializers
            .iter()
            .filter_map(|tensor| tensor.name.clone())
            .filter(|name| !before.consumers(name).is_empty())
            .filter(|name| after.consumers(name).is_empty() && !after.is_output(name))
            .collect();
        out.graph
            .initializers
            .retain(|tensor| !gone.contains(tensor.name.as_deref().unwrap_or_default()));
        for tensor in self.constants {
            out.graph.initializers.insert(tensor);
        }
        let theirs = |node: &NodeProto| node.domain.as_deref() == Some(MICROSOFT);
        if out.graph.nodes.iter().any(theirs) {
            out.import(MICROSOFT, 1);
        }
        Ok(Quantized {
            model: out,
            tensors: self.tensors,
            nodes: self.choices,
            ranges: BTreeMap::new(),
            notes: Vec::new(),
            guarded: 0,
        })
    }
}

/// That every node the settings name is there; else the error says which name is like it.
pub(super) fn check_names(model: &Model, keep_float: &[String]) -> Result<(), QuantizeError> {
    let titles: HashSet<&str> = model.graph.nodes.iter().map(NodeProto::title).collect();
    if let Some(name) = keep_float
        .iter()
        .find(|name| !titles.contains(name.as_str()))
    {
        return Err(unknown_node(name, &titles));
    }
    Ok(())
}
