//! Matcher: from a graph of QDQ pairs to integer steps.
//!
//! A node becomes a step if each of its inputs comes from an eight-bit DequantizeLinear and its
//! output goes only to a QuantizeLinear. Products with weights may end in floats. All other nodes
//! stay float, with a reason. Q and DQ nodes that remain at the border between integers and floats
//! are steps of their own.

mod conditional;
mod conversions;
mod data_movement;
mod destination;
mod dynamic;
mod elementwise;
mod int16;
mod ir;
mod matrix_batch;
mod normalization;
mod overflow;
mod products;
mod reader;
mod resize;
mod select;
mod softmax;
mod table_merging;
mod weighted_products;
mod weights;
mod windows;

use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) use data_movement::order;
pub use ir::{
    Binary, Constant, ElementKind, IntegerProduct, Ir, IrValue, MatrixBatch, Multiplier, Operand,
    Operation, RowNormalization, Step, Weights,
};
pub(super) use windows::plane;

use super::{BLOCK_PRODUCT, FloatEvaluator};
use destination::Destination;
use octet_graph::{Model, TensorType};
use octet_onnx::schema::NodeProto;
use reader::{Reader, Reason};

/// Set of nodes that may become steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All supported nodes.
    Integers,
    /// Only operators defined on integers; everything else runs in float.
    Defined,
}

/// Matches a prepared model with types for the shapes of the run. `refused` nodes stay float.
pub(super) fn build_ir(
    model: &Model,
    types: &BTreeMap<String, TensorType>,
    watched: &[String],
    refused: &HashMap<usize, Reason>,
    scope: Scope,
    floats: &dyn FloatEvaluator,
) -> Ir {
    let mut matcher = Matcher {
        reader: Reader::new(
            model,
            types,
            watched,
            refused.keys().copied().collect(),
            floats,
        ),
        ir: Ir::default(),
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
    table_merging::merge(&mut matcher.ir.steps);
    let Matcher {
        mut ir,
        owned,
        mut reasons,
        ..
    } = matcher;
    ir.steps
        .sort_by_key(|step| step.nodes.iter().copied().min());
    for (index, node) in model.graph.nodes.iter().enumerate() {
        let pair = node.is("QuantizeLinear") || node.is("DequantizeLinear");
        if owned.contains(&index) || pair && !reasons.contains_key(&index) {
            continue;
        }
        let reason = reasons.remove(&index).unwrap_or_else(|| match scope {
            Scope::Integers => "it has no integer implementation".into(),
            Scope::Defined => "the model runs in float by request".into(),
        });
        ir.floats.push((index, reason));
    }
    ir
}

struct Matcher<'a> {
    reader: Reader<'a>,
    ir: Ir,
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
            _ if !own => Err("it is not a standard ONNX operator".into()),
            "DynamicQuantizeLinear" => self.dynamic_quantize(index),
            "MatMulInteger" | "ConvInteger" => self.integer_product(index),
            _ if self.scope == Scope::Defined => return,
            BLOCK_PRODUCT => Err("it multiplies floats by a block-wise quantized matrix".into()),
            "QuantizeLinear" | "DequantizeLinear" => return,
            "Split" => self.split(index),
            "Conv" | "ConvTranspose" | "Gemm" | "MatMul" => self.product(index),
            "BatchNormalization" => self.normalization(index),
            "Where" => self.conditional(index),
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
            _ => Err("it has no integer implementation".into()),
        };
        if let Err(reason) = found {
            self.reasons.insert(index, reason);
        }
    }

    fn moved(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted_products::slot_out(node)?;
        if node.is("Softmax") && self.flattened_softmax(index).is_some() {
            return Ok(());
        }
        let end = self.destination(output);
        let end = match end {
            Destination::Floats(reason) => match self.int16_destination(output) {
                Some(end) => end,
                None => return Err(reason),
            },
            end => end,
        };
        let (operation, inputs) = match node.is("Concat") {
            true => data_movement::concat(node, end.quantization(), &self.reader)?,
            false => data_movement::operation(node, &self.reader)?,
        };
        data_movement::check_reals(&operation, &inputs, &end)?;
        self.push(index, operation, inputs, output, end)
    }

    fn normalization(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = weighted_products::slot_out(node)?;
        let end = self.destination(output);
        let Destination::Int8 {
            quantization,
            bounds,
            ..
        } = &end
        else {
            return match end {
                Destination::Floats(reason) => Err(reason),
                _ => Err("its output has 16 bits".into()),
            };
        };
        let (operation, inputs) =
            weighted_products::normalization(node, *quantization, *bounds, &self.reader)?;
        self.push(index, operation, inputs, output, end)?;
        if let Some(step) = self.ir.steps.last_mut() {
            step.bounds = [0, 255];
        }
        Ok(())
    }

    fn split(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let operand = self
            .reader
            .operand_or_int16(weighted_products::slot(node, 0)?)?;
        let mut start = 0;
        let mut parts = Vec::new();
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            let (operation, end) = select::split_output(node, &self.reader, name, start)?;
            start = end;
            if self.reader.uses.consumers(name).is_empty() && !self.reader.is_observed(name) {
                continue;
            }
            let end = match self.destination(name) {
                Destination::Floats(reason) => self.int16_destination(name).ok_or(reason)?,
                end => end,
            };
            data_movement::check_reals(&operation, std::slice::from_ref(&operand), &end)?;
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
        let real = weighted_products::slot_out(node)?;
        // Nodes inside a chain have no destination yet and are skipped; the table replaces them at
        // the end of the chain.
        let end = match self.destination(real) {
            Destination::Floats(reason) => self.int16_destination(real).ok_or(reason)?,
            end => end,
        };
        let to = end.quantization();
        let arithmetic = || match &end {
            Destination::Int8 {
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
                let single = chain.len() == 1 && matches!(operand, Operand::Int16(..));
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
        if let Some(step) = self.ir.steps.last_mut() {
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
        end: Destination,
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
                Operand::Bytes(_) => ElementKind::Byte { signed: false },
                _ => ElementKind::from_quantization(operand.quantization()),
            };
            self.ir
                .values
                .insert(value.to_owned(), IrValue { shape, kind });
        }
        let mut nodes = vec![index];
        let (output, quantization, int16, bounds) = match end {
            Destination::Int8 {
                output,
                quantization,
                bounds,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, Some(quantization), None, bounds)
            }
            Destination::Int16 {
                output,
                int16,
                nodes: more,
            } => {
                nodes.extend(more);
                (output, None, Some(int16), [0, 255])
            }
            Destination::Floats(_) => (real.to_owned(), None, None, [0, 255]),
        };
        let kind = ElementKind::from_quantization(quantization);
        self.ir
            .values
            .insert(output.clone(), IrValue { shape, kind });
        let step = self.step(nodes, operation, inputs, &output);
        (step.quantization, step.int16, step.bounds) = (quantization, int16, bounds);
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
            more_outputs: Vec::new(),
            quantization: None,
            int16: None,
            bounds: [0, 255],
        };
        let at = self.ir.steps.len();
        self.ir.steps.push(step);
        &mut self.ir.steps[at]
    }
}
