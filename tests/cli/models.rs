//! Small models and samples for the tests of the command line.

use std::io::{Cursor, Write};

use bytes::Bytes;
use octet::onnx::schema::{
    AttributeProto, AttributeType, DataLocation, DataType, Dimension, DimensionValue, GraphProto,
    ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, TypeValue, ValueInfoProto,
};
use zip::write::SimpleFileOptions;

use super::graphs;

fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = |&d| Dimension {
        value: Some(DimensionValue::DimValue(d)),
        ..Default::default()
    };
    let tensor = TensorTypeProto {
        elem_type: Some(DataType::Float as i32),
        shape: Some(TensorShapeProto {
            dim: shape.iter().map(dim).collect(),
        }),
    };
    let kind = TypeProto {
        value: Some(TypeValue::TensorType(tensor)),
        ..Default::default()
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(kind),
        ..Default::default()
    }
}

fn node(operator: &str, name: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(name.into()),
        input: inputs.iter().map(|i| i.to_string()).collect(),
        output: vec![output.into()],
        ..Default::default()
    }
}

fn tensor(name: &str, element: DataType, dims: &[i64], raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(element as i32),
        dims: dims.to_vec(),
        raw_data: Some(Bytes::from(raw)),
        ..Default::default()
    }
}

fn model(nodes: Vec<NodeProto>, initializer: Vec<TensorProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(13),
        }],
        graph: Some(GraphProto {
            name: Some("g".into()),
            node: nodes,
            initializer,
            input: vec![value("x", &[1, 3, 4, 4])],
            output: vec![value("y", &[1, 2, 4, 4])],
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Bytes of the convolution's weight.
fn weight() -> Vec<u8> {
    (0..54)
        .flat_map(|i| ((i * 11 % 23) as f32 / 11.5 - 1.0).to_le_bytes())
        .collect()
}

/// A convolution with bias and a Relu: `x` [1, 3, 4, 4] to `y` [1, 2, 4, 4].
pub fn convolution() -> ModelProto {
    let pads = AttributeProto {
        name: Some("pads".into()),
        r#type: Some(AttributeType::Ints as i32),
        ints: vec![1; 4],
        ..Default::default()
    };
    let mut convolution = node("Conv", "conv", &["x", "w", "b"], "c");
    convolution.attribute.push(pads);
    let bias = [0.25f32, -0.5]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let constants = vec![
        tensor("w", DataType::Float, &[2, 3, 3, 3], weight()),
        tensor("b", DataType::Float, &[2], bias),
    ];
    model(
        vec![convolution, node("Relu", "relu", &["c"], "y")],
        constants,
    )
}

/// The convolution with its weight in external data, and the bytes of that file.
pub fn external(location: &str) -> (ModelProto, Vec<u8>) {
    let mut model = convolution();
    let weight_tensor = &mut model.graph.as_mut().unwrap().initializer[0];
    weight_tensor.raw_data = None;
    weight_tensor.data_location = Some(DataLocation::External as i32);
    let entry = StringStringEntryProto {
        key: Some("location".into()),
        value: Some(location.into()),
    };
    weight_tensor.external_data.push(entry);
    (model, weight())
}

/// The convolution with weight and bias as Constant nodes.
pub fn of_constants() -> ModelProto {
    let mut model = convolution();
    let graph = model.graph.as_mut().unwrap();
    let constants = std::mem::take(&mut graph.initializer);
    let nodes = constants.into_iter().map(|tensor| {
        let mut constant = node("Constant", "", &[], tensor.name.as_deref().unwrap());
        constant.attribute.push(AttributeProto {
            name: Some("value".into()),
            r#type: Some(AttributeType::Tensor as i32),
            t: Some(tensor),
            ..Default::default()
        });
        constant
    });
    let nodes: Vec<NodeProto> = nodes.collect();
    graph.node.splice(0..0, nodes);
    model
}

/// A model with an unknown operator.
pub fn unknown_operator() -> ModelProto {
    let mut model = convolution();
    model.graph.as_mut().unwrap().node[1] = node("Frobnicate", "frob", &["c"], "y");
    model
}

/// A model that another tool has quantized.
pub fn already_quantized() -> ModelProto {
    let nodes = vec![
        node("QuantizeLinear", "q", &["x", "scale", "zero"], "i"),
        node("DequantizeLinear", "d", &["i", "scale", "zero"], "f"),
    ];
    let constants = vec![
        tensor("scale", DataType::Float, &[], 0.5f32.to_le_bytes().to_vec()),
        tensor("zero", DataType::Uint8, &[], vec![3]),
    ];
    let mut quantized = convolution();
    let graph = quantized.graph.as_mut().unwrap();
    graph.node[0].input[0] = "f".into();
    graph.node.splice(0..0, nodes);
    graph.initializer.extend(constants);
    quantized
}

/// A `.npz` file with one array.
pub fn zip(name: &str, array: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer
        .start_file(format!("{name}.npy"), SimpleFileOptions::default())
        .unwrap();
    writer.write_all(array).unwrap();
    writer.finish().unwrap().into_inner()
}

/// A `.npz` file with one `float32` array.
pub fn npz(name: &str, shape: &[usize], values: &[f32]) -> Vec<u8> {
    let shape = format!("{shape:?}").replace('[', "(").replace(']', ",)");
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    zip(name, &graphs::npy("<f4", &shape, &data))
}
