//! Decomposition of products: QLinearConv, QGemm, and ONNX Runtime's fused dynamic products.

use super::channels_last::{channels_first, is_channels_last};
use super::{Decomposer, Decomposition};
use octet_graph::{Model, Names, Node};
use octet_onnx::schema::{DataType, TensorProto};

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["QLinearConv"],
        rewrite: Decomposer::convolution,
    },
    Decomposition {
        operators: &["com.microsoft::QLinearConv"],
        rewrite: |to, node, model| match is_channels_last(node) {
            true => to.channels_last(node, model),
            false => to.convolution(&channels_first(node), model),
        },
    },
    Decomposition {
        operators: &["QLinearMatMul"],
        rewrite: |to, node, _| to.quantized_operator(node, "MatMul", &[0, 3], 6, Some(1)),
    },
    Decomposition {
        operators: &["com.microsoft::QGemm"],
        rewrite: Decomposer::gemm,
    },
    Decomposition {
        operators: &[
            "com.microsoft::DynamicQuantizeMatMul",
            "com.microsoft::MatMulIntegerToFloat",
        ],
        rewrite: |to, node, _| to.dynamic_product(node),
    },
];

/// Operators of ONNX Runtime's domain that become integer operators.
pub(super) const DYNAMIC: [&str; 2] = ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"];

impl Decomposer {
    fn convolution(&mut self, node: &Node, model: &Model) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (scale, zero_point) = (slot(6)?, slot(7).unwrap_or_default());
        let (of_input, of_weight) = (slot(1)?, slot(4)?);
        let bias = match slot(8) {
            None => None,
            Some(bias) => Some((bias, self.accumulator(of_input, of_weight, 1.0, model)?)),
        };
        let input = self.dequantized(slot(0)?, of_input, slot(2).unwrap_or_default(), 1);
        let weight = self.dequantized(slot(3)?, of_weight, slot(5).unwrap_or_default(), 0);
        let mut inputs = vec![input, weight];
        if let Some((bias, scale)) = bias {
            inputs.push(self.dequantized(bias, &scale, "", 0));
        }
        self.push_quantized(node, "Conv", inputs, (scale, zero_point))
    }

    /// Adds a constant with the scale of a product's accumulator.
    fn accumulator(
        &mut self,
        input: &str,
        weight: &str,
        factor: f32,
        model: &Model,
    ) -> Option<String> {
        let scales = |name: &str| model.graph.initializers.get(name)?.to_f32().ok();
        let input = *scales(input)?.first()?;
        let result: Vec<f32> = scales(weight)?.iter().map(|w| input * w * factor).collect();
        let name = self.steps.names.fresh(&format!("{weight}_of_sums"));
        let shape: &[usize] = if result.len() == 1 {
            &[]
        } else {
            &[result.len()]
        };
        self.steps
            .constants
            .push(TensorProto::from_f32(&name, shape, &result));
        Some(name)
    }

    /// QGemm adds its bias before it applies alpha; Gemm adds it afterwards.
    fn gemm(&mut self, node: &Node, model: &Model) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (of_input, of_weight) = (slot(1)?, slot(4)?);
        let alpha = node.float("alpha").unwrap_or(1.0);
        let bias = match slot(6) {
            None => None,
            Some(bias) => Some((bias, self.accumulator(of_input, of_weight, alpha, model)?)),
        };
        let transposed = node.int("transB").unwrap_or(0) != 0;
        let input = self.dequantized(slot(0)?, of_input, slot(2).unwrap_or_default(), 1);
        let zero_point = slot(5).unwrap_or_default();
        let weight = self.dequantized(slot(3)?, of_weight, zero_point, i64::from(!transposed));
        let mut inputs = vec![input, weight];
        if let Some((bias, scale)) = bias {
            // The columns are the last axis: [N] or [1, N].
            let axes = model
                .graph
                .initializers
                .get(bias)
                .map_or(1, |t| t.dims.len());
            let last = axes.saturating_sub(1) as i64;
            inputs.push(self.dequantized(bias, &scale, "", last));
        }
        if let Some(scale) = slot(7) {
            return self.push_quantized(node, "Gemm", inputs, (scale, slot(8).unwrap_or_default()));
        }
        self.steps.nodes.push(Node {
            op_type: "Gemm".into(),
            domain: None,
            input: inputs,
            ..node.clone()
        });
        Some(())
    }

    /// Decomposes ONNX Runtime's fused dynamic products: an optional DynamicQuantizeLinear,
    /// MatMulInteger, scaling of the accumulators and a bias.
    fn dynamic_product(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at).unwrap_or_default().to_owned();
        let (title, output) = (node.title().to_owned(), node.output.first()?.clone());
        let measures = node.op_type == DYNAMIC[0];
        let (integers, scale, zero_point, behind) = match measures {
            true => {
                let result = ["integers", "scale", "zero_point"]
                    .map(|word| self.steps.names.fresh(&format!("{output}_{word}")));
                let [integers, scale, zero_point] = result.each_ref().map(String::as_str);
                let name = self
                    .steps
                    .names
                    .fresh(&format!("{title}_DynamicQuantizeLinear"));
                self.steps.nodes.push(Node::new(
                    "DynamicQuantizeLinear",
                    &name,
                    &[node.input_at(0)?],
                    &[integers, scale, zero_point],
                ));
                let [integers, scale, zero_point] = result;
                (integers, scale, zero_point, [slot(2), slot(3), slot(4)])
            }
            false => (slot(0), slot(2), slot(4), [slot(3), slot(5), slot(6)]),
        };
        let [weight_scale, weight_zero, bias] = behind;
        let mut inputs = vec![integers, slot(1), zero_point, weight_zero];
        while inputs.last().is_some_and(String::is_empty) {
            inputs.pop();
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let value = |names: &mut Names, word: &str| names.fresh(&format!("{output}_{word}"));
        let [sums, reals, factor] =
            ["sums", "reals", "factor"].map(|word| value(&mut self.steps.names, word));
        let unbiased = match bias.as_str() {
            "" => output.clone(),
            _ => value(&mut self.steps.names, "unbiased"),
        };
        self.steps.nodes.extend([
            Node::new("MatMulInteger", &title, &inputs, &[&sums]),
            Node::cast(&reals, &sums, &reals, DataType::Float),
            Node::new("Mul", &factor, &[&scale, &weight_scale], &[&factor]),
            Node::new("Mul", &unbiased, &[&reals, &factor], &[&unbiased]),
        ]);
        if !bias.is_empty() {
            let name = self.steps.names.fresh(&format!("{title}_Add"));
            self.steps
                .nodes
                .push(Node::new("Add", &name, &[&unbiased, &bias], &[&output]));
        }
        Some(())
    }
}
