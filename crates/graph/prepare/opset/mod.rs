//! Raises the opset: every operator whose form or meaning changed is rewritten.
//!
//! An adapter takes a node of the old opset and writes equivalent nodes of the new one. A node
//! without an exact equivalent is an error that names it; nothing is approximated.

mod after_13;
mod attributes;
mod axes;
mod broadcasting;
mod resize;

use std::collections::BTreeMap;

use super::PrepareError;
use crate::inferred_value::Types;
use crate::shapes;
use crate::{Dim, Model, Names, domain_named};
use octet_onnx::schema::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// State of the adapter of one node.
struct Adapter<'a> {
    from: i64,
    to: i64,
    names: &'a mut Names,
    types: &'a Types,
    /// Nodes written so far for this node, constants first.
    written: Vec<NodeProto>,
}

/// Result of an adapter; the error is the reason why a node can't be raised.
type Adapted = Result<(), String>;

impl Adapter<'_> {
    /// Adds a constant list of integers as a Constant node, which subgraphs allow too. Returns its
    /// name.
    fn integers(&mut self, node: &NodeProto, role: &str, values: &[i64]) -> String {
        self.constant(
            node,
            role,
            TensorProto::from_i64("", &[values.len()], values),
        )
    }

    fn constant(&mut self, node: &NodeProto, role: &str, tensor: TensorProto) -> String {
        let name = self.names.fresh(&format!("{}_{role}", node.title()));
        let constant = NodeProto::new("Constant", &name, &[], &[&name]);
        self.written
            .push(constant.with(AttributeProto::tensor("value", tensor)));
        name
    }

    /// A new name for an intermediate value.
    fn value(&mut self, node: &NodeProto, role: &str) -> String {
        self.names.fresh(&format!("{}_{role}", node.title()))
    }

    fn shape(&self, value: Option<&str>) -> Option<&[Dim]> {
        self.types.get(value?)?.shape.as_deref()
    }

    fn write(&mut self, node: NodeProto) {
        self.written.push(node);
    }

    /// True if this opset lies between the source (exclusive) and the target (inclusive).
    fn passes(&self, opset: i64) -> bool {
        self.from < opset && opset <= self.to
    }
}

/// Sets an input slot and fills missing slots before it with empty names.
fn set_input(node: &mut NodeProto, slot: usize, name: String) {
    if node.input.len() <= slot {
        node.input.resize(slot + 1, String::new());
    }
    node.input[slot] = name;
}

/// Raises ONNX operators to the opset `to` (13); a model at or above it stays as it is.
pub fn raise_opset(model: &mut Model, to: i64) -> Result<(), PrepareError> {
    let from = model.opset();
    if from >= to {
        return Ok(());
    }
    let types = shapes::infer(&model.graph);
    let mut names = model.graph.names();
    let nodes = std::mem::take(&mut model.graph.nodes);
    let step = OpsetStep { from, to, adapt };
    model.graph.nodes = raise(nodes, &step, &mut names, &types)?;
    model.set_opset(to);
    // Opset 13 came with IR version 7; initializers that are no inputs came with version 4.
    let header = model.header_mut();
    header.ir_version = Some(header.ir_version.unwrap_or(0).max(7));
    Ok(())
}

/// Raises a single node from one opset to a later one (at least 13), but not the graphs it holds.
/// Shapes are unknown here.
pub(super) fn raise_node(
    node: NodeProto,
    from: i64,
    to: i64,
    names: &mut Names,
) -> Result<Vec<NodeProto>, String> {
    let middle = super::OPSET.max(from);
    let step = |from, to, adapt| OpsetStep { from, to, adapt };
    let ways = [step(from, middle, adapt), step(middle, to, after_13::adapt)];
    let mut nodes = vec![node];
    for step in ways.iter().filter(|step| step.from < step.to) {
        for node in std::mem::take(&mut nodes) {
            nodes.append(&mut raise_itself(node, step, names, &BTreeMap::new())?);
        }
    }
    Ok(nodes)
}

/// The first opset with 4-bit integers and block-wise scales.
const OPSET_WITH_BLOCKS: i64 = 21;

/// Raises a prepared model to opset 21; a model at or above it stays as it is.
pub fn raise_to_blocks(model: &mut Model) -> Result<(), PrepareError> {
    let (from, to) = (model.opset(), OPSET_WITH_BLOCKS);
    if from < to {
        let mut names = model.graph.names();
        let nodes = std::mem::take(&mut model.graph.nodes);
        let step = OpsetStep {
            from,
            to,
            adapt: after_13::adapt,
        };
        model.graph.nodes = raise(nodes, &step, &mut names, &BTreeMap::new())?;
        model.set_opset(to);
        super::constants::nodes(&mut model.graph)?;
    }
    // Opset 21 came with IR version 10.
    let header = model.header_mut();
    header.ir_version = Some(header.ir_version.unwrap_or(0).max(10));
    Ok(())
}

/// Source opset, target opset and the adapter between them.
struct OpsetStep {
    from: i64,
    to: i64,
    adapt: fn(&mut Adapter, NodeProto) -> Adapted,
}

fn raise(
    nodes: Vec<NodeProto>,
    step: &OpsetStep,
    names: &mut Names,
    types: &Types,
) -> Result<Vec<NodeProto>, PrepareError> {
    let mut raised = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        for attribute in &mut node.attribute {
            for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                raise_inside(graph, step, names)?;
            }
        }
        let (title, operator) = (node.title().to_owned(), node.operator());
        let mut written =
            raise_itself(node, step, names, types).map_err(|reason| PrepareError::Opset {
                node: title,
                operator,
                from: step.from,
                to: step.to,
                reason,
            })?;
        raised.append(&mut written);
    }
    Ok(raised)
}

fn raise_itself(
    node: NodeProto,
    step: &OpsetStep,
    names: &mut Names,
    types: &Types,
) -> Result<Vec<NodeProto>, String> {
    if !domain_named(node.domain.as_deref()).is_empty() {
        return Ok(vec![node]);
    }
    let mut adapter = Adapter {
        from: step.from,
        to: step.to,
        names,
        types,
        written: Vec::new(),
    };
    (step.adapt)(&mut adapter, node)?;
    Ok(adapter.written)
}

fn raise_inside(
    graph: &mut GraphProto,
    step: &OpsetStep,
    names: &mut Names,
) -> Result<(), PrepareError> {
    // Shapes inside subgraphs are not inferred.
    let nodes = std::mem::take(&mut graph.node);
    graph.node = raise(nodes, step, names, &BTreeMap::new())?;
    Ok(())
}

/// Rewrites one node for opset 13.
fn adapt(to: &mut Adapter, mut node: NodeProto) -> Adapted {
    let operator = node.op_type.clone().unwrap_or_default();
    // Before opset 7 this attribute listed the inputs that an operator may overwrite.
    node.take("consumed_inputs");
    match operator.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Greater"
        | "Less" | "PRelu"
            if to.from < 7 =>
        {
            broadcasting::broadcast(to, node)
        }
        "Gemm" if to.from < 7 => {
            node.take("broadcast");
            to.write(node);
            Ok(())
        }
        "Cast" if to.from < 6 => attributes::cast(to, node),
        "Reshape" if to.from < 5 => attributes::reshape(to, node),
        "Concat" if to.from < 4 => {
            if node.int("axis").is_none() {
                node.set(AttributeProto::int("axis", 1));
            }
            to.write(node);
            Ok(())
        }
        "BatchNormalization" if to.from < 9 => attributes::batch_norm(to, node),
        "Dropout" if to.from < 12 => attributes::dropout(to, node),
        "Clip" if to.from < 11 => attributes::clip(to, node),
        "Pad" if to.from < 11 => attributes::pad(to, node),
        "Slice" if to.from < 10 => attributes::slice(to, node),
        "TopK" if to.from < 10 => attributes::top_k(to, node),
        "Scatter" => {
            node.op_type = Some("ScatterElements".to_owned());
            to.write(node);
            Ok(())
        }
        "Upsample" => resize::upsample(to, node),
        "Resize" if to.from < 11 => resize::resize(to, node),
        "Softmax" | "LogSoftmax" | "Hardmax" => axes::softmax(to, node),
        "Squeeze" | "Unsqueeze" | "ReduceSum" => axes::as_input(to, node, "axes"),
        "Split" if to.from < 2 => Err("opset 1 did not define its meaning".to_owned()),
        "Split" => axes::as_input(to, node, "split"),
        "Scan" if to.from < 9 => Err("Scan had another form before opset 9".to_owned()),
        "RNN" | "GRU" | "LSTM" if to.from < 7 => {
            // The attribute said only whether the outputs, now optional, exist.
            node.take("output_sequence");
            if operator == "GRU" && to.from < 3 && node.int("linear_before_reset").is_none() {
                node.set(AttributeProto::int("linear_before_reset", 0));
            }
            to.write(node);
            Ok(())
        }
        "Crop" | "Affine" | "ImageScaler" | "GivenTensorFill" | "ParametricSoftplus"
        | "ScaledTanh" | "Scale" | "GRUUnit" | "ATen" => {
            Err("it was experimental and ONNX removed it".to_owned())
        }
        _ => {
            to.write(node);
            Ok(())
        }
    }
}
