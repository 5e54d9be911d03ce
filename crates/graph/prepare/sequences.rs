//! Removes sequences and optional values whose elements are known: a reader of an element reads the
//! tensor itself.
//!
//! Nodes that depend on the run stay: a computed position, or a sequence that a loop carries.

use std::collections::{HashMap, HashSet};

use crate::inferred_value::{Types, position};
use crate::shapes;
use crate::{Dim, Graph, Steps};
use octet_onnx::schema::{AttributeProto, DataType, NodeProto, TensorProto};

/// Limit on the length of followed sequences, because each is stored with all its elements.
const MAX_LENGTH: usize = 512;

/// Rewrites the readers of such values. Returns the number of rewritten nodes.
pub(super) fn rewrite(graph: &mut Graph) -> usize {
    let is_one = |node: &NodeProto| {
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        let name = node.op_type.as_deref().filter(|_| own).unwrap_or_default();
        name.contains("Sequence") && name != "ReverseSequence" || name.starts_with("Optional")
    };
    if !graph.nodes.iter().any(is_one) {
        return 0;
    }
    let types = shapes::infer(graph);
    let steps = Steps::new(graph.names());
    let mut rewriter = SequenceRewriter {
        types: &types,
        sequences: HashMap::new(),
        tensors: HashSet::new(),
        steps,
    };
    let mut written = 0;
    for node in std::mem::take(&mut graph.nodes) {
        let wanted = is_one(&node) || node.is("Identity");
        if wanted && rewriter.write(&node).is_some() {
            written += usize::from(is_one(&node));
        }
        // A node that only builds a sequence stays; the sweep drops it when nothing reads it.
        let last = rewriter.steps.nodes.last().map(|last| last.output.first());
        if last != Some(node.output.first()) {
            rewriter.steps.nodes.push(node);
        }
    }
    rewriter.steps.into_graph(graph);
    written
}

struct SequenceRewriter<'a> {
    types: &'a Types,
    /// Element names of each sequence.
    sequences: HashMap<String, Vec<String>>,
    /// Values that are known to be tensors.
    tensors: HashSet<String>,
    steps: Steps,
}

impl SequenceRewriter<'_> {
    /// Rewrites a node, or records the elements of the sequence it produces; `None` if they are
    /// unknown.
    fn write(&mut self, node: &NodeProto) -> Option<()> {
        let (title, output) = (node.title(), node.output.first()?);
        let first = node.input_at(0);
        let known = first.and_then(|first| self.sequences.get(first)).cloned();
        let elements = match node.op_type.as_deref()? {
            "SequenceConstruct" => node.input.clone(),
            "SequenceEmpty" => Vec::new(),
            "SequenceInsert" => {
                let mut all = known?;
                let place = self.place(node.input_at(2), all.len(), all.len())?;
                all.insert(place, node.input_at(1)?.to_owned());
                all
            }
            "SequenceErase" => {
                let mut all = known?;
                let last = all.len().checked_sub(1)?;
                let place = self.place(node.input_at(1), all.len(), last)?;
                all.get(place)?;
                all.remove(place);
                all
            }
            "SplitToSequence" => self.split(node, first?)?,
            "SequenceAt" => {
                let all = known?;
                let place = self.place(Some(node.input_at(1)?), all.len(), 0)?;
                self.same(all.get(place)?, title, output);
                return Some(());
            }
            "SequenceLength" => {
                let count = known?.len() as i64;
                self.constant(title, output, TensorProto::from_i64("", &[], &[count]));
                return Some(());
            }
            "ConcatFromSequence" => return self.join(node, known?),
            "OptionalHasElement" => {
                // False without an input; true for a known sequence or a plain tensor.
                let has = match first {
                    None => false,
                    Some(first) if known.is_some() || self.is_tensor(first) => true,
                    _ => return None,
                };
                let has =
                    TensorProto::from_raw("", DataType::Bool, &[], vec![u8::from(has)].into());
                self.constant(title, output, has);
                return Some(());
            }
            "Optional" | "OptionalGetElement" => match known {
                Some(all) => all,
                None => {
                    let value = first.filter(|value| self.is_tensor(value))?;
                    self.same(value, title, output);
                    return Some(());
                }
            },
            "Identity" => known?,
            _ => return None,
        };
        if elements.len() > MAX_LENGTH {
            return None;
        }
        self.sequences.insert(output.clone(), elements);
        Some(())
    }

    /// The position that an input holds, counted from the front; `usual` if the input is absent.
    fn place(&self, input: Option<&str>, count: usize, usual: usize) -> Option<usize> {
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

    fn is_tensor(&self, value: &str) -> bool {
        self.types.contains_key(value) || self.tensors.contains(value)
    }

    fn same(&mut self, value: &str, title: &str, output: &str) {
        self.tensors.insert(output.to_owned());
        self.steps
            .last("Identity", &[value], title, output, Vec::new());
    }

    fn constant(&mut self, title: &str, output: &str, value: TensorProto) {
        let value = vec![AttributeProto::tensor("value", value)];
        self.steps.last("Constant", &[], title, output, value);
    }

    /// Splits a tensor into the elements of a sequence. Returns their names.
    fn split(&mut self, node: &NodeProto, whole: &str) -> Option<Vec<String>> {
        let shape = self.types.get(whole)?.shape.as_ref()?;
        let axis = position(node.int("axis").unwrap_or(0), shape.len())?;
        let Dim::Known(size) = shape[axis] else {
            return None;
        };
        if size > MAX_LENGTH {
            return None;
        }
        let input = node.input_at(1).map(|input| self.types.get(input));
        let parts = match input {
            None => vec![1; size],
            Some(input) => {
                let (input, list) = (input?, input?.all_integers()?);
                match (input.shape.as_deref()?, list.as_slice()) {
                    // A scalar is the size of all parts; the last one may be smaller.
                    ([], &[each]) if each > 0 => {
                        let parts = (0..size as i64).step_by(each as usize);
                        parts.map(|from| each.min(size as i64 - from)).collect()
                    }
                    ([_], list) => list.to_vec(),
                    _ => return None,
                }
            }
        };
        let title = node.title();
        let names: Vec<String> = (0..parts.len())
            .map(|_| self.steps.names.fresh(&format!("{title}.part")))
            .collect();
        let parts = self.steps.integers(title, &parts);
        let outputs: Vec<&str> = names.iter().map(String::as_str).collect();
        let name = self.steps.names.fresh(&format!("{title}.split"));
        let split = NodeProto::new("Split", &name, &[whole, &parts], &outputs);
        let along = AttributeProto::int("axis", axis as i64);
        self.steps.nodes.push(split.with(along));
        if input.is_some() || node.int("keepdims") != Some(0) {
            return Some(names);
        }
        let axes = self.steps.integers(title, &[axis as i64]);
        let single = |name: &String| self.steps.step("Squeeze", &[name, &axes], title, "single");
        Some(names.iter().map(single).collect())
    }

    /// Joins all elements with a Concat, along an existing axis or a new one.
    fn join(&mut self, node: &NodeProto, mut all: Vec<String>) -> Option<()> {
        let (title, axis) = (node.title(), node.int("axis")?);
        if node.int("new_axis") == Some(1) {
            let axes = self.steps.integers(title, &[axis]);
            let spread =
                |one: &String| self.steps.step("Unsqueeze", &[one, &axes], title, "spread");
            all = all.iter().map(spread).collect();
        }
        let inputs: Vec<&str> = all.iter().map(String::as_str).collect();
        let along = vec![AttributeProto::int("axis", axis)];
        let output = node.output.first()?;
        self.steps.last("Concat", &inputs, title, output, along);
        Some(())
    }
}
