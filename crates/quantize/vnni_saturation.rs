//! A note on layers whose sums can saturate in native ONNX Runtime. On x86 processors without VNNI
//! it adds two u8·i8 products in 16 bits, which is exact only for weights within ±64.

use octet_graph::operators::{Operator, Property};
use octet_graph::{Model, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// The largest weight magnitude for which two products always fit: 2 · 255 · 64.
const MAX_SAFE_MAGNITUDE: u8 = 64;

/// The note, if the model has such layers.
pub(crate) fn note(model: &Model) -> Option<String> {
    let producer = |name: &str| {
        model
            .graph
            .producer(name)
            .map(|index| &model.graph.nodes()[index])
    };
    let constant = |name: Option<&str>| model.graph.initializers.get(name?);
    let saturates = |node: &&Node| {
        let Some(slot) = slot_of_weight(node) else {
            return false;
        };
        let weight = node.input_at(slot);
        let dequantized =
            |name: Option<&str>| producer(name?).filter(|node| node.is("DequantizeLinear"));
        let integers = match dequantized(weight) {
            // In QDQ form, the activation must have 8 bits too.
            Some(producer) => {
                let activation = dequantized(node.input_at(0));
                let bytes =
                    activation.is_some_and(|activation| match constant(activation.input_at(2)) {
                        Some(zero_point) => {
                            has_type(zero_point, &[DataType::Uint8, DataType::Int8])
                        }
                        None => activation.input_at(2).is_none(),
                    });
                constant(producer.input_at(0)).filter(|_| bytes)
            }
            None => constant(weight),
        };
        integers.is_some_and(exceeds_safe_magnitude)
    };
    let count = model.graph.nodes().iter().filter(saturates).count();
    (count > 0).then(|| {
        format!(
            "native ONNX Runtime may saturate sums in {count} layers on x86 processors without VNNI (AMD before Zen 4, \
             most Intel before 2021), with large errors; weights of the type u8 avoid this, and browsers and Octet \
             are exact with any type"
        )
    })
}

/// The weight's input slot for operators that multiply integers in ONNX Runtime.
fn slot_of_weight(node: &Node) -> Option<usize> {
    let operator = Operator::of(node);
    let saturates = operator.has(Property::SaturatesPairs);
    saturates.then(|| operator.weight_slots.first().copied())?
}

fn has_type(tensor: &TensorProto, elements: &[DataType]) -> bool {
    tensor
        .element()
        .is_ok_and(|element| elements.contains(&element))
}

fn exceeds_safe_magnitude(integers: &TensorProto) -> bool {
    let raw = integers.raw_data.as_deref().unwrap_or_default();
    has_type(integers, &[DataType::Int8])
        && raw
            .iter()
            .any(|&byte| (byte as i8).unsigned_abs() > MAX_SAFE_MAGNITUDE)
}
