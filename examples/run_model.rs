//! Runs a quantized model on integer regions: `run_model MODEL.onnx IN.npz OUT.npz [--float]
//! [--pairs] [--threads N] [--time RUNS]`. `--pairs` emulates x86 without VNNI. With two folders, every `.npz` of the first is run into the
//! second.
//!
//! Arrays have the names of the model's inputs and outputs. The fused nodes are written to standard
//! output as JSON, with the milliseconds of each run if `--time` is set. The oracle
//! (`tests/oracle/test_integers.py`) compares the results with ONNX Runtime.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, error::Error, fs};

use octet::graph::{Model, tensor_type_of};
use octet::onnx::schema::TensorProto;
use octet::prepare::prepare;
use octet::runtime::{Engine, Processor};
use octet::samples::{Encoded, InputSpec, SampleSettings, decode};
use octet::tensor::{Tensor, Values};
use octet_kernels::int8::Form;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let float = take(&mut arguments, "--float").is_some();
    let pairs = take(&mut arguments, "--pairs").is_some();
    let threads = number(&mut arguments, "--threads")?.unwrap_or(1);
    let runs = number(&mut arguments, "--time")?.unwrap_or(0);
    let [model, input, output] = &arguments[..] else {
        let usage =
            "run_model MODEL.onnx IN.npz OUT.npz [--float] [--pairs] [--threads N] [--time RUNS]";
        return Err(usage.into());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    let begin = Instant::now();
    Form::choose(|| begin.elapsed().as_secs_f64());
    let file = octet::onnx::read(fs::read(model)?.into())?;
    let model = prepare(Model::from_proto(file)?)?.model;
    let inputs = specs(&model);
    let outputs: Vec<String> = model
        .graph
        .outputs()
        .iter()
        .filter_map(|v| v.name.clone())
        .collect();
    let engine = match float {
        true => Engine::new(model, Vec::new()),
        false => Engine::new(model, Vec::new()).on_integers(),
    };
    let engine = engine.emulating(match pairs {
        true => Processor::X86WithoutVnni,
        false => Processor::Exact,
    });
    let mut tensors = Vec::new();
    for (input, output) in files(Path::new(input), Path::new(output))? {
        let name = input.display().to_string();
        let sample = Encoded {
            name: name.clone(),
            parts: vec![(name, fs::read(input)?.into())],
        };
        tensors = decode(&sample, &inputs, &SampleSettings::default())?;
        write(
            &output,
            &outputs,
            &engine.run(&tensors, |_, _| {}, || false)?,
        )?;
    }
    let mut times = Vec::new();
    for _ in 0..runs {
        let begin = Instant::now();
        engine.run(&tensors, |_, _| {}, || false)?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let summary = serde_json::json!({
        "nodes": engine.fused(&tensors, &|| false)?,
        "milliseconds": times,
        "form": Form::best().name(),
    });
    println!("{summary}");
    Ok(())
}

/// Pairs of an input file and its output file.
fn files(input: &Path, output: &Path) -> Result<Vec<(PathBuf, PathBuf)>, Box<dyn Error>> {
    if !input.is_dir() {
        return Ok(vec![(input.to_owned(), output.to_owned())]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(input)? {
        let entry = entry?;
        files.push((entry.path(), output.join(entry.file_name())));
    }
    files.sort();
    match files.is_empty() {
        true => Err(format!("{} is empty", input.display()).into()),
        false => Ok(files),
    }
}

fn write(path: &Path, names: &[String], made: &[Tensor]) -> Result<(), Box<dyn Error>> {
    let mut archive = zip::ZipWriter::new(BufWriter::new(fs::File::create(path)?));
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, tensor) in names.iter().zip(made) {
        archive.start_file(format!("{name}.npy"), plain)?;
        archive.write_all(&npy(tensor))?;
    }
    archive.finish()?;
    Ok(())
}

fn take(arguments: &mut Vec<String>, flag: &str) -> Option<usize> {
    let at = arguments.iter().position(|argument| argument == flag)?;
    arguments.remove(at);
    Some(at)
}

fn number(arguments: &mut Vec<String>, flag: &str) -> Result<Option<usize>, Box<dyn Error>> {
    match take(arguments, flag) {
        Some(at) if at < arguments.len() => Ok(Some(arguments.remove(at).parse()?)),
        Some(_) => Err(format!("{flag} needs a number").into()),
        None => Ok(None),
    }
}

fn specs(model: &Model) -> Vec<InputSpec> {
    let inputs = model.graph.inputs.iter();
    let spec = |input| {
        let declared = tensor_type_of(input)?;
        Some(InputSpec {
            name: input.name.clone()?,
            element: declared.element,
            shape: declared.shape.unwrap_or_default(),
        })
    };
    inputs.filter_map(spec).collect()
}

/// A tensor in numpy's format: a header padded to 64 bytes, then the values.
fn npy(tensor: &Tensor) -> Vec<u8> {
    let kind = match tensor.values() {
        Values::F32(_) => "<f4",
        Values::F64(_) => "<f8",
        Values::I8(_) => "|i1",
        Values::I16(_) => "<i2",
        Values::I32(_) => "<i4",
        Values::I64(_) => "<i8",
        Values::U8(_) => "|u1",
        Values::U16(_) => "<u2",
        Values::U32(_) => "<u4",
        Values::U64(_) => "<u8",
        Values::Bool(_) => "|b1",
    };
    let sizes: String = tensor
        .shape()
        .iter()
        .map(|size| format!("{size},"))
        .collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    // Magic, version and length take 10 bytes, and the newline one.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 11;
    header.push_str(&" ".repeat(padded - header.len()));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(
        TensorProto::from_tensor("", tensor)
            .raw_data
            .unwrap_or_default(),
    );
    file
}
