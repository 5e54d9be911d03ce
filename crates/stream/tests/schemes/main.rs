//! Every scheme without samples, piece by piece: its graph and its constants are those in memory.

#![allow(clippy::unwrap_used, clippy::result_large_err)]

mod bodies;
mod halves;

use std::collections::BTreeMap;

use octet_graph::Model;
use octet_graph::prepare::prepare;
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    ValueInfoProto,
};
use octet_onnx::skeleton::SkeletonReader;
use octet_onnx::{Dim, TensorType, external, write};
use octet_quantize::{Operators, Scheme, Settings, apply};
use octet_stream::{Conversion, ConversionStep, Converted, OutputFiles, SmallTensors};

fn port(name: &str, element: DataType, shape: &[usize]) -> ValueInfoProto {
    let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
    ValueInfoProto::new(
        name,
        &TensorType {
            element,
            shape: Some(shape),
        },
    )
}

fn weight(name: &str, shape: &[usize], size: f32) -> TensorProto {
    let seed = name.bytes().fold(7u32, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * size
    };
    let values: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| random())
        .collect();
    TensorProto::from_f32(name, shape, &values)
}

/// A table, products in both orders, a convolution and a recurrent layer, with large and small
/// weights. `far` is the size of the last weight.
fn model(far: f32) -> ModelProto {
    let int = AttributeProto::int;
    let nodes = vec![
        NodeProto::new("Gather", "rows", &["table", "ids"], &["x"]),
        NodeProto::new("MatMul", "one", &["x", "w"], &["a"]),
        NodeProto::new("Relu", "relu", &["a"], &["r"]),
        NodeProto::new("Gemm", "two", &["r", "v", "bias"], &["b"]).with(int("transB", 1)),
        NodeProto::new("MatMul", "small", &["b", "s"], &["c"]),
        NodeProto::new("Unsqueeze", "image", &["c", "axes"], &["i"]),
        NodeProto::new("Conv", "conv", &["i", "k"], &["d"]),
        NodeProto::new("Squeeze", "flat", &["d", "axes"], &["e"]),
        NodeProto::new("MatMul", "last", &["e", "z"], &["y"]),
    ];
    let graph = GraphProto {
        name: Some("g".into()),
        node: nodes,
        initializer: vec![
            weight("table", &[300, 192], 2.0),
            weight("w", &[192, 160], 0.1),
            weight("v", &[176, 160], 0.1),
            weight("bias", &[176], 1.0),
            weight("s", &[176, 48], 0.1),
            TensorProto::from_i64("axes", &[1], &[0]),
            weight("k", &[64, 10, 6], 0.1),
            weight("z", &[43, 400], far),
        ],
        input: vec![port("ids", DataType::Int64, &[10])],
        output: vec![port("y", DataType::Float, &[64, 400])],
        ..GraphProto::default()
    };
    ModelProto {
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(17),
        }],
        ..ModelProto::from_graph(graph, 17)
    }
}

fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

/// Converts a file in memory; returns the whole model, and the number of restarts.
fn convert(file: &[u8], settings: &Settings) -> (ModelProto, Converted, usize) {
    let mut reader = SkeletonReader::new("m.onnx", file.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&file[offset as usize..][..length]).unwrap();
    }
    let mut small = SmallTensors::new(reader.finish().unwrap()).unwrap();
    while let Some(stretch) = small.next().cloned() {
        small
            .feed(&file[stretch.offset as usize..stretch.end() as usize])
            .unwrap();
    }
    let output = OutputFiles {
        model: "q.onnx".into(),
        limit: u64::MAX,
    };
    let mut conversion = Conversion::new(small.finish().unwrap(), settings, output).unwrap();
    let empty = |conversion: &Conversion| -> Vec<Vec<u8>> {
        let files = conversion.files().iter();
        files.map(|file| vec![0; file.bytes as usize]).collect()
    };
    let (mut files, mut restarts) = (empty(&conversion), 0);
    loop {
        match conversion.next_step().unwrap() {
            ConversionStep::Read(stretch) => {
                let bytes = &file[stretch.offset as usize..stretch.end() as usize];
                conversion.feed(bytes).unwrap();
            }
            ConversionStep::Copy {
                from,
                file: to,
                offset,
                ..
            } => {
                let bytes = &file[from.offset as usize..from.end() as usize];
                files[to][offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            ConversionStep::Write {
                file,
                offset,
                bytes,
            } => {
                files[file][offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            ConversionStep::Restart => {
                files = empty(&conversion);
                restarts += 1;
            }
            ConversionStep::Finished => break,
        }
    }
    let (read, all) = conversion.progress();
    assert_eq!(read, all);
    let names: Vec<String> = conversion.files().iter().map(|f| f.name.clone()).collect();
    let converted = conversion.finish().unwrap();
    let mut whole = octet_onnx::read(converted.model.as_slice().concat().into()).unwrap();
    let files = names.into_iter().zip(files.into_iter().map(Into::into));
    external::attach(&mut whole, &files.collect()).unwrap();
    (whole, converted, restarts)
}

/// Type, shape and bytes of a constant.
type Contents = (Option<i32>, Vec<i64>, Vec<u8>);

/// The contents of the main graph's constants, by name.
fn constants(model: &ModelProto) -> BTreeMap<String, Contents> {
    let tensors = model.graph.as_ref().unwrap().initializer.iter();
    tensors
        .map(|t| (t.name.clone().unwrap(), contents(t)))
        .collect()
}

fn contents(tensor: &TensorProto) -> Contents {
    let bytes = match &tensor.raw_data {
        Some(raw) => raw.to_vec(),
        None => tensor.to_i64().map_or(Vec::new(), |numbers| {
            numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
        }),
    };
    (tensor.data_type, tensor.dims.clone(), bytes)
}

const SCHEMES: [&str; 9] = [
    r#"{ "scheme": "float16" }"#,
    r#"{ "scheme": "float16", "keep_io": false }"#,
    r#"{ "scheme": "weights" }"#,
    r#"{ "scheme": "weights", "weights": { "type": "u8", "per_channel": false } }"#,
    r#"{ "scheme": "dynamic" }"#,
    r#"{ "scheme": "dynamic", "weights": { "type": "u8", "per_channel": false } }"#,
    r#"{ "scheme": "blocks", "blocks": { "activations": "float16" } }"#,
    r#"{ "scheme": "blocks", "blocks": { "activations": "float16", "embeddings": true, "symmetric": false } }"#,
    r#"{ "scheme": "blocks", "blocks": { "form": "matmul_bnb4", "size": 64 } }"#,
];

#[test]
fn each_scheme_gives_the_model_that_it_gives_in_memory() {
    let source = model(1.0);
    let file = write(&source).unwrap();
    let prepared = prepare(Model::from_proto(source).unwrap()).unwrap().model;
    for text in SCHEMES {
        let settings = settings(text);
        let (found, converted, restarts) = convert(&file, &settings);
        let wanted = apply(&prepared, &settings, None).unwrap();
        let proto = wanted.model.to_proto();
        assert_eq!(restarts, 0);
        assert_eq!(
            found.graph.as_ref().unwrap().node,
            proto.graph.as_ref().unwrap().node,
            "{text}"
        );
        assert!(constants(&found) == constants(&proto), "{text}");
        assert_eq!(converted.quantized.nodes, wanted.nodes, "{text}");
        assert_eq!(found.graph.unwrap().output, proto.graph.unwrap().output);
    }
}

#[test]
fn weights_that_are_not_finite_stay_float_and_are_listed() {
    let mut source = model(1.0);
    for (name, number) in [("w", f32::NAN), ("z", f32::INFINITY)] {
        let constants = source.graph.as_mut().unwrap().initializer.iter_mut();
        for tensor in constants.filter(|tensor| tensor.name.as_deref() == Some(name)) {
            let mut values = tensor.to_f32().unwrap();
            values[100] = number;
            *tensor = TensorProto::from_f32(name, &tensor.shape().unwrap(), &values);
        }
    }
    let file = write(&source).unwrap();
    let prepared = prepare(Model::from_proto(source).unwrap()).unwrap().model;
    let own = [
        r#"{ "scheme": "blocks" }"#,
        r#"{ "scheme": "blocks", "blocks": { "method": "search" } }"#,
    ];
    let schemes = SCHEMES.into_iter().filter(|text| !text.contains("float16"));
    for text in schemes.chain(own) {
        let settings = settings(text);
        let (found, converted, restarts) = convert(&file, &settings);
        assert_eq!(restarts, 1, "{text}");
        let wanted = apply(&prepared, &settings, None).unwrap();
        let constants = constants(&found);
        assert!(
            constants == self::constants(&wanted.model.to_proto()),
            "{text}"
        );
        assert_eq!(constants["w"].0, Some(DataType::Float as i32), "{text}");
        let nodes = converted.quantized.nodes.iter();
        let kept: Vec<&str> = nodes
            .filter(|choice| format!("{:?}", choice.reason).contains("WeightNotFinite"))
            .map(|choice| choice.node.as_str())
            .collect();
        assert_eq!(kept, ["one", "last"], "{text}");
    }
}

#[test]
fn nodes_with_numbers_beyond_float16_stay_float32_and_are_listed() {
    let source = model(300_000.0);
    let file = write(&source).unwrap();
    let prepared = prepare(Model::from_proto(source).unwrap()).unwrap().model;
    for text in [SCHEMES[0], SCHEMES[6]] {
        let mut settings = settings(text);
        if settings.scheme == Scheme::Blocks {
            // The last weight is not in blocks.
            settings.operators = Operators::Only(vec!["Gemm".into()]);
        }
        let (found, converted, restarts) = convert(&file, &settings);
        assert_eq!(restarts, 1, "{text}");
        let wanted = apply(&prepared, &settings, None).unwrap();
        let constants = constants(&found);
        assert!(constants == self::constants(&wanted.model.to_proto()));
        assert_eq!(constants["z"].0, Some(DataType::Float as i32));
        let said = format!(
            "{:?} {:?}",
            converted.quantized.nodes, converted.quantized.notes
        );
        assert!(said.contains("too large for float16"), "{said}");
    }
}
