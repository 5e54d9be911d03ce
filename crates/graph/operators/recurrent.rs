//! Recurrent layers.

use super::Property::{OnlyQuantized, SaturatesPairs};
use super::node_context::{NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::MacRule;
use super::shape_context::ShapeContext;
use super::{DynamicForm, Operator};
use crate::inferred_value::InferredValue;
use crate::{Attribute, Dim, Node};

/// A recurrent layer. The fifth input holds the lengths of sequences.
const fn recurrent(name: &'static str) -> Operator {
    Operator::onnx(name)
        .requires(3)
        .changed(&[(7, optional_outputs)])
        .infers_all(steps_and_states)
        .stays_float("recurrent layers lose too much accuracy with fixed scales")
        .weights(&[1, 2])
        .same_type(4)
        .macs(MacRule::Recurrent)
}

pub(super) static OPERATORS: &[Operator] = &[
    recurrent("GRU")
        .dynamic(DynamicForm::WeightsOnly)
        .activations(&["Sigmoid", "Tanh"]),
    recurrent("LSTM")
        .dynamic(DynamicForm::Lstm)
        .activations(&["Sigmoid", "Tanh", "Tanh"]),
    recurrent("RNN")
        .dynamic(DynamicForm::WeightsOnly)
        .activations(&["Tanh"]),
    Operator::onnx("ReverseSequence")
        .checks(axes_of_sequences)
        .infers_same(),
    Operator::microsoft("DynamicQuantizeLSTM")
        .with(&[SaturatesPairs, OnlyQuantized])
        .weights(&[1]),
];

fn steps_and_states(ctx: &ShapeContext) -> Vec<Option<InferredValue>> {
    let Some(input) = ctx.input(0) else {
        return vec![];
    };
    let element = input.element;
    let both = ctx.node.text("direction") == Some("bidirectional");
    let batch_first = ctx.node.int("layout").unwrap_or(0) != 0;
    let hidden = ctx.node.int("hidden_size");
    let hidden = hidden.and_then(|hidden| usize::try_from(hidden).ok());
    // Without the attribute, the size is that of the recurrence weights.
    let weights = || ctx.input(2)?.shape.as_ref()?.get(2).cloned();
    let hidden = hidden.map(Dim::Known).or_else(weights);
    let shape = input.shape.as_deref().filter(|s| s.len() == 3);
    let (Some(hidden), Some(shape)) = (hidden, shape) else {
        return vec![Some(InferredValue::new(element, None)); 3];
    };
    let sides = Dim::Known(if both { 2 } else { 1 });
    let [first, second] = [shape[0].clone(), shape[1].clone()];
    let (all, last) = if batch_first {
        let all = vec![first.clone(), second, sides.clone(), hidden.clone()];
        (all, vec![first, sides, hidden])
    } else {
        let all = vec![first, sides.clone(), second.clone(), hidden.clone()];
        (all, vec![sides, second, hidden])
    };
    [all, last.clone(), last]
        .map(|s| Some(InferredValue::new(element, Some(s))))
        .into()
}

/// Checks the two axes of ReverseSequence.
fn axes_of_sequences(ctx: &NodeContext) -> Validation {
    if ctx.shape(0).is_none() {
        return Ok(());
    }
    let [time, batch] = [("time_axis", 0), ("batch_axis", 1)];
    let axis = |(key, usual)| ctx.node.int(key).unwrap_or(usual);
    let axes = [axis(time), axis(batch)];
    let expected = "0 and 1, or 1 and 0";
    ensure(matches!(axes, [0, 1] | [1, 0]), time.0, axes, expected)
}

/// Changes to opset 7. An attribute told only whether the outputs, now optional, exist.
fn optional_outputs(to: &mut OpsetContext, mut node: Node) -> Adapted {
    node.take("output_sequence");
    if node.is("GRU") && to.from < 3 && node.int("linear_before_reset").is_none() {
        node.set(Attribute::int("linear_before_reset", 0));
    }
    to.write(node);
    Ok(())
}
