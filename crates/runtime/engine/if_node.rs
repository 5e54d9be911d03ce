//! If: runs one of two bodies, chosen by a boolean.

use super::body::BodyGraph;
use super::control_node::{LiveValues, NodeLabel};
use super::submodel::ExecutionMode;
use crate::EngineError;
use crate::run_context::RunContext;
use octet_graph::{Model, Node};
use octet_onnx::in_memory::Tensor;

pub(crate) struct IfNode {
    label: NodeLabel,
    condition: String,
    then: BodyGraph,
    other: BodyGraph,
}

impl IfNode {
    pub(super) fn new(
        model: &Model,
        node: &Node,
        mode: ExecutionMode,
    ) -> Result<IfNode, EngineError> {
        let label = NodeLabel::new(node);
        let Some(condition) = node.input_at(0) else {
            return Err(label.error("its condition", "missing", "given"));
        };
        let then = BodyGraph::new(model, node, "then_branch", mode)?;
        let other = BodyGraph::new(model, node, "else_branch", mode)?;
        then.fits(&label, 0, node.output.len())?;
        other.fits(&label, 0, node.output.len())?;
        Ok(IfNode {
            condition: condition.to_owned(),
            label,
            then,
            other,
        })
    }

    pub(super) fn run(
        &self,
        live: &LiveValues,
        run: &mut RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let label = &self.label;
        let condition = label.input(live, &self.condition)?;
        let body = match label.boolean("its condition", condition)? {
            true => &self.then,
            false => &self.other,
        };
        body.run(label, Vec::new(), live, run)
    }
}
