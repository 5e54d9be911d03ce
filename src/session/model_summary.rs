//! Summary of a model as it was opened, before any change.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ModelFile;
use super::class_names::class_names;
use crate::graph::{AttributeValue, Dim, Model, Node, TensorType, tensor_type_of};
use crate::onnx::schema::{TensorProto, ValueInfoProto};
use crate::prepare::{Functions, is_fused};
use crate::quantize;
use crate::samples::{AudioForm, InputSpec, Proposal, TaskGuess, TextInputs, takes_rows};

/// Identity and contents of a model.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSummary {
    /// Name of the file.
    pub name: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Attached files of external data.
    pub data_files: Vec<DataFile>,
    /// SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// Version of the default operator set.
    pub opset: i64,
    /// Version of the file format.
    pub ir_version: i64,
    /// Tool that wrote the file, with its version.
    pub producer: String,
    /// Inputs that a sample must provide.
    pub inputs: Vec<GraphPort>,
    /// Outputs of the graph.
    pub outputs: Vec<GraphPort>,
    /// Proposed preprocessing of images, where images can be the model's samples.
    pub pictures: Option<Proposal>,
    /// Form of texts, where texts can be the model's samples.
    pub texts: Option<TextForm>,
    /// Form of sound, where sound can be the model's samples.
    pub audio: Option<AudioForm>,
    /// True if rows of tables can be the model's samples.
    pub rows: bool,
    /// Task that the model is taken for.
    pub task: TaskGuess,
    /// Numbers and names of classes, if the metadata state them.
    pub class_names: Vec<(usize, String)>,
    /// Number of elements in all constants: initializers, Constant nodes and those in subgraphs.
    pub parameters: u64,
    /// Number of nodes of each operator, the most frequent first.
    pub operators: Vec<(String, usize)>,
    /// Number of nodes whose operator can be quantized.
    pub quantizable: usize,
    /// Operators that stay float, each with its reason.
    pub float: Vec<FloatOperator>,
    /// True if the model contains quantized operators.
    pub already_quantized: bool,
    /// Warnings to show before calibration.
    pub warnings: Vec<String>,
}

/// Form of the texts that a model takes.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextForm {
    /// Number of tokens, if the model fixes it.
    pub length: Option<usize>,
}

/// A file of external data.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataFile {
    /// Path that the model states, relative to its own.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A graph input or output.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphPort {
    /// Name of the value.
    pub name: String,
    /// Element type.
    pub element: String,
    /// Shape, such as `1×3×224×224`. Named dimensions show their name, unknown ones `?`.
    pub shape: String,
}

/// Nodes of one operator that stay float.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloatOperator {
    /// Name of the operator.
    pub operator: String,
    /// Number of its nodes.
    pub count: usize,
    /// Reason why they stay float.
    pub reason: String,
}

/// The report's section `model`: identifies the model.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ModelIdentity<'a> {
    name: &'a str,
    bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    data_bytes: u64,
    sha256: &'a str,
    opset: i64,
    ir_version: i64,
    producer: &'a str,
    parameters: u64,
    nodes: usize,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl ModelSummary {
    /// Size of the model in bytes, external data included.
    pub fn bytes_in_all(&self) -> u64 {
        self.bytes + self.data_files.iter().map(|file| file.bytes).sum::<u64>()
    }

    pub(super) fn identity(&self) -> ModelIdentity<'_> {
        ModelIdentity {
            name: &self.name,
            bytes: self.bytes,
            data_bytes: self.bytes_in_all() - self.bytes,
            sha256: &self.sha256,
            opset: self.opset,
            ir_version: self.ir_version,
            producer: &self.producer,
            parameters: self.parameters,
            nodes: self.operators.iter().map(|(_, count)| count).sum(),
        }
    }

    /// Summarizes a model that is in memory.
    pub(super) fn new(file: &ModelFile, model: Model, inputs: &[InputSpec]) -> ModelSummary {
        let half = half_weights(&model);
        let mut summary = ModelSummary::of_graph(&file.name, model, inputs);
        summary.bytes = file.bytes.len() as u64;
        summary.sha256.clone_from(&file.sha256);
        summary.warnings.extend(half);
        summary
    }

    /// Summarizes a graph, without the size and the checksum of its file. The operators inside its
    /// functions count where the functions can be inlined.
    pub(super) fn of_graph(name: &str, mut model: Model, inputs: &[InputSpec]) -> ModelSummary {
        let pictures = Proposal::new(name, &model, inputs);
        let audio = AudioForm::new(name, &model, inputs);
        let rows = audio.is_none() && takes_rows(inputs);
        let task = TaskGuess::new(name, &model, inputs);
        let class_names = class_names(&model);
        let texts = TextInputs::new(inputs).ok();
        let texts = texts.map(|known| TextForm {
            length: known.length,
        });
        let functions = Functions::inline(&mut model);
        let model = &model;
        let graph = &model.graph;
        let header = model.header();
        let mut counts = BTreeMap::<String, usize>::new();
        for node in graph.nodes() {
            *counts.entry(node.operator()).or_default() += 1;
        }
        let mut operators: Vec<_> = counts.into_iter().collect();
        operators.sort_by_key(|(name, count)| (usize::MAX - count, name.clone()));
        let mut quantizable = 0;
        let mut float = Vec::new();
        for (operator, count) in &operators {
            // Operators that exporters fuse are decomposed first, and their parts can be quantized.
            match quantize::float_reason(operator).filter(|_| !is_fused(operator)) {
                None => quantizable += count,
                Some(reason) => float.push(FloatOperator {
                    operator: operator.clone(),
                    count: *count,
                    reason: reason.to_string(),
                }),
            }
        }
        let fed = graph
            .inputs
            .iter()
            .filter(|i| !graph.initializers.contains(name_of(i)));
        let producer = [
            header.producer_name.as_deref(),
            header.producer_version.as_deref(),
        ];
        let already_quantized = quantize::is_quantized(model);
        let mut warnings = Vec::new();
        if already_quantized {
            warnings.push(
                "This model is quantized already; use the float model from which it was quantized."
                    .into(),
            );
        }
        warnings.extend(match functions {
            Ok(functions) => functions.notes(),
            Err(reason) => vec![reason.to_string()],
        });
        if graph.nodes().iter().any(|n| n.subgraphs().next().is_some()) {
            warnings.push("It has subgraphs (If, Loop or Scan); they stay unchanged.".into());
        }
        ModelSummary {
            name: name.to_owned(),
            bytes: 0,
            data_files: Vec::new(),
            sha256: String::new(),
            opset: model.opset(),
            ir_version: header.ir_version.unwrap_or(0),
            producer: producer
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ")
                .trim()
                .to_string(),
            inputs: fed.map(GraphPort::new).collect(),
            outputs: graph.outputs().iter().map(GraphPort::new).collect(),
            pictures,
            texts,
            audio,
            rows,
            task,
            class_names,
            parameters: sum(graph.initializers.iter().map(elements))
                .saturating_add(sum(graph.nodes().iter().map(constant_elements))),
            operators,
            quantizable,
            float,
            already_quantized,
            warnings,
        }
    }
}

impl GraphPort {
    fn new(value: &ValueInfoProto) -> GraphPort {
        let (element, shape) = match tensor_type_of(value) {
            Some(t) => (t.element.name().to_string(), shape_text(&t)),
            None => ("not a tensor".to_string(), String::new()),
        };
        GraphPort {
            name: name_of(value).to_string(),
            element,
            shape,
        }
    }
}

/// The warning that weights in half precision are converted.
fn half_weights(model: &Model) -> Option<String> {
    let half = model.graph.initializers.iter().find_map(|tensor| {
        let element = tensor.element().ok()?;
        element.is_half().then_some(element.name())
    })?;
    Some(format!(
        "It has {half} weights; they are first converted to float32, which is exact."
    ))
}

fn elements(tensor: &TensorProto) -> u64 {
    let sizes = tensor.dims.iter().map(|&size| size.max(0) as u64);
    sizes.fold(1, u64::saturating_mul)
}

/// Elements of the constants in a node: those of a Constant node, and those in its subgraphs.
fn constant_elements(node: &Node) -> u64 {
    let own = node.attributes.iter().filter(|_| node.is("Constant"));
    let own = own.map(|attribute| match &attribute.value {
        AttributeValue::Float(_) | AttributeValue::Int(_) => 1,
        AttributeValue::Tensor(tensor) => elements(tensor),
        _ => (attribute.as_floats().len() + attribute.as_ints().len()) as u64,
    });
    let inner = node.subgraphs().map(|graph| {
        let nodes = sum(graph.nodes.iter().map(constant_elements));
        sum(graph.initializers.iter().map(elements)).saturating_add(nodes)
    });
    sum(own).saturating_add(sum(inner))
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn name_of(value: &ValueInfoProto) -> &str {
    value.name.as_deref().unwrap_or_default()
}

pub(super) fn shape_text(tensor: &TensorType) -> String {
    let Some(shape) = &tensor.shape else {
        return "any rank".to_string();
    };
    let dims = shape.iter().map(|d| match d {
        Dim::Known(size) => size.to_string(),
        Dim::Named(name) => name.clone(),
        Dim::Unknown => "?".to_string(),
    });
    dims.collect::<Vec<_>>().join("×")
}
