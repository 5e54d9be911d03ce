//! `octet quantize FOLDER --for transformers.js`: a folder that transformers.js loads as it is.
//!
//! Each model of the source folder is written in four forms, under the names that transformers.js
//! looks for, with weights in files that browsers can load. `config.json` tells it the number of
//! files, the other files are copied, and a card shows sizes and errors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use octet::onnx::schema::{DataType, ModelProto, NodeProto};
use octet::quantize::{ElementType, FloatActivations, KeptPorts, Scheme, Settings};
use octet_host::fs;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::model_card::{self, CardRow};
use super::stream::StreamedRun;
use super::stream_report::StreamReport;
use super::stream_source::Source;
use super::texts::TextOptions;
use super::{Failure, files, messages, notes};

/// The greatest size of a file of weights: Chrome loads none of 2 GiB.
const CHUNK: u64 = 2000 << 20;

/// The greatest number of files of weights that transformers.js loads.
const MOST_CHUNKS: usize = 100;

/// Beginnings of the names of caches between two runs, which are halves in half precision.
const CACHES: [&str; 3] = ["past", "present", "cache"];

/// Endings of weights in other formats, which are not copied.
const OTHER_WEIGHTS: [&str; 9] = [
    ".bin",
    ".ckpt",
    ".gguf",
    ".h5",
    ".msgpack",
    ".ot",
    ".pt",
    ".pth",
    ".safetensors",
];

/// A form of a model, as transformers.js names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelForm {
    Half,
    Dynamic,
    Blocks,
    HalfBlocks,
}

impl ModelForm {
    const ALL: [ModelForm; 4] = [
        ModelForm::Half,
        ModelForm::Dynamic,
        ModelForm::Blocks,
        ModelForm::HalfBlocks,
    ];

    /// The value of `dtype`.
    fn name(self) -> &'static str {
        match self {
            ModelForm::Half => "fp16",
            ModelForm::Dynamic => "q8",
            ModelForm::Blocks => "q4",
            ModelForm::HalfBlocks => "q4f16",
        }
    }

    /// The ending of the file's name.
    fn ending(self) -> &'static str {
        match self {
            ModelForm::Half => "_fp16",
            ModelForm::Dynamic => "_quantized",
            ModelForm::Blocks => "_q4",
            ModelForm::HalfBlocks => "_q4f16",
        }
    }

    /// True if values between the nodes are halves, and those in caches too.
    fn is_half(self) -> bool {
        matches!(self, ModelForm::Half | ModelForm::HalfBlocks)
    }

    /// The settings of a model, from those that the forms share.
    fn settings(self, shared: &Settings, model: &ModelFacts) -> Settings {
        let mut settings = shared.clone();
        settings.scheme = match self {
            ModelForm::Half => Scheme::Float16,
            ModelForm::Dynamic => Scheme::Dynamic,
            ModelForm::Blocks | ModelForm::HalfBlocks => Scheme::Blocks,
        };
        if self.is_half() {
            settings.keep_io = KeptPorts::Names(model.kept.clone());
        }
        match self {
            ModelForm::Half => {}
            ModelForm::Dynamic => {
                let weights = &mut settings.weights;
                let element = match model.unsigned {
                    true => ElementType::U8,
                    false => ElementType::I8,
                };
                weights.element = weights.element.or(Some(element));
                weights.per_channel = weights.per_channel.or(Some(false));
            }
            ModelForm::Blocks => settings.blocks.activations = FloatActivations::Source,
            ModelForm::HalfBlocks => settings.blocks.activations = FloatActivations::Float16,
        }
        settings
    }
}

/// Facts about a model on which its settings depend.
struct ModelFacts {
    /// Inputs and outputs that are no caches.
    kept: Vec<String>,
    /// True if 8-bit weights are unsigned, as transformers.js has them beside these operators.
    unsigned: bool,
}

impl ModelFacts {
    fn new(model: &ModelProto) -> Option<ModelFacts> {
        let graph = model.graph.as_ref()?;
        let halves = graph.initializer.iter().any(|tensor| {
            let element = tensor.element();
            element.is_ok_and(DataType::is_half) && tensor.is_external()
        });
        let ports = graph.input.iter().chain(&graph.output);
        let names = ports.filter_map(|port| port.name.clone());
        let is_cache = |name: &String| CACHES.iter().any(|start| name.starts_with(start));
        let needs_unsigned = |node: &NodeProto| {
            matches!(
                node.op_type.as_deref(),
                Some("Conv" | "GroupQueryAttention" | "MultiHeadAttention")
            )
        };
        (!halves).then(|| ModelFacts {
            kept: names.filter(|name| !is_cache(name)).collect(),
            unsigned: graph.node.iter().any(needs_unsigned),
        })
    }
}

/// A folder for transformers.js.
pub struct WebFolder<'a> {
    /// The folder with the float model.
    pub source: &'a Path,
    pub out: &'a Path,
    /// Settings that the forms share.
    pub settings: &'a Settings,
    /// The greatest size of a file of weights, if given.
    pub limit: u64,
    pub samples: &'a [PathBuf],
    pub texts: &'a TextOptions,
    pub report: StreamReport<'a>,
}

/// A file that was written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenModel {
    file: String,
    dtype: &'static str,
    bytes: u64,
    data_files: usize,
}

impl WebFolder<'_> {
    /// Writes the folder.
    pub fn write(&self) -> Result<(), Failure> {
        let models = self.models()?;
        self.check(&models)?;
        let onnx = self.out.join("onnx");
        fs::create_dir_all(&onnx).map_err(|error| unwritable(&onnx, &error))?;
        let (mut written, mut rows) = (Vec::new(), Vec::new());
        for model in &models {
            let mut source = Source::open(model)?;
            let facts = ModelFacts::new(&source.skeleton()?).ok_or_else(|| {
                Failure::input(format!(
                    "{} has 16-bit weights: export the model in float32, from which all forms are made",
                    model.display()
                ))
            })?;
            let stem = model.file_stem().unwrap_or_default().to_string_lossy();
            for form in ModelForm::ALL {
                let file = format!("{stem}{}.onnx", form.ending());
                let (done, row) = self.convert(model, &facts, form, onnx.join(&file))?;
                written.push(done);
                rows.push(row);
            }
        }
        self.copy(self.source)?;
        self.write_config(&written)?;
        let name = fs::canonical(self.source);
        let name = name.as_deref().unwrap_or(self.source).file_name();
        let card = model_card::text(&name.unwrap_or_default().to_string_lossy(), &rows);
        files::write(&self.out.join("README.md"), &[card], "--out")?;
        files::print(&match self.report.json {
            true => serde_json::to_string_pretty(&json!({ "files": written }))? + "\n",
            false => model_card::lines(self.out, &rows),
        })
    }

    /// The float models: those without an ending of a form, in the folder `onnx` or beside it.
    fn models(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut found = Vec::new();
        for folder in [self.source.join("onnx"), self.source.to_path_buf()] {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let models = entries
                .map(|entry| entry.path())
                .filter(|path| is_float(path));
            found.extend(models);
            if !found.is_empty() {
                break;
            }
        }
        found.sort();
        match found.is_empty() {
            true => Err(Failure::input(format!(
                "{} has no float model: put it there as model.onnx or onnx/model.onnx",
                self.source.display()
            ))),
            false => Ok(found),
        }
    }

    fn check(&self, models: &[PathBuf]) -> Result<(), Failure> {
        let same = |other: &Path| match (fs::canonical(self.out), fs::canonical(other)) {
            (Ok(out), Ok(other)) => out == other,
            _ => false,
        };
        let folders = models.iter().filter_map(|model| model.parent());
        if same(self.source) || folders.into_iter().any(same) {
            return Err(Failure::usage(format!(
                "--out {} is the folder of the model: choose another one",
                self.out.display()
            )));
        }
        if fs::is_file(self.out) {
            return Err(Failure::usage(format!(
                "--out {} is a file: --for transformers.js writes a folder",
                self.out.display()
            )));
        }
        Ok(())
    }

    fn convert(
        &self,
        model: &Path,
        facts: &ModelFacts,
        form: ModelForm,
        out: PathBuf,
    ) -> Result<(WrittenModel, CardRow), Failure> {
        let settings = form.settings(self.settings, facts);
        let done = self.report.convert(&StreamedRun {
            model,
            out: &out,
            settings: &settings,
            limit: self.limit.min(CHUNK),
        })?;
        let data_files = done.files.len() - 1;
        if data_files > MOST_CHUNKS {
            return Err(Failure::usage(format!(
                "{} has {data_files} files of weights, and transformers.js loads at most {MOST_CHUNKS}: choose a larger --data-size",
                out.display()
            )));
        }
        let all = done.all_notes();
        for line in notes::summary_lines(&all, self.report.verbose) {
            messages::note(&format!("{}: {line}", form.name()));
        }
        let file = out.file_name().unwrap_or_default().to_string_lossy();
        let row = CardRow {
            form: form.name(),
            file: format!("onnx/{file}"),
            bytes: done.bytes_after(),
            bytes_before: done.bytes_before,
            error: model_card::measured_error(
                model,
                &out,
                self.samples,
                self.texts,
                done.bytes_before,
            ),
        };
        let written = WrittenModel {
            file: file.into(),
            dtype: form.name(),
            bytes: done.bytes_after(),
            data_files,
        };
        Ok((written, row))
    }

    /// Copies the files beside the models: tokenizer, generation settings, licence and others.
    fn copy(&self, folder: &Path) -> Result<(), Failure> {
        let unreadable = |error| {
            let why = files::system_message(&error);
            Failure::input(format!(
                "can't read {}: {why}; check the folder",
                folder.display()
            ))
        };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_weights =
                name.contains(".onnx") || OTHER_WEIGHTS.iter().any(|ending| name.ends_with(ending));
            if !fs::is_file(&path) || is_weights || name.starts_with('.') || name == "config.json" {
                continue;
            }
            let name = match &*name {
                "README.md" => "README.source.md",
                name => name,
            };
            let target = self.out.join(name);
            fs::copy(&path, &target).map_err(|error| unwritable(&target, &error))?;
        }
        Ok(())
    }

    /// Writes `config.json` with the keys of transformers.js.
    fn write_config(&self, written: &[WrittenModel]) -> Result<(), Failure> {
        let path = self.source.join("config.json");
        let mut config: Map<String, Value> = match fs::is_file(&path) {
            true => {
                let bytes = files::read(&path, "settings of the model")?;
                serde_json::from_slice(&bytes).map_err(|error| {
                    Failure::input(format!("{}: {error}; check the file", path.display()))
                })?
            }
            false => Map::new(),
        };
        let own = config
            .entry("transformers.js_config")
            .or_insert_with(|| json!({}));
        let Value::Object(own) = own else {
            return Err(Failure::input(format!(
                "{}: the key transformers.js_config holds no keys of its own: correct it",
                path.display()
            )));
        };
        let counts = written.iter();
        let counts: Map<String, Value> = counts
            .map(|one| (one.file.clone(), json!(one.data_files)))
            .collect();
        own.insert("use_external_data_format".into(), counts.into());
        // Version 3 reads the type of caches here, later ones in the model.
        let halves = ModelForm::ALL.into_iter().filter(|form| form.is_half());
        let caches: Map<String, Value> = halves
            .map(|form| (form.name().to_owned(), json!("float16")))
            .collect();
        own.insert("kv_cache_dtype".into(), caches.into());
        let forms: BTreeSet<&str> = written.iter().map(|one| one.dtype).collect();
        let chosen = own.get("dtype").and_then(Value::as_str);
        if chosen.is_none_or(|chosen| !forms.contains(chosen)) {
            own.insert("dtype".into(), json!(ModelForm::Blocks.name()));
        }
        let text = serde_json::to_string_pretty(&config)? + "\n";
        files::write(&self.out.join("config.json"), &[text], "--out")
    }
}

/// True for a model whose name has no ending of another form.
fn is_float(path: &Path) -> bool {
    const FORMS: [&str; 13] = [
        "_fp16",
        "_quantized",
        "_int8",
        "_uint8",
        "_q4",
        "_q4f16",
        "_bnb4",
        "_q2",
        "_q2f16",
        "_q1",
        "_q1f16",
        "_q8",
        "_bf16",
    ];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".onnx");
    fs::is_file(path) && stem.is_some_and(|stem| !FORMS.iter().any(|ending| stem.ends_with(ending)))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unfinished(format!(
        "can't write {}: {}; make room, or choose another --out",
        path.display(),
        files::system_message(error)
    ))
}
