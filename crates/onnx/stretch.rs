//! Stretches of files that hold the data of external tensors.

use std::collections::BTreeMap;

use super::external::{ExternalError, ExternalNumber, entry, is_inside, number};
use super::schema::{ModelProto, TensorProto};
use super::tensors;

/// Consecutive bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stretch {
    /// Location of the file, relative to the model.
    pub file: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Stretch {
    /// Offset behind the last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Fails unless a file of this size contains the stretch, which holds a tensor's data.
    pub(super) fn check_within(
        &self,
        tensor: &TensorProto,
        actual: u64,
    ) -> Result<(), ExternalError> {
        match self.end() > actual {
            false => Ok(()),
            true => Err(ExternalError::TooShort {
                tensor: tensor.title().to_owned(),
                file: self.file.clone(),
                start: self.offset,
                end: self.end(),
                actual,
            }),
        }
    }
}

/// The stretch that an external tensor names. Its length may contradict the tensor's shape.
pub(super) fn located(tensor: &TensorProto) -> Result<Stretch, ExternalError> {
    let name = || tensor.title().to_owned();
    let Some(file) = entry(tensor, "location") else {
        return Err(ExternalError::NoLocation { tensor: name() });
    };
    if !is_inside(file) {
        return Err(ExternalError::Path {
            tensor: name(),
            path: file.to_owned(),
        });
    }
    let offset = number(tensor, ExternalNumber::Offset)?.unwrap_or(0);
    let length = match number(tensor, ExternalNumber::Length)? {
        Some(length) => length,
        None => tensor.stored_bytes()?,
    };
    Ok(Stretch {
        file: file.to_owned(),
        offset,
        length,
    })
}

/// The stretch of an external tensor; `None` if its data is in the model.
pub fn stretch_of(tensor: &TensorProto) -> Result<Option<Stretch>, ExternalError> {
    if !tensor.is_external() {
        return Ok(None);
    }
    let stretch = located(tensor)?;
    let expected = tensor.stored_bytes()?;
    match stretch.length == expected {
        true => Ok(Some(stretch)),
        false => Err(ExternalError::Length {
            tensor: tensor.title().to_owned(),
            length: stretch.length,
            expected,
        }),
    }
}

/// Checks that every external tensor lies inside its file, and that no two of them overlap unless
/// they are the same stretch. `sizes` has the size of each file.
pub fn check_stretches(
    model: &ModelProto,
    sizes: &BTreeMap<String, u64>,
) -> Result<(), ExternalError> {
    let mut stretches: Vec<(Stretch, String)> = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    tensors::each(model, &mut |tensor| {
        let Some(stretch) = stretch_of(tensor)? else {
            return Ok::<(), ExternalError>(());
        };
        match sizes.get(&stretch.file) {
            None => missing.push(stretch.file),
            Some(&actual) => {
                stretch.check_within(tensor, actual)?;
                stretches.push((stretch, tensor.title().to_owned()));
            }
        }
        Ok(())
    })?;
    if !missing.is_empty() {
        missing.sort();
        missing.dedup();
        return Err(ExternalError::Missing { files: missing });
    }
    stretches.sort();
    for pair in stretches.windows(2) {
        let [(one, first), (other, second)] = pair else {
            continue;
        };
        let same = (one.offset, one.length) == (other.offset, other.length);
        if one.file == other.file && one.end() > other.offset && !same && other.length > 0 {
            return Err(ExternalError::Overlap {
                first: first.clone(),
                second: second.clone(),
                file: one.file.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{DataLocation, DataType, GraphProto, StringStringEntryProto};

    fn external(name: &str, offset: u64, count: i64) -> TensorProto {
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: Some(key.to_owned()),
            value: Some(value),
        };
        TensorProto {
            name: Some(name.to_owned()),
            dims: vec![count],
            data_type: Some(DataType::Float as i32),
            data_location: Some(DataLocation::External as i32),
            external_data: vec![
                entry("location", "w.data".to_owned()),
                entry("offset", offset.to_string()),
                entry("length", (count * 4).to_string()),
            ],
            ..TensorProto::default()
        }
    }

    fn check(tensors: Vec<TensorProto>, size: u64) -> Result<(), ExternalError> {
        let graph = GraphProto {
            initializer: tensors,
            ..GraphProto::default()
        };
        let sizes = [("w.data".to_owned(), size)].into();
        check_stretches(&ModelProto::from_graph(graph, 17), &sizes)
    }

    #[test]
    fn stretches_beyond_four_gigabytes_are_accepted_and_shared_ones_too() {
        let far = 5 << 32;
        let tensors = vec![
            external("a", far, 10),
            external("b", far, 10),
            external("c", far + 40, 1),
        ];
        assert_eq!(check(tensors.clone(), far + 44), Ok(()));
        let error = check(tensors, far + 43).unwrap_err().to_string();
        assert!(
            error.contains("tensor c") && error.contains(&(far + 43).to_string()),
            "{error}"
        );
    }

    #[test]
    fn overlapping_stretches_name_both_tensors() {
        let tensors = vec![external("a", 0, 10), external("b", 36, 10)];
        let error = check(tensors, 100).unwrap_err().to_string();
        assert!(
            error.contains("a and b") && error.contains("w.data"),
            "{error}"
        );
    }

    #[test]
    fn a_length_that_contradicts_the_shape_is_named() {
        let mut tensor = external("a", 0, 10);
        tensor.external_data[2].value = Some("44".to_owned());
        let error = check(vec![tensor], 100).unwrap_err().to_string();
        assert!(
            error.contains("44 bytes") && error.contains("require 40"),
            "{error}"
        );
    }

    #[test]
    fn all_missing_files_are_listed() {
        let graph = GraphProto {
            initializer: vec![external("a", 0, 1)],
            ..GraphProto::default()
        };
        let error = check_stretches(&ModelProto::from_graph(graph, 17), &BTreeMap::new());
        assert_eq!(
            error,
            Err(ExternalError::Missing {
                files: vec!["w.data".to_owned()]
            })
        );
    }
}
