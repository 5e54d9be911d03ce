//! Rewrites a graph: inserts pairs, replaces constants, writes int32 biases.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::nodes::{linear, without};
use super::scale_owner;
use crate::gptq::decibels;
use crate::plan::{Plan, PlannedBias, TensorRole};
use crate::scale::{QuantizationParameters, encoded};
use crate::weights::ConstantIntegers;
use crate::{MICROSOFT, QuantizeError, Quantized, QuantizedTensor, TensorKind, bias};
use octet_graph::{Graph, Model, Names, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_stats::Range;

/// The first opset whose QuantizeLinear and DequantizeLinear take 16- and 4-bit integers.
const FIRST_OPSET_WITH_16_AND_4_BITS: i64 = 21;

/// Bytes from which a float weight is not kept beside its integers.
const LARGE_WEIGHT: usize = 4096;

/// A graph that is being rewritten.
pub(super) struct QdqWriter<'a> {
    plan: &'a Plan,
    model: &'a Model,
    out: Model,
    /// The graph before the first pair, without the folded nodes.
    kept: Graph,
    names: Names,
    /// The dequantized value that consumers read in place of each value.
    replaced: HashMap<String, String>,
    /// The dequantized value that quantized nodes read in place of each constant.
    replaced_constants: HashMap<String, String>,
    /// Constants whose name the dequantized bias has taken.
    taken_names: HashSet<String>,
    /// The dequantized bias that a node reads in slot 2.
    replaced_biases: HashMap<usize, String>,
    /// The names of scale and zero point of each value.
    parameter_names: HashMap<String, (String, String)>,
    /// Nodes inserted before node `i`; the last entry holds those behind all nodes.
    before: Vec<Vec<Node>>,
    /// Nodes inserted right after node `i`.
    after: Vec<Vec<Node>>,
    tensors: Vec<QuantizedTensor>,
    notes: Vec<String>,
}

impl<'a> QdqWriter<'a> {
    pub(super) fn new(model: &'a Model, plan: &'a Plan) -> QdqWriter<'a> {
        let mut out = model.clone();
        out.graph.edit_all(|index, node| {
            for output in &mut node.output {
                // The node before a folded node takes over its output name.
                if plan.removed.contains(&index) {
                    output.push_str("/folded");
                } else if let Some(new) = plan.folded_name(output) {
                    *output = new.clone();
                }
            }
        });
        let kept = without(&out.graph, &plan.removed);
        let nodes = out.graph.nodes().len();
        let names = out.graph.names();
        QdqWriter {
            plan,
            model,
            out,
            kept,
            names,
            replaced: HashMap::new(),
            replaced_constants: HashMap::new(),
            taken_names: HashSet::new(),
            replaced_biases: HashMap::new(),
            parameter_names: HashMap::new(),
            before: vec![Vec::new(); nodes + 1],
            after: vec![Vec::new(); nodes],
            tensors: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn parameters(&mut self, base: &str, params: &QuantizationParameters) -> (String, String) {
        let scale = self.names.fresh(&format!("{base}_scale"));
        let zero_point = self.names.fresh(&format!("{base}_zero_point"));
        let shape: Vec<usize> = params
            .axis
            .map(|_| params.scales.len())
            .into_iter()
            .collect();
        let bytes = encoded(params.element, params.zero_points.iter().copied());
        let zero_points = TensorProto::from_raw(&zero_point, params.element, &shape, bytes.into());
        let initializers = &mut self.out.graph.initializers;
        initializers.insert(TensorProto::from_f32(&scale, &shape, &params.scales));
        initializers.insert(zero_points);
        (scale, zero_point)
    }

    pub(super) fn activation(
        &mut self,
        name: &str,
        form: &TensorRole,
        params: &QuantizationParameters,
    ) {
        let (scale, zero_point) = match form {
            TensorRole::Shared(_) => match self.parameter_names.get(scale_owner(self.plan, name)) {
                Some(names) => names.clone(),
                // The owner of the scale comes later, so its parameters are written now.
                None => self.owner_parameters(scale_owner(self.plan, name), params),
            },
            _ => self.owner_parameters(name, params),
        };
        let quantized = self.names.fresh(&format!("{name}_QuantizeLinear_Output"));
        let producer = self.kept.producer(name);
        let (input, output) = match producer {
            Some(producer) if self.kept.is_output(name) => {
                let input = self.names.fresh(&format!("{name}_QuantizeLinear_Input"));
                self.out.graph.edit(producer, |node| {
                    let outputs = node.output.iter_mut();
                    for produced in outputs.filter(|produced| *produced == name) {
                        produced.clone_from(&input);
                    }
                });
                (input, name.to_string())
            }
            _ => {
                let output = self.names.fresh(&format!("{name}_DequantizeLinear_Output"));
                self.replaced.insert(name.to_string(), output.clone());
                (name.to_string(), output)
            }
        };
        let pair = [
            self.linear(
                "QuantizeLinear",
                params.element,
                name,
                [&input, &scale, &zero_point],
                &quantized,
                None,
            ),
            self.linear(
                "DequantizeLinear",
                params.element,
                name,
                [&quantized, &scale, &zero_point],
                &output,
                None,
            ),
        ];
        match producer {
            Some(producer) => self.after[producer].extend(pair),
            None => self.before[0].extend(pair),
        }
        self.report(name, TensorKind::Activation, params);
    }

    fn owner_parameters(
        &mut self,
        name: &str,
        params: &QuantizationParameters,
    ) -> (String, String) {
        if let Some(names) = self.parameter_names.get(name) {
            return names.clone();
        }
        let names = self.parameters(name, params);
        self.parameter_names.insert(name.to_string(), names.clone());
        names
    }

    pub(super) fn constant(
        &mut self,
        name: &str,
        form: &TensorRole,
        params: &QuantizationParameters,
        constant: ConstantIntegers,
    ) {
        let (scale, zero_point) = self.owner_parameters(name, params);
        let integers = self.names.fresh(&format!("{name}_quantized"));
        self.out.graph.initializers.insert(TensorProto {
            name: Some(integers.clone()),
            ..constant.tensor
        });
        let output = self.names.fresh(&format!("{name}_DequantizeLinear_Output"));
        let node = self.linear(
            "DequantizeLinear",
            params.element,
            name,
            [&integers, &scale, &zero_point],
            &output,
            params.axis,
        );
        let consumers = self.kept.consumers(name).iter();
        let first = consumers
            .map(|reader| reader.node)
            .find(|&node| self.reads_integers(node, name));
        self.before[first.unwrap_or(0)].push(node);
        self.replaced_constants.insert(name.to_string(), output);
        let kind = match form {
            TensorRole::Weight(_) => TensorKind::Weight,
            _ => TensorKind::Activation,
        };
        let mut entry = QuantizedTensor::new(name, kind, params);
        entry.compensated = constant.error_reduction.map(decibels);
        self.tensors.push(entry);
    }

    pub(super) fn bias(
        &mut self,
        planned: &PlannedBias,
        input: f32,
        weight: &QuantizationParameters,
        correction: &[f64],
    ) -> Result<(), QuantizeError> {
        let Some(tensor) = self.model.graph.initializers.get(&planned.name) else {
            return Ok(());
        };
        let scales = bias::scales(input, &weight.scales);
        let (integers, beyond) =
            bias::integers(&tensor.to_f32()?, &scales, planned.beta, correction);
        if beyond > 0 {
            let (name, weight) = (&planned.name, &planned.weight);
            self.notes.push(format!(
                "`{name}` is a bias of which {beyond} of {} values overflow 32 bits and are clipped, because the scale of the weight `{weight}` \
                 must not grow: set a larger scale for that weight, or keep its layer float",
                integers.len()
            ));
        }
        let output = self.bias_name(planned);
        let base = self.names.fresh(&format!("{output}_quantized"));
        let scale = self.names.fresh(&format!("{base}_scale"));
        let zero_point = self.names.fresh(&format!("{base}_zero_point"));
        // ONNX Runtime writes a single scale with shape [1] and its zero point as a scalar.
        let axis = (scales.len() > 1).then_some(0);
        let zero_points: Vec<usize> = axis.map(|_| scales.len()).into_iter().collect();
        let initializers = &mut self.out.graph.initializers;
        initializers.insert(TensorProto::from_i32(&base, &tensor.shape()?, &integers));
        initializers.insert(TensorProto::from_f32(&scale, &[scales.len()], &scales));
        if self.plan.bias_zero_points {
            let zeros = vec![0; scales.len()];
            initializers.insert(TensorProto::from_i32(&zero_point, &zero_points, &zeros));
        }
        let mut node = self.linear(
            "DequantizeLinear",
            DataType::Int32,
            &output,
            [&base, &scale, &zero_point],
            &output,
            axis,
        );
        if !self.plan.bias_zero_points {
            node.input.truncate(2);
        }
        self.before[planned.node].push(node);
        self.replaced_biases.insert(planned.node, output);
        let params = QuantizationParameters {
            element: DataType::Int32,
            axis,
            zero_points: vec![0; scales.len()],
            scales,
        };
        let most = correction
            .iter()
            .fold(0.0, |most: f64, c| most.max(c.abs()));
        let mut entry = QuantizedTensor::new(&planned.name, TensorKind::Bias, &params);
        entry.corrected = (most > 0.0).then_some(most as f32);
        self.tensors.push(entry);
        Ok(())
    }

    /// The name of a dequantized bias.
    ///
    /// The first node that reads the bias gets its own name, if all readers use it as a bias.
    /// Others get a copy, numbered as ONNX Runtime numbers copies.
    fn bias_name(&mut self, planned: &PlannedBias) -> String {
        let name = &planned.name;
        let mut uses = self.kept.consumers(name).iter();
        let only_bias = uses.all(|reader| {
            reader.is_input(2)
                && self
                    .plan
                    .biases
                    .iter()
                    .any(|b| b.node == reader.node && b.name == *name)
        });
        if only_bias && !self.kept.is_output(name) && self.taken_names.insert(name.clone()) {
            return name.clone();
        }
        let number = |taken: &String| taken.strip_prefix(name.as_str())?.parse::<u64>().ok();
        let next = self
            .names
            .iter()
            .filter_map(number)
            .max()
            .map_or(0, |largest| largest + 1);
        self.names.fresh(&format!("{name}{next}"))
    }

    /// Makes a QuantizeLinear or DequantizeLinear. ONNX's take 16- and 4-bit integers from opset
    /// 21; before, those of com.microsoft do.
    fn linear(
        &mut self,
        operator: &str,
        element: DataType,
        tensor: &str,
        inputs: [&String; 3],
        output: &str,
        axis: Option<usize>,
    ) -> Node {
        let title = self.names.fresh(&format!("{tensor}_{operator}"));
        let mut node = linear(operator, &title, inputs, output, axis);
        let old = !matches!(element, DataType::Int8 | DataType::Uint8 | DataType::Int32);
        if old && self.model.opset() < FIRST_OPSET_WITH_16_AND_4_BITS {
            node.domain = Some(MICROSOFT.into());
            self.out.import(MICROSOFT, 1);
        }
        node
    }

    /// True if a node reads the dequantized value in place of a constant: a quantized node, and one
    /// that hands a large weight on to its graphs. The float weight would stay in the file beside
    /// its integers otherwise.
    fn reads_integers(&self, node: usize, constant: &str) -> bool {
        let hands_on = || {
            let weight = self.model.graph.initializers.get(constant);
            let bytes = weight.and_then(|weight| weight.byte_len().ok());
            let reader = &self.model.graph.nodes()[node];
            reader.subgraphs().next().is_some() && bytes >= Some(LARGE_WEIGHT)
        };
        self.plan.quantized.contains(&node) || (!self.plan.like_onnx_runtime && hands_on())
    }

    fn report(&mut self, name: &str, kind: TensorKind, params: &QuantizationParameters) {
        self.tensors.push(QuantizedTensor::new(name, kind, params));
    }

    /// Removes float constants that lost their last reader in this rewrite.
    fn drop_unused_constants(&mut self) {
        let (before, taken_names) = (&self.model.graph, &self.taken_names);
        self.out.graph.retain_initializers(|graph, name| {
            let was_unused = before.consumers(name).is_empty();
            !taken_names.contains(name)
                && (!graph.is_unused(name) || (was_unused && before.initializers.contains(name)))
        });
    }

    pub(super) fn finish(mut self, ranges: BTreeMap<String, Range>) -> Quantized {
        let nodes = self.out.graph.take_nodes();
        let mut written = Vec::with_capacity(nodes.len() * 3);
        for (index, mut node) in nodes.into_iter().enumerate() {
            written.append(&mut self.before[index]);
            if self.plan.removed.contains(&index) {
                continue;
            }
            for (slot, input) in node.input.iter_mut().enumerate() {
                let bias = self.replaced_biases.get(&index).filter(|_| slot == 2);
                let constant = self.replaced_constants.get(input);
                let constant = constant.filter(|_| self.reads_integers(index, input));
                if let Some(new) = bias.or(constant).or_else(|| self.replaced.get(input)) {
                    *input = new.clone();
                }
            }
            if self
                .plan
                .biases
                .iter()
                .any(|b| b.node == index && b.beta != 1.0)
            {
                node.take("beta");
            }
            written.push(node);
            written.append(&mut self.after[index]);
        }
        self.out.graph.replace_nodes(written);
        self.drop_unused_constants();
        self.tensors
            .sort_by_key(|tensor| tensor.kind != TensorKind::Activation);
        Quantized {
            model: self.out,
            tensors: self.tensors,
            nodes: self.plan.choices.clone(),
            ranges,
            notes: self.notes,
            guarded: 0,
        }
    }
}
