//! Dynamic quantization: integer weights in the file, activations quantized at each inference.
//!
//! A DynamicQuantizeLinear before each product computes scale and zero point of the activation, so
//! no samples are needed. Integers, arithmetic and names are those of ONNX Runtime's
//! `quantize_dynamic`. Two things go beyond it. With per-channel scales, signed convolution weights
//! have one per channel too. Stacks of matrices get per-channel scales in a shape that its kernels
//! accept.

mod conv;
mod lstm;
mod matmul;

pub(super) use matmul::plain_gemm;

use serde::{Deserialize, Serialize};

use super::integer_format::IntegerFormat;
use super::operators::{EMBEDDING, float_reason};
use super::planned_model::{PlannedModel, RefusedConstants};
use super::quantized_names::QuantizedNames;
use super::recipe::IntegersPlan;
use super::rewrite::{ConstantWeight, NotQuantized, Rewriter};
use super::settings::{ElementType, UnsupportedSetting};
use super::stays_float::StaysFloat;
use super::weight_only::{DequantizedWeights, read_dequantized};
use super::{QuantizeError, embedding, gather};
use octet_graph::operators::{DynamicForm, Operator};
use octet_graph::{Model, Node};
use octet_onnx::schema::DataType;

/// The settings of dynamic quantization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicSettings {
    /// The integer type of weights; an LSTM's are always signed.
    pub weights: ElementType,
    /// One scale for each output channel of a weight, instead of one for all.
    pub per_channel: bool,
    /// 7-bit weights, for processors whose sums of 8-bit products saturate.
    pub reduce_range: bool,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Only these operators are quantized; by default all that can be.
    pub operators: Option<Vec<String>>,
}

impl Default for DynamicSettings {
    fn default() -> DynamicSettings {
        DynamicSettings {
            weights: ElementType::I8,
            per_channel: true,
            reduce_range: false,
            keep_float: Vec::new(),
            operators: None,
        }
    }
}

/// Plans a model with typed values. The recipes compute its constants.
pub(super) fn plan_dynamic(
    model: &Model,
    settings: &DynamicSettings,
    refused: &RefusedConstants,
) -> Result<PlannedModel, QuantizeError> {
    if !matches!(settings.weights, ElementType::I8 | ElementType::U8) {
        return Err(UnsupportedSetting::DynamicWeights(settings.weights.data_type()).into());
    }
    let operators = settings.operators.as_deref();
    let rewriter = Rewriter::new(model, &settings.keep_float, operators, refused)?;
    let dynamic = Dynamic { settings };
    let mut written = DequantizedWeights::new();
    rewriter.run(|graph, node| {
        let operator = Operator::of(node);
        match operator.dynamic {
            Some(DynamicForm::MatMul) => dynamic.matmul(graph, node),
            Some(DynamicForm::Gemm) => dynamic.gemm(graph, node),
            Some(DynamicForm::Convolution) => dynamic.conv(graph, node),
            Some(DynamicForm::Lstm) => dynamic.lstm(graph, node),
            Some(DynamicForm::WeightsOnly) => {
                let axis = Some(1).filter(|_| settings.per_channel);
                let form = IntegerFormat {
                    element: ElementType::I8,
                    symmetric: true,
                    ..dynamic.form(axis)
                };
                read_dequantized(graph, node, operator.weight_slots, form, &mut written)
            }
            None => match node.operator().as_str() {
                "Gather" => gather::rewrite(graph, node, TABLE),
                EMBEDDING => embedding::rewrite(graph, node, TABLE),
                name => Err(reason(name).into()),
            },
        }
    })
}

/// Embedding tables have the type of activations, as in ONNX Runtime.
const TABLE: IntegerFormat = IntegerFormat {
    element: ElementType::U8,
    axis: None,
    symmetric: false,
    reduce_range: false,
};

/// The reason why nodes of an operator stay float in this scheme.
fn reason(operator: &str) -> StaysFloat {
    match operator {
        "ConvTranspose" => StaysFloat::NoIntegerOperator,
        _ => float_reason(operator).map_or(StaysFloat::NotDynamic, StaysFloat::OfOperator),
    }
}

struct Dynamic<'s> {
    settings: &'s DynamicSettings,
}

impl Dynamic<'_> {
    /// The integer format of weights, with a scale per channel along `axis`, if given.
    fn form(&self, axis: Option<usize>) -> IntegerFormat {
        let element = self.settings.weights;
        IntegerFormat {
            element,
            axis: axis.filter(|_| self.settings.per_channel),
            symmetric: element == ElementType::I8,
            reduce_range: self.settings.reduce_range,
        }
    }

    /// Writes a weight in its original layout, with a scale per channel along `axis`.
    fn weight(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
        axis: Option<usize>,
    ) -> Result<QuantizedNames, NotQuantized> {
        graph.in_original_layout(weight, "plain", self.form(axis))
    }

    /// Writes a weight for an operator of ONNX Runtime that takes a single zero point.
    ///
    /// The zero points of signed weights are all 0, so they can still have a scale per channel. The
    /// scales get the shape `beside`, which broadcasts along the output's channels.
    fn around_zero(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
        axis: usize,
        beside: &[usize],
    ) -> Result<QuantizedNames, NotQuantized> {
        let form = self.form(Some(axis));
        if form.axis.is_none() || form.element != ElementType::I8 {
            return self.weight(graph, weight, None);
        }
        graph.shared(weight.name, "around zero", |graph| {
            let plan = IntegersPlan {
                scales: beside.to_vec(),
                one_zero_point: true,
                ..IntegersPlan::in_order(form, &weight.shape)
            };
            graph.plan_integers(weight, plan)
        })
    }
}

/// Quantizes an activation at run time. All readers of the value share one node.
fn activation(graph: &mut Rewriter, name: &str) -> Result<QuantizedNames, NotQuantized> {
    graph.shared(name, "activation", |graph| {
        let names = graph.fresh_names(name);
        let title = graph.fresh(&format!("{name}_QuantizeLinear"));
        let outputs = [&names.integers, &names.scale, &names.zero_point].map(String::as_str);
        graph.push(Node::new(
            "DynamicQuantizeLinear",
            &title,
            &[name],
            &outputs,
        ));
        Ok(names)
    })
}

/// Adds an integer operator on a quantized activation and a weight. Returns the names of its
/// accumulators and of the activation's scale.
fn product(
    graph: &mut Rewriter,
    node: Node,
    input: &str,
    weights: &QuantizedNames,
    output: &str,
) -> Result<(String, String), NotQuantized> {
    let activation = activation(graph, input)?;
    let sums = graph.fresh(&format!("{output}_output_quantized"));
    graph.push(Node {
        input: vec![
            activation.integers,
            weights.integers.clone(),
            activation.zero_point,
            weights.zero_point.clone(),
        ],
        output: vec![sums.clone()],
        ..node
    });
    Ok((sums, activation.scale))
}

/// Dequantizes int32 accumulators: `output` = float(`sums`) · activation scale · weight scale.
fn scaled(graph: &mut Rewriter, title: &str, sums: &str, scales: [&str; 2], output: &str) {
    let cast = graph.fresh(&format!("{sums}_cast_output"));
    let cast_title = graph.fresh(&format!("{sums}_cast"));
    graph.push(Node::cast(&cast_title, sums, &cast, DataType::Float));
    let product_title = graph.fresh(&format!("{title}_scales_mul"));
    let product = graph.fresh(&format!("{product_title}:0"));
    graph.push(Node::new("Mul", &product_title, &scales, &[&product]));
    let title = graph.fresh(&format!("{title}_output_scale_mul"));
    graph.push(Node::new("Mul", &title, &[&cast, &product], &[output]));
}
