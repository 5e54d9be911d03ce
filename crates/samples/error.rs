//! Problems of samples. Each message states the problem, its place, its cause and the next step.

use super::ShapeMismatch;
use octet_graph::Dim;
use octet_onnx::schema::DataType;

/// Supported files, as the end of a message.
pub(super) const KINDS: &str =
    "give .npz, .npy, test_data_set_N/input_K.pb, pictures, .wav files, tables or texts";

/// Error of a set of samples.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// There are no samples to calibrate with.
    #[error("no samples were given; {KINDS}")]
    None,
    /// The file is not a sample.
    #[error("{path} is not a sample: {why}; {KINDS}")]
    Kind {
        /// Path of the file.
        path: String,
        /// Reason why it is not a sample.
        why: NotASample,
    },
    /// A problem of one sample.
    #[error("sample {sample}: {problem}")]
    Sample {
        /// Name of the sample.
        sample: String,
        /// The problem.
        problem: SampleProblem,
    },
    /// Demo data cannot be generated for an input.
    #[error(
        "demo data cannot be generated for input {input:?} of type {expected}; use your own samples"
    )]
    Synthetic {
        /// Name of the model's input.
        input: String,
        /// Element type of the input.
        expected: DataType,
    },
}

/// Reason why a file is not a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASample {
    /// A `.pb` file outside of a test data set.
    #[error("a .pb file is read only as input_0.pb, input_1.pb … of one folder")]
    OtherTensorFile,
    /// A file of texts.
    #[error("texts need the model's tokenizer: add its tokenizer.json")]
    Text,
    /// A file of another type.
    #[error("this file type is not supported")]
    FileType,
}

/// A float that no range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum NonFinite {
    #[error("NaN (not a number)")]
    NaN,
    #[error("infinity")]
    Infinity,
    #[error("-infinity")]
    MinusInfinity,
}

/// Problem of one sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SampleProblem {
    #[error("{file} can't be read: {why}; {next}")]
    Broken {
        file: String,
        why: String,
        next: String,
    },
    #[error("the model's input {input:?} is missing (given: {actual}); {next}")]
    Missing {
        input: String,
        actual: String,
        next: &'static str,
    },
    #[error("{actual} were given, but the model has {expected}; give one for each input")]
    Count { actual: String, expected: String },
    #[error(
        "array {array:?} is {actual}, but the model's input {input:?} expects {expected}; {next}"
    )]
    Type {
        array: String,
        actual: DataType,
        input: String,
        expected: DataType,
        next: &'static str,
    },
    #[error(
        "array {array:?} has shape {actual}, but the model's input {input:?} expects {expected}; {next}"
    )]
    Shape {
        array: String,
        actual: String,
        input: String,
        expected: String,
        next: String,
    },
    #[error(
        "array {array:?} holds {value} at index {index}, which is not a {expected}, as the model's input \
         {input:?} expects; save the array as {expected}"
    )]
    Unfit {
        array: String,
        value: String,
        index: String,
        input: String,
        expected: DataType,
    },
    #[error(
        "array {array:?} holds {value} at index {index}; ranges need finite values: repair or \
         leave out the sample"
    )]
    NotFinite {
        array: String,
        value: NonFinite,
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
    #[error("{file} is an image, but {why}; {next}")]
    NoPicture {
        file: String,
        why: String,
        next: &'static str,
    },
    #[error(
        "texts can't feed the model: it has no input for token numbers (its inputs: {inputs}); \
         rename that input to input_ids, or give .npz files"
    )]
    NoText { inputs: String },
    #[error(
        "the model's input {input:?} ({expected}) can't be made from a text: {why}; give .npz files \
         with an array for each input"
    )]
    TextInput {
        input: String,
        expected: String,
        why: String,
    },
    #[error("the model doesn't accept the shape {shape}: {why}; {next}")]
    Refused {
        shape: String,
        why: String,
        next: String,
    },
}

impl SampleProblem {
    /// Problem of a model that rejects inputs of these shapes.
    pub fn rejected_shapes(shapes: &[Vec<usize>], refusal: &ShapeMismatch) -> SampleProblem {
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        SampleProblem::Refused {
            shape: shapes.join(", "),
            why: refusal.to_string(),
            next: "choose a size that it accepts, or skip the sample".into(),
        }
    }

    /// Message for a list in which the sample's name stands beside it: the name is left out.
    pub fn message_for(&self, name: &str) -> String {
        let message = self.to_string();
        match message.strip_prefix(name) {
            Some(rest) if rest.starts_with(' ') => rest.trim_start().into(),
            _ => message,
        }
    }

    /// True if another image size or way of resizing may solve it.
    pub fn asks_for_size(&self) -> bool {
        matches!(
            self,
            SampleProblem::NoPicture { .. } | SampleProblem::Refused { .. }
        )
    }

    pub(super) fn broken(file: &str, why: impl Into<String>, next: &str) -> SampleProblem {
        SampleProblem::Broken {
            file: file.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// Shape as text: `[batch, 3, 224, 224]`, with `?` for an unknown dimension.
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
