//! A conversion that plans again, its journal, and the list of its reads.

#![allow(clippy::unwrap_used)]

use octet_onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};
use octet_onnx::skeleton::SkeletonReader;
use octet_onnx::{Dim, Stretch, TensorType, write};
use octet_quantize::{Scheme, Settings};
use octet_stream::{
    Conversion, ConversionJournal, ConversionStep, OutputFiles, SmallTensors, SourceIdentity,
};

const SIDE: usize = 160;

fn settings(scheme: Scheme) -> Settings {
    Settings {
        scheme,
        ..Settings::default()
    }
}

fn output() -> OutputFiles {
    OutputFiles {
        model: "m_fp16.onnx".into(),
        limit: 60_000,
    }
}

/// Three products; the second weight has a number beyond float16.
fn file() -> Vec<u8> {
    let weight = |name: &str, last: f32| {
        let mut values: Vec<f32> = (0..SIDE * SIDE).map(|at| (at % 97) as f32 / 64.0).collect();
        values[SIDE * SIDE - 1] = last;
        TensorProto::from_f32(name, &[SIDE, SIDE], &values)
    };
    let kind = TensorType {
        element: DataType::Float,
        shape: Some(vec![Dim::Known(1), Dim::Known(SIDE)]),
    };
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            NodeProto::new("MatMul", "one", &["x", "u"], &["a"]),
            NodeProto::new("MatMul", "two", &["a", "v"], &["b"]),
            NodeProto::new("MatMul", "three", &["b", "w"], &["y"]),
        ],
        initializer: vec![weight("u", 1.0), weight("v", 1e6), weight("w", 1.0)],
        input: vec![ValueInfoProto::new("x", &kind)],
        output: vec![ValueInfoProto::new("y", &kind)],
        ..GraphProto::default()
    };
    write(&ModelProto::from_graph(graph, 21)).unwrap().to_vec()
}

fn planned(file: &[u8], scheme: Scheme) -> Conversion {
    let mut reader = SkeletonReader::new("m.onnx", file.len() as u64);
    while let Some((offset, length)) = reader.next() {
        reader.feed(&file[offset as usize..][..length]).unwrap();
    }
    let mut small = SmallTensors::new(reader.finish().unwrap()).unwrap();
    while let Some(stretch) = small.next().cloned() {
        let bytes = &file[stretch.offset as usize..stretch.end() as usize];
        small.feed(bytes).unwrap();
    }
    Conversion::new(small.finish().unwrap(), &settings(scheme), output()).unwrap()
}

fn journal(conversion: &Conversion) -> ConversionJournal {
    let source = SourceIdentity {
        name: "m.onnx".into(),
        bytes: 5,
        modified: None,
    };
    let settings = settings(Scheme::Float16);
    ConversionJournal::new("1", vec![source], &settings, &output(), conversion)
}

/// The files, the number of restarts and the reads of a run.
#[derive(Default)]
struct DrivenRun {
    files: Vec<Vec<u8>>,
    restarts: usize,
    reads: Vec<Stretch>,
}

/// Goes on to the end, or until so many recipes are finished after a restart.
fn drive(conversion: &mut Conversion, file: &[u8], run: &mut DrivenRun, until: usize) {
    let empty = |conversion: &Conversion| {
        let files = conversion.files().iter();
        files.map(|file| vec![0; file.bytes as usize]).collect()
    };
    if run.files.is_empty() {
        run.files = empty(conversion);
    }
    while run.restarts == 0 || conversion.finished().len() < until {
        match conversion.next_step().unwrap() {
            ConversionStep::Read(stretch) => {
                let bytes = &file[stretch.offset as usize..stretch.end() as usize];
                conversion.feed(bytes).unwrap();
                run.reads.push(stretch);
            }
            ConversionStep::Copy {
                from,
                file: to,
                offset,
                again,
            } => {
                let bytes = &file[from.offset as usize..from.end() as usize];
                run.files[to][offset as usize..][..bytes.len()].copy_from_slice(bytes);
                if !again {
                    run.reads.push(from);
                }
            }
            ConversionStep::Write {
                file,
                offset,
                bytes,
            } => run.files[file][offset as usize..][..bytes.len()].copy_from_slice(&bytes),
            ConversionStep::Restart => {
                run.files = empty(conversion);
                run.restarts += 1;
            }
            ConversionStep::Finished => break,
        }
    }
}

#[test]
fn a_conversion_that_planned_again_goes_on_from_its_journal() {
    let file = file();
    let mut whole = planned(&file, Scheme::Float16);
    let before = whole.files().to_vec();
    let mut wanted = DrivenRun::default();
    drive(&mut whole, &file, &mut wanted, usize::MAX);
    assert_eq!(wanted.restarts, 1);
    assert_ne!(whole.files(), before, "a float32 weight takes more room");

    let mut first = planned(&file, Scheme::Float16);
    let mut record = journal(&first);
    let mut run = DrivenRun::default();
    drive(&mut first, &file, &mut run, 1);
    record.restart(&first);
    assert!(record.record(&first));
    let known = ConversionJournal::from_json(&record.to_json()).unwrap();

    let mut second = planned(&file, Scheme::Float16);
    let mut current = journal(&second);
    known.resume(&mut current, &mut second).unwrap();
    assert_eq!(current, known);
    assert_eq!(second.files(), whole.files());
    assert_eq!(second.finished().len(), 1);
    drive(&mut second, &file, &mut run, usize::MAX);
    assert_eq!(run.restarts, 1, "the second one has nothing to learn");
    assert!(run.files == wanted.files);
    let [one, other] = [whole, second].map(|conversion| conversion.finish().unwrap().model);
    assert_eq!(one.as_slice().concat(), other.as_slice().concat());
}

#[test]
fn the_reads_of_a_plan_are_known_before() {
    let file = file();
    for scheme in [Scheme::Blocks, Scheme::Dynamic, Scheme::Weights] {
        let mut conversion = planned(&file, scheme);
        let mut expected = conversion.reads().unwrap();
        let mut run = DrivenRun::default();
        drive(&mut conversion, &file, &mut run, usize::MAX);
        assert_eq!(run.reads, expected, "{scheme:?}");
        assert_eq!(conversion.reads().unwrap(), []);

        // Those that are left after a part.
        let mut conversion = planned(&file, scheme);
        let ConversionStep::Read(first) = conversion.next_step().unwrap() else {
            panic!("the first step is a read");
        };
        conversion
            .feed(&file[first.offset as usize..first.end() as usize])
            .unwrap();
        assert_eq!(expected.remove(0), first);
        assert_eq!(conversion.reads().unwrap(), expected, "{scheme:?}");
    }
}
