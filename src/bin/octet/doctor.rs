//! `octet doctor`: the machine, this build, a short check of it, and what would become of a model.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use octet::profile::{environment, has_vnni};
use octet::quantize::Settings;
use octet::session::self_check::{SelfCheck, self_check};
use octet::session::{ModelSummary, Session};
use octet_host::{fs, process};
use serde::Serialize;

use super::stream_source::Source;
use super::{Failure, files, open, threads};

#[derive(Args)]
pub struct DoctorOptions {
    /// A model: can it be read, and what would be done with it?
    model: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// All that the command finds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Diagnosis {
    octet: &'static str,
    build: &'static str,
    /// False for a build whose kernels are many times slower.
    optimized: bool,
    architecture: &'static str,
    system: &'static str,
    /// Extensions of the processor that kernels use.
    instructions: Vec<&'static str>,
    /// Byte products of ONNX Runtime that never saturate.
    vnni: Option<bool>,
    threads: usize,
    free_memory: Option<u64>,
    disks: Vec<Disk>,
    self_check: SelfCheck,
    model: Option<ModelDiagnosis>,
}

/// Free space where results or temporary files go.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Disk {
    folder: PathBuf,
    free: Option<u64>,
}

/// The fate of a model with the default settings.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelDiagnosis {
    path: PathBuf,
    /// Bytes with the files of weights.
    bytes: Option<u64>,
    nodes: usize,
    quantizable: usize,
    /// Kinds of samples, in words.
    samples: String,
    /// Path of the result; `None` if there would be none.
    out: Option<PathBuf>,
    /// Reason why it can't be quantized.
    problem: Option<String>,
    notes: Vec<String>,
}

/// Runs the command.
pub fn run(options: &DoctorOptions) -> Result<(), Failure> {
    let threads = threads::start(options.threads)?;
    let self_check = self_check()?;
    let free_memory = process::free_memory();
    let here = environment(threads);
    let (model, failure) = match &options.model {
        Some(path) => {
            let (model, failure) = examine(path, free_memory);
            (Some(model), failure)
        }
        None => (None, None),
    };
    let diagnosis = Diagnosis {
        octet: here.octet,
        build: process::BUILD,
        optimized: !cfg!(debug_assertions),
        architecture: here.architecture,
        system: match cfg!(target_family = "wasm") {
            true => "node",
            false => here.system,
        },
        instructions: here.instructions,
        vnni: has_vnni(),
        threads,
        free_memory,
        disks: disks(),
        self_check,
        model,
    };
    files::print(&match options.json {
        true => serde_json::to_string_pretty(&diagnosis)? + "\n",
        false => text(&diagnosis)?,
    })?;
    match diagnosis.self_check.passed {
        true => failure.map_or(Ok(()), Err),
        false => Err(Failure::internal(format!(
            "the self-check failed with the kernels {}: results of this build are wrong on this machine; please report \
             the output of octet doctor --json",
            diagnosis.self_check.kernels
        ))),
    }
}

/// The current folder, and that of temporary files if it is another.
fn disks() -> Vec<Disk> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in [PathBuf::from("."), fs::temporary_folder()] {
        let folder = fs::canonical(&folder).unwrap_or(folder);
        if !folder.as_os_str().is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let disk = |folder: PathBuf| Disk {
        free: fs::free_bytes(&folder),
        folder,
    };
    folders.into_iter().map(disk).collect()
}

/// Opens a model as `octet quantize` does.
fn examine(path: &Path, free_memory: Option<u64>) -> (ModelDiagnosis, Option<Failure>) {
    let mut model = ModelDiagnosis {
        path: path.to_path_buf(),
        bytes: Source::size(path),
        nodes: 0,
        quantizable: 0,
        samples: String::new(),
        out: None,
        problem: None,
        notes: Vec::new(),
    };
    let too_large = |bytes: u64| free_memory.is_some_and(|free| bytes > free);
    if model.bytes.is_some_and(too_large) {
        let note = "it is larger than the free memory, and --scheme static reads all of it: choose dynamic, weights, blocks or \
                    float16, which convert a large model piece by piece";
        model.notes.push(note.into());
        return (model, None);
    }
    let opened = open::open(path).and_then(|session| {
        let refused = session.refuse_quantized();
        refused.map_err(|error| Failure::from(error).about(path.display()))?;
        Ok(session)
    });
    match opened {
        Ok(session) => {
            describe(&mut model, &session);
            (model, None)
        }
        Err(failure) => {
            model.problem = Some(failure.line.clone());
            (model, Some(failure))
        }
    }
}

fn describe(model: &mut ModelDiagnosis, session: &Session) {
    let card = session.summary();
    model.bytes = Some(card.bytes_in_all());
    model.nodes = card.operators.iter().map(|(_, count)| count).sum();
    model.quantizable = card.quantizable;
    model.samples = samples(card);
    model.notes.clone_from(&card.warnings);
    let name = model.path.file_name().unwrap_or_default();
    let out = Settings::default().file_name(&name.to_string_lossy());
    let out = model.path.with_file_name(out);
    if fs::exists(&out).unwrap_or(false) {
        let note = format!("{} exists already: name another with --out", out.display());
        model.notes.push(note);
    }
    if model.quantizable == 0 {
        model
            .notes
            .push("none of its operators can be quantized".into());
    }
    model.out = Some(out);
}

/// The kinds of samples that a model takes.
fn samples(card: &ModelSummary) -> String {
    let inputs = card.inputs.iter();
    let arrays: Vec<String> = inputs
        .map(|input| format!("{} ({} {})", input.name, input.element, input.shape))
        .collect();
    let arrays = format!(".npz with {}", arrays.join(", "));
    match (&card.pictures, &card.texts) {
        (Some(_), _) => format!("pictures, or {arrays}"),
        (None, Some(_)) => format!("texts with a tokenizer.json, or {arrays}"),
        (None, None) => arrays,
    }
}

fn gigabytes(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{:.1} GB free", bytes as f64 / 1e9),
        None => "unknown, the system does not tell".into(),
    }
}

fn text(found: &Diagnosis) -> Result<String, Failure> {
    let mut out = String::new();
    let slow = match found.optimized {
        true => "",
        false => ", not optimized: build it with --release",
    };
    let (architecture, system) = (found.architecture, found.system);
    let (version, build) = (found.octet, found.build);
    writeln!(
        out,
        "octet {version}, {build}, {architecture} {system}{slow}"
    )?;
    let vnni = match found.vnni {
        Some(true) => "; with VNNI",
        Some(false) => "; without VNNI, so ONNX Runtime may saturate sums of products",
        None => "",
    };
    let instructions = match found.instructions.is_empty() {
        true => "no extensions".into(),
        false => found.instructions.join(", "),
    };
    writeln!(
        out,
        "processor: {instructions}{vnni}; {} threads",
        found.threads
    )?;
    writeln!(out, "memory: {}", gigabytes(found.free_memory))?;
    for disk in &found.disks {
        writeln!(
            out,
            "disk: {} in {}",
            gigabytes(disk.free),
            disk.folder.display()
        )?;
    }
    let check = &found.self_check;
    let available = check.available.join(", ");
    writeln!(out, "kernels: {}, of {available}", check.kernels)?;
    writeln!(
        out,
        "self-check: {}",
        match check.passed {
            true => "passed, a model became the bytes and outputs that every build gives",
            false => "failed, a model became other bytes or outputs than in other builds",
        }
    )?;
    if let Some(model) = &found.model {
        write_model(&mut out, model)?;
    }
    Ok(out)
}

fn write_model(out: &mut String, model: &ModelDiagnosis) -> Result<(), Failure> {
    let path = model.path.display();
    let bytes = model
        .bytes
        .map_or(String::new(), |bytes| format!(": {bytes} bytes"));
    writeln!(out, "model {path}{bytes}")?;
    if let Some(problem) = &model.problem {
        writeln!(out, "  can't be quantized: {problem}")?;
    }
    if let Some(result) = &model.out {
        writeln!(
            out,
            "  {} of {} nodes can be quantized\n  octet {path} SAMPLES would write {}\n  samples: {}",
            model.quantizable,
            model.nodes,
            result.display(),
            model.samples
        )?;
    }
    for note in &model.notes {
        writeln!(out, "  note: {note}")?;
    }
    Ok(())
}
