//! Conversions of a model in memory, piece by piece.

#![allow(clippy::unwrap_used, clippy::result_large_err)]

use std::collections::BTreeMap;

use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    ValueInfoProto,
};
use octet_onnx::skeleton::SkeletonReader;
use octet_onnx::{Dim, TensorType, external, write};
use octet_quantize::Settings;
use octet_quantize::recipe::run_in_memory;
use octet_stream::{Conversion, ConversionStep, Converted, OutputFiles, SmallTensors, StreamError};

const ROWS: usize = 192;
const COLUMNS: usize = 160;

fn port(name: &str, shape: &[usize]) -> ValueInfoProto {
    let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
    let kind = TensorType {
        element: DataType::Float,
        shape: Some(shape),
    };
    ValueInfoProto::new(name, &kind)
}

fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| random()).collect()
}

/// Two products that share a weight, a Gemm with a transposed one, and an Add of a large constant.
fn model() -> ModelProto {
    let w = TensorProto::from_f32("w", &[ROWS, COLUMNS], &numbers(1, ROWS * COLUMNS));
    let v = TensorProto::from_f32("v", &[ROWS, COLUMNS], &numbers(2, ROWS * COLUMNS));
    let table = TensorProto::from_f32("table", &[200, COLUMNS], &numbers(3, 200 * COLUMNS));
    let bias = TensorProto::from_f32("bias", &[ROWS], &numbers(4, ROWS));
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            NodeProto::new("MatMul", "one", &["x", "w"], &["a"]),
            NodeProto::new("MatMul", "two", &["x", "w"], &["b"]),
            NodeProto::new("Add", "sum", &["a", "b"], &["c"]),
            NodeProto::new("Add", "far", &["c", "table"], &["d"]),
            NodeProto::new("Gemm", "three", &["d", "v", "bias"], &["y"])
                .with(AttributeProto::int("transB", 1)),
        ],
        initializer: vec![w, table, v, bias],
        input: vec![port("x", &[200, ROWS])],
        output: vec![port("y", &[200, ROWS])],
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

/// Converts a file in memory; returns the model file and the files of constants.
fn convert(file: &[u8], limit: u64) -> Result<(Converted, BTreeMap<String, Vec<u8>>), StreamError> {
    let mut reader = SkeletonReader::new("m.onnx", file.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&file[offset as usize..][..length]).unwrap();
    }
    let mut small = SmallTensors::new(reader.finish().unwrap())?;
    while let Some(stretch) = small.next().cloned() {
        small.feed(&file[stretch.offset as usize..stretch.end() as usize])?;
    }
    let settings = Settings {
        scheme: octet_quantize::Scheme::Blocks,
        ..Settings::default()
    };
    let output = OutputFiles {
        model: "m_q4.onnx".into(),
        limit,
    };
    let mut conversion = Conversion::new(small.finish()?, &settings, output)?;
    let mut files: Vec<Vec<u8>> = conversion
        .files()
        .iter()
        .map(|file| vec![0; file.bytes as usize])
        .collect();
    let names: Vec<String> = conversion.files().iter().map(|f| f.name.clone()).collect();
    loop {
        match conversion.next()? {
            ConversionStep::Read(stretch) => {
                let end = (stretch.end() as usize).min(file.len());
                conversion.feed(&file[stretch.offset as usize..end])?;
            }
            ConversionStep::Write {
                file,
                offset,
                bytes,
            } => {
                files[file][offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            ConversionStep::Restart => panic!("blocks are never planned again"),
            ConversionStep::Finished => break,
        }
    }
    let (read, all) = conversion.progress();
    assert_eq!(read, all);
    Ok((conversion.finish()?, names.into_iter().zip(files).collect()))
}

fn attached(converted: &Converted, files: &BTreeMap<String, Vec<u8>>) -> ModelProto {
    let bytes = converted.model.as_slice().concat();
    let mut model = octet_onnx::read(bytes.into()).unwrap();
    let files = files
        .iter()
        .map(|(name, bytes)| (name.clone(), bytes.clone().into()));
    external::attach(&mut model, &files.collect()).unwrap();
    model
}

#[test]
fn a_streamed_model_has_the_bytes_of_its_recipes_and_the_rest_of_the_file() {
    let source = model();
    let file = write(&source).unwrap();
    let (converted, files) = convert(&file, u64::MAX).unwrap();
    assert_eq!(Vec::from_iter(files.keys()), ["m_q4.onnx_data"]);
    let result = attached(&converted, &files);
    let graph = result.graph.as_ref().unwrap();
    let operators: Vec<_> = graph
        .node
        .iter()
        .filter_map(|n| n.op_type.as_deref())
        .collect();
    assert_eq!(
        operators,
        [
            "MatMulNBits",
            "MatMulNBits",
            "Add",
            "Add",
            "MatMulNBits",
            "Add"
        ]
    );
    assert_eq!(
        graph.node[0].input, graph.node[1].input,
        "one weight for both"
    );
    let by_name = |graph: &GraphProto, name: &str| {
        let mut tensors = graph.initializer.iter();
        tensors.find(|t| t.name.as_deref() == Some(name)).cloned()
    };
    let before = source.graph.as_ref().unwrap();
    assert_eq!(by_name(graph, "table"), by_name(before, "table"));
    assert_eq!(by_name(graph, "bias"), by_name(before, "bias"));
    assert_eq!(by_name(graph, "w"), None);
    for (planned, _) in converted
        .summaries
        .iter()
        .filter(|(p, _)| p.outputs.len() == 2)
    {
        let name = planned.source.title();
        let data = by_name(before, name).unwrap().raw_data.unwrap();
        let wanted = run_in_memory(planned.start().unwrap().as_mut(), &data).unwrap();
        for (output, wanted) in planned.outputs.iter().zip(wanted) {
            let tensor = by_name(graph, output).unwrap();
            assert!(tensor.raw_data.unwrap() == wanted, "{output}");
        }
    }
}

#[test]
fn several_files_hold_the_same_constants_as_one() {
    let file = write(&model()).unwrap();
    let (one, whole) = convert(&file, u64::MAX).unwrap();
    let (several, parts) = convert(&file, 100_000).unwrap();
    assert!(parts.len() > 1, "{:?}", parts.keys());
    assert_eq!(attached(&one, &whole), attached(&several, &parts));
}

#[test]
fn a_file_that_ends_early_is_named() {
    let file = write(&model()).unwrap();
    let mut reader = SkeletonReader::new("m.onnx", file.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&file[offset as usize..][..length]).unwrap();
    }
    let settings = Settings {
        scheme: octet_quantize::Scheme::Blocks,
        ..Settings::default()
    };
    let output = OutputFiles {
        model: "o.onnx".into(),
        limit: u64::MAX,
    };
    let mut conversion = Conversion::new(reader.finish().unwrap(), &settings, output).unwrap();
    let ConversionStep::Read(stretch) = conversion.next().unwrap() else {
        panic!("the first step is a read");
    };
    let error = conversion
        .feed(&vec![0; stretch.length as usize - 7])
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("m.onnx ended 7 bytes early"), "{text}");
}
