//! Sub-byte integers (2 and 4 bits) as eight-bit integers of equal values.
//!
//! A Clip behind the QuantizeLinear keeps the narrow range, which is the form that other tools
//! write.

use std::collections::HashMap;

use octet_graph::{Graph, Model, Node, Steps, Use};
use octet_onnx::schema::{DataType, TensorProto};

/// The eight-bit type for a sub-byte type, with the minimum and maximum of the latter; `None` for
/// all other types.
fn widened(element: DataType) -> Option<(DataType, [i64; 2])> {
    Some(match element {
        DataType::Int4 => (DataType::Int8, [-8, 7]),
        DataType::Int2 => (DataType::Int8, [-2, 1]),
        DataType::Uint4 => (DataType::Uint8, [0, 15]),
        DataType::Uint2 => (DataType::Uint8, [0, 3]),
        _ => return None,
    })
}

/// The operator whose tables of bytes hold several integers each, so its other tables become
/// signed.
pub(super) const TABLE: &str = "GatherBlockQuantized";

/// Widens sub-byte tensors that only QuantizeLinear, DequantizeLinear and lookups in tables read
/// and write.
pub(super) fn widen(model: &mut Model) {
    let graph = &mut model.graph;
    let few: HashMap<usize, DataType> = (graph.nodes().iter().enumerate())
        .filter_map(|(index, node)| Some((index, hidden_sub_byte(graph, node)?)))
        .collect();
    let widened_constant = |tensor: &TensorProto| {
        let (mut element, _) = widened(tensor.element().ok()?)?;
        let name = tensor.title();
        let read = |reader: &Use| {
            graph.nodes()[reader.node].is("DequantizeLinear")
                || reader.is_input(2) && few.contains_key(&reader.node)
        };
        let looked_up = |reader: &Use| graph.nodes()[reader.node].op_type == TABLE;
        let readers = graph.consumers(name);
        let is_table = !readers.is_empty() && readers.iter().all(looked_up);
        if graph.is_output(name) || !is_table && !readers.iter().all(read) {
            return None;
        }
        if is_table {
            element = DataType::Int8;
        }
        let values = tensor.to_i64().ok()?;
        let bytes: Vec<u8> = values.into_iter().map(|value| value as u8).collect();
        let shape = tensor.shape().ok()?;
        Some(TensorProto::from_raw(name, element, &shape, bytes.into()))
    };
    let constants: Vec<TensorProto> = graph
        .initializers
        .iter()
        .filter_map(widened_constant)
        .collect();
    for tensor in constants {
        graph.initializers.insert(tensor);
    }
    if !few.is_empty() {
        clip(graph, &few);
    }
}

/// The sub-byte type that a QuantizeLinear produces.
pub fn quantized(graph: &Graph, node: &Node) -> Option<DataType> {
    if !node.is("QuantizeLinear") {
        return None;
    }
    let element = match node.input_at(2) {
        Some(name) => graph.initializers.get(name)?.element().ok()?,
        None => DataType::try_from(i32::try_from(node.int("output_dtype")?).ok()?).ok()?,
    };
    widened(element).map(|_| element)
}

/// The sub-byte type that a QuantizeLinear produces, if only DequantizeLinear nodes read it.
fn hidden_sub_byte(graph: &Graph, node: &Node) -> Option<DataType> {
    let element = quantized(graph, node)?;
    let output = node.output.first()?;
    let mut readers = graph.consumers(output).iter();
    let closed = !graph.is_output(output)
        && readers.all(|reader| graph.nodes()[reader.node].is("DequantizeLinear"));
    closed.then_some(element)
}

/// Inserts a Clip behind each of these QuantizeLinear nodes.
fn clip(graph: &mut Graph, few: &HashMap<usize, DataType>) {
    let mut steps = Steps::new(graph.names());
    let nodes = graph.take_nodes().into_iter().enumerate();
    for (index, mut node) in nodes {
        let range = few.get(&index).and_then(|&element| widened(element));
        let (Some((element, ends)), Some(output)) = (range, node.output.first().cloned()) else {
            steps.nodes.push(node);
            continue;
        };
        let all = steps.names.fresh(&format!("{output}_of_eight_bits"));
        let mut constant = |word: &str, value: i64| {
            let name = steps.names.fresh(&format!("{output}_{word}"));
            let bytes = vec![value as u8].into();
            let tensor = TensorProto::from_raw(&name, element, &[], bytes);
            steps.constants.push(tensor);
            name
        };
        if node.input_at(2).is_none() {
            let zero = constant("zero_point", 0);
            node.input.truncate(2);
            node.input.push(zero);
        }
        let [low, high] = [constant("least", ends[0]), constant("greatest", ends[1])];
        node.take("output_dtype");
        // A node without a name is known by its output, which changes here.
        node.name = Some(node.title().to_owned());
        node.output[0] = all.clone();
        steps.nodes.push(node);
        let name = steps.names.fresh(&format!("{output}_Clip"));
        let inputs = [all.as_str(), &low, &high];
        steps
            .nodes
            .push(Node::new("Clip", &name, &inputs, &[&output]));
    }
    steps.into_graph(graph);
}
