//! Raises the opset: every operator whose form or meaning changed is rewritten, by the changes that
//! its descriptor lists. A node without an exact equivalent is an error that names it.
//!
//! From opset 13 on, most operators only gained types and attributes whose defaults keep their
//! meaning. The changes were read off the schemas of onnx 1.23, whose newest opset is 28.

use std::collections::BTreeMap;

use super::PrepareError;
use crate::inferred_value::Types;
use crate::operators::{Operator, OpsetContext};
use crate::{Model, Names, Node, domain_named, shapes};

/// Raises ONNX operators to the opset `to` (13); a model at or above it stays as it is.
pub fn raise_opset(model: &mut Model, to: i64) -> Result<(), PrepareError> {
    let from = model.opset();
    if from >= to {
        return Ok(());
    }
    let types = shapes::infer(&model.graph);
    let mut names = model.graph.names();
    let step = OpsetStep { from, to };
    let nodes = raise(model.graph.take_nodes(), &step, &mut names, &types)?;
    model.graph.replace_nodes(nodes);
    model.set_opset(to);
    // Opset 13 came with IR version 7; initializers that are no inputs came with version 4.
    let header = model.header_mut();
    header.ir_version = Some(header.ir_version.unwrap_or(0).max(7));
    Ok(())
}

/// Raises a single node from one opset to a later one (at least 13), but not the graphs it holds.
/// Shapes are unknown here.
pub(super) fn raise_node(
    node: Node,
    from: i64,
    to: i64,
    names: &mut Names,
) -> Result<Vec<Node>, String> {
    let middle = super::OPSET.max(from);
    let step = |from, to| OpsetStep { from, to };
    let ways = [step(from, middle), step(middle, to)];
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
        let step = OpsetStep { from, to };
        let nodes = raise(
            model.graph.take_nodes(),
            &step,
            &mut names,
            &BTreeMap::new(),
        )?;
        model.graph.replace_nodes(nodes);
        model.set_opset(to);
        super::constants::nodes(&mut model.graph)?;
    }
    // Opset 21 came with IR version 10.
    let header = model.header_mut();
    header.ir_version = Some(header.ir_version.unwrap_or(0).max(10));
    Ok(())
}

/// Source opset and target opset.
struct OpsetStep {
    from: i64,
    to: i64,
}

impl OpsetStep {
    /// True if this opset lies between the source (exclusive) and the target (inclusive).
    fn passes(&self, opset: i64) -> bool {
        self.from < opset && opset <= self.to
    }
}

fn raise(
    nodes: Vec<Node>,
    step: &OpsetStep,
    names: &mut Names,
    types: &Types,
) -> Result<Vec<Node>, PrepareError> {
    let mut raised = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        for graph in node.subgraphs_mut() {
            // Shapes inside subgraphs are not inferred.
            let nodes = std::mem::take(&mut graph.nodes);
            graph.nodes = raise(nodes, step, names, &BTreeMap::new())?;
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
    mut node: Node,
    step: &OpsetStep,
    names: &mut Names,
    types: &Types,
) -> Result<Vec<Node>, String> {
    let own = domain_named(node.domain.as_deref()).is_empty();
    if own && step.from < super::OPSET {
        // Before opset 7 this attribute listed the inputs that an operator may overwrite.
        node.take("consumed_inputs");
    }
    let operator = Operator::of(&node);
    let mut nodes = vec![node];
    for &(_, change) in operator
        .changes
        .iter()
        .filter(|(opset, _)| step.passes(*opset))
    {
        for node in std::mem::take(&mut nodes) {
            if !std::ptr::eq(Operator::of(&node), operator) {
                nodes.push(node);
                continue;
            }
            let mut ctx = OpsetContext {
                from: step.from,
                names,
                types,
                written: Vec::new(),
            };
            change(&mut ctx, node)?;
            nodes.append(&mut ctx.written);
        }
    }
    Ok(nodes)
}
