//! Activations of ONNX Runtime's optimizer: the GELU variants, and those fused into a Conv or Gemm.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use super::Operator;
use super::Property::{Activation, WideActivation};
use super::decomposer::FusedOperatorDecomposer;
use crate::{Attribute, Node};

/// The first opset with the Gelu operator.
const OPSET_WITH_GELU: i64 = 20;

/// Default factor in the sigmoid of QuickGelu.
const QUICK_GELU_ALPHA: f32 = 1.702;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::microsoft("BiasGelu")
        .with(&[WideActivation])
        .requires(2)
        .fused(|to, node| biased(to, node, false)),
    Operator::microsoft("BiasSplitGelu").with(&[WideActivation]),
    Operator::microsoft("FastGelu")
        .with(&[Activation])
        .fused(|to, node| biased(to, node, true)),
    Operator::microsoft("Gelu")
        .with(&[Activation])
        .fused(|to, node| {
            to.gelu(node.input_at(0)?, node.title(), node.output.first()?, false);
            Some(())
        }),
    Operator::microsoft("QuickGelu")
        .with(&[Activation])
        .fused(|to, node| to.sigmoid_gate(node, QUICK_GELU_ALPHA)),
];

/// GELU of the sum of a value and an optional bias.
fn biased(to: &mut FusedOperatorDecomposer, node: &Node, approximate: bool) -> Option<()> {
    let (first, title) = (node.input_at(0)?, node.title());
    let sum = match node.input_at(1) {
        Some(bias) => to.steps.step("Add", &[first, bias], title, "biased"),
        None => first.to_owned(),
    };
    to.gelu(&sum, title, node.output.first()?, approximate);
    Some(())
}

impl FusedOperatorDecomposer<'_> {
    /// A Conv or Gemm, an optional addend, and the fused activation.
    pub(super) fn fused_activation(&mut self, node: &Node, operator: &str) -> Option<()> {
        let (activation, attributes, limits) = activation(node)?;
        let title = node.title();
        let output = node.output.first()?;
        let mut plain = node.clone();
        let fused = plain.attributes.iter().map(|a| a.name.clone());
        let fused: Vec<String> = fused.filter(|n| n.starts_with("activation")).collect();
        for name in fused {
            plain.take(&name);
        }
        plain.op_type = operator.to_owned();
        plain.domain = None;
        plain.input.truncate(3);
        let product = self.steps.names.fresh(&format!("{title}.product"));
        plain.output = vec![product.clone()];
        self.steps.nodes.push(plain);
        let added = node.input_at(3);
        let sum = match added {
            Some(added) => self.steps.step("Add", &[&product, added], title, "sum"),
            None => product,
        };
        let limits = limits.into_iter();
        let limits: Vec<String> = limits
            .map(|limit| self.steps.number(title, limit))
            .collect();
        let mut inputs = vec![sum.as_str()];
        inputs.extend(limits.iter().map(String::as_str));
        let name = format!("{title}.{}", activation.to_lowercase());
        let name = self.steps.names.fresh(&name);
        self.steps
            .last(activation, &inputs, &name, output, attributes);
        Some(())
    }

    /// x · (1 + erf(x / √2)) / 2, or its approximation x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) /
    /// 2.
    fn gelu(&mut self, x: &str, title: &str, output: &str, approximate: bool) {
        if self.opset >= OPSET_WITH_GELU {
            let how = if approximate { "tanh" } else { "none" };
            let how = Attribute::text("approximate", how);
            return self.steps.last("Gelu", &[x], title, output, vec![how]);
        }
        let steps = &mut self.steps;
        let (one, half) = (steps.number(title, 1.0), steps.number(title, 0.5));
        let curve = if approximate {
            let [cubes, scale] = [0.044715, FRAC_2_SQRT_PI * FRAC_1_SQRT_2];
            let [cubes, scale] = [cubes, scale].map(|number| steps.number(title, number));
            let square = steps.step("Mul", &[x, x], title, "square");
            let cube = steps.step("Mul", &[&square, x], title, "cube");
            let part = steps.step("Mul", &[&cube, &cubes], title, "part");
            let sum = steps.step("Add", &[x, &part], title, "sum");
            let scaled = steps.step("Mul", &[&sum, &scale], title, "scaled");
            steps.step("Tanh", &[&scaled], title, "tanh")
        } else {
            let root = steps.number(title, SQRT_2);
            let scaled = steps.step("Div", &[x, &root], title, "scaled");
            steps.step("Erf", &[&scaled], title, "erf")
        };
        let raised = steps.step("Add", &[&curve, &one], title, "raised");
        let product = steps.step("Mul", &[x, &raised], title, "product");
        self.steps
            .last("Mul", &[&product, &half], title, output, Vec::new());
    }

    /// x · sigmoid(α·x); `usual` is the default of α.
    pub(super) fn sigmoid_gate(&mut self, node: &Node, usual: f32) -> Option<()> {
        let (x, output) = (node.input_at(0)?, node.output.first()?);
        let (alpha, title) = (node.float("alpha").unwrap_or(usual), node.title());
        let mut gate = x.to_owned();
        if alpha != 1.0 {
            let alpha = self.steps.number(title, alpha);
            gate = self.steps.step("Mul", &[x, &alpha], title, "scaled");
        }
        let gate = self.steps.step("Sigmoid", &[&gate], title, "sigmoid");
        self.steps
            .last("Mul", &[x, &gate], title, output, Vec::new());
        Some(())
    }
}

/// The fused activation: its operator, its attributes and its further inputs.
fn activation(node: &Node) -> Option<(&'static str, Vec<Attribute>, Vec<f32>)> {
    let listed = node.attribute("activation_params").map(|a| a.as_floats());
    let parameter = |place: usize, name: &str| match listed {
        Some(listed) => listed.get(place).copied(),
        None => node.float(name),
    };
    let [first, second] =
        [(0, "activation_alpha"), (1, "activation_beta")].map(|(at, name)| parameter(at, name));
    let float = |name, value: Option<f32>| value.map(|value| Attribute::float(name, value));
    let with = |attributes: [Option<Attribute>; 2]| attributes.into_iter().flatten().collect();
    Some(match node.text("activation")? {
        "Relu" => ("Relu", Vec::new(), Vec::new()),
        "Tanh" => ("Tanh", Vec::new(), Vec::new()),
        "Sigmoid" => ("Sigmoid", Vec::new(), Vec::new()),
        "LeakyRelu" => ("LeakyRelu", with([float("alpha", first), None]), Vec::new()),
        "HardSigmoid" => (
            "HardSigmoid",
            with([float("alpha", first), float("beta", second)]),
            Vec::new(),
        ),
        "Clip" => ("Clip", Vec::new(), vec![first?, second?]),
        _ => return None,
    })
}
