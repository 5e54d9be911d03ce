//! The report of a conversion piece by piece: the same document as that of a run in memory, without
//! what needs a run of the model.

use serde::Serialize;

use super::model_summary::DataFile;
use crate::onnx::Pieces;
use crate::profile::Section;
use crate::quantize::recipe::{PlannedRecipe, RecipeSummary};
use crate::quantize::{NodeChoice, Quantized, QuantizedTensor, Scheme};
use crate::stream::{Conversion, StreamError};

/// The result of a conversion that is done.
pub struct StreamedResult {
    /// Name of the source.
    pub model: String,
    /// Bytes of the source, with its files of weights.
    pub bytes_before: u64,
    /// The model file and its files of weights.
    pub files: Vec<DataFile>,
    /// Bytes that this run has read.
    pub bytes_read: u64,
    /// Bytes that this run has written.
    pub bytes_written: u64,
    /// Nodes, tensors and notes.
    pub quantized: Quantized,
    /// The weights that changed.
    pub weights: Vec<StreamedWeight>,
    /// Notes about the run.
    pub notes: Vec<String>,
}

/// A weight before and after a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamedWeight {
    /// Its name in the source.
    pub name: String,
    /// The shape in the source.
    pub shape: Vec<usize>,
    /// Element types of the constants that are computed from it.
    pub form: String,
    /// Bytes in the source.
    pub bytes_before: u64,
    /// Bytes of these constants.
    pub bytes_after: u64,
}

/// Facts about a conversion that is done, for the page.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamedOutcome {
    /// The weights that changed.
    pub weights: Vec<StreamedWeight>,
    /// Nodes that stay float, each with its reason.
    pub float: Vec<NodeChoice>,
    /// Notes for people, a sentence each.
    pub notes: Vec<String>,
    /// The report as YAML.
    pub report: String,
}

impl StreamedWeight {
    fn new(planned: &PlannedRecipe) -> Result<StreamedWeight, StreamError> {
        let recipe = planned.start()?;
        let outputs = recipe.outputs().iter();
        let kinds: Vec<&str> = outputs.map(|output| output.element.name()).collect();
        Ok(StreamedWeight {
            name: planned.source.name.clone().unwrap_or_default(),
            shape: planned.source.shape()?,
            form: kinds.join(", "),
            bytes_before: planned.source.stored_bytes()?,
            bytes_after: recipe.outputs().iter().map(|output| output.bytes).sum(),
        })
    }
}

#[derive(Serialize)]
struct ModelSection<'a> {
    name: &'a str,
    bytes: u64,
}

#[derive(Serialize)]
struct ConversionSection<'a> {
    bytes_read: u64,
    bytes_written: u64,
    files: &'a [DataFile],
}

#[derive(Serialize)]
struct StreamedQuantizationSection<'a> {
    float_bytes: u64,
    quantized_bytes: u64,
    ratio: f64,
    nodes_quantized: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_float16: Option<usize>,
    nodes_float: usize,
    float: Vec<&'a NodeChoice>,
    tensors: &'a [QuantizedTensor],
}

impl StreamedResult {
    /// Ends a conversion whose steps are done; returns the model file, to be written last.
    /// `bytes`: read and written by this run.
    pub fn new(
        model: &str,
        output: &str,
        bytes_before: u64,
        bytes: [u64; 2],
        conversion: Conversion,
    ) -> Result<(Pieces, StreamedResult), StreamError> {
        let named = |(name, bytes): (&str, u64)| DataFile {
            name: name.to_owned(),
            bytes,
        };
        let mut files: Vec<DataFile> = conversion
            .files()
            .iter()
            .map(|file| named((&file.name, file.bytes)))
            .collect();
        let converted = conversion.finish()?;
        let model_bytes = converted.model.bytes() as u64;
        files.insert(0, named((output, model_bytes)));
        let weights = converted.summaries.iter();
        let weights = weights.map(|(planned, _): &(_, RecipeSummary)| StreamedWeight::new(planned));
        let result = StreamedResult {
            model: model.to_owned(),
            bytes_before,
            files,
            bytes_read: bytes[0],
            bytes_written: bytes[1] + model_bytes,
            weights: weights.collect::<Result<_, _>>()?,
            quantized: converted.quantized,
            notes: Vec::new(),
        };
        Ok((converted.model, result))
    }

    /// Bytes of all files of the result.
    pub fn bytes_after(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// All notes, those about the run first.
    pub fn all_notes(&self) -> Vec<String> {
        [&*self.notes, &*self.quantized.notes].concat()
    }

    /// The nodes that stay float, each with its reason.
    pub fn float(&self) -> impl Iterator<Item = &NodeChoice> {
        self.quantized.nodes.iter().filter(|node| !node.quantized)
    }

    /// The sections of the report about the result.
    pub fn sections(&self, scheme: Scheme) -> Vec<Section> {
        let (nodes, after) = (&self.quantized.nodes, self.bytes_after());
        let float: Vec<_> = self.float().collect();
        let count = nodes.len() - float.len();
        let halves = scheme == Scheme::Float16;
        let quantization = StreamedQuantizationSection {
            float_bytes: self.bytes_before,
            quantized_bytes: after,
            ratio: after as f64 / self.bytes_before.max(1) as f64,
            nodes_quantized: if halves { 0 } else { count },
            nodes_float16: halves.then_some(count),
            nodes_float: float.len(),
            float,
            tensors: &self.quantized.tensors,
        };
        let model = ModelSection {
            name: &self.model,
            bytes: self.bytes_before,
        };
        let conversion = ConversionSection {
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            files: &self.files,
        };
        vec![
            Section::new("model", "The model, with its files of weights.", &model),
            Section::new(
                "conversion",
                "Bytes read and written by this run, and the files of the result.",
                &conversion,
            ),
            Section::new(
                "quantization",
                "Result of the quantization. Nodes under `float` stay float, each with its reason. min and max\n\
                 are the range that a tensor can represent, of several scales that of the largest.",
                &quantization,
            ),
            Section::new(
                "warnings",
                "Warnings and notes to read before the result is used.",
                &self.all_notes(),
            ),
        ]
    }
}
