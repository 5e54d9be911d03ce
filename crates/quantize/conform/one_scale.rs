//! One scale for inputs and outputs of operators that move, pool or join integers without a change.
//!
//! Another pair converts between two scales around such an operator. The
//! inputs of a Concat or Pad get the scale of its output. Behind other operators the values have the
//! scale of the input first: converting the input would clamp values before an average.

use octet_graph::{Model, Names, Node};

use crate::operators::{Treatment, treatment};

/// A pair that converts a value to the scale of another one.
struct ScaleConversion {
    /// The node that reads the converted value, and the slot.
    reader: usize,
    slot: usize,
    pair: [Node; 2],
}

/// Inserts pairs until each of these operators has one scale.
pub(crate) fn give_one_scale(model: &mut Model) {
    let mut names = model.graph.names();
    let mut conversions = Vec::new();
    for (id, node) in model.graph.nodes().iter().enumerate() {
        match treatment(&node.operator()) {
            _ if node.is("Concat") => convert_inputs(model, id, node, &mut names, &mut conversions),
            // The output's range holds the padding value, which the input's may lack.
            Some(Treatment::Pad) => convert_inputs(model, id, node, &mut names, &mut conversions),
            Some(Treatment::Share | Treatment::Split | Treatment::Gather) => {
                convert_outputs(model, node, &mut names, &mut conversions);
            }
            _ => {}
        }
    }
    // From the last reader to the first, so that earlier places stay.
    conversions.sort_by_key(|conversion| conversion.reader);
    for of_reader in conversions
        .chunk_by(|one, other| one.reader == other.reader)
        .rev()
    {
        let reader = of_reader[0].reader;
        for conversion in of_reader {
            let value = conversion.pair[1].output[0].clone();
            model
                .graph
                .edit(reader, |node| node.set_input(conversion.slot, value));
        }
        let pairs = of_reader
            .iter()
            .flat_map(|conversion| conversion.pair.clone());
        model.graph.insert(reader, pairs);
    }
}

/// The QuantizeLinear nodes that read a value.
fn quantizers<'a>(model: &'a Model, value: &'a str) -> impl Iterator<Item = (usize, &'a Node)> {
    let readers = model.graph.consumers(value).iter();
    readers
        .map(|reader| (reader.node, &model.graph.nodes()[reader.node]))
        .filter(|(_, reader)| reader.is("QuantizeLinear"))
}

/// The DequantizeLinear that makes an input.
fn dequantizer<'a>(model: &'a Model, value: &str) -> Option<&'a Node> {
    let node = &model.graph.nodes()[model.graph.producer(value)?];
    Some(node).filter(|node| node.is("DequantizeLinear"))
}

fn convert_inputs(
    model: &Model,
    reader: usize,
    node: &Node,
    names: &mut Names,
    conversions: &mut Vec<ScaleConversion>,
) {
    let mut made = node
        .output
        .iter()
        .flat_map(|output| quantizers(model, output));
    let Some((_, whole)) = made.next() else {
        return;
    };
    for (slot, name) in node.input.iter().enumerate() {
        let differs =
            dequantizer(model, name).is_some_and(|read| !has_scale_of(model, read, whole));
        if differs {
            let pair = pair(name, whole, names);
            conversions.push(ScaleConversion { reader, slot, pair });
        }
    }
}

fn convert_outputs(
    model: &Model,
    node: &Node,
    names: &mut Names,
    conversions: &mut Vec<ScaleConversion>,
) {
    let Some(read) = node.input_at(0).and_then(|name| dequantizer(model, name)) else {
        return;
    };
    for output in &node.output {
        for (reader, made) in quantizers(model, output) {
            if !has_scale_of(model, made, read) {
                let pair = pair(output, read, names);
                conversions.push(ScaleConversion {
                    reader,
                    slot: 0,
                    pair,
                });
            }
        }
    }
}

/// A QuantizeLinear and a DequantizeLinear of a value, with the scale and zero point of `like`.
fn pair(value: &str, like: &Node, names: &mut Names) -> [Node; 2] {
    let [integers, converted] = ["QuantizeLinear", "DequantizeLinear"]
        .map(|operator| names.fresh(&format!("{value}_converted_{operator}_Output")));
    let mut linear = |operator: &str, input: &str, output: &str| {
        let title = names.fresh(&format!("{value}_converted_{operator}"));
        let [scale, zero_point] = [1, 2].map(|slot| like.input_at(slot).unwrap_or_default());
        Node::new(operator, &title, &[input, scale, zero_point], &[output])
    };
    [
        linear("QuantizeLinear", value, &integers),
        linear("DequantizeLinear", &integers, &converted),
    ]
}

/// True if two nodes have equal scales and zero points.
fn has_scale_of(model: &Model, one: &Node, other: &Node) -> bool {
    [1, 2].into_iter().all(|slot| {
        let (one, other) = (one.input_at(slot), other.input_at(slot));
        let constant = |name: Option<&str>| model.graph.initializers.get(name?);
        one == other
            || match (constant(one), constant(other)) {
                (Some(one), Some(other)) => {
                    one.raw_data == other.raw_data && one.data_type == other.data_type
                }
                _ => false,
            }
    })
}
