//! Loop: runs a body for a number of iterations or while a condition holds.
//!
//! A value carried into the next iteration may change its shape. Without any iteration, each
//! collected output is empty and has the declared shape. Undeclared sizes are 0 there, as in ONNX
//! Runtime.

use super::super::EngineError;
use super::super::execute::Run;
use super::body::Body;
use super::{Form, Held, Said, elements, in_words};
use crate::graph::{Dim, Model, tensor_type_of};
use crate::onnx::schema::{NodeProto, ValueInfoProto};
use crate::tensor::{Tensor, Values};

pub(in crate::engine) struct Repeat {
    said: Said,
    turns: Option<String>,
    condition: Option<String>,
    carried: Vec<String>,
    body: Body,
}

impl Repeat {
    pub(super) fn new(model: &Model, node: &NodeProto, form: Form) -> Result<Repeat, EngineError> {
        let said = Said::of(node);
        let body = Body::new(model, node, "body", form)?;
        let carried: Vec<String> = node.input.iter().skip(2).cloned().collect();
        if let Some(place) = carried.iter().position(String::is_empty) {
            return Err(said.wrong(&format!("its input {}", place + 2), "absent", "there"));
        }
        body.fits(&said, carried.len() + 2, node.output.len() + 1)?;
        if carried.len() > node.output.len() {
            let wanted = format!("{} at least", carried.len());
            return Err(said.wrong("the number of its outputs", node.output.len(), wanted));
        }
        Ok(Repeat {
            turns: node.input_at(0).map(str::to_owned),
            condition: node.input_at(1).map(str::to_owned),
            said,
            carried,
            body,
        })
    }

    pub(super) fn run(&self, held: &Held, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        let said = &self.said;
        let most = match &self.turns {
            Some(name) => self.number(said.held(held, name)?)?,
            None => i64::MAX,
        };
        let mut going = match &self.condition {
            Some(name) => said.truth("its condition", said.held(held, name)?)?,
            None => true,
        };
        let values = self.carried.iter();
        let values = values.map(|name| said.held(held, name).cloned());
        let mut values = values.collect::<Result<Vec<Tensor>, _>>()?;
        let kept = &self.body.outputs[1 + values.len()..];
        let mut stacks = vec![Vec::new(); kept.len()];
        let mut condition = self.scalar(1, Values::Bool(vec![going]));
        let mut turn = 0;
        while going && turn < most {
            said.turn(run.turns)?;
            let number = self.scalar(0, Values::I64(vec![turn]));
            let mut fed = Vec::with_capacity(values.len() + 2);
            fed.extend(number.into_iter().chain(condition.take()));
            fed.append(&mut values);
            let mut made = self.body.run(said, fed, held, run)?.into_iter();
            condition = made.next();
            if let Some(condition) = &condition {
                going = said.truth("the condition that its graph makes", condition)?;
            }
            values.extend(made.by_ref().take(self.carried.len()));
            let carried = values.iter().map(|value| value.values().len()).sum();
            said.room("what a turn carries into the next", carried)?;
            for (stack, one) in stacks.iter_mut().zip(made) {
                keep(said, stack, one)?;
            }
            turn += 1;
        }
        for (stack, port) in stacks.iter().zip(kept) {
            values.push(stacked(said, stack, 0, port)?);
        }
        Ok(values)
    }

    /// A scalar in the shape that the body declares for this input: some bodies want a list of one.
    fn scalar(&self, input: usize, value: Values) -> Option<Tensor> {
        let declared = self.body.inputs.get(input).and_then(tensor_type_of);
        let axes = declared
            .and_then(|found| found.shape)
            .map_or(0, |shape| shape.len());
        Tensor::new(vec![1; axes.min(1)], value)
    }

    fn number(&self, tensor: &Tensor) -> Result<i64, EngineError> {
        match tensor.values() {
            Values::I64(one) if one.len() == 1 => Ok(one[0]),
            _ => {
                let found = in_words(tensor);
                Err(self
                    .said
                    .wrong("its trip count", found, "one integer of 64 bits"))
            }
        }
    }
}

/// Collects the result of an iteration.
pub(super) fn keep(said: &Said, stack: &mut Vec<Tensor>, one: Tensor) -> Result<(), EngineError> {
    let elements = one.values().len().saturating_mul(stack.len() + 1);
    said.room("what it keeps of its turns", elements)?;
    stack.push(one);
    Ok(())
}

/// Stacks the results of all iterations along an axis; without iterations, an empty tensor of the
/// declared shape.
pub(super) fn stacked(
    said: &Said,
    made: &[Tensor],
    axis: usize,
    port: &ValueInfoProto,
) -> Result<Tensor, EngineError> {
    let what = || {
        format!(
            "what it keeps of `{}`",
            port.name.as_deref().unwrap_or_default()
        )
    };
    if !made.is_empty() {
        return elements::stacked(made, axis).ok_or_else(|| {
            let shapes: Vec<String> = made.iter().take(4).map(in_words).collect();
            said.wrong(
                &what(),
                shapes.join(", "),
                "of one type and shape in all turns",
            )
        });
    }
    let declared = tensor_type_of(port);
    let made = declared.and_then(|declared| {
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            _ => 0,
        };
        let mut shape: Vec<usize> = declared.shape?.iter().map(size).collect();
        (axis <= shape.len()).then(|| shape.insert(axis, 0))?;
        elements::empty(declared.element, &shape)
    });
    made.ok_or_else(|| {
        said.wrong(
            &what(),
            "nothing, for it makes no turn",
            "of a declared shape",
        )
    })
}
