//! Applies the scheme that the settings name.

use super::block_scheme::{MixedChoice, plan_blocks};
use super::gptq::gram_statistics;
use super::mixed_precision::{MixedPrecisionNotes, apply_mixed_precision};
use super::operators::is_onnx_runtime_default;
use super::recipe::PlannedRecipe;
use super::settings::{
    ElementType, Format, LayerResolver, Operators, Rounding, Scheme, Settings, without_effect,
    without_meaning,
};
use super::{
    ActivationRanges, DynamicSettings, Float16Settings, Plan, QuantizeError, Quantized,
    QuantizedTensor, WeightSettings, quantize, quantize_blocks, quantize_dynamic, quantize_float16,
    quantize_weights, to_integer_operators, vnni_saturation, with_float_weights,
};
use std::collections::HashMap;

use octet_graph::{Model, Node};
use octet_stats::Method;

/// The note for bias correction without statistics.
const NO_MEANS: &str = "the biases are not corrected: imported ranges lack the channel means, which a calibration \
                        collects";

/// The note for GPTQ without a weight to round.
const NO_GPTQ_WEIGHTS: &str = "the rounding gptq had no effect: it applies to constant weights of Conv, Gemm and MatMul that no \
                               other node reads, and the model has none with rounding errors to correct";

/// Quantizes a prepared model, whose values all have their types, by the settings. `ranges` are
/// required where the scheme needs samples.
pub fn apply(
    model: &Model,
    settings: &Settings,
    ranges: Option<ActivationRanges<'_>>,
) -> Result<Quantized, QuantizeError> {
    let mut quantized = by_scheme(model, settings, ranges)?;
    quantized.notes.extend(without_effect(settings, model));
    quantized.notes.extend(without_meaning(settings));
    quantized
        .notes
        .extend(vnni_saturation::note(&quantized.model));
    Ok(quantized)
}

/// Quantizes a model whose large constants are still in files, by a scheme that needs no samples.
/// The recipes compute the constants of the result. The graph is the file's own, without any
/// preparation.
pub fn plan_streamed(
    model: &Model,
    settings: &Settings,
) -> Result<(Quantized, Vec<PlannedRecipe>), QuantizeError> {
    if settings.scheme != Scheme::Blocks {
        return Err(QuantizeError::NotStreamed);
    }
    let (keep_float, operators) = selected(model, settings)?;
    let layers = LayerResolver::new(settings, model)?;
    let own = |node: &Node| layers.resolve(node).blocks;
    let operators = operators.as_deref();
    let mixed = MixedChoice::new(model, &settings.blocks, &own, &keep_float, operators)?;
    let of = |node: &Node| mixed.apply(node, own(node));
    let (mut quantized, recipes) =
        plan_blocks(model, &of, &keep_float, operators, &HashMap::new(), None)?;
    mixed.report(model, &mut quantized);
    quantized.notes.extend(without_effect(settings, model));
    quantized.notes.extend(without_meaning(settings));
    Ok((quantized, recipes))
}

fn by_scheme(
    model: &Model,
    settings: &Settings,
    ranges: Option<ActivationRanges<'_>>,
) -> Result<Quantized, QuantizeError> {
    let weights = &settings.weights;
    let per_channel = weights.per_channel.unwrap_or(true);
    match settings.scheme {
        Scheme::Static => quantize_static(model, settings, ranges.ok_or(QuantizeError::NoRanges)?),
        Scheme::Dynamic => {
            let (keep_float, operators) = selected(model, settings)?;
            let dynamic = DynamicSettings {
                weights: weights.element.unwrap_or(ElementType::I8),
                per_channel,
                reduce_range: weights.reduce_range.unwrap_or(false),
                keep_float,
                operators,
            };
            quantize_dynamic(model, &dynamic)
        }
        Scheme::Weights => {
            let (keep_float, operators) = selected(model, settings)?;
            let weights = WeightSettings {
                element: weights.element.unwrap_or(ElementType::I8),
                symmetric: weights.symmetric,
                reduce_range: weights.reduce_range.unwrap_or(false),
                per_channel,
                keep_float,
                operators,
            };
            quantize_weights(model, &weights)
        }
        Scheme::Float16 => {
            let (mut keep_float, operators) = selected(model, settings)?;
            if let Some(operators) = operators {
                let nodes = model.graph.nodes().iter();
                let others = nodes.filter(|node| !operators.contains(&node.operator()));
                keep_float.extend(others.map(|node| node.title().to_string()));
            }
            let half = Float16Settings {
                keep_float,
                keep_io: settings.keep_io,
                ..Float16Settings::default()
            };
            quantize_float16(model, &half)
        }
        Scheme::Blocks => {
            let (keep_float, operators) = selected(model, settings)?;
            let seen = match settings.needs_gram_matrices() {
                true => gram_statistics(model, ranges)?,
                false => None,
            };
            let layers = LayerResolver::new(settings, model)?;
            let (blocks, operators) = (&settings.blocks, operators.as_deref());
            let own = |node: &Node| layers.resolve(node).blocks;
            let mixed = MixedChoice::new(model, blocks, &own, &keep_float, operators)?;
            let of = |node: &Node| mixed.apply(node, own(node));
            let mut quantized = quantize_blocks(model, blocks, &of, &keep_float, operators, seen)?;
            mixed.report(model, &mut quantized);
            Ok(quantized)
        }
    }
}

fn quantize_static(
    model: &Model,
    settings: &Settings,
    ranges: ActivationRanges<'_>,
) -> Result<Quantized, QuantizeError> {
    let mut plan = Plan::new(model, settings)?;
    let calibrated = plan.find_ranges(ranges)?;
    let method = ranges.method(settings);
    let auto = method == Some(Method::Auto);
    plan.correct_biases = settings.bias_correction.unwrap_or(auto);
    plan.rounding = settings.rounding;
    let guarded = apply_mixed_precision(model, settings, &mut plan, &calibrated, ranges)?;
    let pooled_notes = plan.keep_pooled_float(model);
    plan.share_concat_scales(model, &calibrated);
    let mut quantized = quantize(model, &plan, ranges)?;
    quantized.guarded = guarded.protected.len();
    let MixedPrecisionNotes {
        protected,
        refined,
        declined,
    } = guarded;
    let notes = protected.into_iter().chain(refined).chain(declined);
    quantized.notes.splice(0..0, notes);
    quantized
        .notes
        .extend(plan.ignored_settings(model, settings));
    quantized.notes.extend(pooled_notes);
    if method.is_none() && plan.correct_biases {
        quantized.notes.push(NO_MEANS.into());
    }
    let compensated = |tensor: &QuantizedTensor| tensor.compensated.is_some();
    if plan.rounding == Rounding::Gptq && !quantized.tensors.iter().any(compensated) {
        quantized.notes.push(NO_GPTQ_WEIGHTS.into());
    }
    match settings.format {
        Format::Qdq => {}
        Format::QOperator => quantized.model = to_integer_operators(&quantized.model)?,
        Format::Simulated => quantized.model = with_float_weights(&quantized.model, model)?,
    }
    Ok(quantized)
}

/// The nodes that stay float, and the operators to quantize; `None` for all.
fn selected(
    model: &Model,
    settings: &Settings,
) -> Result<(Vec<String>, Option<Vec<String>>), QuantizeError> {
    let layers = LayerResolver::new(settings, model)?;
    let nodes = model.graph.nodes();
    let float = nodes.iter().filter(|node| layers.resolve(node).float);
    let keep_float = float.map(|node| node.title().to_string()).collect();
    let operators = match &settings.operators {
        Operators::All => None,
        Operators::Only(wanted) => Some(wanted.clone()),
        Operators::OnnxRuntime => {
            let all = nodes.iter().map(|node| node.operator());
            Some(
                all.filter(|operator| is_onnx_runtime_default(operator))
                    .collect(),
            )
        }
    };
    Ok((keep_float, operators))
}
