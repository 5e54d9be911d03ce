//! If, Loop and Scan: nodes that hold graphs of their own, and say how often and of what these are computed.
//!
//! tract has no Loop, and wants the shapes of an If and a Scan before they are computed. So a model is cut at these nodes
//! ([`super::parts`]), and what they hold is run here, each by an engine of its own with the shapes of the moment.

mod body;
mod choice;
mod elements;
mod piece;
mod repeat;
mod scan;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::HashMap;

pub(super) use piece::{Form, Piece};

use super::EngineError;
use super::execute::Run;
use crate::graph::Model;
use crate::onnx::schema::NodeProto;
use crate::tensor::{Tensor, Values};
use choice::Choice;
use repeat::Repeat;
use scan::Scan;

/// Graphs are held in graphs to this depth: each takes room on the stack.
const DEEPEST: usize = 16;

/// All loops of a run make so many turns together; one that never ends would hold a person up for ever.
pub(super) const TURNS: usize = 1_000_000;

/// What a loop carries on has so many elements at most, and what it keeps of all its turns: half a gigabyte of floats, each of which is
/// there several times while a turn is made.
const MOST: usize = 1 << 27;

/// What is known by name while a model runs.
pub(super) type Held = HashMap<String, Tensor>;

/// Whether a node holds graphs that are computed here.
pub(super) fn holds_graphs(node: &NodeProto) -> bool {
    ["If", "Loop", "Scan"]
        .iter()
        .any(|operator| node.is(operator))
}

/// One such node.
pub(super) enum Control {
    Choice(Choice),
    Repeat(Repeat),
    Scan(Scan),
}

impl Control {
    /// The node in a prepared model; its bodies run in this form.
    pub(super) fn new(model: &Model, node: &NodeProto, form: Form) -> Result<Control, EngineError> {
        let said = Said::of(node);
        if form.depth == DEEPEST {
            let found = "deeper";
            return Err(said.wrong("its place in other graphs", found, "16 graphs deep at most"));
        }
        let form = Form {
            depth: form.depth + 1,
            ..form
        };
        Ok(match node.op_type.as_deref() {
            Some("If") => Control::Choice(Choice::new(model, node, form)?),
            Some("Loop") => Control::Repeat(Repeat::new(model, node, form)?),
            _ => Control::Scan(Scan::new(model, node, form)?),
        })
    }

    /// Its outputs.
    pub(super) fn run(&self, held: &Held, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        match self {
            Control::Choice(choice) => choice.run(held, run),
            Control::Repeat(repeat) => repeat.run(held, run),
            Control::Scan(scan) => scan.run(held, run),
        }
    }
}

/// A node as errors name it.
#[derive(Clone)]
struct Said {
    operator: String,
    node: String,
}

impl Said {
    fn of(node: &NodeProto) -> Said {
        Said {
            operator: node.operator(),
            node: node.title().to_owned(),
        }
    }

    fn wrong(&self, what: &str, found: impl ToString, wanted: impl ToString) -> EngineError {
        EngineError::Node {
            operator: self.operator.clone(),
            node: self.node.clone(),
            what: what.to_owned(),
            found: found.to_string(),
            wanted: wanted.to_string(),
        }
    }

    fn held<'a>(&self, held: &'a Held, name: &str) -> Result<&'a Tensor, EngineError> {
        held.get(name)
            .ok_or_else(|| self.wrong(&format!("its input `{name}`"), "absent", "there"))
    }

    /// The one truth value of a tensor.
    fn truth(&self, what: &str, tensor: &Tensor) -> Result<bool, EngineError> {
        match tensor.values() {
            Values::Bool(one) if one.len() == 1 => Ok(one[0]),
            _ => Err(self.wrong(what, in_words(tensor), "one truth value")),
        }
    }

    /// Counts a turn of a loop of this node.
    fn turn(&self, left: &Cell<usize>) -> Result<(), EngineError> {
        match left.get().checked_sub(1) {
            Some(less) => {
                left.set(less);
                Ok(())
            }
            None => Err(EngineError::Endless {
                operator: self.operator.clone(),
                node: self.node.clone(),
                turns: TURNS,
            }),
        }
    }

    /// That there is room for what a loop carries on or keeps.
    fn room(&self, what: &str, elements: usize) -> Result<(), EngineError> {
        match elements > MOST {
            true => {
                let found = format!("of {elements} elements");
                Err(self.wrong(what, found, format!("of {MOST} at most")))
            }
            false => Ok(()),
        }
    }
}

fn in_words(tensor: &Tensor) -> String {
    format!("{} of {:?}", tensor.element_type().name(), tensor.shape())
}
