//! Small models and samples for the tests of the command line.

use std::io::{Cursor, Write};

use octet::onnx::schema::{
    AttributeProto, DataLocation, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto,
};
use octet_test_models::{npy, typed_value};
use zip::write::SimpleFileOptions;

fn node(operator: &str, name: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto::new(operator, name, inputs, &[output])
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
            input: vec![typed_value("x", DataType::Float, &[1, 3, 4, 4])],
            output: vec![typed_value("y", DataType::Float, &[1, 2, 4, 4])],
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
    let pads = AttributeProto::ints("pads", &[1; 4]);
    let convolution = node("Conv", "conv", &["x", "w", "b"], "c").with(pads);
    let constants = vec![
        TensorProto::from_raw("w", DataType::Float, &[2, 3, 3, 3], weight().into()),
        TensorProto::from_f32("b", &[2], &[0.25, -0.5]),
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
        let output = tensor.name.clone().unwrap();
        node("Constant", "", &[], &output).with(AttributeProto::tensor("value", tensor))
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
        TensorProto::from_f32("scale", &[], &[0.5]),
        TensorProto::from_u8("zero", &[], &[3]),
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
    zip(name, &npy("<f4", &shape, &data))
}
