//! Encodings of AIMET, Qualcomm's quantizer: JSON of the versions 0.6.1 and 1.0.0.
//!
//! Both give `scale`, `offset` and a number of bits; `real = scale * (integer + offset)` with integers
//! from 0. Version 0.6.1 maps names to lists of encodings, one for each channel; 1.0.0 has a list of
//! entries with arrays.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::encodings::Encoding;
use super::{RangeFile, RangeFileError, RangeFormat};
use crate::quantize::{ElementType, TensorSettings};
use crate::session::ValueRanges;
use crate::stats::Range;

/// An entry of either version.
struct Entry {
    tensor: String,
    bits: u64,
    is_float: bool,
    is_symmetric: bool,
    is_block_wise: bool,
    scales: Vec<f64>,
    offsets: Vec<f64>,
}

/// Reads encodings.
pub(super) fn read(document: &Value) -> Result<RangeFile, RangeFileError> {
    let version = document.get("version").and_then(Value::as_str);
    if document.get("encodings").is_some() {
        return Err(RangeFileError::Version(version.unwrap_or("2.0.0").into()));
    }
    let listed = |key: &str| document.get(key).unwrap_or(&Value::Null);
    let (activations, constants) = (listed("activation_encodings"), listed("param_encodings"));
    let format = match activations {
        Value::Array(_) => RangeFormat::Aimet,
        Value::Object(_) => RangeFormat::Aimet061,
        _ => return Err(RangeFileError::Unknown),
    };
    let mut file = RangeFile::new(format, ValueRanges::new());
    let mut left = BTreeMap::new();
    for entry in entries(activations)? {
        activation(&entry, &mut file, &mut left);
    }
    for entry in entries(constants)? {
        constant(&entry, &mut file, &mut left);
    }
    let notes = left.into_iter().map(|(what, names)| note(what, &names));
    file.notes.extend(notes);
    Ok(file)
}

/// The words on what Octet cannot express.
fn note(what: &str, names: &[String]) -> String {
    match names {
        [one] => format!("`{one}` has {what}"),
        names => format!(
            "{} tensors, such as `{}`, have {what}",
            names.len(),
            names[0]
        ),
    }
}

const OTHER_BITS: &str =
    "a number of bits that Octet does not write: the type of the settings is taken";
const BLOCKS: &str = "a scale for each block: blocks and scales come from Octet's settings";
const CHANNELS: &str = "a scale for each channel: bits and symmetry are taken, and Octet computes the scales from the weights";

type Left = BTreeMap<&'static str, Vec<String>>;

fn leave(left: &mut Left, what: &'static str, entry: &Entry) {
    left.entry(what).or_default().push(entry.tensor.clone());
}

/// An activation: a range, and its type if that is not the default.
fn activation(entry: &Entry, file: &mut RangeFile, left: &mut Left) {
    if entry.is_float {
        file.tensors.insert(entry.tensor.clone(), kept_float());
        return;
    }
    let largest = 2_f64.powi(entry.bits as i32) - 1.0;
    let pairs = entry.scales.iter().zip(&entry.offsets);
    let range = pairs.fold([0.0_f64; 2], |[min, max], (scale, offset)| {
        [min.min(scale * offset), max.max(scale * (offset + largest))]
    });
    let [min, max] = range.map(|end| end as f32);
    file.ranges
        .insert(entry.tensor.clone(), Range::new(min, max));
    match entry.bits {
        8 => {}
        4 | 16 => {
            let settings = TensorSettings {
                element: element(entry.bits, false),
                ..TensorSettings::default()
            };
            file.tensors.insert(entry.tensor.clone(), settings);
        }
        _ => leave(left, OTHER_BITS, entry),
    }
}

/// A weight: its type, and its scale if there is one. Biases take the scales of their layer.
fn constant(entry: &Entry, file: &mut RangeFile, left: &mut Left) {
    if entry.is_float {
        file.tensors.insert(entry.tensor.clone(), kept_float());
        return;
    }
    if entry.bits == 32 {
        return;
    }
    let Some(element) = element(entry.bits, entry.is_symmetric) else {
        return leave(left, OTHER_BITS, entry);
    };
    if entry.is_block_wise {
        return leave(left, BLOCKS, entry);
    }
    let mut settings = TensorSettings {
        element: Some(element),
        symmetric: Some(entry.is_symmetric),
        per_channel: Some(entry.scales.len() > 1),
        ..TensorSettings::default()
    };
    if let ([scale], [offset]) = (entry.scales.as_slice(), entry.offsets.as_slice()) {
        let middle = if entry.is_symmetric {
            2_f64.powi(entry.bits as i32 - 1)
        } else {
            0.0
        };
        settings.symmetric = None;
        settings.scale = Some(*scale as f32);
        settings.zero_point = Some(-(offset + middle) as i32);
    } else {
        leave(left, CHANNELS, entry);
    }
    file.tensors.insert(entry.tensor.clone(), settings);
}

fn kept_float() -> TensorSettings {
    TensorSettings {
        float: Some(true),
        ..TensorSettings::default()
    }
}

fn element(bits: u64, is_signed: bool) -> Option<ElementType> {
    Some(match (bits, is_signed) {
        (4, true) => ElementType::I4,
        (4, false) => ElementType::U4,
        (8, true) => ElementType::I8,
        (8, false) => ElementType::U8,
        (16, true) => ElementType::I16,
        (16, false) => ElementType::U16,
        _ => return None,
    })
}

fn entries(section: &Value) -> Result<Vec<Entry>, RangeFileError> {
    match section {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => list.iter().map(entry_100).collect(),
        Value::Object(object) => object.iter().map(entry_061).collect(),
        _ => Err(RangeFileError::Unknown),
    }
}

fn wrong(tensor: &str, why: &str) -> RangeFileError {
    RangeFileError::Entry {
        tensor: tensor.into(),
        why: why.into(),
    }
}

/// Checks what both versions promise: as many offsets as scales, positive scales, usable bits.
fn checked(entry: Entry) -> Result<Entry, RangeFileError> {
    let fits = entry.is_float
        || (!entry.scales.is_empty()
            && entry.scales.len() == entry.offsets.len()
            && entry.scales.iter().all(|scale| *scale > 0.0)
            && (2..=32).contains(&entry.bits));
    match fits {
        true => Ok(entry),
        false => Err(wrong(
            &entry.tensor,
            "give 2 to 32 bits, positive scales, and an offset for each",
        )),
    }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(is)) => *is,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

fn is_float(value: &Value) -> bool {
    let text = value.get("dtype").and_then(Value::as_str);
    text.is_some_and(|text| text.eq_ignore_ascii_case("float"))
}

/// An entry of 1.0.0.
fn entry_100(value: &Value) -> Result<Entry, RangeFileError> {
    let tensor = value.get("name").and_then(Value::as_str);
    let tensor = tensor.ok_or_else(|| wrong("", "an entry has no `name`"))?;
    let numbers = |key: &str| {
        let list = value.get(key).and_then(Value::as_array);
        list.and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>())
    };
    let kind = value.get("enc_type").and_then(Value::as_str);
    let scales = numbers("scale").unwrap_or_default();
    let bits = value.get("bw").and_then(Value::as_u64);
    let is_symmetric = is_true(value.get("is_sym"));
    let middle = -(2_f64.powi(bits.unwrap_or(8).clamp(1, 32) as i32 - 1));
    // Symmetric entries may leave the offset out.
    let offsets = numbers("offset").or_else(|| is_symmetric.then(|| vec![middle; scales.len()]));
    checked(Entry {
        tensor: tensor.into(),
        bits: bits.ok_or_else(|| wrong(tensor, "`bw` is missing"))?,
        is_float: is_float(value),
        is_symmetric,
        is_block_wise: matches!(kind, Some("PER_BLOCK" | "LPBQ" | "VECTOR")),
        scales,
        offsets: offsets.unwrap_or_default(),
    })
}

/// An entry of 0.6.1.
fn entry_061((tensor, value): (&String, &Value)) -> Result<Entry, RangeFileError> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(_) => return Err(RangeFileError::ModuleNames),
        _ => return Err(wrong(tensor, "give a list of encodings")),
    };
    let first = list
        .first()
        .ok_or_else(|| wrong(tensor, "the list is empty"))?;
    let bits = first.get("bitwidth").and_then(Value::as_u64);
    let numbers = |key: &str| {
        let number = |one: &Value| one.get(key).and_then(Value::as_f64);
        list.iter().map(number).collect::<Option<Vec<f64>>>()
    };
    checked(Entry {
        tensor: tensor.clone(),
        bits: bits.ok_or_else(|| wrong(tensor, "`bitwidth` is missing"))?,
        is_float: is_float(first),
        is_symmetric: is_true(first.get("is_symmetric")),
        is_block_wise: false,
        scales: numbers("scale").unwrap_or_default(),
        offsets: numbers("offset").unwrap_or_default(),
    })
}

/// Writes encodings of version 0.6.1.
pub(super) fn write_061(encodings: &[Encoding]) -> String {
    let of = |constants: bool| {
        let chosen = encodings.iter().filter(|one| one.is_constant == constants);
        let entries = chosen.filter(|one| one.block.is_none()).map(|one| {
            let symmetric = if one.is_symmetric() { "True" } else { "False" };
            let pairs = one.scales.iter().zip(one.offsets()).zip(one.ends());
            let list = pairs.map(|((scale, offset), [min, max])| {
                json!({
                    "bitwidth": one.bits, "dtype": "int", "is_symmetric": symmetric,
                    "max": max, "min": min, "offset": offset, "scale": scale,
                })
            });
            (one.tensor.clone(), Value::Array(list.collect()))
        });
        Value::Object(entries.collect::<Map<_, _>>())
    };
    let document = json!({
        "version": "0.6.1", "activation_encodings": of(false), "param_encodings": of(true),
    });
    format!("{document:#}\n")
}

/// Writes encodings of version 1.0.0.
pub(super) fn write_100(encodings: &[Encoding]) -> String {
    let of = |constants: bool| {
        let chosen = encodings.iter().filter(|one| one.is_constant == constants);
        let entries = chosen.map(|one| {
            let kind = match (one.block, one.scales.len()) {
                (Some(_), _) => "PER_BLOCK",
                (None, 1) => "PER_TENSOR",
                _ => "PER_CHANNEL",
            };
            let mut entry = json!({
                "name": one.tensor, "enc_type": kind, "dtype": "INT", "bw": one.bits,
                "is_sym": one.is_symmetric(), "scale": one.scales, "offset": one.offsets(),
            });
            if let (Some(block), Some(entry)) = (one.block, entry.as_object_mut()) {
                entry.insert("block_size".into(), block.into());
            }
            entry
        });
        Value::Array(entries.collect())
    };
    let document = json!({
        "version": "1.0.0", "activation_encodings": of(false), "param_encodings": of(true),
        "excluded_layers": [],
    });
    format!("{document:#}\n")
}
