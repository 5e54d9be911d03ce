//! Snippets in JavaScript: runs in onnxruntime-web and by transformers.js.

use std::fmt::Write as _;

use super::names::{Sizes, comment, quoted};
use super::{SnippetError, SnippetInput, SnippetModel, data_lines, sizes};
use crate::onnx::schema::DataType;
use crate::samples::PlaceholderValues;

/// Endings of files that transformers.js finds, and the `dtype` that finds them.
pub(super) const ENDINGS: [(&str, &str); 9] = [
    ("_quantized", "q8"),
    ("_int8", "int8"),
    ("_uint8", "uint8"),
    ("_fp16", "fp16"),
    ("_q4", "q4"),
    ("_q4f16", "q4f16"),
    ("_q2", "q2"),
    ("_q2f16", "q2f16"),
    ("_bnb4", "bnb4"),
];

/// Names that the snippets use themselves.
const NAMES: [&str; 14] = [
    "ort", "session", "inputs", "outputs", "model", "env", "tensor", "type", "dims", "values",
    "value", "name", "count", "size",
];

/// The function that makes a tensor, after the import of its class.
const TENSOR: &str = "
/** A tensor of zeros, or of a value for each place. */
const tensor = (type, Values, dims, value) => {
  const values = new Values(dims.reduce((count, size) => count * size, 1));
  return new Tensor(type, value ? values.map((_, at) => value(at)) : values, dims);
};
";

/// A run in onnxruntime-web.
pub(super) fn web(model: &SnippetModel, inputs: &[SnippetInput]) -> Result<String, SnippetError> {
    let sizes = sizes(inputs, &NAMES);
    let data = match model.data_files.as_slice() {
        [] => String::new(),
        files => {
            let files = files.iter().map(|file| {
                let file = quoted(file);
                format!("{{ path: {file}, data: {file} }}")
            });
            let files: Vec<String> = files.collect();
            format!(", {{ externalData: [{}] }}", files.join(", "))
        }
    };
    Ok(format!(
        "// Runs {} in onnxruntime-web: npm install onnxruntime-web\n{}\
         // The inputs are zeros and ones: put your own data there. The path is relative to the page.\n\
         import {{ InferenceSession, Tensor }} from 'onnxruntime-web';\n{TENSOR}{}\n\
         const session = await InferenceSession.create({}{data});\n\
         const inputs = {};\nconst outputs = await session.run(inputs);\n\
         for (const name of session.outputNames) console.log(name, outputs[name].type, outputs[name].dims);\n",
        comment(&model.file),
        data_lines(model, "//"),
        size_lines(&sizes),
        quoted(&model.file),
        tensors(inputs, &sizes)?
    ))
}

/// A run by transformers.js.
pub(super) fn transformers(
    model: &SnippetModel,
    inputs: &[SnippetInput],
) -> Result<String, SnippetError> {
    let sizes = sizes(inputs, &NAMES);
    let unknown = || SnippetError::FileName {
        file: model.file.clone(),
    };
    let stem = model.file.strip_suffix(".onnx").ok_or_else(unknown)?;
    let found = ENDINGS
        .iter()
        .find_map(|&(ending, form)| Some((stem.strip_suffix(ending)?, form)));
    let (name, form) = found.unwrap_or((stem, "fp32"));
    let data = match model.data_files.len() {
        0 => String::new(),
        count => format!("  use_external_data_format: {count},\n"),
    };
    Ok(format!(
        "// Runs {file} by transformers.js: npm install @huggingface/transformers\n{}\
         // The folder my-model has config.json and, for texts, the tokenizer; this file is in my-model/onnx.\n\
         // The inputs are zeros and ones: put your own data there.\n\
         import {{ AutoModel, Tensor, env }} from '@huggingface/transformers';\n{TENSOR}{}\n\
         env.allowRemoteModels = false;\nenv.localModelPath = './';\n\
         const model = await AutoModel.from_pretrained('my-model', {{\n  model_file_name: {},\n  dtype: '{form}',\n{data}}});\n\
         const inputs = {};\nconst outputs = await model(inputs);\n\
         for (const name of Object.keys(outputs)) console.log(name, outputs[name].type, outputs[name].dims);\n",
        data_lines(model, "//"),
        size_lines(&sizes),
        quoted(name),
        tensors(inputs, &sizes)?,
        file = comment(&model.file),
    ))
}

fn size_lines(sizes: &Sizes) -> String {
    if sizes.is_empty() {
        return String::new();
    }
    let lines = sizes.lines(|variable, value, axis| match axis {
        "" => format!("const {variable} = {value};\n"),
        axis => format!("const {variable} = {value}; // {axis}\n"),
    });
    format!("\n// Sizes that the model leaves open.\n{lines}")
}

/// An object of the tensors.
fn tensors(inputs: &[SnippetInput], sizes: &Sizes) -> Result<String, SnippetError> {
    let mut out = String::from("{\n");
    for input in inputs {
        let hint = input
            .hint()
            .map_or(String::new(), |hint| format!(": {hint}"));
        let _ = write!(
            out,
            "  // {}{hint}\n  {}: {},\n",
            input.described(),
            quoted(&input.spec.name),
            tensor(input, sizes)?
        );
    }
    out.push('}');
    Ok(out)
}

fn tensor(input: &SnippetInput, sizes: &Sizes) -> Result<String, SnippetError> {
    let element = input.spec.element;
    let refused = || SnippetError::Element {
        input: input.spec.name.clone(),
        element,
        language: "JavaScript",
    };
    let (name, array) = typed_array(element).ok_or_else(refused)?;
    let axes = input.axes(sizes);
    let big = matches!(element, DataType::Int64 | DataType::Uint64);
    let value = match input.values {
        PlaceholderValues::Ones => match element {
            DataType::Float16 => Some("0x3c00".to_owned()),
            _ if big => Some("1n".to_owned()),
            _ => Some("1".to_owned()),
        },
        PlaceholderValues::Positions => {
            let last = axes.last().map_or("1", String::as_str);
            Some(match big {
                true => format!("BigInt(at % {last})"),
                false => format!("at % {last}"),
            })
        }
        _ => None,
    };
    let value = match (input.values, value) {
        (_, None) => String::new(),
        (PlaceholderValues::Positions, Some(value)) => format!(", (at) => {value}"),
        (_, Some(value)) => format!(", () => {value}"),
    };
    Ok(format!(
        "tensor('{name}', {array}, [{}]{value})",
        axes.join(", ")
    ))
}

/// Name of the type in onnxruntime-web, and the array for it; `None` if there is none.
fn typed_array(element: DataType) -> Option<(&'static str, &'static str)> {
    Some(match element {
        DataType::Float => ("float32", "Float32Array"),
        DataType::Float16 => ("float16", "Uint16Array"),
        DataType::Double => ("float64", "Float64Array"),
        DataType::Int8 => ("int8", "Int8Array"),
        DataType::Int16 => ("int16", "Int16Array"),
        DataType::Int32 => ("int32", "Int32Array"),
        DataType::Int64 => ("int64", "BigInt64Array"),
        DataType::Uint8 => ("uint8", "Uint8Array"),
        DataType::Uint16 => ("uint16", "Uint16Array"),
        DataType::Uint32 => ("uint32", "Uint32Array"),
        DataType::Uint64 => ("uint64", "BigUint64Array"),
        DataType::Bool => ("bool", "Uint8Array"),
        _ => return None,
    })
}
