//! Writes the quantized model with QuantizeLinear/DequantizeLinear pairs, named as ONNX Runtime
//! names them.

mod float_weights;
mod nodes;
mod writer;

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::bias_correction::corrections;
use super::gptq::Gptq;
use super::invariant::PlanInvariant;
use super::plan::{Plan, RangeOrigin, TensorRole};
use super::ranges::ActivationRanges;
use super::scale::{QuantizationParameters, integer_bounds};
use super::settings::Representation;
use super::weights::{ConstantIntegers, empty_channels, parameters, quantized};
use super::{QuantizeError, Quantized, bias};
use float_weights::keep_float_weights;
use octet_graph::Model;
use octet_onnx::schema::{DataType, TensorProto};
use octet_stats::Range;
use writer::QdqWriter;

/// Quantizes a model by its plan and ranges.
pub fn quantize(
    model: &Model,
    plan: &Plan,
    ranges: ActivationRanges<'_>,
) -> Result<Quantized, QuantizeError> {
    let (activations, used_ranges) = activation_parameters(model, plan, ranges)?;
    let mut constants = constant_parameters(model, plan)?;
    let scale_of = |name: &str, constants: &HashMap<String, QuantizationParameters>| {
        let source = scale_owner(plan, name);
        activations
            .get(source)
            .or_else(|| constants.get(source))
            .cloned()
    };
    for planned in plan.biases.iter().filter(|_| plan.fit_biases) {
        let input = scale_of(&planned.input, &constants);
        let tensor = model.graph.initializers.get(&planned.name);
        let represented = plan.representations.get(&planned.weight);
        if let (Some(input), Some(tensor), Some(weight), Some(represented)) = (
            input,
            tensor,
            constants.get_mut(&planned.weight),
            represented,
        ) && represented.scale.is_none()
            && (!plan.like_onnx_runtime || is_fitted_by_onnx_runtime(weight))
        {
            let (input, bias, beta) = (input.scales[0], tensor.to_f32()?, planned.beta);
            let empty = match model.graph.initializers.get(&planned.weight) {
                Some(tensor) if !plan.like_onnx_runtime => empty_channels(tensor, weight)?,
                _ => Vec::new(),
            };
            bias::fit_weight_scales(
                weight,
                input,
                &bias,
                beta,
                represented.power_of_two.is_required(),
                &empty,
            );
        }
    }
    let gptq = Gptq::new(model, plan, ranges)?;
    let mut integers = constant_integers(model, plan, &constants, gptq.as_ref())?;
    let corrections = corrections(model, plan, ranges, &constants, &integers)?;
    let mut writer = QdqWriter::new(model, plan);
    for (name, form) in &plan.forms {
        if let Some(params) = constants.get(name) {
            if let Some(computed) = integers.remove(name.as_str()) {
                writer.constant(name, form, params, computed);
            }
        } else if let Some(params) = scale_of(name, &constants) {
            writer.activation(name, form, &params);
        }
    }
    for (planned, correction) in plan.biases.iter().zip(&corrections) {
        let weight = scale_of(&planned.weight, &constants);
        if let (Some(input), Some(weight)) = (scale_of(&planned.input, &constants), weight) {
            writer.bias(planned, input.scales[0], &weight, correction)?;
        }
    }
    let mut quantized = writer.finish(used_ranges);
    if plan.runs_in_onnx_runtime && !plan.like_onnx_runtime {
        keep_float_weights(&mut quantized.model);
    }
    Ok(quantized)
}

/// True if ONNX Runtime's quantizer would increase this weight's scale for a bias.
fn is_fitted_by_onnx_runtime(weight: &QuantizationParameters) -> bool {
    let signed = matches!(weight.element, DataType::Int8 | DataType::Int16);
    signed && weight.zero_points.iter().all(|&zero_point| zero_point == 0)
}

/// The value that owns the scale of `name`.
fn scale_owner<'a>(plan: &'a Plan, name: &'a str) -> &'a str {
    plan.scale_owners.get(name).map_or(name, String::as_str)
}

fn activation_parameters(
    model: &Model,
    plan: &Plan,
    ranges: ActivationRanges<'_>,
) -> Result<
    (
        HashMap<String, QuantizationParameters>,
        BTreeMap<String, Range>,
    ),
    QuantizeError,
> {
    let mut by_name = HashMap::new();
    let mut used_ranges = BTreeMap::new();
    for (name, form) in &plan.forms {
        if *form != TensorRole::Activation || model.graph.initializers.contains(name) {
            continue;
        }
        let represented = representation(plan, name)?;
        let element = represented.element.data_type();
        let symmetric = represented.is_symmetric(false);
        let (scale, zero_point) = match represented.scale {
            Some(chosen) => chosen,
            None => {
                let range @ Range { min, max } = range(plan, name, represented, ranges)?;
                if let Some(RangeOrigin::Observed(source)) = plan.ranges.get(name) {
                    used_ranges.insert(source.clone(), range);
                }
                let used = integer_bounds(element, symmetric, represented.reduce_range);
                represented.scale_and_zero_point(min, max, used, symmetric)
            }
        };
        let one = QuantizationParameters {
            element,
            axis: None,
            scales: vec![scale],
            zero_points: vec![zero_point],
        };
        by_name.insert(name.clone(), one);
    }
    Ok((by_name, used_ranges))
}

fn representation<'a>(plan: &'a Plan, name: &str) -> Result<&'a Representation, QuantizeError> {
    let represented = plan.representations.get(name);
    represented.ok_or_else(|| PlanInvariant::Representation(name.to_string()).into())
}

fn range(
    plan: &Plan,
    name: &str,
    represented: &Representation,
    ranges: ActivationRanges<'_>,
) -> Result<Range, QuantizeError> {
    let missing = || QuantizeError::RangeMissing {
        value: name.to_string(),
    };
    let source = plan.ranges.get(name);
    let source = source.ok_or_else(|| PlanInvariant::RangeSource(name.to_string()))?;
    let range = match (represented.range, source) {
        (Some(chosen), _) => chosen,
        (None, RangeOrigin::Fixed(min, max)) => Range::new(*min, *max),
        (None, RangeOrigin::Observed(source)) => {
            ranges.range_of(source, represented)?.ok_or_else(missing)?
        }
    };
    let Range { min, max } = range;
    if !(min.is_finite() && max.is_finite() && min <= max) {
        return Err(QuantizeError::RangeNotFinite {
            value: name.to_string(),
            min,
            max,
        });
    }
    Ok(range)
}

fn constant_parameters(
    model: &Model,
    plan: &Plan,
) -> Result<HashMap<String, QuantizationParameters>, QuantizeError> {
    let constant = |(name, form): (&String, &TensorRole)| {
        let tensor = model.graph.initializers.get(name)?;
        let axis = match form {
            TensorRole::Weight(axis) => *axis,
            TensorRole::Activation | TensorRole::Shared(_) => None,
        };
        let weight = matches!(form, TensorRole::Weight(_));
        let computed = representation(plan, name)
            .and_then(|represented| Ok(parameters(tensor, axis, represented, weight)?));
        Some(computed.map(|computed| (name.clone(), computed)))
    };
    let forms: Vec<_> = plan.forms.iter().map(|(name, form)| (name, form)).collect();
    // The order is kept, so the error names the same tensor with any number of threads.
    let results: Vec<_> = forms.into_par_iter().filter_map(constant).collect();
    results.into_iter().collect()
}

/// Computes the integers of all constants. The writer names them.
fn constant_integers<'a>(
    model: &Model,
    plan: &Plan,
    constants: &'a HashMap<String, QuantizationParameters>,
    gptq: Option<&Gptq>,
) -> Result<HashMap<&'a str, ConstantIntegers>, QuantizeError> {
    let integers = |name: &str, params: &QuantizationParameters, tensor: &TensorProto| {
        if let Some(gptq) = gptq {
            let represented = representation(plan, name)?;
            let symmetric = represented.is_symmetric(true);
            let used = integer_bounds(params.element, symmetric, represented.reduce_range);
            if let Some((tensor, error_reduction)) = gptq.integers(tensor, name, params, used)? {
                let error_reduction = Some(error_reduction);
                return Ok(ConstantIntegers {
                    tensor,
                    error_reduction,
                });
            }
        }
        let tensor = quantized(tensor, name, params)?;
        Ok(ConstantIntegers {
            tensor,
            error_reduction: None,
        })
    };
    let one = |(name, params): (&'a String, &QuantizationParameters)| {
        let tensor = model.graph.initializers.get(name)?;
        let computed = integers(name, params, tensor);
        Some(computed.map(|computed| (name.as_str(), computed)))
    };
    let constants: Vec<_> = constants.iter().collect();
    let computed: Vec<_> = constants.into_par_iter().filter_map(one).collect();
    computed.into_iter().collect()
}
