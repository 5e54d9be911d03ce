//! float16: weights and activations with 16 bits, half the size with almost unchanged results.
//!
//! Operators without a float16 form, or with a large loss in it, stay float32 between Casts. Inputs
//! and outputs stay float32 unless the settings change them, so callers feed the model as before.
//! Numbers outside the finite range become its nearest end, and a note counts them per constant.

mod numbers;
mod operators;
mod precisions;

use serde::{Deserialize, Serialize};

use super::rewrite::{NotQuantized, Rewriter};
use super::stays_float::StaysFloat;
use super::{QuantizeError, Quantized, QuantizedTensor, TensorKind};
use numbers::LARGEST;
pub(crate) use numbers::to_float16;
use octet_graph::{Model, Node};
use octet_onnx::schema::{DataType, ValueInfoProto};
use precisions::{FloatValues, Precision};

/// The settings of the scheme float16.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Float16Settings {
    /// Inputs and outputs stay float32.
    pub keep_io: bool,
    /// Names of nodes that stay float32.
    pub keep_float: Vec<String>,
    /// Operators that stay float32, besides those that always do.
    pub float_operators: Vec<String>,
}

impl Default for Float16Settings {
    fn default() -> Float16Settings {
        Float16Settings {
            keep_io: true,
            keep_float: Vec::new(),
            float_operators: Vec::new(),
        }
    }
}

/// Converts a prepared model, whose values all have types, to float16.
pub fn quantize_float16(
    model: &Model,
    settings: &Float16Settings,
) -> Result<Quantized, QuantizeError> {
    let rewriter = Rewriter::new(model, &[], None)?;
    super::rewrite::check_names(model, &settings.keep_float)?;
    let reasons: Vec<Option<StaysFloat>> = model
        .graph
        .nodes()
        .iter()
        .map(|node| float_reason(&rewriter, node, settings))
        .collect();
    let mut values = FloatValues::new(&rewriter, &reasons, settings.keep_io);
    let mut reasons = reasons.into_iter();
    let mut quantized = rewriter.run(|graph, node| {
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
    quantized.notes = values.notes;
    Ok(quantized)
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
    if !names.any(|name| graph.is_float(name)) {
        return Some(StaysFloat::NotFloat32);
    }
    None
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
fn report_entry(name: &str) -> QuantizedTensor {
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
