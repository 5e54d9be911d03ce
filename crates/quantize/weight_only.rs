//! Weight-only quantization to 8 bits: each weight is stored as integers and goes through a
//! DequantizeLinear. The operators compute in float as before. Any runtime with opset 13 runs the
//! model.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::integer_format::IntegerFormat;
use super::operators::{EMBEDDING, float_reason};
use super::planned_model::{PlannedModel, RefusedConstants};
use super::recipe::IntegersPlan;
use super::rewrite::{NotQuantized, Rewriter};
use super::settings::{ElementType, UnsupportedSetting};
use super::stays_float::StaysFloat;
use super::{FIRST_OPSET_WITH_AXIS, QuantizeError, embedding, gather};
use octet_graph::operators::{Operator, Treatment};
use octet_graph::{Attribute, Model, Node};

/// The settings of weight-only quantization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WeightSettings {
    /// The integer type: i8 or u8.
    pub element: ElementType,
    /// The zero point is the middle of the integer range; by default for signed types.
    pub symmetric: Option<bool>,
    /// Uses one bit less.
    pub reduce_range: bool,
    /// One scale for each output channel of a weight, instead of one for all.
    pub per_channel: bool,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Only these operators are quantized; by default all that can be.
    pub operators: Option<Vec<String>>,
}

impl Default for WeightSettings {
    fn default() -> WeightSettings {
        WeightSettings {
            element: ElementType::I8,
            symmetric: None,
            reduce_range: false,
            per_channel: true,
            keep_float: Vec::new(),
            operators: None,
        }
    }
}

/// Plans a model with typed values. The recipes compute its constants.
pub(super) fn plan_weights(
    model: &Model,
    settings: &WeightSettings,
    refused: &RefusedConstants,
) -> Result<PlannedModel, QuantizeError> {
    if settings.element.bits() != 8 {
        return Err(UnsupportedSetting::StoredWeights(settings.element.data_type()).into());
    }
    let opset = model.opset();
    if settings.per_channel && opset < FIRST_OPSET_WITH_AXIS {
        return Err(QuantizeError::Opset { opset });
    }
    let operators = settings.operators.as_deref();
    let rewriter = Rewriter::new(model, &settings.keep_float, operators, refused)?;
    let mut written = HashMap::new();
    rewriter.run(|graph, node| {
        let form = IntegerFormat {
            element: settings.element,
            axis: channels(graph, node).filter(|_| settings.per_channel),
            symmetric: settings.symmetric.unwrap_or(settings.element.is_signed()),
            reduce_range: settings.reduce_range,
        };
        match node.operator().as_str() {
            "Gather" => {
                let axis = Some(1).filter(|_| settings.per_channel);
                gather::rewrite(graph, node, IntegerFormat { axis, ..form })
            }
            EMBEDDING => embedding::rewrite(graph, node, form),
            operator => match Operator::of(node).weight_slots {
                [] => Err(reason(operator).into()),
                slots => read_dequantized(graph, node, slots, form, &mut written),
            },
        }
    })
}

/// The names of dequantized weights, by weight name and scale axis.
pub(super) type DequantizedWeights = HashMap<(String, Option<usize>), String>;

/// Makes a node read the weights in these slots through DequantizeLinear nodes.
pub(super) fn read_dequantized<'a>(
    graph: &mut Rewriter<'a>,
    node: &'a Node,
    slots: &[usize],
    form: IntegerFormat,
    written: &mut DequantizedWeights,
) -> Result<(), NotQuantized> {
    let weights = slots.iter().map(|&slot| graph.weight(node, slot));
    let weights = weights.collect::<Result<Vec<_>, NotQuantized>>()?;
    if weights.iter().any(|weight| weight.shape.len() < 2) {
        return Err(StaysFloat::NotAMatrix.into());
    }
    let mut rewritten = node.clone();
    for (&slot, weight) in slots.iter().zip(weights) {
        let key = (weight.name.to_owned(), form.axis);
        let floats = match written.get(&key) {
            Some(floats) => floats.clone(),
            None => {
                let name = weight.name;
                let plan = IntegersPlan::in_order(form, &weight.shape);
                let names = graph.plan_integers(&weight, plan)?;
                let floats = graph.fresh(&format!("{name}_DequantizeLinear_Output"));
                let title = graph.fresh(&format!("{name}_DequantizeLinear"));
                let inputs = [&names.integers, &names.scale, &names.zero_point].map(String::as_str);
                let mut dequantize = Node::new("DequantizeLinear", &title, &inputs, &[&floats]);
                if let Some(axis) = form.axis {
                    dequantize.set(Attribute::int("axis", axis as i64));
                }
                graph.push(dequantize);
                written.insert(key, floats.clone());
                floats
            }
        };
        rewritten.input[slot] = floats;
    }
    graph.push(rewritten);
    Ok(())
}

/// The output channel axis of a node's weight.
fn channels(graph: &Rewriter, node: &Node) -> Option<usize> {
    let weight = graph.model.graph.initializers.get(node.input_at(1)?)?;
    let last = weight.dims.len().checked_sub(1)?;
    let axis = match Operator::of(node).treatment {
        Some(Treatment::Weighted(axis)) => axis.at(node),
        Some(Treatment::MatMul) => last,
        _ => 1,
    };
    (axis <= last).then_some(axis)
}

/// The reason why nodes of an operator stay float.
fn reason(operator: &str) -> StaysFloat {
    float_reason(operator).map_or(StaysFloat::NoWeight, StaysFloat::OfOperator)
}
