//! From a person's files to the tensors a model is fed with.
//!
//! [`group`] says which files make one sample, [`decode`] turns one sample into one tensor for each
//! input of the model, in their order. What comes out has the element type and shape the model wants
//! and holds no NaN or infinity; whatever can't be brought to that is an error that names the sample
//! and the array. One sample is held at a time: nothing here keeps data between calls. The same files
//! give the same tensors natively and in wasm, bit for bit.

mod check;
mod convert;
mod error;
mod fit;
mod frame;
mod group;
mod image;
mod image_settings;
mod npy;
mod npz;
mod picture;
mod place;
mod preview;
mod proposal;
mod resize;
mod synthetic;
mod tensor_file;

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Serialize};

pub use check::{Glimpse, Skipped, check, glimpsed};
pub use error::{Problem, SampleError, shape_text, type_name};
pub use group::{SampleRef, group};
pub use image_settings::{ImageChanges, ImageSettings, Layout, Order, Resize};
pub use preview::{Preview, describe};
pub use proposal::{Certainty, Part, Proposal, Reason, Refusal};
pub use synthetic::synthetic;

use crate::graph::Dim;
use crate::onnx::schema::{DataType, TensorProto};
use crate::tensor::Tensor;

/// The largest array a sample may hold, in bytes: a file may not claim more.
pub const LARGEST_ARRAY: u64 = 1 << 30;

/// The files of one sample as they came: their names (or paths) and bytes.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What a person knows the sample by.
    pub name: String,
    /// File name and content of each part.
    pub parts: Vec<(String, Bytes)>,
}

/// What the model wants of one of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// The name of the input.
    pub name: String,
    /// The element type.
    pub element: DataType,
    /// The size of each axis.
    pub shape: Vec<Dim>,
}

/// How samples are to be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SampleSettings")]
pub struct Settings {
    /// How a picture becomes a tensor.
    pub image: ImageSettings,
    /// Whether the samples are random demo data; then the report says so.
    pub demo: bool,
    /// What becomes of a sample that can't be read or run.
    #[serde(rename = "badSamples")]
    pub bad_samples: BadSamples,
    /// Samples that are left out before a run, for the report.
    #[serde(skip_serializing)]
    pub skipped: Vec<Skipped>,
}

/// What becomes of a sample that can't be read or run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BadSamples {
    /// It is left out, with its reason, and the run goes on.
    #[default]
    Skip,
    /// It ends the run.
    Stop,
}

/// One array of a sample before it is held against an input.
#[derive(Clone, Debug)]
struct Array {
    /// The name of the array, or of the file where the format has none.
    name: String,
    /// Whether `name` was given to the array itself, so that it can be that of an input.
    named: bool,
    /// Which input it is for, counted from 0, where the file says so.
    position: Option<usize>,
    /// The element type as stored.
    stored: &'static str,
    tensor: Tensor,
}

/// A sample decoded: one tensor for each input, and what had to be done that a person should know.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// One tensor for each input of the model, in its order.
    pub tensors: Vec<Tensor>,
    /// For each tensor, sentences on conversions and the like; mostly empty.
    pub notes: Vec<Vec<String>>,
}

/// A sample of [random demo data](synthetic), as files that read back as it.
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
    settings: &Settings,
) -> Result<Vec<Tensor>, SampleError> {
    decode_with_notes(sample, inputs, settings).map(|d| d.tensors)
}

/// Decodes a sample and says what had to be converted on the way.
pub fn decode_with_notes(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &Settings,
) -> Result<Decoded, SampleError> {
    decode_parts(sample, inputs, settings).map_err(|problem| SampleError::Sample {
        sample: sample.name.clone(),
        problem,
    })
}

/// Decodes a sample and describes each tensor of it, for a person to look at.
pub fn preview(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &Settings,
) -> Result<Vec<Preview>, SampleError> {
    let decoded = decode_with_notes(sample, inputs, settings)?;
    let described = inputs.iter().zip(&decoded.tensors).zip(decoded.notes);
    Ok(described
        .map(|((input, tensor), notes)| Preview {
            input: input.name.clone(),
            notes,
            ..describe(tensor)
        })
        .collect())
}

fn decode_parts(
    sample: &Encoded,
    inputs: &[InputSpec],
    settings: &Settings,
) -> Result<Decoded, Problem> {
    let mut arrays = Vec::new();
    for (file, bytes) in &sample.parts {
        match group::kind(file) {
            Some(group::Kind::Npz) => arrays.extend(npz::read(file, bytes)?),
            Some(group::Kind::Npy) => arrays.push(npy::read(file, bytes)?),
            Some(group::Kind::TensorFile(_)) => arrays.push(tensor_file::read(file, bytes)?),
            Some(group::Kind::Image) => {
                let input = image::only_input(file, inputs)?;
                arrays.push(image::read(file, bytes, input, &settings.image)?);
            }
            None => {
                return Err(Problem::broken(
                    file,
                    "its name has no known ending",
                    error::KINDS,
                ));
            }
        }
    }
    fit::to_inputs(arrays, inputs)
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
        let said = decode(&sample, &[], &Settings::default())
            .unwrap_err()
            .to_string();
        assert!(said.contains("a.txt") && said.contains(".npz"), "{said}");
    }

    #[test]
    fn settings_from_an_older_page_are_completed_and_misspelt_ones_refused() {
        assert_eq!(
            serde_json::from_str::<Settings>("{}").unwrap(),
            Settings::default()
        );
        assert!(serde_json::from_str::<Settings>(r#"{"imag": {}}"#).is_err());
    }
}
