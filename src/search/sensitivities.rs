//! The file of sensitivities: what a search measured, in a form that people can read and edit.
//!
//! A search that reads the file measures nothing again. It makes the same choice as the search that
//! wrote it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Bits;
use super::costs::TimeSource;

/// The version of the form.
const VERSION: u32 = 1;

/// Sensitivities and costs of a model's tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sensitivities {
    /// Version of the form: 1.
    pub octet_sensitivities: u32,
    /// Name of the model.
    pub model: String,
    /// The number of samples that were measured.
    pub samples: usize,
    /// The source of the times.
    pub times: TimeSource,
    /// The tensors in the order of the model.
    pub tensors: Vec<Sensitivity>,
}

/// Sensitivity and costs of one tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sensitivity {
    /// Name of the tensor that owns the scale.
    pub name: String,
    /// True for a weight.
    pub weight: bool,
    /// True if the tensor was measured on all samples; false if on the first alone.
    pub exact: bool,
    /// Power of the noise at the outputs over the power of the outputs, for each number of bits. A
    /// number of bits that is left out is no candidate.
    pub noise: BTreeMap<Bits, f64>,
    /// Time that the tensor adds to a run with these bits, beyond that with 8.
    pub time: BTreeMap<Bits, f64>,
}

/// Reasons why a file of sensitivities can't be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SensitivitiesError {
    #[error("the sensitivities can't be read: {0}; save them anew from a search")]
    Syntax(String),
    #[error(
        "the sensitivities have version {0}, but this program reads version {VERSION}: write them anew"
    )]
    Version(u32),
    #[error(
        "the sensitivities name the tensor `{0}`, which this model doesn't quantize with these settings: use the file of \
         this model and these settings, or remove the entry"
    )]
    UnknownTensor(String),
    #[error("the sensitivities lack the tensor `{0}`: measure anew, or add an entry")]
    MissingTensor(String),
    #[error(
        "the sensitivities of `{tensor}` are wrong: {reason}; every noise and time must be a number, and noises not negative"
    )]
    Value { tensor: String, reason: String },
}

impl Sensitivities {
    /// An empty file.
    pub fn new(model: &str, samples: usize, times: TimeSource) -> Sensitivities {
        Sensitivities {
            octet_sensitivities: VERSION,
            model: model.into(),
            samples,
            times,
            tensors: Vec::new(),
        }
    }

    /// Reads the file.
    pub fn read(text: &str) -> Result<Sensitivities, SensitivitiesError> {
        let read: Sensitivities = serde_json::from_str(text)
            .map_err(|error| SensitivitiesError::Syntax(error.to_string()))?;
        if read.octet_sensitivities != VERSION {
            return Err(SensitivitiesError::Version(read.octet_sensitivities));
        }
        for tensor in &read.tensors {
            let wrong = |reason: String| SensitivitiesError::Value {
                tensor: tensor.name.clone(),
                reason,
            };
            if tensor.noise.is_empty() {
                return Err(wrong("it has no number of bits".into()));
            }
            for (bits, &noise) in &tensor.noise {
                if !(noise.is_finite() && noise >= 0.0) {
                    return Err(wrong(format!("its noise with {bits} bits is {noise}")));
                }
            }
            if let Some((bits, time)) = tensor.time.iter().find(|(_, time)| !time.is_finite()) {
                return Err(wrong(format!("its time with {bits} bits is {time}")));
            }
        }
        Ok(read)
    }

    /// The text of the file, a line for each tensor.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let mut lines = Vec::new();
        for tensor in &self.tensors {
            lines.push(format!("    {}", serde_json::to_string(tensor)?));
        }
        Ok(format!(
            "{{\n  \"octetSensitivities\": {},\n  \"model\": {},\n  \"samples\": {},\n  \"times\": {},\n  \"tensors\": [\n{}\n  ]\n}}\n",
            self.octet_sensitivities,
            serde_json::to_string(&self.model)?,
            self.samples,
            serde_json::to_string(&self.times)?,
            lines.join(",\n")
        ))
    }

    /// The entries in the order of these tensors.
    pub fn in_order(&self, names: &[String]) -> Result<Vec<Sensitivity>, SensitivitiesError> {
        let foreign = self
            .tensors
            .iter()
            .find(|tensor| !names.contains(&tensor.name));
        if let Some(foreign) = foreign {
            return Err(SensitivitiesError::UnknownTensor(foreign.name.clone()));
        }
        let entry = |name: &String| {
            let found = self.tensors.iter().find(|tensor| tensor.name == *name);
            found
                .cloned()
                .ok_or_else(|| SensitivitiesError::MissingTensor(name.clone()))
        };
        names.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Sensitivities {
        let mut file = Sensitivities::new("net.onnx", 8, TimeSource::Model);
        for name in ["x", "w"] {
            file.tensors.push(Sensitivity {
                name: name.into(),
                weight: name == "w",
                exact: true,
                noise: [(Bits::Eight, 1.0 / 3.0), (Bits::Float, 0.0)].into(),
                time: [(Bits::Eight, 0.0), (Bits::Float, 1e7)].into(),
            });
        }
        file
    }

    #[test]
    fn the_file_reads_back_as_it_was_written_and_has_a_line_for_each_tensor() {
        let text = file().text().unwrap();
        assert_eq!(Sensitivities::read(&text).unwrap(), file());
        let lines = text.lines().filter(|line| line.contains("\"name\""));
        assert_eq!(lines.count(), 2);
        assert!(text.contains(r#""8":0.3333333333333333"#), "{text}");
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_in_words() {
        let text = file().text().unwrap();
        for (from, to, says) in [
            (
                "\"octetSensitivities\": 1",
                "\"octetSensitivities\": 2",
                "version 2",
            ),
            ("0.3333333333333333", "-1", "its noise with 8 bits is -1"),
            ("\"exact\"", "\"exakt\"", "unknown field `exakt`"),
        ] {
            let error = Sensitivities::read(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|n| (*n).into()).collect() };
        let order = file().in_order(&names(&["w", "x"])).unwrap();
        assert_eq!(order[0].name, "w");
        let missing = file()
            .in_order(&names(&["w", "x", "y"]))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("lack the tensor `y`"), "{missing}");
        let foreign = file().in_order(&names(&["w"])).unwrap_err().to_string();
        assert!(foreign.contains("name the tensor `x`"), "{foreign}");
    }
}
