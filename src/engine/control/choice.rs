//! If: runs one of two bodies, chosen by a boolean.

use super::super::EngineError;
use super::super::execute::Run;
use super::body::Body;
use super::{Form, Held, Said};
use crate::graph::Model;
use crate::onnx::schema::NodeProto;
use crate::tensor::Tensor;

pub(in crate::engine) struct Choice {
    said: Said,
    condition: String,
    then: Body,
    other: Body,
}

impl Choice {
    pub(super) fn new(model: &Model, node: &NodeProto, form: Form) -> Result<Choice, EngineError> {
        let said = Said::of(node);
        let Some(condition) = node.input_at(0) else {
            return Err(said.wrong("its condition", "absent", "there"));
        };
        let then = Body::new(model, node, "then_branch", form)?;
        let other = Body::new(model, node, "else_branch", form)?;
        then.fits(&said, 0, node.output.len())?;
        other.fits(&said, 0, node.output.len())?;
        Ok(Choice {
            condition: condition.to_owned(),
            said,
            then,
            other,
        })
    }

    pub(super) fn run(&self, held: &Held, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        let said = &self.said;
        let condition = said.held(held, &self.condition)?;
        let body = match said.truth("its condition", condition)? {
            true => &self.then,
            false => &self.other,
        };
        body.run(said, Vec::new(), held, run)
    }
}
