//! Control flow: If, Loop and Scan, which hold graphs of their own.
//!
//! tract has no Loop, and needs the shapes of an If and a Scan before they run. So
//! [`super::partition`] splits the model at these nodes. This module runs their bodies, each in an
//! engine of its own, planned for the shapes of the current run.

use std::cell::Cell;
use std::collections::HashMap;

use super::if_node::IfNode;
use super::loop_node::LoopNode;
use super::scan_node::ScanNode;
use super::submodel::ExecutionMode;
use crate::EngineError;
use crate::run_context::RunContext;
use octet_graph::{Model, Node};
use octet_onnx::in_memory::{Tensor, Values};

/// Maximum depth of nested graphs; each level takes stack.
const MAX_DEPTH: usize = 16;

/// Maximum number of iterations of all loops of a run, so that an endless loop ends.
pub(super) const MAX_ITERATIONS: usize = 1_000_000;

/// Maximum number of elements that a loop carries, and that it collects over all iterations. It is
/// half a gigabyte of floats, and several copies of each exist during an iteration.
const MAX_ELEMENTS: usize = 1 << 27;

/// The live values of a run, by name.
pub(super) type LiveValues = HashMap<String, Tensor>;

/// A control flow node.
pub(super) enum ControlNode {
    If(IfNode),
    Loop(LoopNode),
    Scan(ScanNode),
}

impl ControlNode {
    /// Builds the node of a prepared model; its bodies run in this mode.
    pub(super) fn new(
        model: &Model,
        node: &Node,
        mode: ExecutionMode,
    ) -> Result<ControlNode, EngineError> {
        let label = NodeLabel::new(node);
        if mode.depth == MAX_DEPTH {
            let actual = "deeper";
            return Err(label.error("its nesting", actual, "at most 16 graphs deep"));
        }
        let mode = ExecutionMode {
            depth: mode.depth + 1,
            // A body runs with the threads of the part around it, as its iterations are short.
            thread_clock: None,
            ..mode
        };
        Ok(match node.op_type.as_str() {
            "If" => ControlNode::If(IfNode::new(model, node, mode)?),
            "Loop" => ControlNode::Loop(LoopNode::new(model, node, mode)?),
            _ => ControlNode::Scan(ScanNode::new(model, node, mode)?),
        })
    }

    /// Runs the node and returns its outputs.
    pub(super) fn run(
        &self,
        live: &LiveValues,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        match self {
            ControlNode::If(node) => node.run(live, run),
            ControlNode::Loop(node) => node.run(live, run),
            ControlNode::Scan(node) => node.run(live, run),
        }
    }
}

/// A node as named in errors.
#[derive(Clone)]
pub(super) struct NodeLabel {
    operator: String,
    node: String,
}

impl NodeLabel {
    pub(super) fn new(node: &Node) -> NodeLabel {
        NodeLabel {
            operator: node.operator(),
            node: node.title().to_owned(),
        }
    }

    pub(super) fn error(
        &self,
        what: &str,
        actual: impl ToString,
        expected: impl ToString,
    ) -> EngineError {
        EngineError::Node {
            operator: self.operator.clone(),
            node: self.node.clone(),
            what: what.to_owned(),
            actual: actual.to_string(),
            expected: expected.to_string(),
        }
    }

    pub(super) fn input<'a>(
        &self,
        live: &'a LiveValues,
        name: &str,
    ) -> Result<&'a Tensor, EngineError> {
        live.get(name)
            .ok_or_else(|| self.error(&format!("its input `{name}`"), "missing", "given"))
    }

    /// The single boolean of a tensor.
    pub(super) fn boolean(&self, what: &str, tensor: &Tensor) -> Result<bool, EngineError> {
        match tensor.values() {
            Values::Bool(one) if one.len() == 1 => Ok(one[0]),
            _ => Err(self.error(what, describe(tensor), "one truth value")),
        }
    }

    /// Counts an iteration of a loop of this node.
    pub(super) fn count_iteration(&self, left: &Cell<usize>) -> Result<(), EngineError> {
        match left.get().checked_sub(1) {
            Some(less) => {
                left.set(less);
                Ok(())
            }
            None => Err(EngineError::Endless {
                operator: self.operator.clone(),
                node: self.node.clone(),
                iterations: MAX_ITERATIONS,
            }),
        }
    }

    /// Fails if a loop carries or collects more elements than [`MAX_ELEMENTS`].
    pub(super) fn check_size(&self, what: &str, elements: usize) -> Result<(), EngineError> {
        match elements > MAX_ELEMENTS {
            true => {
                let actual = format!("of {elements} elements");
                Err(self.error(what, actual, format!("of {MAX_ELEMENTS} at most")))
            }
            false => Ok(()),
        }
    }
}

pub(super) fn describe(tensor: &Tensor) -> String {
    format!("{} of {:?}", tensor.element_type().name(), tensor.shape())
}
