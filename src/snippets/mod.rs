//! Snippets of code for one model: a script that writes samples of its inputs, and calls of the
//! runtimes that run it.
//!
//! Each snippet runs as it is. Values are placeholders of the right types and shapes; names, sizes and
//! preprocessing are those of the model.

mod javascript;
mod names;
mod python;

use std::collections::BTreeMap;

use crate::graph::Dim;
use crate::onnx::schema::DataType;
use crate::samples::{
    ImageSettings, InputSpec, Placeholder, PlaceholderValues, TextInputs, placeholders,
};
use names::Sizes;

/// Kind of a snippet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnippetKind {
    /// A Python script that writes samples as `.npz` files.
    Samples,
    /// A run in Python.
    OnnxRuntime,
    /// A run in a page or in Node.
    OnnxRuntimeWeb,
    /// A run by transformers.js.
    TransformersJs,
}

impl SnippetKind {
    /// All kinds.
    pub const ALL: [SnippetKind; 4] = [
        SnippetKind::Samples,
        SnippetKind::OnnxRuntime,
        SnippetKind::OnnxRuntimeWeb,
        SnippetKind::TransformersJs,
    ];

    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            SnippetKind::Samples => "samples",
            SnippetKind::OnnxRuntime => "onnxruntime",
            SnippetKind::OnnxRuntimeWeb => "onnxruntime-web",
            SnippetKind::TransformersJs => "transformers.js",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<SnippetKind> {
        SnippetKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// Reason why there is no snippet.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SnippetError {
    #[error("the model has no inputs, so there is nothing to feed: it always gives the same")]
    NoInputs,
    #[error("input {input:?} is not a tensor, and a snippet can't fill it: write the code by hand")]
    NotATensor { input: String },
    #[error(
        "input {input:?} expects {element}, which {language} has no array for: write the code by hand"
    )]
    Element {
        input: String,
        element: DataType,
        language: &'static str,
    },
    #[error(
        "transformers.js looks for NAME.onnx, or for the endings {}, and finds no {file}: give the file such a name", 
        javascript::ENDINGS.map(|(ending, _)| ending).join(", ")
    )]
    FileName { file: String },
}

/// A model, as far as snippets need it.
#[derive(Clone, Debug)]
pub struct SnippetModel {
    /// Name of the file.
    pub file: String,
    /// Names of its files of external data.
    pub data_files: Vec<String>,
    /// Its inputs.
    pub inputs: Vec<InputSpec>,
    /// Names of inputs that are not tensors.
    pub others: Vec<String>,
    /// Number of rows of the table that an input indexes.
    pub tables: BTreeMap<String, u64>,
    /// Preprocessing, where images can be the samples.
    pub picture: Option<ImageSettings>,
}

/// An input in a snippet.
struct SnippetInput<'a> {
    spec: &'a InputSpec,
    values: PlaceholderValues,
    sizes: Vec<usize>,
}

impl SnippetInput<'_> {
    /// Type and shape, for a comment.
    fn described(&self) -> String {
        let dims = self.spec.shape.iter().map(|dim| match dim {
            Dim::Known(size) => size.to_string(),
            Dim::Named(name) => names::comment(name),
            Dim::Unknown => "?".into(),
        });
        let dims: Vec<String> = dims.collect();
        match dims.is_empty() {
            true => format!("{}, one value", self.spec.element),
            false => format!("{}, {}", self.spec.element, dims.join(" × ")),
        }
    }

    /// The sizes of the axes: a number, or the variable of a named axis.
    fn axes(&self, sizes: &Sizes) -> Vec<String> {
        let size = |(dim, size): (&Dim, &usize)| match dim {
            Dim::Named(name) => sizes.variable(name),
            _ => size.to_string(),
        };
        self.spec.shape.iter().zip(&self.sizes).map(size).collect()
    }

    /// Words on the values, for a comment.
    fn hint(&self) -> Option<&'static str> {
        Some(match self.values {
            PlaceholderValues::Pixels { .. } => "a picture",
            PlaceholderValues::Zeros if self.sizes.contains(&0) => "an empty cache",
            _ => return None,
        })
    }
}

/// The snippet of a kind for a model.
pub fn snippet(model: &SnippetModel, kind: SnippetKind) -> Result<String, SnippetError> {
    if let Some(input) = model.others.first() {
        let input = input.clone();
        return Err(SnippetError::NotATensor { input });
    }
    if model.inputs.is_empty() {
        return Err(SnippetError::NoInputs);
    }
    let found = placeholders(&model.inputs, &model.tables, model.picture.as_ref());
    let input = |(spec, found): (_, Placeholder)| SnippetInput {
        spec,
        values: found.values,
        sizes: found.sizes,
    };
    let inputs: Vec<SnippetInput> = model.inputs.iter().zip(found).map(input).collect();
    match kind {
        SnippetKind::Samples => python::samples(model, &inputs),
        SnippetKind::OnnxRuntime => python::run(model, &inputs),
        SnippetKind::OnnxRuntimeWeb => javascript::web(model, &inputs),
        SnippetKind::TransformersJs => javascript::transformers(model, &inputs),
    }
}

/// The named sizes of the inputs.
fn sizes(inputs: &[SnippetInput], reserved: &[&str]) -> Sizes {
    let mut sizes = Sizes::new(reserved);
    for input in inputs {
        for (dim, size) in input.spec.shape.iter().zip(&input.sizes) {
            if let Dim::Named(name) = dim {
                sizes.add(name, *size);
            }
        }
    }
    sizes
}

/// The line on files of weights, in a comment that opens like this.
fn data_lines(model: &SnippetModel, opening: &str) -> String {
    match model.data_files.as_slice() {
        [] => String::new(),
        files => {
            let files: Vec<String> = files.iter().map(|file| names::comment(file)).collect();
            format!(
                "{opening} Its weights are in {}, in the same folder.\n",
                files.join(", ")
            )
        }
    }
}

/// Samples that Octet reads without a script, in words.
fn read_as_they_are(model: &SnippetModel) -> Option<&'static str> {
    match (&model.picture, TextInputs::new(&model.inputs)) {
        (Some(_), _) => Some("pictures (.png, .jpg)"),
        (None, Ok(_)) => Some("texts (.txt, .jsonl, .csv)"),
        (None, Err(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(file: &str, element: DataType) -> SnippetModel {
        SnippetModel {
            file: file.into(),
            data_files: vec!["m.onnx_data".into()],
            inputs: vec![InputSpec {
                name: "x".into(),
                element,
                shape: vec![Dim::Known(2)],
            }],
            others: Vec::new(),
            tables: BTreeMap::new(),
            picture: None,
        }
    }

    #[test]
    fn kinds_are_known_by_their_names() {
        for kind in SnippetKind::ALL {
            assert_eq!(SnippetKind::named(kind.name()), Some(kind));
        }
        assert_eq!(SnippetKind::named("tflite"), None);
    }

    #[test]
    fn files_of_weights_are_loaded_too() {
        let model = model("m_q4.onnx", DataType::Float);
        let web = snippet(&model, SnippetKind::OnnxRuntimeWeb).unwrap();
        let data = "{ externalData: [{ path: \"m.onnx_data\", data: \"m.onnx_data\" }] }";
        assert!(web.contains(data), "{web}");
        let transformers = snippet(&model, SnippetKind::TransformersJs).unwrap();
        for words in ["use_external_data_format: 1", "\"m\"", "dtype: 'q4'"] {
            assert!(transformers.contains(words), "{words}: {transformers}");
        }
        let python = snippet(&model, SnippetKind::OnnxRuntime).unwrap();
        assert!(
            python.contains("# Its weights are in m.onnx_data"),
            "{python}"
        );
    }

    #[test]
    fn the_form_for_transformers_js_follows_from_the_name() {
        for (file, name, form) in [
            ("model.onnx", "\"model\"", "fp32"),
            ("model_quantized.onnx", "\"model\"", "q8"),
            ("a_int8.onnx", "\"a\"", "'int8'"),
            ("a_uint8.onnx", "\"a\"", "'uint8'"),
        ] {
            let text = snippet(&model(file, DataType::Float), SnippetKind::TransformersJs).unwrap();
            assert!(text.contains(name) && text.contains(form), "{text}");
        }
    }

    #[test]
    fn what_no_snippet_can_fill_is_refused_by_name() {
        let refused = |model: &SnippetModel, kind| snippet(model, kind).unwrap_err().to_string();
        let strings = model("m.onnx", DataType::String);
        for kind in SnippetKind::ALL {
            let said = refused(&strings, kind);
            assert!(said.contains("\"x\"") && said.contains("string"), "{said}");
        }
        let halves = model("m.onnx", DataType::Bfloat16);
        assert!(snippet(&halves, SnippetKind::Samples).is_ok());
        assert!(refused(&halves, SnippetKind::OnnxRuntimeWeb).contains("bfloat16"));
        let sequence = SnippetModel {
            others: vec!["list".into()],
            ..model("m.onnx", DataType::Float)
        };
        assert!(refused(&sequence, SnippetKind::Samples).contains("\"list\""));
        let nothing = SnippetModel {
            inputs: Vec::new(),
            ..model("m.onnx", DataType::Float)
        };
        assert!(refused(&nothing, SnippetKind::Samples).contains("no inputs"));
    }
}
