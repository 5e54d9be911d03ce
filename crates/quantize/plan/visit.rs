//! Visits the nodes in order and marks the tensors that each node wants quantized.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{FoldedClamp, PlannedBias, TensorRole};
use crate::operator_patterns::OperatorPattern;
use crate::operators::{Treatment, float_reason, is_onnx_runtime_default, treatment};
use crate::settings::target_rules::{self, Channels};
use crate::settings::{LayerResolver, Operators, Representation, ResolvedLayer};
use crate::stays_float::StaysFloat;
use crate::{NodeChoice, Settings};
use octet_graph::{Model, Node};
use octet_onnx::schema::DataType;

pub(super) struct Planner<'a> {
    pub(super) model: &'a Model,
    pub(super) settings: &'a Settings,
    pub(super) layers: &'a LayerResolver<'a>,
    /// The settings of each node.
    pub(super) nodes: Vec<ResolvedLayer>,
    /// The operator or operator pattern of each node.
    operators: Vec<String>,
    element: HashMap<&'a str, DataType>,
    pub(super) order: Vec<String>,
    pub(super) forms: HashMap<String, TensorRole>,
    pub(super) biases: Vec<PlannedBias>,
    pub(super) removed: BTreeSet<usize>,
    pub(super) renamed: HashMap<String, FoldedClamp>,
    pub(super) quantized: HashSet<usize>,
    pub(super) choices: Vec<NodeChoice>,
    /// Operator patterns, and the pattern of each node that belongs to one.
    pub(super) chains: Vec<OperatorPattern>,
    inside: HashMap<usize, usize>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        model: &'a Model,
        settings: &'a Settings,
        layers: &'a LayerResolver<'a>,
        chains: Vec<OperatorPattern>,
    ) -> Planner<'a> {
        let graph = &model.graph;
        let of = |(which, chain): (usize, &OperatorPattern)| {
            let nodes = chain.nodes.clone();
            nodes.into_iter().map(move |node| (node, which))
        };
        let inside: HashMap<usize, usize> = chains.iter().enumerate().flat_map(of).collect();
        let operator_of = |(index, node): (usize, &Node)| match inside.get(&index) {
            Some(&chain) => chains[chain].operator.name.to_string(),
            None => node.operator(),
        };
        let operators: Vec<String> = graph.nodes().iter().enumerate().map(operator_of).collect();
        let nodes = graph.nodes().iter().zip(&operators);
        let nodes = nodes.map(|(node, operator)| layers.resolve_operator(node, operator));
        let nodes = nodes.collect();
        Planner {
            model,
            settings,
            layers,
            nodes,
            operators,
            element: graph.element_types(),
            order: Vec::new(),
            forms: HashMap::new(),
            biases: Vec::new(),
            removed: BTreeSet::new(),
            renamed: HashMap::new(),
            quantized: HashSet::new(),
            choices: Vec::new(),
            chains,
            inside,
        }
    }

    /// The reason why settings or operator keep a node float.
    pub(super) fn excluded(&self, index: usize) -> Option<StaysFloat> {
        let operator = self.model.graph.nodes()[index].operator();
        if let Some(reason) = float_reason(&operator) {
            return Some(StaysFloat::OfOperator(reason));
        }
        let wanted = match &self.settings.operators {
            Operators::All => true,
            Operators::OnnxRuntime => is_onnx_runtime_default(&operator),
            Operators::Only(wanted) => wanted.contains(&operator),
        };
        if !wanted {
            return Some(StaysFloat::OperatorBySettings);
        }
        let layer = &self.nodes[index];
        if layer.float {
            return Some(StaysFloat::BySettings);
        }
        let products = matches!(
            treatment(&operator),
            Some(Treatment::MatMul | Treatment::Weighted(_))
        );
        let weight = self.model.graph.nodes()[index].input_at(1);
        let constant = weight.is_some_and(|name| self.model.graph.initializers.contains(name));
        (layer.constant_only && products && !constant).then_some(StaysFloat::OnlyConstantWeights)
    }

    /// Marks the tensors that a node wants quantized; the error is the reason why it stays float.
    pub(super) fn visit(&mut self, index: usize, node: &Node) -> Result<(), StaysFloat> {
        if let Some(&chain) = self.inside.get(&index) {
            return self.visit_chain(index, chain);
        }
        if let Some(reason) = self.excluded(index) {
            return Err(reason);
        }
        let treatment = treatment(&node.operator()).ok_or(StaysFloat::NoStaticForm)?;
        // The bounds of a Clip may be infinite, because they are not quantized.
        if !matches!(treatment, Treatment::Clamp | Treatment::Share)
            && node.input.iter().any(|name| !self.is_finite(name))
        {
            return Err(StaysFloat::NotFinite);
        }
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        match treatment {
            Treatment::Weighted(axis) => {
                if !self.is_float(input) || !self.is_float(output) {
                    return Err(StaysFloat::NotFloat32);
                }
                self.activation(input);
                self.output(index, output);
                let weight = node.input_at(1).unwrap_or_default();
                self.weight(index, weight, Some(axis.at(node)));
                if let Some(bias) = node.input_at(2) {
                    let beta = if node.is("Gemm") {
                        node.float("beta").unwrap_or(1.0)
                    } else {
                        1.0
                    };
                    self.bias(index, bias, input, weight, beta);
                }
            }
            Treatment::MatMul => {
                if !self.is_float(output) {
                    return Err(StaysFloat::NotFloat32);
                }
                for (slot, name) in node.input.iter().enumerate() {
                    if self.model.graph.initializers.contains(name) {
                        self.weight(index, name, self.operand_axis(index, slot, name));
                    } else {
                        self.activation(name);
                    }
                }
                self.output(index, output);
            }
            Treatment::Elementwise => {
                let outputs = match self.nodes[index].float_output {
                    true => &[][..],
                    false => &node.output,
                };
                let names = node.input.iter().chain(outputs);
                if names.clone().filter(|n| self.activation(n)).count() == 0 {
                    return Err(StaysFloat::NotFloat32);
                }
            }
            Treatment::Clamp => {
                if !self.is_marked(input) {
                    return Err(StaysFloat::FloatInput);
                }
                if !self.fold_clamp(index, input, output) {
                    self.activation(input);
                }
                self.output(index, output);
            }
            Treatment::Share => {
                if self.nodes[index].always {
                    self.activation(input);
                }
                self.share(index, output, input)?;
            }
            Treatment::Pad => {
                if !self.is_float(input) {
                    return Err(StaysFloat::NotFloat32);
                }
                for name in &node.input {
                    self.activation(name);
                }
                if self.pads_with_input(node) {
                    self.share(index, output, input)?;
                } else {
                    self.output(index, output);
                }
            }
            Treatment::Split => {
                if !self.is_marked(input) && !self.activation(input) {
                    return Err(StaysFloat::NotFloat32);
                }
                for output in &node.output {
                    self.share(index, output, input)?;
                }
            }
            Treatment::Gather => {
                if self.nodes[index].always || self.model.graph.initializers.contains(input) {
                    self.activation(input);
                }
                self.share(index, output, input)?;
            }
            Treatment::Where => {
                let branches = [1, 2].map(|slot| node.input_at(slot).unwrap_or_default());
                if self.nodes[index].always {
                    branches.iter().for_each(|branch| {
                        self.activation(branch);
                    });
                }
                if !branches.iter().all(|branch| self.is_marked(branch)) {
                    return Err(StaysFloat::FloatInput);
                }
                self.output(index, output);
            }
            Treatment::Normalize => {
                if !self.activation(input) {
                    return Err(StaysFloat::NotFloat32);
                }
                let scale = node.input_at(1).unwrap_or_default();
                self.weight(index, scale, Some(1));
                if let Some(bias) = node.input_at(2) {
                    self.bias(index, bias, input, scale, 1.0);
                }
                for output in &node.output {
                    self.output(index, output);
                }
            }
        }
        self.quantized.insert(index);
        Ok(())
    }

    /// Visits a node of an operator pattern. Only the input and output of the pattern become
    /// integers.
    fn visit_chain(&mut self, index: usize, chain: usize) -> Result<(), StaysFloat> {
        let chain = self.chains[chain].clone();
        if chain.nodes.iter().any(|&node| self.nodes[node].float) {
            return Err(StaysFloat::BySettings);
        }
        let last = chain.last();
        let output = self.model.graph.nodes()[last].output.first();
        let output = output.map_or("", String::as_str);
        if !self.is_float(&chain.input) || !self.is_float(output) {
            return Err(StaysFloat::NotFloat32);
        }
        self.activation(&chain.input);
        if index != last {
            return Err(chain.operator.reason);
        }
        self.output(last, output);
        self.quantized.insert(index);
        Ok(())
    }

    /// The activation settings of nodes that are folded into the first.
    pub(super) fn activations_of(&self, nodes: &[usize]) -> Representation {
        if let &[node] = nodes {
            return self.nodes[node].activations.clone();
        }
        let graph = &self.model.graph;
        let named = |&node: &usize| (&graph.nodes()[node], self.operators[node].as_str());
        let named: Vec<_> = nodes.iter().map(named).collect();
        self.layers.resolve_all(&named).activations
    }

    pub(super) fn is_float(&self, name: &str) -> bool {
        self.element.get(name) == Some(&DataType::Float)
    }

    /// False for a float constant that holds an infinity or NaN.
    fn is_finite(&self, name: &str) -> bool {
        let Some(tensor) = self
            .model
            .graph
            .initializers
            .get(name)
            .filter(|_| self.is_float(name))
        else {
            return true;
        };
        // Reads the raw bytes without a copy, because this check covers every weight.
        let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        match &tensor.raw_data {
            Some(raw) => raw.chunks_exact(4).all(|bytes| number(bytes).is_finite()),
            None => tensor.float_data.iter().all(|value| value.is_finite()),
        }
    }

    fn is_marked(&self, name: &str) -> bool {
        self.forms.contains_key(name)
    }

    fn mark(&mut self, name: &str, form: TensorRole) {
        if self.forms.insert(name.to_string(), form).is_none() {
            self.order.push(name.to_string());
        }
    }

    /// Marks a float tensor as an activation unless it is marked; returns true for a float tensor.
    fn activation(&mut self, name: &str) -> bool {
        let float = self.is_float(name);
        if float && !self.is_marked(name) {
            self.mark(name, TensorRole::Activation);
        }
        float
    }

    /// Marks the output of a node unless the settings keep it float.
    fn output(&mut self, node: usize, name: &str) {
        if !self.nodes[node].float_output {
            self.activation(name);
        }
    }

    fn weight(&mut self, node: usize, name: &str, axis: Option<usize>) {
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            self.activation(name);
            return;
        };
        if !self.is_float(name) {
            return;
        }
        let by_channel = self
            .layers
            .tensor(name, &self.nodes[node].weights)
            .per_channel;
        let allowed = match target_rules::of(self.settings.target).channels {
            Channels::All => true,
            Channels::Only(operators) => operators.contains(&self.operators[node].as_str()),
        };
        let axis = axis.filter(|&axis| by_channel && allowed && axis < tensor.dims.len());
        let form = match self.forms.get(name) {
            // A weight used with different axes, or also by an elementwise operator, takes one
            // scale.
            Some(form) if *form != TensorRole::Weight(axis) => TensorRole::Weight(None),
            _ => TensorRole::Weight(axis),
        };
        self.mark(name, form);
    }

    /// Plans a constant float bias if its shape fits the scales of its weight.
    fn bias(&mut self, node: usize, name: &str, input: &str, weight: &str, beta: f32) {
        let Some(tensor) = self.model.graph.initializers.get(name) else {
            return;
        };
        let channels = match self.forms.get(weight) {
            Some(TensorRole::Weight(Some(axis))) => self
                .model
                .graph
                .initializers
                .get(weight)
                .map(|w| w.dims[*axis]),
            _ => None,
        };
        let fits = channels.is_none_or(|channels| tensor.dims == [channels]);
        let wanted = self.settings.quantize_bias && self.is_float(name);
        if wanted && self.is_marked(input) && self.is_marked(weight) && fits {
            let (name, input, weight) = (name.to_string(), input.to_string(), weight.to_string());
            self.biases.push(PlannedBias {
                node,
                name,
                input,
                weight,
                beta,
            });
        }
    }

    fn share(&mut self, node: usize, output: &str, input: &str) -> Result<(), StaysFloat> {
        if self.nodes[node].float_output {
            return Err(StaysFloat::OutputBySettings);
        }
        match self.forms.get(input) {
            None => return Err(StaysFloat::FloatInput),
            Some(TensorRole::Weight(Some(_))) => {
                return Err(StaysFloat::PerChannelInput);
            }
            Some(_) if !self.is_float(output) => return Err(StaysFloat::NotFloat32),
            Some(_) => self.mark(output, TensorRole::Shared(input.to_string())),
        }
        Ok(())
    }

    fn pads_with_input(&self, node: &Node) -> bool {
        match node.text("mode").unwrap_or("constant") {
            "reflect" | "edge" | "wrap" => true,
            "constant" => match node.input_at(2) {
                None => true,
                Some(value) => self
                    .model
                    .graph
                    .initializers
                    .get(value)
                    .and_then(|tensor| tensor.to_f32().ok())
                    .is_some_and(|values| values.first().copied().unwrap_or(0.0) == 0.0),
            },
            _ => false,
        }
    }
}
