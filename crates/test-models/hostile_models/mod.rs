//! RandomChoice damage to files, graphs, operators and constants.

mod wiring;

use octet_onnx::schema::*;
use prost::Message;

use crate::RandomChoice;
use crate::valid_models::AttributeChoice::{self, Float, Int, Ints, Text};
use crate::valid_models::{OPERATORS, attribute};
use wiring::rewire;

/// Attribute names, to be used at operators where they mean something else or nothing.
const NAMES: &[&str] = &[
    "axis",
    "axes",
    "group",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "auto_pad",
    "perm",
    "keepdims",
    "blocksize",
    "mode",
    "to",
    "epsilon",
    "alpha",
    "output_padding",
    "output_shape",
    "ceil_mode",
    "transA",
    "block_size",
    "num_outputs",
    "hidden_size",
    "direction",
    "allowzero",
    "size",
    "p",
    "batch_dims",
    "equation",
    "split",
    "scales",
    "axis",
    "start",
    "end",
    "k",
    "num_groups",
    "value",
];

const ATTRIBUTE_VALUES: &[AttributeChoice] = &[
    Int(0),
    Int(-1),
    Int(1),
    Int(2),
    Int(7),
    Int(-100),
    Int(1 << 31),
    Int(1 << 40),
    Int(i64::MAX),
    Int(i64::MIN),
    Int(1 << 10),
    Ints(&[]),
    Ints(&[0]),
    Ints(&[1]),
    Ints(&[-1, -1]),
    Ints(&[0, 0]),
    Ints(&[1, 1, 1, 1]),
    Ints(&[0, 0, 0, 0]),
    Ints(&[3, 2, 1, 0]),
    Ints(&[1 << 40, 1]),
    Ints(&[1 << 31, 1 << 31]),
    Ints(&[i64::MIN, i64::MAX]),
    Ints(&[9, 9, 9, 9]),
    Ints(&[2, 2]),
    Ints(&[-9]),
    Float(0.0),
    Float(f32::NAN),
    Float(f32::INFINITY),
    Float(-1.0),
    Float(1e38),
    Float(1e-45),
    Text(""),
    Text("SAME_UPPER"),
    Text("VALID"),
    Text("wrap"),
    Text("cubic"),
    Text("no such"),
    Text("bidirectional"),
    Text("...ij->ji"),
];

const NUMBERS: [i64; 14] = [
    0,
    -1,
    1,
    2,
    3,
    5,
    7,
    100,
    1 << 10,
    1 << 31,
    1 << 40,
    i64::MAX,
    i64::MIN,
    -7,
];

/// Applies one to three changes to a model; returns the file and a description of the changes.
pub fn damaged(mut model: ModelProto, random: &mut RandomChoice) -> (Vec<u8>, String) {
    let original = model.clone();
    for _ in 0..1 + random.below(3) {
        let header = (random.below(40), random.below(30) as i64);
        match header {
            (0, version) => model.ir_version = Some(version),
            (1, version) => model.opset_import[0].version = Some(version),
            _ => {
                if let Some(graph) = &mut model.graph {
                    damage_within(graph, random);
                }
            }
        }
    }
    let mut text = changes(&original, &model);
    let mut file = model.encode_to_vec();
    match random.below(20) {
        0 => {
            file.truncate(random.below(file.len()));
            text.push(format!("cut off at {}", file.len()));
        }
        1 => {
            for _ in 0..1 + random.below(8) {
                let place = random.below(file.len());
                file[place] = random.below(256) as u8;
                text.push(format!("byte {place} is {}", file[place]));
            }
        }
        _ => {}
    }
    (file, text.join("; "))
}

/// Describes the differences: nodes, constants, inputs, outputs, versions.
fn changes(before: &ModelProto, after: &ModelProto) -> Vec<String> {
    let mut text = Vec::new();
    if (before.ir_version, &before.opset_import) != (after.ir_version, &after.opset_import) {
        text.push(format!(
            "IR {:?}, {:?}",
            after.ir_version, after.opset_import
        ));
    }
    if let (Some(before), Some(after)) = (&before.graph, &after.graph) {
        let nodes = after.node.iter().filter(|node| !before.node.contains(node));
        text.extend(nodes.map(describe));
        let gone = |node: &&NodeProto| !after.node.iter().any(|other| other.name == node.name);
        let gone = before.node.iter().filter(gone);
        text.extend(gone.map(|node| format!("without node {:?}", node.name)));
        if before.node.len() != after.node.len() {
            text.push(format!("{} nodes", after.node.len()));
        }
        let constants = &before.initializer;
        let others = after.initializer.iter().filter(|t| !constants.contains(t));
        text.extend(
            others.map(|t| format!("constant {:?} {:?} {:?}", t.name, t.dims, t.data_type)),
        );
        let ports = [&before.input, &before.output, &before.value_info];
        for (old, new) in ports
            .into_iter()
            .zip([&after.input, &after.output, &after.value_info])
        {
            let others = new.iter().filter(|port| !old.contains(port));
            text.extend(others.map(|port| format!("port {port:?}")));
        }
    }
    text
}

/// Writes a node as a call with its attributes.
fn describe(node: &NodeProto) -> String {
    let text = node.attribute.iter().map(|one| {
        let name = one.name.as_deref().unwrap_or_default();
        match (one.i, one.f, &one.s, &one.g) {
            (Some(i), ..) => format!("{name}={i}"),
            (_, Some(f), ..) => format!("{name}={f}"),
            (_, _, Some(s), _) => format!("{name}={s:?}"),
            (.., Some(_)) => format!("{name}=a graph"),
            _ => format!("{name}={:?}", one.ints),
        }
    });
    let text = text.collect::<Vec<_>>().join(", ");
    let operator = node.op_type.as_deref().unwrap_or_default();
    format!("{operator}({:?}; {text}) -> {:?}", node.input, node.output)
}

/// Damages a graph or one of its subgraphs.
fn damage_within(graph: &mut GraphProto, random: &mut RandomChoice) {
    let graphs = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    let mut graphs: Vec<&mut GraphProto> = graphs.filter_map(|text| text.g.as_mut()).collect();
    match graphs.len() {
        0 => damage(graph, random),
        _ if random.below(2) == 0 => damage(graph, random),
        count => damage(graphs.swap_remove(random.below(count)), random),
    }
}

fn damage(graph: &mut GraphProto, random: &mut RandomChoice) {
    let outputs = graph.node.iter().flat_map(|node| node.output.clone());
    let constants = graph
        .initializer
        .iter()
        .filter_map(|tensor| tensor.name.clone());
    let names: Vec<String> = outputs
        .chain(constants)
        .chain(["".into(), "x".into(), "missing".into()])
        .collect();
    let name = random.one(&names).clone();
    if graph.node.is_empty() || graph.initializer.is_empty() {
        return;
    }
    let place = random.below(graph.node.len());
    let tensor = random.below(graph.initializer.len());
    match random.below(36) {
        0..=3 => change_attribute(&mut graph.node[place], random),
        4 | 5 => graph.node[place].attribute.push(attribute(
            random.one::<&str>(NAMES),
            *random.one(ATTRIBUTE_VALUES),
        )),
        6 | 7 => {
            let node = &mut graph.node[place];
            let slot = random.below(node.input.len() + 1);
            match node.input.get_mut(slot) {
                Some(input) if random.below(4) > 0 => *input = name,
                Some(_) => drop(node.input.remove(slot)),
                None => node.input.push(name),
            }
        }
        8 => {
            let outputs = &mut graph.node[place].output;
            match random.below(3) {
                0 => outputs.push(name),
                1 => drop(outputs.pop()),
                _ => *outputs = vec![name],
            }
        }
        9..=14 => damage_tensor(&mut graph.initializer[tensor], random),
        15 | 16 => {
            let dims: Vec<i64> = (0..random.below(6))
                .map(|_| *random.one(&NUMBERS[..7]))
                .collect();
            let element = *random.one(&[
                DataType::Float,
                DataType::Float16,
                DataType::Int64,
                DataType::Uint8,
                DataType::Double,
            ]);
            if let Some(input) = graph.input.first_mut() {
                let name = input.name.clone().unwrap_or_default();
                *input = unchecked_value(&name, element, &dims);
            }
        }
        17 => graph.value_info.push(unchecked_value(
            &name,
            DataType::Float,
            &[1, *random.one(&NUMBERS)],
        )),
        18 => graph.output.push(unchecked_value(
            &name,
            DataType::Float,
            &[*random.one(&NUMBERS)],
        )),
        19 | 20 => graph.node[place].op_type = Some(random.one(OPERATORS).0.into()),
        21 => {
            let again = graph.node[place].clone();
            graph.node.push(again);
        }
        22 => drop(graph.initializer.remove(tensor)),
        23 => drop(graph.node.remove(place)),
        _ => rewire(graph, place, random),
    }
}

/// A value of this type, and of a shape that may be impossible.
fn unchecked_value(name: &str, element: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = |&size: &i64| Dimension {
        denotation: None,
        value: Some(DimensionValue::DimValue(size)),
    };
    let shape = TensorShapeProto {
        dim: dims.iter().map(dim).collect(),
    };
    let value = TypeValue::TensorType(TensorTypeProto {
        elem_type: Some(element as i32),
        shape: Some(shape),
    });
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            denotation: None,
            value: Some(value),
        }),
        ..Default::default()
    }
}

/// Changes an attribute's value, to one of the same type or another.
fn change_attribute(node: &mut NodeProto, random: &mut RandomChoice) {
    if node.attribute.is_empty() {
        node.domain = Some((*random.one(&["com.microsoft", "ai.onnx", "other"])).into());
        return;
    }
    let place = random.below(node.attribute.len());
    let one = &mut node.attribute[place];
    match random.below(4) {
        0 => {
            *one = attribute(
                one.name.as_deref().unwrap_or_default(),
                *random.one(ATTRIBUTE_VALUES),
            )
        }
        1 => one.r#type = Some(random.below(15) as i32),
        2 => drop(node.attribute.remove(place)),
        _ => {
            let many = one.ints.len();
            match (one.i, one.f) {
                (Some(_), _) => one.i = Some(*random.one(&NUMBERS)),
                (_, Some(_)) => one.f = Some(*random.one(&[0.0, f32::NAN, f32::INFINITY, -1.0])),
                _ if many > 0 => one.ints[random.below(many)] = *random.one(&NUMBERS),
                _ => one.s = None,
            }
        }
    }
}

fn damage_tensor(tensor: &mut TensorProto, random: &mut RandomChoice) {
    let name = tensor.name.clone().unwrap_or_default();
    let bytes = tensor.raw_data.clone().unwrap_or_default();
    let element =
        DataType::try_from(tensor.data_type.unwrap_or_default()).unwrap_or(DataType::Float);
    match random.below(7) {
        0 => tensor.data_type = Some(random.below(30) as i32),
        1 => {
            let axes = tensor.dims.len();
            match axes {
                0 => tensor.dims.push(1),
                _ => tensor.dims[random.below(axes)] = *random.one(&NUMBERS),
            }
        }
        2 => tensor.raw_data = Some(bytes.slice(..random.below(bytes.len() + 1))),
        // The data fits the declared shape.
        3 | 4 => {
            let dims: Vec<usize> = (0..random.below(5)).map(|_| random.below(5)).collect();
            let size = element.bits().unwrap_or(8).div_ceil(8) * dims.iter().product::<usize>();
            let raw: Vec<u8> = bytes
                .iter()
                .copied()
                .cycle()
                .take(if bytes.is_empty() { 0 } else { size })
                .collect();
            *tensor = TensorProto::from_raw(&name, element, &dims, raw.into());
        }
        5 if element == DataType::Float => {
            let value = *random.one(&[0.0, f32::NAN, f32::INFINITY, 1e38, -1e38, 1e-45, -1.0]);
            let mut values = tensor.to_f32().unwrap_or_default();
            let all = values.len();
            match random.below(2) {
                0 => values.fill(value),
                _ if all > 0 => values[random.below(all)] = value,
                _ => {}
            }
            let raw = values.iter().flat_map(|value| value.to_le_bytes());
            *tensor = of_shape_of(tensor, &name, element, raw.collect());
        }
        5 if element == DataType::Int64 => {
            let mut values = tensor.to_i64().unwrap_or_default();
            let all = values.len();
            if all > 0 {
                values[random.below(all)] = *random.one(&NUMBERS);
            }
            let raw = values.iter().flat_map(|value| value.to_le_bytes());
            *tensor = of_shape_of(tensor, &name, element, raw.collect());
        }
        _ => {
            let half = bytes.chunks_exact(4).flat_map(|four| [four[2], four[3]]);
            *tensor = of_shape_of(tensor, &name, DataType::Bfloat16, half.collect());
        }
    }
}

/// A tensor of the shape of `other`. Its bytes may be too few or too many.
fn of_shape_of(other: &TensorProto, name: &str, element: DataType, raw: Vec<u8>) -> TensorProto {
    let dims = other.shape().unwrap_or_default();
    TensorProto::from_raw(name, element, &dims, raw.into())
}
