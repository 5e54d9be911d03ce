//! Tables as JSON: Octet's own, and ONNX Runtime's calibration cache.
//!
//! ONNX Runtime writes an object for each tensor, with `lowest` and `highest` as arrays of numpy.

use serde_json::{Map, Value, json};

use super::{RangeFile, RangeFileError, RangeFormat};
use crate::session::ValueRanges;
use crate::stats::Range;

/// Nesting of arrays that is followed.
const DEEPEST: usize = 8;

/// Reads either form.
pub(super) fn read(document: &Value) -> Result<RangeFile, RangeFileError> {
    let object = document.as_object().ok_or(RangeFileError::Unknown)?;
    let is = |value: &Value, class: &str| value.get("CLS").and_then(Value::as_str) == Some(class);
    if is(document, "TensorsData") {
        let data = document.get("data").and_then(Value::as_object);
        return read_onnxruntime(object, data.ok_or(RangeFileError::Unknown)?);
    }
    if object.values().any(|value| is(value, "TensorData")) {
        return read_onnxruntime(&Map::new(), object);
    }
    let range = |(tensor, value): (&String, &Value)| {
        let range = serde_json::from_value(value.clone()).map_err(|_| RangeFileError::Entry {
            tensor: tensor.clone(),
            why: "give [min, max]".into(),
        });
        Ok((tensor.clone(), range?))
    };
    let ranges = object.iter().map(range).collect::<Result<_, _>>()?;
    Ok(RangeFile::new(RangeFormat::Octet, ranges))
}

fn read_onnxruntime(
    head: &Map<String, Value>,
    data: &Map<String, Value>,
) -> Result<RangeFile, RangeFileError> {
    let mut ranges = ValueRanges::new();
    let mut channels = 0;
    for (tensor, value) in data {
        let end = |key: &str| {
            let mut all = Vec::new();
            let found = value.get(key).is_some_and(|end| numbers(end, 0, &mut all));
            match found && !all.is_empty() {
                true => Ok(all),
                false => Err(RangeFileError::Entry {
                    tensor: tensor.clone(),
                    why: format!(
                        "`{key}` is missing or no number: calibrate with a method that gives ranges"
                    ),
                }),
            }
        };
        let (lowest, highest) = (end("lowest")?, end("highest")?);
        channels += usize::from(lowest.len().max(highest.len()) > 1);
        let min = lowest.iter().copied().fold(f64::INFINITY, f64::min);
        let max = highest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ranges.insert(tensor.clone(), Range::new(min as f32, max as f32));
    }
    let mut file = RangeFile::new(RangeFormat::OnnxRuntime, ranges);
    if channels > 0 {
        file.notes.push(format!(
            "{channels} tensors have a range for each channel: Octet takes the widest, since an activation has one scale"
        ));
    }
    if head.get("smooth_quant").and_then(Value::as_bool) == Some(true) {
        file.notes.push(
            "the ranges are of a model that SmoothQuant changed: they fit the model of this name only if it was changed, too"
                .into(),
        );
    }
    Ok(file)
}

/// Collects the numbers of a value: a number, a list, or an array of numpy.
fn numbers(value: &Value, depth: usize, all: &mut Vec<f64>) -> bool {
    if depth > DEEPEST {
        return false;
    }
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| {
            all.push(number);
            true
        }),
        Value::Array(list) => list.iter().all(|inner| numbers(inner, depth + 1, all)),
        Value::Object(object) => object
            .get("data")
            .is_some_and(|data| numbers(data, depth + 1, all)),
        _ => false,
    }
}

/// Writes ONNX Runtime's calibration cache, as `quantize_static(calibration_cache_path=…)` reads it.
pub(super) fn write(ranges: &ValueRanges) -> String {
    let end =
        |value: f32| json!({ "data": f64::from(value), "dtype": "float32", "CLS": "numpy.array" });
    let data: Map<String, Value> = ranges
        .iter()
        .map(|(name, range)| {
            let data =
                json!({ "lowest": end(range.min), "highest": end(range.max), "CLS": "TensorData" });
            (name.clone(), data)
        })
        .collect();
    json!({
        "CLS": "TensorsData",
        "data": data,
        "calibration_method": { "CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax" },
        "smooth_quant": false,
    })
    .to_string()
}
