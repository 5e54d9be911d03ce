//! Advice on the size of a result: for a file that grew, or one that stays float32 in large part.

use std::collections::HashMap;
use std::convert::Infallible;

use crate::graph::operators::Operator;
use crate::onnx::schema::{DataType, GraphProto, ModelProto, TensorProto};
use crate::onnx::tensors;
use crate::quantize::{Format, Scheme, Settings};

/// Minimum size in bytes of a constant worth naming. Smaller constants are scales, shapes and
/// biases, which no scheme makes much smaller.
const MIN_BYTES: usize = 4096;

/// Minimum share of the file that stays float32 before the advice mentions it.
const NOTABLE_SHARE: f64 = 0.25;

/// Maximum number of tensors that the advice names.
const MAX_NAMES: usize = 2;

/// Size of a model in bytes, external data included, and the part of it that constants take.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelSize {
    pub(super) file: usize,
    pub(super) constants: usize,
}

impl ModelSize {
    /// Bytes of nodes, names and shapes.
    fn structure(self) -> usize {
        self.file.saturating_sub(self.constants)
    }
}

/// Bytes of all constants of a model, those in subgraphs and attributes included.
pub(super) fn constants(model: &ModelProto) -> usize {
    let mut bytes = 0usize;
    let Ok(()) = tensors::each::<Infallible>(model, &mut |tensor| {
        bytes = bytes.saturating_add(tensor.byte_len().unwrap_or(0));
        Ok(())
    });
    bytes
}

/// Advice on the size of the result, a sentence each; empty where nothing needs to change.
pub(super) fn advice(
    quantized: &ModelProto,
    before: ModelSize,
    after: ModelSize,
    settings: &Settings,
) -> Vec<String> {
    let grown = grown(before, after, settings);
    let float = quantized
        .graph
        .as_ref()
        .and_then(|graph| still_float(graph, after, settings));
    grown.into_iter().chain(float).collect()
}

fn grown(before: ModelSize, after: ModelSize, settings: &Settings) -> Option<String> {
    if after.file <= before.file {
        return None;
    }
    let (now, was) = (size(after.file), size(before.file));
    let structure = after.structure().saturating_sub(before.structure());
    let constants = after.constants.saturating_sub(before.constants);
    let why = if constants >= structure && settings.format == Format::Simulated {
        "because the format simulated keeps all weights as floats: choose the format qdq".into()
    } else if constants >= structure {
        format!(
            "because its constants take {} more, for example where float16 became float32 or a weight is stored \
             several times: choose the scheme weights or float16, or keep the float model",
            size(constants)
        )
    } else {
        let other = match settings.scheme {
            Scheme::Float16 => "keep the float model",
            _ => {
                "choose the scheme float16, or keep the float model unless the integers run faster"
            }
        };
        format!(
            "because the Q/DQ nodes take {}, more than its few weights save: {other}",
            size(structure)
        )
    };
    Some(format!("the model grew from {was} to {now}, {why}"))
}

/// Large constants that stay float32 and are read by one operator.
#[derive(Default)]
struct FloatConstants<'a> {
    bytes: usize,
    tensors: Vec<(&'a str, usize)>,
}

fn still_float(graph: &GraphProto, after: ModelSize, settings: &Settings) -> Option<String> {
    if settings.format == Format::Simulated && settings.scheme == Scheme::Static {
        return None;
    }
    let mut readers: HashMap<&str, &str> = HashMap::new();
    for node in &graph.node {
        for input in &node.input {
            let operator = node.op_type.as_deref().unwrap_or_default();
            readers.entry(input).or_insert(operator);
        }
    }
    let large = |tensor: &&TensorProto| {
        tensor.data_type == Some(DataType::Float as i32)
            && tensor.byte_len().is_ok_and(|bytes| bytes >= MIN_BYTES)
    };
    let mut groups: HashMap<&str, FloatConstants<'_>> = HashMap::new();
    let mut all = 0;
    for tensor in graph.initializer.iter().filter(large) {
        let name = tensor.name.as_deref().unwrap_or_default();
        let bytes = tensor.byte_len().unwrap_or(0);
        let operator = readers.get(name).copied().unwrap_or_default();
        let group = groups.entry(operator).or_default();
        group.bytes += bytes;
        group.tensors.push((name, bytes));
        all += bytes;
    }
    let share = all as f64 / after.file.max(1) as f64;
    if share < NOTABLE_SHARE {
        return None;
    }
    let (operator, mut group) = groups
        .into_iter()
        .max_by_key(|(operator, group)| (group.bytes, std::cmp::Reverse(*operator)))?;
    group
        .tensors
        .sort_by_key(|&(name, bytes)| (usize::MAX - bytes, name));
    let named: Vec<String> = group
        .tensors
        .iter()
        .take(MAX_NAMES)
        .map(|(name, bytes)| format!("`{name}`, {}", size(*bytes)))
        .collect();
    let more = match group.tensors.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = match operator {
        "Gather" => "embedding tables".into(),
        operator => format!("constants of {operator}"),
    };
    Some(format!(
        "{:.0} % of the bytes stay float32, most of them {what} ({}{more}): {}",
        share * 100.0,
        named.join("; "),
        instead(operator, settings.scheme)
    ))
}

/// The choice that makes the constants of this operator smaller.
fn instead(operator: &str, scheme: Scheme) -> &'static str {
    let has_weights = !Operator::in_any_domain(operator).weight_slots.is_empty();
    let is_product = matches!(operator, "Gemm" | "MatMul");
    match scheme {
        Scheme::Blocks if has_weights && !is_product => {
            "the scheme blocks quantizes only matrix products; choose the scheme weights or dynamic, which store these in 8 bits"
        }
        Scheme::Float16 => {
            "the list of nodes has the reasons; choose the scheme weights for 8 bits"
        }
        _ => {
            "the list of nodes has the reasons; choose the scheme weights, or float16 for half of their size"
        }
    }
}

/// Formats a byte count for people, in decimal units and with three digits.
fn size(bytes: usize) -> String {
    let (value, unit) = match bytes {
        0..1000 => return format!("{bytes} B"),
        1000..1_000_000 => (bytes as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        _ => (bytes as f64 / 1e9, "GB"),
    };
    match value {
        ..10.0 => format!("{value:.2} {unit}"),
        ..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::schema::NodeProto;

    fn how(text: &str) -> Settings {
        Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
    }

    /// A lookup table of 100 kB and a MatMul weight of 40 kB.
    fn sample_model() -> ModelProto {
        let graph = GraphProto {
            node: vec![
                NodeProto::new("Gather", "look", &["table", "ids"], &["rows"]),
                NodeProto::new("MatMul", "product", &["rows", "weight"], &["y"]),
            ],
            initializer: vec![
                TensorProto::from_f32("table", &[250, 100], &[0.5; 25_000]),
                TensorProto::from_f32("weight", &[100, 100], &[0.5; 10_000]),
            ],
            ..Default::default()
        };
        ModelProto::from_graph(graph, 17)
    }

    #[test]
    fn advice_names_a_float_table_and_the_scheme_that_quantizes_it() {
        let model = sample_model();
        let after = ModelSize {
            file: 150_000,
            constants: constants(&model),
        };
        assert_eq!(after.constants, 140_000);
        let before = ModelSize {
            file: 600_000,
            constants: 590_000,
        };
        let message = advice(&model, before, after, &how(r#"{"scheme": "blocks"}"#));
        let [message] = message.as_slice() else {
            panic!("{message:?}")
        };
        assert!(
            message.starts_with(
                "93 % of the bytes stay float32, most of them embedding tables (`table`, 100 kB)"
            ),
            "{message}"
        );
        assert!(
            message.contains("choose the scheme weights or dynamic"),
            "{message}"
        );
        // A file that holds mostly other bytes gets no advice.
        let large = ModelSize {
            file: 1_000_000,
            ..after
        };
        let none = advice(
            &model,
            ModelSize {
                file: 2_000_000,
                ..before
            },
            large,
            &how("{}"),
        );
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn advice_for_a_model_that_grew_has_cause_and_choice() {
        let model = ModelProto::default();
        let before = ModelSize {
            file: 230_000,
            constants: 200_000,
        };
        let by_nodes = ModelSize {
            file: 359_000,
            constants: 60_000,
        };
        let message = advice(&model, before, by_nodes, &how("{}"));
        assert!(
            message[0].starts_with("the model grew from 230 kB to 359 kB, because the Q/DQ nodes")
                && message[0].contains("269 kB")
                && message[0].contains("float16"),
            "{message:?}"
        );
        let by_weights = ModelSize {
            file: 400_000,
            constants: 365_000,
        };
        let message = advice(
            &model,
            before,
            by_weights,
            &how(r#"{"format": "simulated"}"#),
        );
        assert!(message[0].contains("choose the format qdq"), "{message:?}");
        let message = advice(&model, before, by_weights, &how("{}"));
        assert!(
            message[0].contains("constants take 165 kB more"),
            "{message:?}"
        );
    }

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, text) in [
            (999, "999 B"),
            (1234, "1.23 kB"),
            (98_765, "98.8 kB"),
            (123_456_789, "123 MB"),
            (2_000_000_000, "2.00 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
