//! Writing the quantized model as QuantizeLinear/DequantizeLinear pairs, under ONNX Runtime's names.

mod nodes;
mod writer;

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::compensate::Compensation;
use super::correct::corrections;
use super::plan::{Form, Plan, RangeSource};
use super::ranges::Ranges;
use super::scale::{QuantizationParameters, span};
use super::settings::Representation;
use super::weights::{empty_channels, parameters, quantized};
use super::{QuantizeError, Quantized, bias};
use crate::calibrate::Range;
use crate::graph::Model;
use crate::onnx::schema::{DataType, TensorProto};
use writer::Writer;

/// The quantized form of a model.
pub fn quantize(
    model: &Model,
    plan: &Plan,
    ranges: Ranges<'_>,
) -> Result<Quantized, QuantizeError> {
    let (activations, used_ranges) = activation_parameters(model, plan, ranges)?;
    let mut constants = constant_parameters(model, plan)?;
    let scale_of = |name: &str, constants: &HashMap<String, QuantizationParameters>| {
        let source = source_of(plan, name);
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
            && (!plan.like_onnx_runtime || is_fitted_there(weight))
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
    let compensation = Compensation::new(model, plan, ranges)?;
    let mut integers = constant_integers(model, plan, &constants, compensation.as_ref())?;
    let corrections = corrections(model, plan, ranges, &constants, &integers)?;
    let mut writer = Writer::new(model, plan);
    for (name, form) in &plan.forms {
        if let Some(found) = constants.get(name) {
            if let Some(made) = integers.remove(name.as_str()) {
                writer.constant(name, form, found, made);
            }
        } else if let Some(found) = scale_of(name, &constants) {
            writer.activation(name, form, &found);
        }
    }
    for (planned, correction) in plan.biases.iter().zip(&corrections) {
        let weight = scale_of(&planned.weight, &constants);
        if let (Some(input), Some(weight)) = (scale_of(&planned.input, &constants), weight) {
            writer.bias(planned, input.scales[0], &weight, correction)?;
        }
    }
    Ok(writer.finish(used_ranges))
}

/// Whether ONNX Runtime's quantizer has a weight's scale grow for a bias.
fn is_fitted_there(weight: &QuantizationParameters) -> bool {
    let signed = matches!(weight.element, DataType::Int8 | DataType::Int16);
    signed && weight.zero_points.iter().all(|&zero_point| zero_point == 0)
}

/// The value whose scale another shares, through any number of steps.
fn source_of<'a>(plan: &'a Plan, name: &'a str) -> &'a str {
    plan.sources.get(name).map_or(name, String::as_str)
}

fn activation_parameters(
    model: &Model,
    plan: &Plan,
    ranges: Ranges<'_>,
) -> Result<
    (
        HashMap<String, QuantizationParameters>,
        BTreeMap<String, Range>,
    ),
    QuantizeError,
> {
    let mut found = HashMap::new();
    let mut used_ranges = BTreeMap::new();
    for (name, form) in &plan.forms {
        if *form != Form::Activation || model.graph.initializers.contains(name) {
            continue;
        }
        let represented = represented(plan, name)?;
        let element = represented.element.data_type();
        let symmetric = represented.is_symmetric(false);
        let (scale, zero_point) = match represented.scale {
            Some(chosen) => chosen,
            None => {
                let range @ Range { min, max } = range(plan, name, represented, ranges)?;
                if let Some(RangeSource::Observed(source)) = plan.ranges.get(name) {
                    used_ranges.insert(source.clone(), range);
                }
                let used = span(element, symmetric, represented.reduce_range);
                represented.scale_and_zero_point(min, max, used, symmetric)
            }
        };
        let one = QuantizationParameters {
            element,
            axis: None,
            scales: vec![scale],
            zero_points: vec![zero_point],
        };
        found.insert(name.clone(), one);
    }
    Ok((found, used_ranges))
}

fn represented<'a>(plan: &'a Plan, name: &str) -> Result<&'a Representation, QuantizeError> {
    let missing = || QuantizeError::RangeMissing {
        value: name.to_string(),
    };
    plan.representations.get(name).ok_or_else(missing)
}

fn range(
    plan: &Plan,
    name: &str,
    represented: &Representation,
    ranges: Ranges<'_>,
) -> Result<Range, QuantizeError> {
    let missing = || QuantizeError::RangeMissing {
        value: name.to_string(),
    };
    let range = match (
        represented.range,
        plan.ranges.get(name).ok_or_else(missing)?,
    ) {
        (Some(chosen), _) => chosen,
        (None, RangeSource::Fixed(min, max)) => Range::new(*min, *max),
        (None, RangeSource::Observed(source)) => {
            ranges.of(source, represented)?.ok_or_else(missing)?
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
    let constant = |(name, form): (&String, &Form)| {
        let tensor = model.graph.initializers.get(name)?;
        let axis = match form {
            Form::Weight(axis) => *axis,
            Form::Activation | Form::Shared(_) => None,
        };
        let weight = matches!(form, Form::Weight(_));
        let made = represented(plan, name)
            .and_then(|represented| Ok(parameters(tensor, axis, represented, weight)?));
        Some(made.map(|made| (name.clone(), made)))
    };
    let forms: Vec<_> = plan.forms.iter().map(|(name, form)| (name, form)).collect();
    // Of several that fail the first is named, on any number of threads.
    let found: Vec<_> = forms.into_par_iter().filter_map(constant).collect();
    found.into_iter().collect()
}

/// Integers of a constant.
pub(super) struct Integers {
    pub(super) tensor: TensorProto,
    /// Where their errors make up for one another: by what factor the mean square of what these add is less.
    pub(super) gained: Option<f64>,
}

/// The integers of every constant; their names are made when they are written.
fn constant_integers<'a>(
    model: &Model,
    plan: &Plan,
    constants: &'a HashMap<String, QuantizationParameters>,
    compensation: Option<&Compensation>,
) -> Result<HashMap<&'a str, Integers>, QuantizeError> {
    let integers = |name: &str, found: &QuantizationParameters, tensor: &TensorProto| {
        if let Some(compensation) = compensation {
            let represented = represented(plan, name)?;
            let symmetric = represented.is_symmetric(true);
            let used = span(found.element, symmetric, represented.reduce_range);
            if let Some((tensor, gained)) = compensation.integers(tensor, name, found, used)? {
                let gained = Some(gained);
                return Ok(Integers { tensor, gained });
            }
        }
        let tensor = quantized(tensor, name, found)?;
        Ok(Integers {
            tensor,
            gained: None,
        })
    };
    let one = |(name, found): (&'a String, &QuantizationParameters)| {
        let tensor = model.graph.initializers.get(name)?;
        let made = integers(name, found, tensor);
        Some(made.map(|made| (name.as_str(), made)))
    };
    let constants: Vec<_> = constants.iter().collect();
    let made: Vec<_> = constants.into_par_iter().filter_map(one).collect();
    made.into_iter().collect()
}
