//! The functions of gates.

use octet_graph::operators::Operator;
use tract_onnx::tract_hir::internal::*;

use super::NativeCall;

/// A function of a gate, with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateFunction {
    function: fn(f32, f32, f32) -> f32,
    alpha: f32,
    beta: f32,
}

/// A function by its name in ONNX, in lower case, with the defaults of its parameters.
const FUNCTIONS: &[(&str, fn(f32, f32, f32) -> f32, Option<f32>, Option<f32>)] = &[
    (
        "affine",
        |x, alpha, beta| alpha * x + beta,
        Some(1.0),
        Some(0.0),
    ),
    (
        "elu",
        |x, alpha, _| if x < 0.0 { alpha * (x.exp() - 1.0) } else { x },
        Some(1.0),
        None,
    ),
    (
        "hardsigmoid",
        |x, alpha, beta| (alpha * x + beta).clamp(0.0, 1.0),
        Some(0.2),
        Some(0.5),
    ),
    (
        "leakyrelu",
        |x, alpha, _| if x < 0.0 { alpha * x } else { x },
        Some(0.01),
        None,
    ),
    ("relu", |x, _, _| x.max(0.0), None, None),
    (
        "scaledtanh",
        |x, alpha, beta| alpha * (beta * x).tanh(),
        Some(1.0),
        Some(1.0),
    ),
    ("sigmoid", |x, _, _| 1.0 / (1.0 + (-x).exp()), None, None),
    (
        "softplus",
        |x, _, _| x.max(0.0) + (-x.abs()).exp().ln_1p(),
        None,
        None,
    ),
    ("softsign", |x, _, _| x / (1.0 + x.abs()), None, None),
    ("tanh", |x, _, _| x.tanh(), None, None),
    (
        "thresholdedrelu",
        |x, alpha, _| if x > alpha { x } else { 0.0 },
        Some(1.0),
        None,
    ),
];

/// True for a function that ONNX defines for recurrences.
pub(in crate::operators) fn is_activation(name: &[u8]) -> bool {
    FUNCTIONS
        .iter()
        .any(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name))
}

impl GateFunction {
    pub(super) fn of(self, x: f32) -> f32 {
        (self.function)(x, self.alpha, self.beta)
    }
}

/// The functions of all gates and directions. Those with parameters take the next ones of the
/// attributes.
pub(super) fn activations(call: &NativeCall, sides: usize) -> TractResult<Vec<GateFunction>> {
    let usual = Operator::of(call.node).activations;
    let named: Vec<String> = match call.node.attribute("activations") {
        Some(given) => {
            let texts = given.as_texts();
            texts
                .iter()
                .map(|text| String::from_utf8_lossy(text).to_lowercase())
                .collect()
        }
        None => {
            let all = usual.iter().cycle().take(usual.len() * sides);
            all.map(|name| name.to_lowercase()).collect()
        }
    };
    ensure!(
        named.len() == usual.len() * sides,
        "its list of activations has {} names instead of {}",
        named.len(),
        usual.len() * sides
    );
    let [mut alphas, mut betas] = ["activation_alpha", "activation_beta"].map(|key| {
        let given = call
            .node
            .attribute(key)
            .map(|list| list.as_floats().to_vec());
        given.unwrap_or_default().into_iter()
    });
    let function = |name: &String| {
        let known = FUNCTIONS.iter().find(|(known, ..)| known == name);
        let &(_, function, alpha, beta) =
            known.with_context(|| format!("its activation {name} is unknown"))?;
        let parameter = |default: Option<f32>, given: &mut std::vec::IntoIter<f32>| {
            default.map_or(0.0, |default| given.next().unwrap_or(default))
        };
        Ok(GateFunction {
            function,
            alpha: parameter(alpha, &mut alphas),
            beta: parameter(beta, &mut betas),
        })
    };
    named.iter().map(function).collect()
}
