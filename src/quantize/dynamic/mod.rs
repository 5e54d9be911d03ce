//! Dynamic quantization: integer weights in the file, activations measured as the model runs.
//!
//! A DynamicQuantizeLinear before each product finds scale and zero point of what comes in, so no
//! samples are needed. Integers, arithmetic and names are those of ONNX Runtime's `quantize_dynamic`.
//! Two things it does not do: with a scale for each channel, signed weights of convolutions have them
//! too, and those of stacks of matrices in a form that its kernels accept.

mod conv;
mod lstm;
mod matmul;

pub(super) use matmul::plain_gemm;

use serde::{Deserialize, Serialize};

use super::integers::{Form, Quantity, parameters};
use super::operators::{EMBEDDING, float_reason};
use super::rewrite::{ConstantWeight, Rewriter, Stop};
use super::settings::ElementType;
use super::weight_only::{RECURRENT, Written, dequantized};
use super::weights::quantized;
use super::{QuantizeError, Quantized, embedding, gather};
use crate::graph::Model;
use crate::onnx::schema::{DataType, NodeProto, TensorProto};

/// How a model is quantized dynamically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicSettings {
    /// The integer type of weights (those of an LSTM are always signed).
    pub weights: ElementType,
    /// One scale for each output channel of a weight, instead of one for all.
    pub per_channel: bool,
    /// Weights in 7 bits, for processors whose 8-bit products overflow.
    pub reduce_range: bool,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Only these operators are quantized; all that can be where this is absent.
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

/// The dynamically quantized form of a prepared model whose values all have their types.
pub fn quantize_dynamic(
    model: &Model,
    settings: &DynamicSettings,
) -> Result<Quantized, QuantizeError> {
    if !matches!(settings.weights, ElementType::I8 | ElementType::U8) {
        return Err(QuantizeError::Setting {
            setting: "weights",
            given: settings.weights.data_type().name().into(),
            wanted: "i8 or u8, which dynamic products take",
        });
    }
    let rewriter = Rewriter::new(model, &settings.keep_float, settings.operators.as_deref())?;
    let dynamic = Dynamic { settings };
    let mut written = Written::new();
    rewriter.run(|graph, node| match node.operator().as_str() {
        "MatMul" => dynamic.matmul(graph, node),
        "Gemm" => dynamic.gemm(graph, node),
        "Conv" => dynamic.conv(graph, node),
        "LSTM" => dynamic.lstm(graph, node),
        // No runtime has a dynamic form of these: their weights are integers in the file only.
        "GRU" | "RNN" => {
            let axis = Some(1).filter(|_| settings.per_channel);
            let form = Form {
                element: ElementType::I8,
                symmetric: true,
                ..dynamic.form(axis)
            };
            dequantized(graph, node, &RECURRENT, form, &mut written)
        }
        "Gather" => gather::rewrite(graph, node, TABLE),
        EMBEDDING => embedding::rewrite(graph, node, TABLE),
        operator => Err(reason(operator).into()),
    })
}

/// Tables that rows are looked up in have the integers of activations, as in ONNX Runtime.
const TABLE: Form = Form {
    element: ElementType::U8,
    axis: None,
    symmetric: false,
    reduce_range: false,
};

/// Why nodes of an operator stay float under this scheme.
fn reason(operator: &str) -> &'static str {
    match operator {
        "ConvTranspose" => "ONNX has no integer form of it",
        _ => float_reason(operator)
            .unwrap_or("only products with a weight are quantized dynamically"),
    }
}

struct Dynamic<'s> {
    settings: &'s DynamicSettings,
}

impl Dynamic<'_> {
    /// The form weights of the settings have, with channels along `axis` where there is one.
    fn form(&self, axis: Option<usize>) -> Form {
        let element = self.settings.weights;
        Form {
            element,
            axis: axis.filter(|_| self.settings.per_channel),
            symmetric: element == ElementType::I8,
            reduce_range: self.settings.reduce_range,
        }
    }

    /// The integers of a weight as it lies, with a scale for each channel along `axis`.
    fn weight(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
        axis: Option<usize>,
    ) -> Result<Quantity, Stop> {
        graph.in_original_layout(weight, "plain", self.form(axis))
    }

    /// The integers of a weight where ONNX Runtime's operator takes one zero point only: signed weights,
    /// whose zero points are all 0, can have a scale for each channel all the same, in a shape that
    /// lies beside the channels of what the operator makes.
    fn around_zero(
        &self,
        graph: &mut Rewriter,
        weight: &ConstantWeight,
        axis: usize,
        beside: &[usize],
    ) -> Result<Quantity, Stop> {
        let form = self.form(Some(axis));
        if form.axis.is_none() || form.element != ElementType::I8 {
            return self.weight(graph, weight, None);
        }
        graph.shared(weight.name, "around zero", |graph| {
            let found = parameters(weight.tensor, form)?;
            let made = graph.fresh_names(weight.name);
            graph.constant(quantized(weight.tensor, &made.integers, &found)?);
            graph.constant(TensorProto::from_f32(&made.scale, beside, &found.scales));
            graph.constant(TensorProto::from_i8(&made.zero_point, &[], &[0]));
            graph.report_weight(weight.name, &found);
            Ok(made)
        })
    }
}

/// The integers of an activation, measured as it is made: one node serves all that read the value.
fn activation(graph: &mut Rewriter, name: &str) -> Result<Quantity, Stop> {
    graph.shared(name, "activation", |graph| {
        let made = graph.fresh_names(name);
        let title = graph.fresh(&format!("{name}_QuantizeLinear"));
        let outputs = [&made.integers, &made.scale, &made.zero_point].map(String::as_str);
        graph.push(NodeProto::new(
            "DynamicQuantizeLinear",
            &title,
            &[name],
            &outputs,
        ));
        Ok(made)
    })
}

/// An integer operator on a measured activation and a weight; gives its sums and the activation's scale.
fn product(
    graph: &mut Rewriter,
    node: NodeProto,
    input: &str,
    weights: &Quantity,
    output: &str,
) -> Result<(String, String), Stop> {
    let activation = activation(graph, input)?;
    let sums = graph.fresh(&format!("{output}_output_quantized"));
    graph.push(NodeProto {
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

/// The 32-bit sums of an integer product as floats, scaled: `output` = float(`sums`) · x scale · w scale.
fn scaled(graph: &mut Rewriter, title: &str, sums: &str, scales: [&str; 2], output: &str) {
    let cast = graph.fresh(&format!("{sums}_cast_output"));
    let cast_title = graph.fresh(&format!("{sums}_cast"));
    graph.push(NodeProto::cast(&cast_title, sums, &cast, DataType::Float));
    let product_title = graph.fresh(&format!("{title}_scales_mul"));
    let product = graph.fresh(&format!("{product_title}:0"));
    graph.push(NodeProto::new("Mul", &product_title, &scales, &[&product]));
    let title = graph.fresh(&format!("{title}_output_scale_mul"));
    graph.push(NodeProto::new("Mul", &title, &[&cast, &product], &[output]));
}
