//! Applies the scheme that the settings name.

use super::awq::{self, ScaledModel};
use super::block_scheme::{MixedChoice, plan_blocks};
use super::bodies::with_bodies;
use super::conform;
use super::dynamic::plan_dynamic;
use super::float16::{brought_near, plan_around_blocks, plan_float16};
use super::gptq::gram_statistics;
use super::mixed_precision::{MixedPrecisionNotes, apply_mixed_precision};
use super::operators::is_onnx_runtime_default;
use super::planned_model::{PlannedModel, RefusedConstants};
use super::settings::target_rules;
use super::settings::{
    ElementType, Format, LayerResolver, Operators, Rounding, Scheme, Settings, without_effect,
    without_meaning,
};
use super::weight_only::plan_weights;
use super::without_samples::in_memory_without;
use super::{
    ActivationRanges, BlockForm, BlockMethod, BlockSettings, DynamicSettings, Float16Settings,
    FloatActivations, Plan, QuantizeError, Quantized, QuantizedTensor, WeightSettings, quantize,
    quantize_blocks, to_integer_operators, vnni_saturation, with_float_weights,
};
use octet_graph::operators::{DynamicForm, Operator};
use octet_graph::{Model, Node};
use octet_onnx::schema::TensorProto;

use octet_stats::{CalibrationStatistics, Method};

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
    apply_learned(model, settings, ranges, &[])
}

/// The model with QuantizeLinear and DequantizeLinear nodes whose constants are then learned.
pub fn before_learning(
    model: &Model,
    settings: &Settings,
    ranges: ActivationRanges<'_>,
) -> Result<Model, QuantizeError> {
    let settings = Settings {
        format: Format::Qdq,
        ..settings.clone()
    };
    Ok(quantize_static(model, &settings, ranges, &[])?.model)
}

/// Like [`apply`], with learned constants in place of those of the same names in the model that
/// [`before_learning`] returns.
pub fn apply_learned(
    model: &Model,
    settings: &Settings,
    ranges: Option<ActivationRanges<'_>>,
    learned: &[TensorProto],
) -> Result<Quantized, QuantizeError> {
    let mut quantized = by_scheme(model, settings, ranges, learned)?;
    quantized.notes.extend(without_effect(settings, model));
    quantized.notes.extend(without_meaning(settings));
    quantized.notes.extend(target_rules::note(settings));
    quantized
        .notes
        .extend(vnni_saturation::note(&quantized.model));
    Ok(quantized)
}

fn by_scheme(
    model: &Model,
    settings: &Settings,
    ranges: Option<ActivationRanges<'_>>,
    learned: &[TensorProto],
) -> Result<Quantized, QuantizeError> {
    match settings.scheme {
        Scheme::Static => {
            let ranges = ranges.ok_or(QuantizeError::NoRanges)?;
            quantize_static(model, settings, ranges, learned)
        }
        Scheme::Blocks if settings.blocks.form == BlockForm::Dequantize => {
            let seen = gram_matrices(model, settings, ranges)?;
            let planned = with_bodies(model, false, &|flat| dequantized(flat, settings, seen))?;
            Ok(planned.0)
        }
        _ => {
            let seen = gram_matrices(model, settings, ranges)?;
            let mut refused = RefusedConstants::with_activations(model, ranges);
            let near = brought_near(model, settings, &mut refused)?;
            let model = near.as_ref().map_or(model, |near| &near.model);
            let mut quantized =
                in_memory_without(refused, &|refused| plan(model, settings, refused, seen))?;
            let notes = near.map(|near| near.notes).unwrap_or_default();
            quantized.notes.splice(0..0, notes);
            Ok(quantized)
        }
    }
}

/// Quantizes a flat model in blocks that DequantizeLinear reads.
fn dequantized(
    model: &Model,
    settings: &Settings,
    seen: Option<&CalibrationStatistics>,
) -> Result<PlannedModel, QuantizeError> {
    let (keep_float, operators) = selected(model, settings)?;
    let operators = operators.as_deref();
    let bits = BlocksOfNodes::new(model, settings, &keep_float, operators)?;
    let of = |node: &Node| bits.of(node);
    let scaled = awq_scaled(model, &of, &keep_float, operators, seen)?;
    let model = scaled.as_ref().map_or(model, |scaled| &scaled.model);
    let mut quantized =
        quantize_blocks(model, &settings.blocks, &of, &keep_float, operators, seen)?;
    bits.mixed.report(model, &mut quantized);
    quantized
        .notes
        .extend(scaled.map(|scaled| scaled.notes).unwrap_or_default());
    Ok((quantized, Vec::new()))
}

/// Plans a model with typed values by a scheme whose constants recipes compute. `seen` has the Gram
/// matrices, if the settings need them.
pub(super) fn plan(
    model: &Model,
    settings: &Settings,
    refused: &RefusedConstants,
    seen: Option<&CalibrationStatistics>,
) -> Result<PlannedModel, QuantizeError> {
    let typed = !settings.keeps_types();
    with_bodies(model, typed, &|flat| {
        plan_flat(flat, settings, refused, seen)
    })
}

fn plan_flat(
    model: &Model,
    settings: &Settings,
    refused: &RefusedConstants,
    seen: Option<&CalibrationStatistics>,
) -> Result<PlannedModel, QuantizeError> {
    let weights = &settings.weights;
    let per_channel = weights.per_channel.unwrap_or(true);
    let (mut keep_float, operators) = selected(model, settings)?;
    match settings.scheme {
        Scheme::Static => Err(QuantizeError::NoRanges),
        Scheme::Dynamic => {
            let dynamic = DynamicSettings {
                weights: dynamic_weights(model, settings)?,
                per_channel,
                reduce_range: weights.reduce_range.unwrap_or(false),
                keep_float,
                operators,
            };
            plan_dynamic(model, &dynamic, refused)
        }
        Scheme::Weights => {
            let weights = WeightSettings {
                element: weights.element.unwrap_or(ElementType::I8),
                symmetric: weights.symmetric,
                reduce_range: weights.reduce_range.unwrap_or(false),
                per_channel,
                keep_float,
                operators,
            };
            plan_weights(model, &weights, refused)
        }
        Scheme::Float16 => {
            if let Some(operators) = operators {
                let nodes = model.graph.nodes().iter();
                let others = nodes.filter(|node| !operators.contains(&node.operator()));
                keep_float.extend(others.map(|node| node.title().to_string()));
            }
            let half = Float16Settings {
                keep_float,
                keep_io: settings.keep_io.clone(),
                ..Float16Settings::default()
            };
            plan_float16(model, &half, refused)
        }
        Scheme::Blocks => {
            let operators = operators.as_deref();
            settings.blocks.check()?;
            let bits = BlocksOfNodes::new(model, settings, &keep_float, operators)?;
            let of = |node: &Node| bits.of(node);
            let scaled = awq_scaled(model, &of, &keep_float, operators, seen)?;
            let model = scaled.as_ref().map_or(model, |scaled| &scaled.model);
            let mut planned = plan_blocks(model, &of, &keep_float, operators, refused, seen)?;
            bits.mixed.report(model, &mut planned.0);
            let notes = scaled.as_ref().map(|scaled| scaled.notes.clone());
            planned.0.notes.extend(notes.unwrap_or_default());
            if settings.blocks.activations == FloatActivations::Source {
                return Ok(planned);
            }
            let half = Float16Settings {
                keep_float,
                keep_io: settings.keep_io.clone(),
                ..Float16Settings::default()
            };
            plan_around_blocks(planned, &half, refused)
        }
    }
}

/// The type of weights of dynamic products: the target's beside a convolution, unless it is set.
fn dynamic_weights(model: &Model, settings: &Settings) -> Result<ElementType, QuantizeError> {
    let target = settings.target;
    let has_convolution = model
        .graph
        .nodes()
        .iter()
        .any(|node| Operator::of(node).dynamic == Some(DynamicForm::Convolution));
    let unsigned = target_rules::of(target).unsigned_products && has_convolution;
    match settings.weights.element {
        Some(ElementType::I8) if unsigned => Err(QuantizeError::SignedProducts { target }),
        Some(element) => Ok(element),
        None if unsigned => Ok(ElementType::U8),
        None => Ok(ElementType::I8),
    }
}

/// The model with AWQ's scales in its constants; `None` if no node has that method, or without
/// samples.
fn awq_scaled(
    model: &Model,
    of: &dyn Fn(&Node) -> BlockSettings,
    keep_float: &[String],
    operators: Option<&[String]>,
    seen: Option<&CalibrationStatistics>,
) -> Result<Option<ScaledModel>, QuantizeError> {
    let mut nodes = model.graph.nodes().iter();
    match seen.filter(|_| nodes.any(|node| of(node).method == BlockMethod::Awq)) {
        Some(seen) => {
            let is_quantized = awq::selection(keep_float, operators);
            awq::scaled(model, of, &is_quantized, seen).map(Some)
        }
        None => Ok(None),
    }
}

/// The blocks of each node: its settings, and more bits for those that count most.
struct BlocksOfNodes<'a> {
    layers: LayerResolver<'a>,
    mixed: MixedChoice,
}

impl<'a> BlocksOfNodes<'a> {
    fn new(
        model: &Model,
        settings: &'a Settings,
        keep_float: &[String],
        operators: Option<&[String]>,
    ) -> Result<BlocksOfNodes<'a>, QuantizeError> {
        let layers = LayerResolver::new(settings, model)?;
        let own = |node: &Node| layers.resolve(node).blocks;
        let mixed = MixedChoice::new(model, &settings.blocks, &own, keep_float, operators)?;
        Ok(BlocksOfNodes { layers, mixed })
    }

    fn of(&self, node: &Node) -> BlockSettings {
        self.mixed.apply(node, self.layers.resolve(node).blocks)
    }
}

/// The Gram matrices, if the settings need them.
fn gram_matrices<'a>(
    model: &Model,
    settings: &Settings,
    ranges: Option<ActivationRanges<'a>>,
) -> Result<Option<&'a CalibrationStatistics>, QuantizeError> {
    match settings.needs_gram_matrices() {
        true => gram_statistics(model, ranges),
        false => Ok(None),
    }
}

fn quantize_static(
    model: &Model,
    settings: &Settings,
    ranges: ActivationRanges<'_>,
    learned: &[TensorProto],
) -> Result<Quantized, QuantizeError> {
    let mut plan = Plan::new(model, settings)?;
    let calibrated = plan.find_ranges(ranges)?;
    let found = plan.found_ranges(&calibrated);
    let method = ranges.method(settings);
    let auto = method == Some(Method::Auto);
    plan.correct_biases = settings.bias_correction.unwrap_or(auto);
    plan.rounding = settings.rounding;
    plan.keep_chosen_float(settings);
    let guarded = apply_mixed_precision(model, settings, &mut plan, &calibrated, ranges)?;
    let pooled_notes = plan.keep_pooled_float(model);
    plan.share_concat_scales(model, &calibrated);
    let mut quantized = quantize(model, &plan, ranges)?;
    for (value, range) in found {
        quantized.ranges.entry(value).or_insert(range);
    }
    for constant in learned {
        quantized.model.graph.initializers.insert(constant.clone());
    }
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
    let rules = target_rules::of(settings.target);
    if rules.adds_alike {
        conform::read_floats_beside_floats(&mut quantized.model);
    }
    if rules.one_scale {
        conform::give_one_scale(&mut quantized.model);
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
