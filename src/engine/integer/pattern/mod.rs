//! From a graph of QuantizeLinear/DequantizeLinear pairs to steps on integers.
//!
//! A node is a step where every value it computes with comes from a DequantizeLinear of eight bits, and what it
//! makes goes into a QuantizeLinear and nowhere else. Products with weights may end in floats. Everything else
//! stays as it is, and the reason is kept. QuantizeLinear and DequantizeLinear that remain between integers and
//! floats are steps of their own.

mod elementwise;
mod moving;
mod network;
mod reader;
mod tables;
mod weighted;
mod windows;

use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) use network::{Binary, Constant, Kind, Network, Operand, Operation, Step, Value};
pub(super) use windows::plane;

use super::quantization::Quantization;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::NodeProto;
use reader::{Reader, Reason};

/// Where the result of a float node goes.
enum End {
    /// Through a QuantizeLinear, after a Relu or Clip perhaps.
    Integers {
        output: String,
        quantization: Quantization,
        bounds: [u8; 2],
        nodes: Vec<usize>,
    },
    /// To floats, and why not to integers.
    Floats(Reason),
}

/// Matches a prepared model, whose types are known for the shapes that run. What was refused before stays
/// float.
pub(super) fn network(
    model: &Model,
    types: &BTreeMap<String, TensorType>,
    watched: &[String],
    refused: &HashMap<usize, Reason>,
) -> Network {
    let mut matcher = Matcher {
        reader: Reader::new(model, types, watched),
        network: Network::default(),
        owned: HashSet::new(),
        reasons: refused.clone(),
        refused: refused.keys().copied().collect(),
    };
    let count = model.graph.nodes.len();
    for index in 0..count {
        matcher.visit(index);
    }
    matcher.convert();
    tables::merge(&mut matcher.network.steps);
    let Matcher {
        mut network,
        owned,
        mut reasons,
        ..
    } = matcher;
    network
        .steps
        .sort_by_key(|step| step.nodes.iter().copied().min());
    for (index, node) in model.graph.nodes.iter().enumerate() {
        let pair = node.is("QuantizeLinear") || node.is("DequantizeLinear");
        if owned.contains(&index) || pair && !reasons.contains_key(&index) {
            continue;
        }
        let reason = reasons
            .remove(&index)
            .unwrap_or_else(|| "it has no integer form here".into());
        network.floats.push((index, reason));
    }
    network
}

struct Matcher<'a> {
    reader: Reader<'a>,
    network: Network,
    /// Nodes that steps stand for.
    owned: HashSet<usize>,
    reasons: HashMap<usize, Reason>,
    /// Nodes that must stay float: what was made of them could not run.
    refused: HashSet<usize>,
}

impl<'a> Matcher<'a> {
    fn node(&self, index: usize) -> &'a NodeProto {
        &self.reader.graph.nodes[index]
    }

    fn visit(&mut self, index: usize) {
        let node = self.node(index);
        if self.owned.contains(&index) || self.refused.contains(&index) {
            return;
        }
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        let found = match node.op_type.as_deref().unwrap_or_default() {
            _ if !own => Err("it is not an operator of ONNX itself".into()),
            "QuantizeLinear" | "DequantizeLinear" => return,
            "Split" => self.split(index),
            "Conv" | "ConvTranspose" | "Gemm" | "MatMul" => self.product(index),
            "BatchNormalization" => self.normalization(index),
            "Concat" | "MaxPool" | "AveragePool" | "GlobalAveragePool" | "ReduceMean"
            | "Resize" | "Upsample" | "Pad" | "Slice" | "Transpose" | "Reshape" | "Flatten"
            | "Squeeze" | "Unsqueeze" | "DepthToSpace" | "SpaceToDepth" | "Softmax"
            | "LayerNormalization" | "Identity" => self.moved(index),
            _ if elementwise::is_elementwise(node) => self.elementwise(index),
            _ => Err("it has no integer form here".into()),
        };
        if let Err(reason) = found {
            self.reasons.insert(index, reason);
        }
    }

    /// A product may end in floats.
    fn product(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let (operation, inputs) = match node.is("MatMul") {
            true => weighted::product(node, &self.reader)?,
            false if node.is("Gemm") => weighted::gemm(node, &self.reader)?,
            false => weighted::convolution(node, &self.reader)?,
        };
        let output = weighted::slot_out(node)?;
        let end = self.end(output);
        if let (End::Floats(reason), Operation::Pair) = (&end, &operation) {
            return Err(reason.clone());
        }
        self.push(index, operation, inputs, output, end)
    }

    fn moved(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted::slot_out(node)?;
        let end = self.end(output);
        if let End::Floats(reason) = end {
            return Err(reason);
        }
        let (operation, inputs) = moving::operation(node, &self.reader)?;
        self.push(index, operation, inputs, output, end)
    }

    fn normalization(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted::slot_out(node)?;
        let end = self.end(output);
        let End::Integers {
            quantization,
            bounds,
            ..
        } = &end
        else {
            return match end {
                End::Floats(reason) => Err(reason),
                End::Integers { .. } => Err("it ends in integers".into()),
            };
        };
        let (operation, inputs) =
            weighted::normalization(node, *quantization, *bounds, &self.reader)?;
        self.push(index, operation, inputs, output, end)?;
        if let Some(step) = self.network.steps.last_mut() {
            step.bounds = [0, 255];
        }
        Ok(())
    }

    fn split(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let operand = self.reader.operand(weighted::slot(node, 0)?)?;
        let mut start = 0;
        let mut parts = Vec::new();
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            let (operation, end) = moving::part(node, &self.reader, name, start)?;
            start = end;
            if self.reader.uses.consumers(name).is_empty() && !self.reader.is_kept(name) {
                continue;
            }
            match self.end(name) {
                End::Floats(reason) => return Err(reason),
                end => parts.push((name, operation, end)),
            }
        }
        for (name, operation, end) in parts {
            self.push(index, operation, vec![operand.clone()], name, end)?;
        }
        Ok(())
    }

    /// A table is made where the chain ends: at the node before the QuantizeLinear.
    fn elementwise(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted::slot_out(node)?;
        // What the next node's chain will take in is not looked at yet; what ends in a clamp is.
        let (end, last) = match self.quantizer(output) {
            Some(end) => (end, output.to_owned()),
            None => (self.end(output), output.to_owned()),
        };
        let End::Integers {
            output: integers,
            quantization,
            bounds,
            nodes,
        } = end
        else {
            return match end {
                End::Floats(reason) => Err(reason),
                End::Integers { .. } => Err("it ends in integers".into()),
            };
        };
        let chained = elementwise::chain(&last, &self.reader);
        let end = End::Integers {
            output: integers,
            quantization,
            bounds,
            nodes,
        };
        match chained {
            Ok((chain, operand)) => {
                let from = operand.quantization().ok_or("its input is float")?;
                let mut table =
                    elementwise::table(&last, &chain, from, quantization, &self.reader)?;
                for entry in table.iter_mut() {
                    *entry = (*entry).clamp(bounds[0], bounds[1].max(bounds[0]));
                }
                for &member in &chain {
                    self.reasons.remove(&member);
                }
                self.push(index, Operation::Table(table), vec![operand], &last, end)?;
                if let Some(step) = self.network.steps.last_mut() {
                    step.nodes
                        .extend(chain.iter().copied().filter(|&i| i != index));
                    step.bounds = [0, 255];
                }
                self.owned.extend(chain);
                Ok(())
            }
            Err(reason) => {
                let (operation, inputs) = elementwise::binary(node, &self.reader)
                    .map_err(|other| if node.input.len() == 2 { other } else { reason })?;
                self.push(index, operation, inputs, &last, end)
            }
        }
    }

    /// The QuantizeLinear that alone reads a real value.
    fn quantizer(&self, real: &str) -> Option<End> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        let quantization = self.reader.quantization(node, output).ok()?;
        Some(End::Integers {
            output: output.clone(),
            quantization,
            bounds: [0, 255],
            nodes: vec![reader],
        })
    }

    /// Where a real value goes, past a Relu or Clip.
    fn end(&self, real: &str) -> End {
        if let Some(end) = self.quantizer(real) {
            return end;
        }
        let floats = |reason: &str| End::Floats(reason.to_owned());
        if self.reader.is_kept(real) {
            return floats("its result is an output of the model in float");
        }
        let Some(reader) = self.reader.only_reader(real) else {
            return match self.reader.uses.consumers(real) {
                [(reader, _)] => End::Floats(format!(
                    "its result is read in float by {}",
                    self.node(*reader).title()
                )),
                _ => floats("its result is read in float, or by several nodes"),
            };
        };
        let clamp = self.node(reader);
        let title = clamp.title();
        if clamp.is("QuantizeLinear") {
            let output = clamp.output.first().map_or("", String::as_str);
            return match self.reader.quantization(clamp, output) {
                Err(reason) => End::Floats(format!("its result is no eight-bit integer: {reason}")),
                Ok(_) => floats("its result is quantized in a way that is not known"),
            };
        }
        let bound = |slot: usize, key: &str, none: f32| match clamp.input_at(slot) {
            Some(name) => self.reader.number(name),
            None => Some(clamp.float(key).unwrap_or(none)),
        };
        let limits = if clamp.is("Relu") {
            Some((0.0, f32::INFINITY))
        } else if clamp.is("Clip") {
            bound(1, "min", f32::NEG_INFINITY).zip(bound(2, "max", f32::INFINITY))
        } else {
            None
        };
        let next = clamp.output.first().and_then(|name| self.quantizer(name));
        match (limits, next) {
            // Rounding keeps order, so clamping before it and after it are the same.
            (
                Some((low, high)),
                Some(End::Integers {
                    output,
                    quantization,
                    mut nodes,
                    ..
                }),
            ) => {
                nodes.push(reader);
                End::Integers {
                    output,
                    quantization,
                    bounds: [quantization.integer(low), quantization.integer(high)],
                    nodes,
                }
            }
            _ => End::Floats(format!("its result is read in float by {title}")),
        }
    }

    fn push(
        &mut self,
        index: usize,
        operation: Operation,
        inputs: Vec<Operand>,
        real: &str,
        end: End,
    ) -> Result<(), Reason> {
        let node = self.node(index);
        let shape = self.reader.shape(real)?;
        for (operand, name) in inputs
            .iter()
            .zip(node.input.iter().filter(|n| !n.is_empty()))
        {
            let Some(value) = operand.value() else {
                continue;
            };
            let shape = self
                .reader
                .shape(value)
                .or_else(|_| self.reader.shape(name))?;
            let kind = match operand.quantization() {
                Some(quantization) => Kind::Byte {
                    signed: quantization.signed,
                },
                None => Kind::Float,
            };
            self.network
                .values
                .insert(value.to_owned(), Value { shape, kind });
        }
        let mut nodes = vec![index];
        let (output, quantization, bounds) = match end {
            End::Integers {
                output,
                quantization,
                bounds,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, Some(quantization), bounds)
            }
            End::Floats(_) => (real.to_owned(), None, [0, 255]),
        };
        let kind = match quantization {
            Some(quantization) => Kind::Byte {
                signed: quantization.signed,
            },
            None => Kind::Float,
        };
        self.network
            .values
            .insert(output.clone(), Value { shape, kind });
        self.owned.extend(nodes.iter().copied());
        for member in &nodes {
            self.reasons.remove(member);
        }
        self.network.steps.push(Step {
            node: node.title().to_owned(),
            operator: node.operator(),
            nodes,
            operation,
            inputs,
            output,
            quantization,
            bounds,
        });
        Ok(())
    }

    /// The pairs that remain: QuantizeLinear of floats, DequantizeLinear for who reads floats.
    fn convert(&mut self) {
        for index in 0..self.reader.graph.nodes.len() {
            let node = self.node(index);
            let quantizes = node.is("QuantizeLinear");
            if self.owned.contains(&index)
                || self.refused.contains(&index)
                || !(quantizes || node.is("DequantizeLinear"))
            {
                continue;
            }
            if !quantizes && !self.is_read_in_float(node) {
                continue;
            }
            if let Err(reason) = self.conversion(index, node, quantizes) {
                self.reasons.insert(index, reason);
            }
        }
    }

    fn is_read_in_float(&self, node: &NodeProto) -> bool {
        let Some(real) = node.output.first() else {
            return false;
        };
        let constant = node
            .input_at(0)
            .is_some_and(|name| self.reader.constant(name).is_some());
        let mut readers = self.reader.uses.consumers(real).iter();
        !constant
            && (self.reader.is_kept(real)
                || readers.any(|(reader, _)| !self.owned.contains(reader)))
    }

    fn conversion(
        &mut self,
        index: usize,
        node: &NodeProto,
        quantizes: bool,
    ) -> Result<(), Reason> {
        let input = weighted::slot(node, 0)?;
        let output = weighted::slot_out(node)?;
        let shape = self.reader.shape(input)?;
        let integers = if quantizes { output } else { input };
        let quantization = self.reader.quantization(node, integers)?;
        let reals = if quantizes { input } else { output };
        match self.reader.element(reals) {
            Some(crate::onnx::schema::DataType::Float) => {}
            _ => return Err(format!("{reals} is not known to be 32-bit floats")),
        }
        let byte = Kind::Byte {
            signed: quantization.signed,
        };
        let (from, to) = if quantizes {
            (Kind::Float, byte)
        } else {
            (byte, Kind::Float)
        };
        let value = |kind| Value {
            shape: shape.clone(),
            kind,
        };
        self.network.values.insert(input.to_owned(), value(from));
        self.network.values.insert(output.to_owned(), value(to));
        let (operation, operand) = match quantizes {
            true => (Operation::Quantize, Operand::Floats(input.to_owned())),
            false => (
                Operation::Dequantize,
                Operand::Integers(input.to_owned(), quantization),
            ),
        };
        self.owned.insert(index);
        self.network.steps.push(Step {
            node: node.title().to_owned(),
            operator: node.operator(),
            nodes: vec![index],
            operation,
            inputs: vec![operand],
            output: output.to_owned(),
            quantization: quantizes.then_some(quantization),
            bounds: [0, 255],
        });
        Ok(())
    }
}
