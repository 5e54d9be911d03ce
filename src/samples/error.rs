//! What can be wrong with a sample, each said as what, where, why and what to do next.

use super::Refusal;
use crate::graph::Dim;
use crate::onnx::schema::DataType;

/// The kinds of file that are read, as the end of an error.
pub(super) const KINDS: &str = "give .npz, .npy, test_data_set_N/input_K.pb, .png or .jpg files";

/// Why samples can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// There is nothing to calibrate with.
    #[error("no samples were given; {KINDS}")]
    None,
    /// A file that is no sample.
    #[error("{path} is not a sample: {why}; {KINDS}")]
    Kind {
        /// The file.
        path: String,
        /// What speaks against it.
        why: &'static str,
    },
    /// Something about one sample.
    #[error("sample {sample}: {problem}")]
    Sample {
        /// The sample's name.
        sample: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// No demo data can be made for an input.
    #[error(
        "no demo data can be made for input {input:?}: it wants {wanted}; give samples of your own"
    )]
    Synthetic {
        /// The model's input.
        input: String,
        /// The type it wants.
        wanted: &'static str,
    },
}

/// What is wrong with one sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Problem {
    #[error("{file} can't be read: {why}; {next}")]
    Broken {
        file: String,
        why: String,
        next: String,
    },
    #[error("the model's input {input:?} is missing (given: {given}); {next}")]
    Missing {
        input: String,
        given: String,
        next: &'static str,
    },
    #[error("{given} were given, but the model has {wanted}; give one for each input")]
    Count { given: String, wanted: String },
    #[error("array {array:?} is {given}, but the model's input {input:?} wants {wanted}; {next}")]
    Type {
        array: String,
        given: &'static str,
        input: String,
        wanted: &'static str,
        next: &'static str,
    },
    #[error(
        "array {array:?} has shape {given}, but the model's input {input:?} wants {wanted}; {next}"
    )]
    Shape {
        array: String,
        given: String,
        input: String,
        wanted: String,
        next: String,
    },
    #[error(
        "array {array:?} holds {value} at index {index}, which is no {wanted} as the model's input \
         {input:?} wants; save the array as {wanted}"
    )]
    Unfit {
        array: String,
        value: String,
        index: String,
        input: String,
        wanted: &'static str,
    },
    #[error(
        "array {array:?} holds {value} at index {index}; a range can't be taken from it: repair or \
         leave out the sample"
    )]
    NotFinite {
        array: String,
        value: &'static str,
        index: String,
    },
    #[error(
        "array {array:?} would take {bytes} bytes, more than the {limit} allowed; split the sample"
    )]
    TooLarge {
        array: String,
        bytes: u64,
        limit: u64,
    },
    #[error("{file} is a picture, but {why}; {next}")]
    NoPicture {
        file: String,
        why: String,
        next: &'static str,
    },
    #[error("the model doesn't take the shape {shape}: {why}; {next}")]
    Refused {
        shape: String,
        why: String,
        next: String,
    },
}

impl Problem {
    /// Where a model can't go on with inputs of these shapes.
    pub(crate) fn of_shapes(shapes: &[Vec<usize>], refusal: &Refusal) -> Problem {
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        Problem::Refused {
            shape: shapes.join(", "),
            why: refusal.to_string(),
            next: "choose a size that it takes, or skip the sample".into(),
        }
    }

    /// The problem beside the sample's name, which is not said twice.
    pub fn of_sample(&self, name: &str) -> String {
        let said = self.to_string();
        match said.strip_prefix(name) {
            Some(rest) if rest.starts_with(' ') => rest.trim_start().into(),
            _ => said,
        }
    }

    /// Whether another size or way of resizing may mend it.
    pub fn asks_for_size(&self) -> bool {
        matches!(self, Problem::NoPicture { .. } | Problem::Refused { .. })
    }

    pub(super) fn broken(file: &str, why: impl Into<String>, next: &str) -> Problem {
        Problem::Broken {
            file: file.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// A shape as a person reads it: `[batch, 3, 224, 224]`, `?` where anything goes.
pub fn shape_text(shape: &[Dim]) -> String {
    let dims: Vec<String> = shape
        .iter()
        .map(|d| match d {
            Dim::Known(n) => n.to_string(),
            Dim::Named(name) => name.clone(),
            Dim::Unknown => "?".into(),
        })
        .collect();
    format!("[{}]", dims.join(", "))
}

/// The name numpy has for an element type.
pub fn type_name(element: DataType) -> &'static str {
    element.name()
}
