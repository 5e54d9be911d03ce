//! External data: tensors stored in files beside the model.
//!
//! Attached tensors become ordinary ones that share the memory of those files.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;

use super::schema::{ModelProto, TensorProto};
use super::stretch::located;
use super::tensor::TensorError;
use super::tensors;

/// Reason for which external data could not be attached.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ExternalError {
    #[error("the model stores weights in {}, which {} missing: add {} beside the model", files.join(", "), if files.len() == 1 { "is" } else { "are" }, if files.len() == 1 { "that file" } else { "those files" })]
    Missing { files: Vec<String> },
    #[error(
        "tensor {tensor} is stored in another file, but the model does not name it: export it again"
    )]
    NoLocation { tensor: String },
    #[error(
        "tensor {tensor} is stored in {path:?}, a path outside the model's folder, which is not allowed: export it again with the weights beside it"
    )]
    Path { tensor: String, path: String },
    #[error("tensor {tensor}: {key} is {value:?}, not a number of bytes: export the model again")]
    Number {
        tensor: String,
        key: ExternalNumber,
        value: String,
    },
    #[error(
        "tensor {tensor} is stored in bytes {start} to {end} of {file}, which has only {actual}: the file is cut short or belongs to another model"
    )]
    TooShort {
        tensor: String,
        file: String,
        start: u64,
        end: u64,
        actual: u64,
    },
    #[error(
        "tensor {tensor} is stored in {length} bytes of another file, but its shape and type require {expected}: the file is damaged; export it again"
    )]
    Length {
        tensor: String,
        length: u64,
        expected: u64,
    },
    #[error(
        "tensors {first} and {second} share a part of their bytes in {file}: the model is damaged; export it again"
    )]
    Overlap {
        first: String,
        second: String,
        file: String,
    },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Number that places a tensor in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExternalNumber {
    Offset,
    Length,
}

impl ExternalNumber {
    /// Key in the message of a tensor.
    fn name(self) -> &'static str {
        match self {
            ExternalNumber::Offset => "offset",
            ExternalNumber::Length => "length",
        }
    }
}

impl fmt::Display for ExternalNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The external data files that the model refers to, sorted and without duplicates.
pub fn files(model: &ModelProto) -> Vec<String> {
    let mut locations = BTreeSet::new();
    let Ok(()) = tensors::each::<Infallible>(model, &mut |tensor| {
        if tensor.is_external() {
            locations.extend(entry(tensor, "location").map(str::to_owned));
        }
        Ok(())
    });
    locations.into_iter().collect()
}

/// Attaches external data: each external tensor becomes a slice of a file in `files_by_name`.
/// Files are found by location or by its last component, since a page only knows file names. All
/// files must be present.
pub fn attach(
    model: &mut ModelProto,
    files_by_name: &BTreeMap<String, Bytes>,
) -> Result<(), ExternalError> {
    let missing: Vec<_> = files(model)
        .into_iter()
        .filter(|path| find(files_by_name, path).is_none())
        .collect();
    if let Some(path) = missing.iter().find(|path| !is_inside(path)) {
        let tensor = String::from("of the model");
        return Err(ExternalError::Path {
            tensor,
            path: path.clone(),
        });
    }
    if !missing.is_empty() {
        return Err(ExternalError::Missing { files: missing });
    }
    tensors::each_mut(model, &mut |tensor| {
        if tensor.is_external() {
            attach_one(tensor, files_by_name)
        } else {
            Ok(())
        }
    })
}

fn attach_one(
    tensor: &mut TensorProto,
    files_by_name: &BTreeMap<String, Bytes>,
) -> Result<(), ExternalError> {
    let stretch = located(tensor)?;
    let bytes = find(files_by_name, &stretch.file).ok_or_else(|| ExternalError::Missing {
        files: vec![stretch.file.clone()],
    })?;
    stretch.check_within(tensor, bytes.len() as u64)?;
    tensor.raw_data = Some(bytes.slice(stretch.offset as usize..stretch.end() as usize));
    tensor.external_data.clear();
    tensor.data_location = None;
    Ok(tensor.check()?)
}

/// Finds the file of a location.
pub fn find<'a>(files_by_name: &'a BTreeMap<String, Bytes>, path: &str) -> Option<&'a Bytes> {
    let plain = path.trim_start_matches("./");
    let last = plain.rsplit('/').next().unwrap_or(plain);
    files_by_name
        .get(path)
        .or_else(|| files_by_name.get(plain))
        .or_else(|| files_by_name.get(last))
}

/// Returns true if a path stays inside the model's folder, on every operating system.
pub fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains(['\\', ':', '\0'])
        && path.split('/').all(|part| part != "..")
}

pub(super) fn entry<'a>(tensor: &'a TensorProto, key: &str) -> Option<&'a str> {
    tensor
        .external_data
        .iter()
        .find(|e| e.key.as_deref() == Some(key))?
        .value
        .as_deref()
}

pub(super) fn number(
    tensor: &TensorProto,
    key: ExternalNumber,
) -> Result<Option<u64>, ExternalError> {
    entry(tensor, key.name())
        .map(|value| {
            value.trim().parse().map_err(|_| ExternalError::Number {
                tensor: tensor.title().to_owned(),
                key,
                value: value.to_owned(),
            })
        })
        .transpose()
}
