//! Sequences and optional values. `prepare` replaces those whose elements are known.

use super::Operator;
use super::Property::OfSequences;
use super::sequence_rewriter::{MAX_LENGTH, SequenceRewriter};
use crate::inferred_value::position;
use crate::{Attribute, Dim, Node};
use octet_onnx::schema::{DataType, TensorProto};

const fn of_sequences(name: &'static str) -> Operator {
    Operator::onnx(name).with(&[OfSequences])
}

pub(super) static OPERATORS: &[Operator] = &[
    of_sequences("ConcatFromSequence").rewrites_sequences(|to, node| {
        let all = to.known(node)?;
        join(to, node, all)
    }),
    of_sequences("Optional")
        .requires(0)
        .rewrites_sequences(optional_value),
    of_sequences("OptionalGetElement").rewrites_sequences(optional_value),
    of_sequences("OptionalHasElement").rewrites_sequences(has_element),
    of_sequences("SequenceAt").rewrites_sequences(|to, node| {
        let all = to.known(node)?;
        let place = to.place(Some(node.input_at(1)?), all.len(), 0)?;
        to.same(all.get(place)?, node.title(), node.output.first()?);
        Some(())
    }),
    of_sequences("SequenceConstruct")
        .rewrites_sequences(|to, node| to.record(node, node.input.clone())),
    of_sequences("SequenceEmpty")
        .requires(0)
        .rewrites_sequences(|to, node| to.record(node, Vec::new())),
    of_sequences("SequenceErase").rewrites_sequences(erase),
    of_sequences("SequenceInsert").rewrites_sequences(insert),
    of_sequences("SequenceLength").rewrites_sequences(|to, node| {
        let count = to.known(node)?.len() as i64;
        let count = TensorProto::from_i64("", &[], &[count]);
        to.constant(node.title(), node.output.first()?, count);
        Some(())
    }),
    of_sequences("SequenceMap"),
    of_sequences("SplitToSequence")
        .moved(&[("split", 13)])
        .rewrites_sequences(|to, node| {
            let parts = split(to, node, node.input_at(0)?)?;
            to.record(node, parts)
        }),
];

fn insert(to: &mut SequenceRewriter, node: &Node) -> Option<()> {
    let mut all = to.known(node)?;
    let place = to.place(node.input_at(2), all.len(), all.len())?;
    all.insert(place, node.input_at(1)?.to_owned());
    to.record(node, all)
}

fn erase(to: &mut SequenceRewriter, node: &Node) -> Option<()> {
    let mut all = to.known(node)?;
    let last = all.len().checked_sub(1)?;
    let place = to.place(node.input_at(1), all.len(), last)?;
    all.get(place)?;
    all.remove(place);
    to.record(node, all)
}

/// An optional value is the sequence or tensor that it holds.
fn optional_value(to: &mut SequenceRewriter, node: &Node) -> Option<()> {
    if let Some(all) = to.known(node) {
        return to.record(node, all);
    }
    let value = node.input_at(0).filter(|value| to.is_tensor(value))?;
    to.same(value, node.title(), node.output.first()?);
    Some(())
}

/// False without an input; true for a known sequence or a plain tensor.
fn has_element(to: &mut SequenceRewriter, node: &Node) -> Option<()> {
    let has = match node.input_at(0) {
        None => false,
        Some(first) if to.known(node).is_some() || to.is_tensor(first) => true,
        _ => return None,
    };
    let has = TensorProto::from_raw("", DataType::Bool, &[], vec![u8::from(has)].into());
    to.constant(node.title(), node.output.first()?, has);
    Some(())
}

/// Splits a tensor into the elements of a sequence. Returns their names.
fn split(to: &mut SequenceRewriter, node: &Node, whole: &str) -> Option<Vec<String>> {
    let shape = to.types.get(whole)?.shape.as_ref()?;
    let axis = position(node.int("axis").unwrap_or(0), shape.len())?;
    let Dim::Known(size) = shape[axis] else {
        return None;
    };
    if size > MAX_LENGTH {
        return None;
    }
    let input = node.input_at(1).map(|input| to.types.get(input));
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
        .map(|_| to.steps.names.fresh(&format!("{title}.part")))
        .collect();
    let parts = to.steps.integers(title, &parts);
    let outputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = to.steps.names.fresh(&format!("{title}.split"));
    let split = Node::new("Split", &name, &[whole, &parts], &outputs);
    let along = Attribute::int("axis", axis as i64);
    to.steps.nodes.push(split.with(along));
    if input.is_some() || node.int("keepdims") != Some(0) {
        return Some(names);
    }
    let axes = to.steps.integers(title, &[axis as i64]);
    let single = |name: &String| to.steps.step("Squeeze", &[name, &axes], title, "single");
    Some(names.iter().map(single).collect())
}

/// Joins all elements with a Concat, along an existing axis or a new one.
fn join(to: &mut SequenceRewriter, node: &Node, mut all: Vec<String>) -> Option<()> {
    let (title, axis) = (node.title(), node.int("axis")?);
    if node.int("new_axis") == Some(1) {
        let axes = to.steps.integers(title, &[axis]);
        let spread = |one: &String| to.steps.step("Unsqueeze", &[one, &axes], title, "spread");
        all = all.iter().map(spread).collect();
    }
    let inputs: Vec<&str> = all.iter().map(String::as_str).collect();
    let along = vec![Attribute::int("axis", axis)];
    let output = node.output.first()?;
    to.steps.last("Concat", &inputs, title, output, along);
    Some(())
}
