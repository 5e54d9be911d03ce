//! Rewrites of nodes on sequences and optional values whose elements are known.

use std::collections::{HashMap, HashSet};

use super::Operator;
use crate::inferred_value::Types;
use crate::{Attribute, Node, Steps};
use octet_onnx::schema::TensorProto;

/// Limit on the length of followed sequences, because each is stored with all its elements.
pub(super) const MAX_LENGTH: usize = 512;

/// Rewrites a node, or records the elements of the sequence it produces; `None` if they are
/// unknown.
pub(super) type SequenceRewrite = fn(&mut SequenceRewriter, &Node) -> Option<()>;

/// The elements of sequences that are known so far, and the nodes written.
pub(crate) struct SequenceRewriter<'a> {
    pub(crate) types: &'a Types,
    /// Element names of each sequence.
    pub(crate) sequences: HashMap<String, Vec<String>>,
    /// Values that are known to be tensors.
    pub(crate) tensors: HashSet<String>,
    pub(crate) steps: Steps,
}

impl SequenceRewriter<'_> {
    /// Rewrites a node, or records the elements of the sequence it produces; `None` if they are
    /// unknown.
    pub(crate) fn write(&mut self, node: &Node) -> Option<()> {
        node.output.first()?;
        let rewrite = Operator::of(node).sequence_rewrite?;
        rewrite(self, node)
    }

    /// The element names of the sequence in the first input.
    pub(super) fn known(&self, node: &Node) -> Option<Vec<String>> {
        self.sequences.get(node.input_at(0)?).cloned()
    }

    /// Records the elements of the first output.
    pub(super) fn record(&mut self, node: &Node, elements: Vec<String>) -> Option<()> {
        if elements.len() > MAX_LENGTH {
            return None;
        }
        let output = node.output.first()?.clone();
        self.sequences.insert(output, elements);
        Some(())
    }

    /// The position that an input holds, counted from the front; `usual` if the input is absent.
    pub(super) fn place(&self, input: Option<&str>, count: usize, usual: usize) -> Option<usize> {
        let Some(input) = input else {
            return Some(usual);
        };
        let &[place] = self.types.get(input)?.all_integers()?.as_slice() else {
            return None;
        };
        let place = if place < 0 {
            place + count as i64
        } else {
            place
        };
        usize::try_from(place).ok().filter(|&place| place <= count)
    }

    /// True if a value is known to be a tensor.
    pub(super) fn is_tensor(&self, value: &str) -> bool {
        self.types.contains_key(value) || self.tensors.contains(value)
    }

    /// Writes an Identity that returns a tensor.
    pub(super) fn same(&mut self, value: &str, title: &str, output: &str) {
        self.tensors.insert(output.to_owned());
        self.steps
            .last("Identity", &[value], title, output, Vec::new());
    }

    /// Writes a Constant.
    pub(super) fn constant(&mut self, title: &str, output: &str, value: TensorProto) {
        let value = vec![Attribute::tensor("value", value)];
        self.steps.last("Constant", &[], title, output, value);
    }
}
