//! The check of a file against the rules of a target.

use octet_onnx::schema::{DataType, ModelProto, NodeProto};
use serde::Serialize;

use crate::file::{FileGraph, is_either};
use crate::quantized_values::{FileValue, ValueRole, input_value, output_value, quantized_value};
use crate::rule::{RuleData, TargetRule};
use crate::target::RunTarget;

/// A place of a file that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The rule in words.
    pub text: &'static str,
    /// The document that the rule comes from.
    pub source: &'static str,
    /// The node, or the part of the file.
    pub place: String,
    /// Words for the thing found there.
    pub found: String,
}

/// Every violation of the target's rules, in the order of the rules and nodes.
pub fn check(model: &ModelProto, file_name: &str, target: RunTarget) -> Vec<Violation> {
    let mut violations = Vec::new();
    for rule in target.rules() {
        let mut add = |place: &str, found: String| {
            violations.push(Violation {
                rule: rule.name,
                text: rule.text,
                source: rule.source,
                place: place.to_owned(),
                found,
            });
        };
        check_header(rule, model, file_name, &mut add);
        if let Some(graph) = &model.graph {
            FileGraph::visit(graph, &mut |graph| {
                for node in graph.nodes {
                    if let Some(found) = broken_by_node(rule, graph, node) {
                        add(node.title(), found);
                    }
                    let value = quantized_value(graph, node);
                    if let Some(found) =
                        value.and_then(|value| broken_by_value(rule, graph, &value))
                    {
                        add(node.title(), found);
                    }
                }
            });
        }
    }
    violations
}

fn check_header(
    rule: &TargetRule,
    model: &ModelProto,
    file_name: &str,
    add: &mut dyn FnMut(&str, String),
) {
    match rule.requirement {
        RuleData::Opset { least, most } => {
            let of_onnx =
                |domain: &Option<String>| matches!(domain.as_deref(), None | Some("" | "ai.onnx"));
            let imports = model
                .opset_import
                .iter()
                .filter(|import| of_onnx(&import.domain));
            for version in imports.filter_map(|import| import.version) {
                if !(least..=most).contains(&version) {
                    add("the file", format!("opset {version}"));
                }
            }
        }
        RuleData::IrVersion(most) => {
            if let Some(version) = model.ir_version.filter(|&version| version > most) {
                add("the file", format!("IR version {version}"));
            }
        }
        RuleData::FileNames(endings) => {
            let stem = file_name.strip_suffix(".onnx").unwrap_or(file_name);
            if stem != "model" && !endings.iter().any(|ending| stem.ends_with(ending)) {
                add("the file", format!("the name {file_name}"));
            }
        }
        _ => {}
    }
}

/// Words for a part of a node that a rule forbids.
fn broken_by_node(rule: &TargetRule, graph: &FileGraph<'_>, node: &NodeProto) -> Option<String> {
    match rule.requirement {
        RuleData::Domains(domains) => {
            let domain = match node.domain.as_deref().unwrap_or_default() {
                "ai.onnx" => "",
                domain => domain,
            };
            (!domains.contains(&domain)).then(|| node.operator())
        }
        RuleData::WithoutOperators(operators) => {
            let operator = node.operator();
            operators.contains(&operator.as_str()).then_some(operator)
        }
        RuleData::UnsignedWeights(operators) => {
            let weight = graph.constant(node.input_at(1)?)?.element().ok()?;
            let signed = weight == DataType::Int8 && operators.iter().any(|name| node.is(name));
            signed.then(|| format!("{} weights of {}", weight.name(), node.operator()))
        }
        RuleData::AllInputs(operators) => {
            if !operators.iter().any(|name| node.is(name)) {
                return None;
            }
            let computed = node.input.iter().enumerate().filter(|(slot, name)| {
                graph.constant(name).is_none()
                    && input_value(graph, node, *slot).is_none_or(|value| value.constant.is_none())
            });
            let (quantized, float): (Vec<_>, Vec<_>) =
                computed.partition(|(slot, _)| input_value(graph, node, *slot).is_some());
            let (_, other) = float.first()?;
            (!quantized.is_empty())
                .then(|| format!("the input `{other}` is float, and another is quantized"))
        }
        RuleData::OneType => {
            let mut types = activations_of(graph, node)
                .into_iter()
                .map(|value| value.element);
            let first = types.next()?;
            let other = types.find(|&element| element != first)?;
            Some(format!("{} and {}", first.name(), other.name()))
        }
        RuleData::OneScalePerNode(operators) => {
            if !operators.iter().any(|name| node.is(name)) {
                return None;
            }
            let made = node
                .output
                .iter()
                .find_map(|name| output_value(graph, name))?;
            let values = activations_of(graph, node);
            let other = values.iter().find(|value| {
                value.scales != made.scales || zero_point(value) != zero_point(&made)
            })?;
            Some(format!(
                "the scales {} and {}, the zero points {} and {}",
                scale(other),
                scale(&made),
                zero_point(other),
                zero_point(&made)
            ))
        }
        RuleData::OutputScale(fixed) => {
            let made = output_value(graph, node.output.first()?)?;
            let wanted = fixed
                .iter()
                .find(|fixed| node.is(fixed.operator) && made.element == fixed.element)?;
            let right = made.scales == [wanted.scale] && zero_point(&made) == wanted.zero_point;
            (!right).then(|| {
                let (scale, zero_point) = (scale(&made), zero_point(&made));
                format!("the scale {scale} and the zero point {zero_point}")
            })
        }
        RuleData::BiasScales => {
            let bias = input_value(graph, node, 2).filter(|value| value.part == ValueRole::Bias)?;
            let input = input_value(graph, node, 0)?;
            let weight = input_value(graph, node, 1)?;
            let all = weight.scales.iter().map(|weight| input.scales[0] * weight);
            let close = |(wanted, found): (f32, &f32)| (wanted - found).abs() <= 1e-6 * found.abs();
            let right =
                bias.scales.len() == weight.scales.len() && all.zip(&bias.scales).all(close);
            (!right).then(|| "another scale than that of input times weight".to_owned())
        }
        _ => None,
    }
}

/// Words for a part of a quantized value that a rule forbids.
fn broken_by_value(
    rule: &TargetRule,
    graph: &FileGraph<'_>,
    value: &FileValue<'_>,
) -> Option<String> {
    let is = |part: ValueRole| value.part == part;
    match rule.requirement {
        RuleData::ActivationTypes(types) if is(ValueRole::Activation) => (!types
            .contains(&value.element))
        .then(|| format!("{} activations", value.element.name())),
        RuleData::WeightTypes(types) if is(ValueRole::Weight) => {
            (!types.contains(&value.element)).then(|| format!("{} weights", value.element.name()))
        }
        RuleData::SymmetricActivations if is(ValueRole::Activation) => nonzero(value, 0),
        RuleData::SymmetricWeights if is(ValueRole::Weight) => {
            let middle = match value.element {
                DataType::Uint8 => 128,
                DataType::Uint16 => 32768,
                DataType::Uint4 => 8,
                _ => 0,
            };
            nonzero(value, middle)
        }
        RuleData::NarrowWeights if is(ValueRole::Weight) => {
            let lowest = match value.element {
                DataType::Int8 => i64::from(i8::MIN),
                DataType::Int16 => i64::from(i16::MIN),
                _ => return None,
            };
            let integers = value.constant?.to_i64().ok()?;
            integers
                .contains(&lowest)
                .then(|| format!("the weight {lowest}"))
        }
        RuleData::OneScale if is(ValueRole::Activation) => {
            (value.scales.len() > 1).then(|| format!("{} scales", value.scales.len()))
        }
        RuleData::ChannelScales(allowed) if is(ValueRole::Weight) && value.scales.len() > 1 => {
            let rank = value.constant?.dims.len() as i64;
            let axis = value.node.int("axis").unwrap_or(1);
            let axis = if axis < 0 { axis + rank } else { axis };
            let output = value.node.output.first()?;
            let refused = graph.consumers(output).iter().find(|(reader, _)| {
                let fits = |&(operator, wanted): &(&str, i64)| {
                    let wanted = if wanted < 0 { wanted + rank } else { wanted };
                    // A matrix product has scales of columns only for a matrix.
                    reader.is(operator) && axis == wanted && (operator != "MatMul" || rank == 2)
                };
                !allowed.iter().any(fits)
            });
            let operator = refused?.0.operator();
            Some(format!(
                "{} scales along axis {axis} for {operator}",
                value.scales.len()
            ))
        }
        RuleData::BlocksOfMatrices => {
            let blocks = value.node.int("block_size").is_some_and(|size| size > 0);
            (blocks && value.constant?.dims.len() < 2).then(|| "blocks of a vector".to_owned())
        }
        RuleData::FloatBiases if is(ValueRole::Bias) => Some("an int32 bias".to_owned()),
        RuleData::BiasesWithoutZeroPoint if is(ValueRole::Bias) => value
            .has_zero_point
            .then(|| "an int32 zero point".to_owned()),
        RuleData::LeastRange(range) if is(ValueRole::Activation) => {
            let steps = match value.element {
                DataType::Uint16 | DataType::Int16 => 65535.0,
                DataType::Uint4 | DataType::Int4 => 15.0,
                _ => 255.0,
            };
            // A factor for the rounding of the scale.
            let least = range / steps * (1.0 - 1e-6);
            (scale(value) < least).then(|| format!("the scale {}", scale(value)))
        }
        _ => None,
    }
}

/// Quantized inputs and outputs of a node that computes, without weights and biases.
fn activations_of<'a>(graph: &FileGraph<'a>, node: &NodeProto) -> Vec<FileValue<'a>> {
    if is_either(node, "QuantizeLinear") || is_either(node, "DequantizeLinear") {
        return Vec::new();
    }
    let inputs = (0..node.input.len()).filter_map(|slot| input_value(graph, node, slot));
    let outputs = node
        .output
        .iter()
        .filter_map(|name| output_value(graph, name));
    inputs
        .chain(outputs)
        .filter(|value| value.part == ValueRole::Activation)
        .collect()
}

fn nonzero(value: &FileValue<'_>, middle: i64) -> Option<String> {
    let other = value
        .zero_points
        .iter()
        .find(|&&zero_point| zero_point != middle)?;
    Some(format!("the zero point {other}"))
}

/// The only scale of an activation.
fn scale(value: &FileValue<'_>) -> f32 {
    value.scales.first().copied().unwrap_or_default()
}

/// The only zero point of an activation; 0 if the file states none.
fn zero_point(value: &FileValue<'_>) -> i64 {
    value.zero_points.first().copied().unwrap_or_default()
}
