//! Rewrites a graph node by node, for the schemes without calibration.
//!
//! Each node is either rewritten or copied, with the reason why it stays float. Values keep their
//! names. Constants that lose their last reader are removed; those that subgraphs read stay.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::planned_model::{PlannedModel, RefusedConstants};
use super::quantized_names::QuantizedNames;
use super::recipe::PlannedRecipe;
use super::settings::unknown_node;
use super::stays_float::StaysFloat;
use super::{MICROSOFT, NodeChoice, QuantizeError, Quantized, QuantizedTensor, refuse_quantized};
use octet_graph::{Model, Names, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_onnx::tensor::TensorError;

/// The outcomes of a node that was not quantized.
#[derive(Debug)]
pub(super) enum NotQuantized {
    /// The node stays float, for this reason; it is copied.
    KeepFloat(StaysFloat),
    /// The node stays float, for this reason, and was written with new names of its values.
    Rewritten(StaysFloat),
    /// The model can't be quantized.
    Failed(QuantizeError),
}

impl From<StaysFloat> for NotQuantized {
    fn from(reason: StaysFloat) -> NotQuantized {
        NotQuantized::KeepFloat(reason)
    }
}

impl From<TensorError> for NotQuantized {
    fn from(error: TensorError) -> NotQuantized {
        NotQuantized::Failed(error.into())
    }
}

impl From<QuantizeError> for NotQuantized {
    fn from(error: QuantizeError) -> NotQuantized {
        NotQuantized::Failed(error)
    }
}

/// A quantizable constant: float32, not empty.
pub(super) struct ConstantWeight<'a> {
    pub(super) name: &'a str,
    pub(super) tensor: &'a TensorProto,
    pub(super) shape: Vec<usize>,
}

/// A graph that is being rewritten.
pub(super) struct Rewriter<'a> {
    pub(super) model: &'a Model,
    names: Names,
    element: HashMap<&'a str, DataType>,
    keep_float: &'a [String],
    operators: Option<&'a [String]>,
    nodes: Vec<Node>,
    constants: Vec<TensorProto>,
    choices: Vec<NodeChoice>,
    tensors: Vec<QuantizedTensor>,
    recipes: Vec<PlannedRecipe>,
    pub(super) refused: &'a RefusedConstants,
    pub(super) shared_constants: HashMap<(String, String), QuantizedNames>,
}

impl<'a> Rewriter<'a> {
    /// Starts a rewrite. Fails for a model that is quantized already, and for unknown names in
    /// `keep_float`.
    pub(super) fn new(
        model: &'a Model,
        keep_float: &'a [String],
        operators: Option<&'a [String]>,
        refused: &'a RefusedConstants,
    ) -> Result<Rewriter<'a>, QuantizeError> {
        refuse_quantized(model)?;
        check_names(model, keep_float)?;
        let graph = Rewriter::over(model, refused);
        Ok(Rewriter {
            keep_float,
            operators,
            ..graph
        })
    }

    /// Starts a rewrite of a model that may have quantized nodes.
    pub(super) fn over(model: &'a Model, refused: &'a RefusedConstants) -> Rewriter<'a> {
        let graph = &model.graph;
        Rewriter {
            model,
            names: graph.names(),
            element: graph.element_types(),
            keep_float: &[],
            operators: None,
            nodes: Vec::with_capacity(graph.nodes().len()),
            constants: Vec::new(),
            choices: Vec::with_capacity(graph.nodes().len()),
            tensors: Vec::new(),
            recipes: Vec::new(),
            refused,
            shared_constants: HashMap::new(),
        }
    }

    /// Calls `rewrite` for every node, copies those that stay float, and assembles the model. The
    /// recipes compute its constants.
    pub(super) fn run(
        mut self,
        mut rewrite: impl FnMut(&mut Rewriter<'a>, &'a Node) -> Result<(), NotQuantized>,
    ) -> Result<PlannedModel, QuantizeError> {
        let model = self.model;
        for node in model.graph.nodes() {
            let done = match self.excluded(node) {
                Some(reason) => Err(NotQuantized::KeepFloat(reason)),
                None => rewrite(&mut self, node),
            };
            let reason = match done {
                Ok(()) => None,
                Err(NotQuantized::KeepFloat(reason)) => {
                    self.nodes.push(node.clone());
                    Some(reason)
                }
                Err(NotQuantized::Rewritten(reason)) => Some(reason),
                Err(NotQuantized::Failed(error)) => return Err(error),
            };
            self.choices.push(NodeChoice {
                node: node.title().to_owned(),
                operator: node.operator(),
                quantized: reason.is_none(),
                reason,
                mixed: None,
            });
        }
        self.finish()
    }

    /// The reason why the settings keep a node float.
    fn excluded(&self, node: &Node) -> Option<StaysFloat> {
        if self.keep_float.iter().any(|name| name == node.title()) {
            return Some(StaysFloat::BySettings);
        }
        let wanted = self.operators?;
        let operator = node.operator();
        (!wanted.contains(&operator)).then_some(StaysFloat::OperatorBySettings)
    }

    /// The wanted name, or a similar one that is free.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// Appends a node.
    pub(super) fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, tensor: TensorProto) {
        self.constants.push(tensor);
    }

    /// Adds the constants that a recipe computes. Returns the index of the recipe.
    pub(super) fn planned(&mut self, recipe: PlannedRecipe) -> Result<usize, NotQuantized> {
        for constant in recipe.placeholders()? {
            self.constant(constant);
        }
        self.recipes.push(recipe);
        Ok(self.recipes.len() - 1)
    }

    /// The recipe of this index.
    pub(super) fn recipe(&mut self, index: usize) -> &mut PlannedRecipe {
        &mut self.recipes[index]
    }

    /// Adds a tensor to the report.
    pub(super) fn report(&mut self, tensor: QuantizedTensor) {
        self.tensors.push(tensor);
    }

    /// The element type of a tensor; `None` if it is unknown.
    pub(super) fn element(&self, name: &str) -> Option<DataType> {
        self.element.get(name).copied()
    }

    /// True if a tensor is known to be float32.
    pub(super) fn is_float(&self, name: &str) -> bool {
        self.element(name) == Some(DataType::Float)
    }

    /// Checks that input and output of a node are float32 activations.
    pub(super) fn float_activations(&self, node: &Node) -> Result<(), NotQuantized> {
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        if !self.is_float(input) || !self.is_float(output) {
            return Err(StaysFloat::NotFloat32.into());
        }
        if self.model.graph.initializers.contains(input) {
            return Err(StaysFloat::ConstantInput.into());
        }
        Ok(())
    }

    /// The constant in an input slot, checked to be quantizable.
    pub(super) fn weight(
        &self,
        node: &'a Node,
        slot: usize,
    ) -> Result<ConstantWeight<'a>, NotQuantized> {
        let name = node.input_at(slot).unwrap_or_default();
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            return Err(StaysFloat::VariableWeight.into());
        };
        if !self.is_float(name) {
            return Err(StaysFloat::WeightNotFloat32.into());
        }
        if let Some(reason) = self.refused.weight(name) {
            return Err(reason.into());
        }
        let shape = tensor.shape()?;
        if shape.contains(&0) {
            return Err(StaysFloat::EmptyWeight.into());
        }
        Ok(ConstantWeight {
            name,
            tensor,
            shape,
        })
    }

    /// The reason why the node with the largest constants stays float, for the error message.
    ///
    /// Nodes without a weight count last: the constant of an Add may be as large as a weight, but
    /// its reason doesn't help.
    fn largest_weight_reason(&self) -> Option<StaysFloat> {
        let constants = &self.model.graph.initializers;
        let weight = |node: &Node| -> usize {
            let read = node.input.iter().filter_map(|name| constants.get(name));
            read.filter_map(|tensor| tensor.byte_len().ok()).sum()
        };
        let nodes = self.model.graph.nodes().iter().zip(&self.choices);
        let heaviest = nodes.max_by_key(|(node, choice)| {
            let weighs = choice.reason != Some(StaysFloat::NoWeight);
            (weighs, weight(node))
        });
        heaviest.and_then(|(_, choice)| choice.reason)
    }

    fn finish(self) -> Result<PlannedModel, QuantizeError> {
        if self.choices.iter().all(|choice| !choice.quantized) {
            let reason = self.largest_weight_reason();
            return Err(QuantizeError::Nothing { reason });
        }
        let mut out = self.model.clone();
        out.graph.replace_nodes(self.nodes);
        // Constants that lost their last reader go. Constants that never had a reader stay.
        out.graph.retain_initializers(|graph, name| {
            !graph.is_unused(name) || self.model.graph.consumers(name).is_empty()
        });
        for tensor in self.constants {
            out.graph.initializers.insert(tensor);
        }
        let theirs = |node: &Node| node.domain.as_deref() == Some(MICROSOFT);
        if out.graph.nodes().iter().any(theirs) {
            out.import(MICROSOFT, 1);
        }
        let quantized = Quantized {
            model: out,
            tensors: self.tensors,
            nodes: self.choices,
            ranges: BTreeMap::new(),
            notes: Vec::new(),
            guarded: 0,
        };
        Ok((quantized, self.recipes))
    }
}

/// Checks that every node in the settings exists; the error suggests a similar name.
pub(super) fn check_names(model: &Model, keep_float: &[String]) -> Result<(), QuantizeError> {
    let titles: HashSet<&str> = model.graph.nodes().iter().map(Node::title).collect();
    if let Some(name) = keep_float
        .iter()
        .find(|name| !titles.contains(name.as_str()))
    {
        return Err(unknown_node(name, &titles));
    }
    Ok(())
}
