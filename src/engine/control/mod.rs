//! Control flow: If, Loop and Scan, which hold graphs of their own.
//!
//! tract has no Loop, and needs the shapes of an If and a Scan before they run. So [`super::parts`]
//! splits the model at these nodes. This module runs their bodies, each in an engine of its own,
//! planned for the shapes of the current run.

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

/// Maximum depth of nested graphs; each level takes stack.
const DEEPEST: usize = 16;

/// Maximum number of iterations of all loops of a run, so that an endless loop ends.
pub(super) const TURNS: usize = 1_000_000;

/// Maximum number of elements that a loop carries, and that it collects over all iterations. It is
/// half a gigabyte of floats, and several copies of each exist during an iteration.
const MOST: usize = 1 << 27;

/// The live values of a run, by name.
pub(super) type Held = HashMap<String, Tensor>;

/// Returns true if a node holds graphs.
pub(super) fn holds_graphs(node: &NodeProto) -> bool {
    ["If", "Loop", "Scan"]
        .iter()
        .any(|operator| node.is(operator))
}

/// A control flow node.
pub(super) enum Control {
    Choice(Choice),
    Repeat(Repeat),
    Scan(Scan),
}

impl Control {
    /// Builds the node of a prepared model; its bodies run in this mode.
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

    /// Runs the node and returns its outputs.
    pub(super) fn run(&self, held: &Held, run: &mut Run) -> Result<Vec<Tensor>, EngineError> {
        match self {
            Control::Choice(choice) => choice.run(held, run),
            Control::Repeat(repeat) => repeat.run(held, run),
            Control::Scan(scan) => scan.run(held, run),
        }
    }
}

/// A node as named in errors.
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

    /// The single boolean of a tensor.
    fn truth(&self, what: &str, tensor: &Tensor) -> Result<bool, EngineError> {
        match tensor.values() {
            Values::Bool(one) if one.len() == 1 => Ok(one[0]),
            _ => Err(self.wrong(what, in_words(tensor), "one truth value")),
        }
    }

    /// Counts an iteration of a loop of this node.
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

    /// Fails if a loop carries or collects more elements than [`MOST`].
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
