//! Samples: from files to the input tensors of a model.
//!
//! [`group`] tells which files form a sample. [`decode`] turns a sample into one tensor for each
//! input of the model, in their order. Its results have the element types and shapes of the inputs
//! and hold no NaN or infinity. Anything else is an error that names the sample and the array. No
//! data is stored between calls. The same files give the same tensors, bit for bit, natively and in
//! wasm.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(
    clippy::result_large_err,
    clippy::large_enum_variant,
    clippy::type_complexity
)]

mod assign_inputs;
mod audio;
mod certainty;
mod check;
mod convert;
mod csv;
mod decode_image;
mod error;
mod group;
mod image;
mod image_placement;
mod image_settings;
mod image_size;
mod npy;
mod npy_values;
mod npz;
mod placeholder;
mod preview;
mod proposal;
mod resize;
mod shape_mismatch;
mod synthetic;
mod table;
mod task;
mod task_hints;
mod tensor_file;
mod text;
mod text_inputs;
mod text_settings;
mod text_tensors;
#[cfg(test)]
mod text_tests;
mod wav;

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

pub use audio::{AudioForm, AudioSettings};
pub use certainty::Certainty;
pub use check::{FileStart, Skipped, bytes_to_check, check};
pub use csv::{CsvRecord, records as csv_records};
pub use error::{NonFinite, NotASample, SampleError, SampleProblem, shape_text};
pub use group::{SampleRef, group, is_text};
pub use image_settings::{
    ChannelOrder, ImageChanges, ImageLayout, ImageSettings, ImageSettingsError, ResizeMode,
};
pub use placeholder::{Placeholder, PlaceholderValues, placeholders};
pub use preview::{Preview, describe};
pub use proposal::{Proposal, ProposalPart, Reason};
pub use shape_mismatch::ShapeMismatch;
pub use synthetic::synthetic;
pub use table::{MOST_ROWS, rows as table_rows, takes_rows};
pub use task::{ModelTask, TaskGuess};
pub use text::{TextPadding, TextTokens, TokenPreview};
pub use text_inputs::{TextInputs, ids_input, mask_input};
pub use text_settings::{LONGEST_TEXT, TextSettings, TextUnit};

use octet_graph::{Dim, Model, tensor_type_of};
use octet_onnx::in_memory::Tensor;
use octet_onnx::schema::{DataType, TensorProto};

/// Maximum size of an array in a sample, in bytes. Files that claim more are refused.
pub const LARGEST_ARRAY: u64 = 1 << 30;

/// The files of one sample, still encoded.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// Name of the sample that is shown to people.
    pub name: String,
    /// Name and content of each file.
    pub parts: Vec<(String, Bytes)>,
}

/// Requirements of a model's input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Name of the input.
    pub name: String,
    /// Element type.
    pub element: DataType,
    /// Dimension of each axis.
    pub shape: Vec<Dim>,
}

impl InputSpec {
    /// The requirements of each input of a model.
    pub fn all(model: &Model) -> Vec<InputSpec> {
        let inputs = model.graph.inputs.iter().map(|input| {
            let declared = tensor_type_of(input);
            InputSpec {
                name: input.name.clone().unwrap_or_default(),
                element: declared.as_ref().map(|d| d.element).unwrap_or_default(),
                shape: declared.and_then(|d| d.shape).unwrap_or_default(),
            }
        });
        inputs.collect()
    }
}

/// Settings for reading samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SampleSettings {
    /// Preprocessing of images.
    pub image: ImageSettings,
    /// Reading of sound.
    #[serde(skip_serializing_if = "is_usual")]
    pub audio: AudioSettings,
    /// True for random demo data; the report then says so.
    pub demo: bool,
    /// Treatment of samples that cannot be read or run.
    #[serde(rename = "badSamples")]
    pub bad_samples: BadSamples,
    /// Samples that were left out before the run, for the report.
    #[serde(skip_serializing)]
    pub skipped: Vec<Skipped>,
}

/// The report states the rate of sound where it is not the usual one.
fn is_usual(settings: &AudioSettings) -> bool {
    *settings == AudioSettings::default()
}

/// Treatment of a sample that cannot be read or run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BadSamples {
    /// The sample is left out with its reason, and the run continues.
    #[default]
    Skip,
    /// The sample ends the run.
    Stop,
}

/// An array of a sample before it is assigned to an input.
#[derive(Clone, Debug)]
struct Array {
    /// Name of the array, or of its file if the format stores no names.
    name: String,
    /// True if the file stores `name`, so that it can match the name of an input.
    named: bool,
    /// Index of its input, if the file name states it.
    position: Option<usize>,
    /// Element type in the file.
    stored: DataType,
    tensor: Tensor,
}

impl Array {
    /// An array that was made for an input.
    fn of_input(input: &InputSpec, tensor: Tensor) -> Array {
        Array {
            name: input.name.clone(),
            named: true,
            position: None,
            stored: input.element,
            tensor,
        }
    }
}

/// A decoded sample: a tensor for each input, and notes on conversions.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Tensors in the order of the model's inputs.
    pub tensors: Vec<Tensor>,
    /// Notes on each tensor's conversion, as sentences; usually empty.
    pub notes: Vec<Vec<String>>,
    /// For a text: its tokens, and the place of the input that receives their numbers.
    pub tokens: Option<(usize, Vec<TokenPreview>)>,
}

impl Decoded {
    /// Descriptions of all tensors, for display.
    pub fn previews(&self, inputs: &[InputSpec]) -> Vec<Preview> {
        let described = inputs.iter().zip(&self.tensors).zip(&self.notes);
        let preview = |(place, ((input, tensor), notes)): (usize, ((&InputSpec, &Tensor), _))| {
            let tokens = self.tokens.as_ref().filter(|(at, _)| *at == place);
            Preview {
                input: input.name.clone(),
                notes: Vec::clone(notes),
                tokens: tokens.map_or(Vec::new(), |(_, tokens)| tokens.clone()),
                ..describe(tensor)
            }
        };
        described.enumerate().map(preview).collect()
    }
}

/// A sample of [random demo data](synthetic), encoded as files.
pub fn demo(
    inputs: &[InputSpec],
    tables: &BTreeMap<String, u64>,
    seed: u64,
    index: u64,
) -> Result<Encoded, SampleError> {
    let name = format!("random/test_data_set_{index}");
    let tensors = synthetic(inputs, tables, seed, index)?;
    let part = |(place, (input, tensor)): (usize, (&InputSpec, Tensor))| {
        let message = TensorProto::from_tensor(&input.name, &tensor);
        drop(tensor);
        let file = message.encode_to_vec();
        (format!("{name}/input_{place}.pb"), Bytes::from(file))
    };
    let parts = inputs.iter().zip(tensors).enumerate().map(part).collect();
    Ok(Encoded { name, parts })
}

/// Decodes a sample to one tensor for each input, in their order.
pub fn decode(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Vec<Tensor>, SampleError> {
    decode_with_notes(sample, inputs, settings).map(|d| d.tensors)
}

/// Decodes a sample, with notes on the conversions.
pub fn decode_with_notes(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Decoded, SampleError> {
    decode_parts(sample, inputs, settings).map_err(|problem| SampleError::Sample {
        sample: sample.name.clone(),
        problem,
    })
}

/// Decodes a sample and describes each of its tensors, for display.
pub fn preview(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Vec<Preview>, SampleError> {
    Ok(decode_with_notes(sample, inputs, settings)?.previews(inputs))
}

fn decode_parts(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &SampleSettings,
) -> Result<Decoded, SampleProblem> {
    let mut arrays = Vec::new();
    let mut tokens = None;
    for (file, bytes) in &sample.parts {
        match group::kind(file) {
            Some(group::FileKind::Npz) => arrays.extend(npz::read(file, bytes)?),
            Some(group::FileKind::Npy) => arrays.push(npy::read(file, bytes)?),
            Some(group::FileKind::TensorFile(_)) => arrays.push(tensor_file::read(file, bytes)?),
            Some(group::FileKind::Tokens) => {
                let (filled, place, seen) = text::read(file, bytes, inputs)?;
                arrays.extend(filled);
                tokens = Some((place, seen));
            }
            Some(group::FileKind::Row) => arrays.extend(table::read(file, bytes, inputs)?),
            Some(group::FileKind::Sound) => {
                arrays.extend(audio::read(file, bytes, inputs, &settings.audio)?);
            }
            Some(group::FileKind::Image) => {
                let input = image::only_input(file, inputs)?;
                arrays.push(image::read(file, bytes, input, &settings.image)?);
            }
            None => {
                return Err(SampleProblem::broken(
                    file,
                    "its name has no known ending",
                    error::KINDS,
                ));
            }
        }
    }
    Ok(Decoded {
        tokens,
        ..assign_inputs::to_inputs(arrays, inputs)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_unknown_kind_is_named_in_the_error() {
        let sample = Encoded {
            name: "a.txt".into(),
            parts: vec![("a.txt".into(), Bytes::from_static(b"1"))],
        };
        let message = decode(&sample, &[], &SampleSettings::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("a.txt") && message.contains(".npz"),
            "{message}"
        );
    }

    #[test]
    fn settings_from_an_older_page_are_completed_and_misspelt_ones_refused() {
        assert_eq!(
            serde_json::from_str::<SampleSettings>("{}").unwrap(),
            SampleSettings::default()
        );
        assert!(serde_json::from_str::<SampleSettings>(r#"{"imag": {}}"#).is_err());
    }
}
