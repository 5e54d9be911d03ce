//! float16: weights and activations with 16 bits, half the size with almost unchanged results.
//!
//! Operators without a float16 form, or with a large loss in it, stay float32 between Casts. Inputs
//! and outputs stay float32 unless the settings change them, so callers feed the model as before.
//! Nodes whose constants have numbers beyond float16 stay float32. Numbers that stand for infinity
//! become the largest float16, and a note counts them per constant. Activations beyond float16 on the
//! samples keep their nodes float32, or are brought into range before.

mod around_blocks;
mod operators;
mod overflow;

mod precisions;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::float16_numbers::{LARGEST, SMALLEST};
use super::planned_model::{PlannedModel, RefusedConstants};
use super::recipe::RecipeSummary;
use super::rewrite::{NotQuantized, Rewriter};
use super::settings::KeptPorts;
use super::stays_float::StaysFloat;
use super::{QuantizeError, QuantizedTensor, TensorKind, refuse_quantized};
pub(super) use around_blocks::plan_around_blocks;
use octet_graph::{FlatModel, Model, Node};
use octet_onnx::schema::{DataType, ValueInfoProto};
pub use overflow::DIVIDED;
pub(super) use overflow::{brought_near, far_activations};
use precisions::{FloatValues, Precision};

/// The settings of the scheme float16.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Float16Settings {
    /// Inputs and outputs that stay float32.
    pub keep_io: KeptPorts,
    /// Names of nodes that stay float32.
    pub keep_float: Vec<String>,
    /// Operators that stay float32, besides those that always do.
    pub float_operators: Vec<String>,
}

/// Plans a model with typed values. The recipes compute its constants.
pub(super) fn plan_float16(
    model: &Model,
    settings: &Float16Settings,
    refused: &RefusedConstants,
) -> Result<PlannedModel, QuantizeError> {
    refuse_quantized(model)?;
    super::rewrite::check_names(model, &settings.keep_float)?;
    let rewriter = Rewriter::over(model, refused);
    let reasons = float_reasons(&rewriter, settings);
    convert(rewriter, reasons, &settings.keep_io, HashSet::new())
}

/// The reason of each node that stays float32.
fn float_reasons(graph: &Rewriter, settings: &Float16Settings) -> Vec<Option<StaysFloat>> {
    let nodes = graph.model.graph.nodes();
    let mut reasons: Vec<Option<StaysFloat>> = nodes
        .iter()
        .map(|node| float_reason(graph, node, settings))
        .collect();
    // What a Loop carries has one precision before, in and behind its body.
    let mut of_control: HashMap<usize, StaysFloat> = HashMap::new();
    let controls: Vec<Option<usize>> = nodes.iter().map(FlatModel::control_index).collect();
    for (&control, &reason) in controls.iter().zip(&reasons) {
        let reason = reason.filter(|&reason| reason != StaysFloat::NotFloat32);
        of_control.extend(control.zip(reason));
    }
    for (control, reason) in controls.iter().zip(&mut reasons) {
        let shared = control.and_then(|control| of_control.get(&control).copied());
        *reason = reason.or(shared);
    }
    reasons
}

/// Converts all nodes without a reason. Recipes of an earlier rewrite compute the constants in
/// `computed`.
fn convert(
    graph: Rewriter,
    reasons: Vec<Option<StaysFloat>>,
    kept: &KeptPorts,
    computed: HashSet<String>,
) -> Result<PlannedModel, QuantizeError> {
    let mut values = FloatValues::new(&graph, &reasons, kept, computed);
    let unseen = overflow::without_samples(graph.refused);
    let mut reasons = reasons.into_iter();
    let (mut quantized, recipes) = graph.run(|graph, node| {
        let reason = reasons.next().flatten();
        write(graph, node, reason, &mut values)
    })?;
    let graph = &mut quantized.model.graph;
    let declare = |info: &mut ValueInfoProto| {
        if values.is_half(info.name.as_deref().unwrap_or_default()) {
            info.set_element(DataType::Float16);
        }
    };
    graph.edit_ports(|inputs, outputs| inputs.iter_mut().chain(outputs).for_each(declare));
    graph.value_info.iter_mut().for_each(declare);
    graph.value_info.extend(values.declared);
    let beyond = [StaysFloat::TooLargeForFloat16, StaysFloat::FarActivation];
    let notes = quantized.nodes.iter().filter_map(|node| {
        let words = node.reason.filter(|reason| beyond.contains(reason))?;
        Some(format!("`{}` stays float32: {words}", node.node))
    });
    quantized.notes = notes.chain(unseen).collect();
    Ok((quantized, recipes))
}

/// The reason why a node stays float32.
fn float_reason(graph: &Rewriter, node: &Node, settings: &Float16Settings) -> Option<StaysFloat> {
    let operator = node.operator();
    if settings.keep_float.iter().any(|name| name == node.title()) {
        return Some(StaysFloat::BySettings);
    }
    if settings.float_operators.contains(&operator) {
        return Some(StaysFloat::OperatorBySettings);
    }
    if let Some(reason) = operators::float_reason(node) {
        return Some(StaysFloat::OfOperator(reason));
    }
    let mut names = node
        .input
        .iter()
        .chain(&node.output)
        .filter(|n| !n.is_empty());
    if !names.clone().all(|name| graph.element(name).is_some()) {
        return Some(StaysFloat::UnknownType);
    }
    if !names.clone().any(|name| graph.is_float(name)) {
        return Some(StaysFloat::NotFloat32);
    }
    if names.clone().any(|name| graph.refused.is_beyond_half(name)) {
        return Some(StaysFloat::TooLargeForFloat16);
    }
    let far = names.any(|name| graph.refused.is_far_activation(name));
    far.then_some(StaysFloat::FarActivation)
}

/// Writes a node with its values in the precision that it needs.
fn write<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    reason: Option<StaysFloat>,
    values: &mut FloatValues,
) -> Result<(), NotQuantized> {
    let precision = if reason.is_some() {
        Precision::Single
    } else {
        Precision::Half
    };
    let mut written = node.clone();
    for input in &mut written.input {
        if graph.is_float(input) {
            *input = values.read_name(graph, input, precision)?;
        }
    }
    let mut casts = Vec::new();
    for output in &mut written.output {
        if graph.is_float(output) {
            *output = values.written_name(graph, output, precision, &mut casts);
        }
    }
    if !casts.is_empty() {
        // An unnamed node is identified by its output, which has another name now.
        written.name = Some(node.title().to_owned());
    }
    if precision == Precision::Half {
        let makes_floats = node.output.iter().any(|name| graph.is_float(name));
        operators::set_type(&mut written, makes_floats)?;
    }
    graph.push(written);
    casts.into_iter().for_each(|cast| graph.push(cast));
    match reason {
        Some(reason) => Err(NotQuantized::Rewritten(reason)),
        None => Ok(()),
    }
}

/// The report's entry for a float16 constant, which has no scale.
pub(super) fn report_entry(name: &str) -> QuantizedTensor {
    QuantizedTensor {
        name: name.to_owned(),
        kind: TensorKind::Weight,
        element: DataType::Float16,
        scales: 0,
        scale: 1.0,
        zero_point: 0,
        min: -LARGEST,
        max: LARGEST,
        block: None,
        corrected: None,
        compensated: None,
    }
}

/// Notes on a constant with numbers that changed.
pub(super) fn notes(name: &str, summary: &RecipeSummary) -> Vec<String> {
    let numbers = |count| match count {
        1 => "1 number is".to_owned(),
        _ => format!("{count} numbers are"),
    };
    let mut notes = Vec::new();
    if summary.too_large > 0 {
        notes.push(format!(
            "`{name}`: {} too large for float16 and became ±{LARGEST}",
            numbers(summary.too_large)
        ));
    }
    if summary.too_small > 0 {
        notes.push(format!(
            "`{name}`: {} too close to zero for float16 and became ±{SMALLEST:e}",
            numbers(summary.too_small)
        ));
    }
    notes
}
