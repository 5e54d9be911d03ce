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
use octet_stream::{
    Conversion, ConversionJournal, ConversionStep, Converted, JournalError, OutputFiles,
    SmallTensors, SourceIdentity, StreamError,
};

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

/// Plans the conversion of a file in memory.
fn planned(file: &[u8], output: OutputFiles) -> Result<Conversion, StreamError> {
    let mut reader = SkeletonReader::new("m.onnx", file.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&file[offset as usize..][..length]).unwrap();
    }
    let mut small = SmallTensors::new(reader.finish().unwrap())?;
    while let Some(stretch) = small.next().cloned() {
        small.feed(&file[stretch.offset as usize..stretch.end() as usize])?;
    }
    Conversion::new(small.finish()?, &settings(), output)
}

fn settings() -> Settings {
    Settings {
        scheme: octet_quantize::Scheme::Blocks,
        ..Settings::default()
    }
}

fn output(limit: u64) -> OutputFiles {
    OutputFiles {
        model: "m_q4.onnx".into(),
        limit,
    }
}

fn empty_files(conversion: &Conversion) -> Vec<Vec<u8>> {
    let files = conversion.files().iter();
    files.map(|file| vec![0; file.bytes as usize]).collect()
}

/// Drives a conversion until this many recipes are finished, or to its end.
fn drive(
    conversion: &mut Conversion,
    source: &[u8],
    files: &mut [Vec<u8>],
    until: usize,
) -> Result<(), StreamError> {
    while conversion.finished().len() < until {
        match conversion.next_step()? {
            ConversionStep::Read(stretch) => {
                let end = (stretch.end() as usize).min(source.len());
                conversion.feed(&source[stretch.offset as usize..end])?;
            }
            ConversionStep::Copy {
                from, file, offset, ..
            } => {
                let bytes = &source[from.offset as usize..from.end() as usize];
                files[file][offset as usize..][..bytes.len()].copy_from_slice(bytes);
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
    Ok(())
}

/// Converts a file in memory; returns the model file and the files of constants.
fn convert(file: &[u8], limit: u64) -> Result<(Converted, BTreeMap<String, Vec<u8>>), StreamError> {
    let mut conversion = planned(file, output(limit))?;
    let mut files = empty_files(&conversion);
    drive(&mut conversion, file, &mut files, usize::MAX)?;
    let names: Vec<String> = conversion.files().iter().map(|f| f.name.clone()).collect();
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
fn a_weight_that_stays_beside_its_integers_is_read_once() {
    let mut source = model();
    let graph = source.graph.as_mut().unwrap();
    graph
        .node
        .push(NodeProto::new("Relu", "float", &["w"], &["z"]));
    graph.output.push(port("z", &[ROWS, COLUMNS]));
    let file = write(&source).unwrap();
    let (converted, wanted) = convert(&file, u64::MAX).unwrap();
    let result = attached(&converted, &wanted);
    let tensors = &result.graph.as_ref().unwrap().initializer;
    let weight = tensors.iter().find(|t| t.name.as_deref() == Some("w"));
    let before = &source.graph.as_ref().unwrap().initializer[0];
    assert!(weight.unwrap().raw_data == before.raw_data);

    let all = planned(&file, output(u64::MAX)).unwrap().progress().1;
    let large = (2 * ROWS + 200) * COLUMNS * size_of::<f32>();
    assert_eq!(all, large as u64, "each large constant once");
    // After the integers, an old journal may lack the copy.
    for until in 0..=4 {
        let mut files = empty_files(&planned(&file, output(u64::MAX)).unwrap());
        let mut first = planned(&file, output(u64::MAX)).unwrap();
        drive(&mut first, &file, &mut files, until).unwrap();
        for known in [until, first.finished().len()] {
            let mut second = planned(&file, output(u64::MAX)).unwrap();
            second.resume(&first.finished()[..known]).unwrap();
            assert_eq!(second.finished().len(), known);
            drive(&mut second, &file, &mut files, usize::MAX).unwrap();
            let (read, all) = second.progress();
            assert_eq!(read, all);
            assert!(files.iter().eq(wanted.values()), "after {known} recipes");
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
    let mut conversion = planned(&file, output(u64::MAX)).unwrap();
    let ConversionStep::Read(stretch) = conversion.next_step().unwrap() else {
        panic!("the first step is a read");
    };
    let error = conversion
        .feed(&vec![0; stretch.length as usize - 7])
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("m.onnx ended 7 bytes early"), "{text}");
}

fn sources(modified: u64) -> Vec<SourceIdentity> {
    vec![SourceIdentity {
        name: "m.onnx".into(),
        bytes: 5,
        modified: Some(modified),
    }]
}

fn journal(conversion: &Conversion, output: &OutputFiles) -> ConversionJournal {
    ConversionJournal::new("1", sources(7), &settings(), output, conversion)
}

#[test]
fn a_conversion_goes_on_from_its_journal_with_the_same_bytes() {
    let file = write(&model()).unwrap();
    let (whole, wanted) = convert(&file, 100_000).unwrap();
    let output = output(100_000);
    for until in 0..=3 {
        let mut first = planned(&file, output.clone()).unwrap();
        let mut files = empty_files(&first);
        let mut record = journal(&first, &output);
        drive(&mut first, &file, &mut files, until).unwrap();
        assert_eq!(record.record(&first), until > 0);
        assert!(!record.record(&first), "nothing new");
        let text = record.to_json();

        let mut second = planned(&file, output.clone()).unwrap();
        let known = ConversionJournal::from_json(&text).unwrap();
        let mut current = journal(&second, &output);
        known.resume(&mut current, &mut second).unwrap();
        assert_eq!(second.finished(), first.finished());
        assert!(second.progress().0 <= first.progress().0);
        assert_eq!(second.progress().0 > 0, until > 0);
        drive(&mut second, &file, &mut files, usize::MAX).unwrap();
        let (read, all) = second.progress();
        assert_eq!(read, all);
        assert!(files.iter().eq(wanted.values()), "after {until} recipes");
        let rest = second.finish().unwrap();
        assert_eq!(
            rest.model.as_slice().concat(),
            whole.model.as_slice().concat()
        );
        assert_eq!(rest.summaries, whole.summaries);
    }
}

#[test]
fn a_journal_of_another_conversion_says_what_differs() {
    let file = write(&model()).unwrap();
    let output = output(u64::MAX);
    let conversion = planned(&file, output.clone()).unwrap();
    let known = journal(&conversion, &output);
    assert_eq!(known.continues(&known), Ok(()));
    let other = Settings {
        float: vec!["one".into()],
        ..settings()
    };
    let renamed = OutputFiles {
        model: "n.onnx".into(),
        ..output.clone()
    };
    let cases = [
        (
            "Octet 1",
            ConversionJournal::new("2", sources(7), &settings(), &output, &conversion),
        ),
        (
            "another m.onnx (5 bytes)",
            ConversionJournal::new("1", sources(8), &settings(), &output, &conversion),
        ),
        (
            "other source files",
            ConversionJournal::new("1", Vec::new(), &settings(), &output, &conversion),
        ),
        (
            "other settings",
            ConversionJournal::new("1", sources(7), &other, &output, &conversion),
        ),
        (
            "another name",
            ConversionJournal::new("1", sources(7), &settings(), &renamed, &conversion),
        ),
    ];
    for (words, current) in cases {
        let error = known.continues(&current).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for text in ["", "{}", &known.to_json()[1..]] {
        assert_eq!(
            ConversionJournal::from_json(text),
            Err(JournalError::Damaged)
        );
    }
    let mut text = known.to_json();
    let many = format!("\"finished\":[{}]", ["{}"; 99].join(","));
    text = text.replace("\"finished\":[]", &many);
    let known = ConversionJournal::from_json(&text).unwrap();
    let mut conversion = planned(&file, output.clone()).unwrap();
    let mut current = journal(&conversion, &output);
    let error = known.resume(&mut current, &mut conversion).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
