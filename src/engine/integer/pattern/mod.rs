//! Matcher: from a graph of QDQ pairs to integer steps.
//!
//! A node becomes a step if each of its inputs comes from an eight-bit DequantizeLinear and its
//! output goes only to a QuantizeLinear. Products with weights may end in floats. All other nodes
//! stay float, with a reason. Q and DQ nodes that remain at the border between integers and floats
//! are steps of their own.

mod choice;
mod convert;
mod dynamic;
mod elementwise;
mod end;
mod moving;
mod network;
mod normalization;
mod products;
mod reader;
mod resize;
mod room;
mod select;
mod softmax;
mod stacks;
mod tables;
mod weighted;
mod weights;
mod wide;
mod windows;

use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) use moving::order;
pub(super) use network::{
    Binary, Constant, Kind, Multiplier, Network, Norm, Operand, Operation, Stacks, Step, Sums,
    Value, Weights,
};
pub(super) use windows::plane;

use super::blocks::OPERATOR;
use crate::graph::{Model, TensorType};
use crate::onnx::schema::NodeProto;
use end::End;
use reader::{Reader, Reason};

/// Set of nodes that may become steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Scope {
    /// All supported nodes.
    Integers,
    /// Only operators defined on integers; everything else runs in float.
    Defined,
}

/// Matches a prepared model with types for the shapes of the run. `refused` nodes stay float.
pub(super) fn network(
    model: &Model,
    types: &BTreeMap<String, TensorType>,
    watched: &[String],
    refused: &HashMap<usize, Reason>,
    scope: Scope,
) -> Network {
    let mut matcher = Matcher {
        reader: Reader::new(model, types, watched, refused.keys().copied().collect()),
        network: Network::default(),
        owned: HashSet::new(),
        reasons: refused.clone(),
        scope,
    };
    let count = model.graph.nodes.len();
    for index in 0..count {
        matcher.visit(index);
    }
    if scope == Scope::Integers {
        matcher.convert();
    }
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
        let reason = reasons.remove(&index).unwrap_or_else(|| match scope {
            Scope::Integers => "it has no integer form here".into(),
            Scope::Defined => "the model was asked to run in float".into(),
        });
        network.floats.push((index, reason));
    }
    network
}

struct Matcher<'a> {
    reader: Reader<'a>,
    network: Network,
    /// Nodes that belong to steps.
    owned: HashSet<usize>,
    reasons: HashMap<usize, Reason>,
    scope: Scope,
}

impl<'a> Matcher<'a> {
    fn node(&self, index: usize) -> &'a NodeProto {
        &self.reader.graph.nodes[index]
    }

    fn visit(&mut self, index: usize) {
        let node = self.node(index);
        if self.owned.contains(&index) || self.reader.refused.contains(&index) {
            return;
        }
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        let found = match node.op_type.as_deref().unwrap_or_default() {
            _ if !own => Err("it is not an operator of ONNX itself".into()),
            "DynamicQuantizeLinear" => self.measured(index),
            "MatMulInteger" | "ConvInteger" => self.sums(index),
            _ if self.scope == Scope::Defined => return,
            OPERATOR => Err("it multiplies floats by a matrix in blocks".into()),
            "QuantizeLinear" | "DequantizeLinear" => return,
            "Split" => self.split(index),
            "Conv" | "ConvTranspose" | "Gemm" | "MatMul" => self.product(index),
            "BatchNormalization" => self.normalization(index),
            "Where" => self.choice(index),
            "Concat"
            | "MaxPool"
            | "AveragePool"
            | "GlobalAveragePool"
            | "GlobalMaxPool"
            | "ReduceMean"
            | "ReduceSum"
            | "ReduceMax"
            | "ReduceMin"
            | "Resize"
            | "Upsample"
            | "Pad"
            | "Slice"
            | "Gather"
            | "Transpose"
            | "Reshape"
            | "Flatten"
            | "Squeeze"
            | "Unsqueeze"
            | "DepthToSpace"
            | "SpaceToDepth"
            | "Softmax"
            | "LayerNormalization"
            | "InstanceNormalization"
            | "GroupNormalization"
            | "Identity" => self.moved(index),
            _ if elementwise::is_elementwise(node) => self.elementwise(index),
            _ => Err("it has no integer form here".into()),
        };
        if let Err(reason) = found {
            self.reasons.insert(index, reason);
        }
    }

    fn moved(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted::slot_out(node)?;
        if node.is("Softmax") && self.flattened_softmax(index).is_some() {
            return Ok(());
        }
        let end = self.end(output);
        let end = match end {
            End::Floats(reason) => match self.wide_end(output) {
                Some(end) => end,
                None => return Err(reason),
            },
            end => end,
        };
        let (operation, inputs) = match node.is("Concat") {
            true => moving::concat(node, end.quantization(), &self.reader)?,
            false => moving::operation(node, &self.reader)?,
        };
        moving::fits_reals(&operation, &inputs, &end)?;
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
                _ => Err("it ends in integers".into()),
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
        let operand = self.reader.operand_or_wide(weighted::slot(node, 0)?)?;
        let mut start = 0;
        let mut parts = Vec::new();
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            let (operation, end) = select::part(node, &self.reader, name, start)?;
            start = end;
            if self.reader.uses.consumers(name).is_empty() && !self.reader.is_kept(name) {
                continue;
            }
            let end = match self.end(name) {
                End::Floats(reason) => self.wide_end(name).ok_or(reason)?,
                end => end,
            };
            moving::fits_reals(&operation, std::slice::from_ref(&operand), &end)?;
            parts.push((name, operation, end));
        }
        for (name, operation, end) in parts {
            self.push(index, operation, vec![operand.clone()], name, end)?;
        }
        Ok(())
    }

    /// A table replaces a chain at its last node, which precedes the QuantizeLinear.
    fn elementwise(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let real = weighted::slot_out(node)?;
        // Nodes inside a chain have no destination yet and are skipped; the table replaces them at
        // the end of the chain.
        let end = match self.end(real) {
            End::Floats(reason) => self.wide_end(real).ok_or(reason)?,
            end => end,
        };
        let to = end.quantization();
        let arithmetic = || match &end {
            End::Integers {
                quantization,
                bounds,
                ..
            } if node.is("PRelu") => {
                elementwise::slopes(node, *quantization, *bounds, &self.reader)
            }
            _ => elementwise::binary(node, to, |name| self.is_product(name), &self.reader),
        };
        let (operation, inputs, chain) = match elementwise::chain(real, &self.reader) {
            Ok((chain, operand)) => {
                // Computing a single sum or product is faster than a lookup among 65,536 entries.
                let single = chain.len() == 1 && matches!(operand, Operand::Wide(..));
                match single.then(arithmetic) {
                    Some(Ok((operation, inputs))) => (operation, inputs, Vec::new()),
                    _ => {
                        let table = elementwise::table(real, &chain, &operand, &end, &self.reader)?;
                        (table, vec![operand], chain)
                    }
                }
            }
            Err(reason) => {
                let (operation, inputs) = arithmetic()
                    .map_err(|other| if node.input.len() == 2 { other } else { reason })?;
                (operation, inputs, Vec::new())
            }
        };
        for member in &chain {
            self.reasons.remove(member);
        }
        let clamped = matches!(operation, Operation::Table(_) | Operation::ChannelTables(_));
        self.push(index, operation, inputs, real, end)?;
        if let Some(step) = self.network.steps.last_mut() {
            step.nodes
                .extend(chain.iter().copied().filter(|&i| i != index));
            if clamped {
                step.bounds = [0, 255];
            }
        }
        self.owned.extend(chain);
        Ok(())
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
            let kind = match operand {
                Operand::Bytes(_) => Kind::Byte { signed: false },
                _ => Kind::of(operand.quantization()),
            };
            self.network
                .values
                .insert(value.to_owned(), Value { shape, kind });
        }
        let mut nodes = vec![index];
        let (output, quantization, wide, bounds) = match end {
            End::Integers {
                output,
                quantization,
                bounds,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, Some(quantization), None, bounds)
            }
            End::Wide {
                output,
                wide,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, None, Some(wide), [0, 255])
            }
            End::Floats(_) => (real.to_owned(), None, None, [0, 255]),
        };
        let kind = Kind::of(quantization);
        self.network
            .values
            .insert(output.clone(), Value { shape, kind });
        let step = self.step(nodes, operation, inputs, &output);
        (step.quantization, step.wide, step.bounds) = (quantization, wide, bounds);
        Ok(())
    }

    /// Adds a step for these nodes, named by the first. Its output is float until set otherwise.
    fn step(
        &mut self,
        nodes: Vec<usize>,
        operation: Operation,
        inputs: Vec<Operand>,
        output: &str,
    ) -> &mut Step {
        let node = self.node(nodes[0]);
        self.owned.extend(nodes.iter().copied());
        for member in &nodes {
            self.reasons.remove(member);
        }
        let step = Step {
            node: node.title().to_owned(),
            operator: node.operator(),
            nodes,
            operation,
            inputs,
            output: output.to_owned(),
            beside: Vec::new(),
            quantization: None,
            wide: None,
            bounds: [0, 255],
        };
        let at = self.network.steps.len();
        self.network.steps.push(step);
        &mut self.network.steps[at]
    }
}
