//! Snippets in Python: samples for Octet, and a run in ONNX Runtime.

use std::fmt::Write as _;

use super::names::{Sizes, comment, quoted, shell_word};
use super::{SnippetError, SnippetInput, SnippetModel, read_as_they_are, sizes};
use crate::onnx::schema::DataType;
use crate::samples::{ChannelOrder, ImageLayout, ImageSettings, PlaceholderValues};

/// Names that the snippets use themselves.
const NAMES: [&str; 14] = [
    "np",
    "onnxruntime",
    "random",
    "sample",
    "index",
    "inputs",
    "outputs",
    "output",
    "session",
    "normalized",
    "pixels",
    "mean",
    "std",
    "values",
];

/// Names of arrays that `numpy.savez` takes for its own options.
const SAVEZ_OPTIONS: [&str; 2] = ["file", "allow_pickle"];

/// A script that writes samples for Octet.
pub(super) fn samples(
    model: &SnippetModel,
    inputs: &[SnippetInput],
) -> Result<String, SnippetError> {
    let sizes = sizes(inputs, &NAMES);
    let file = comment(&model.file);
    let mut out = format!(
        "# Writes samples of the inputs of {file} for Octet, one .npz file each.\n\
         # The values are placeholders: put your own data into `sample`. Then:\n\
         #   octet quantize {} --samples samples\n",
        shell_word(&model.file)
    );
    if let Some(kinds) = read_as_they_are(model) {
        let _ = writeln!(out, "# Octet also reads {kinds} without a script.");
    }
    let savez = !inputs
        .iter()
        .any(|input| SAVEZ_OPTIONS.contains(&input.spec.name.as_str()));
    let imports = if savez { "" } else { "import zipfile\n" };
    let _ = write!(
        out,
        "{imports}from pathlib import Path\n\nimport numpy as np\n\n\
         FOLDER = Path(\"samples\")\nCOUNT = 32\n{}\nrandom = np.random.default_rng(0)\n\n",
        size_lines(&sizes)
    );
    out.push_str(&normalized(model, inputs));
    let _ = write!(
        out,
        "\ndef sample(index):\n    \"\"\"The arrays of sample number `index`, by the names of the inputs.\"\"\"\n    return {}\n",
        arrays(inputs, &sizes, "    ")?
    );
    if !savez {
        out.push_str(SAVE_ARRAYS);
    }
    let save = match savez {
        true => "np.savez(FOLDER / f\"{index:03}.npz\", **sample(index))",
        false => "save(FOLDER / f\"{index:03}.npz\", sample(index))",
    };
    let _ = write!(
        out,
        "\n\nFOLDER.mkdir(exist_ok=True)\nfor index in range(COUNT):\n    {save}\nprint(f\"{{COUNT}} samples are in {{FOLDER}}\")\n"
    );
    Ok(out)
}

/// Writes a `.npz` file whatever the names of its arrays.
const SAVE_ARRAYS: &str = "

def save(path, arrays):
    \"\"\"Like numpy.savez, which takes one of these names for an option.\"\"\"
    with zipfile.ZipFile(path, \"w\") as archive:
        for name, array in arrays.items():
            with archive.open(f\"{name}.npy\", \"w\", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array)
";

/// A run in ONNX Runtime.
pub(super) fn run(model: &SnippetModel, inputs: &[SnippetInput]) -> Result<String, SnippetError> {
    let sizes = sizes(inputs, &NAMES);
    let mut out = format!(
        "# Runs {} in ONNX Runtime: pip install onnxruntime numpy\n{}\
         # The inputs are placeholders: put your own data there.\n\
         import numpy as np\nimport onnxruntime\n{}\nrandom = np.random.default_rng(0)\n",
        comment(&model.file),
        super::data_lines(model, "#"),
        size_lines(&sizes)
    );
    let function = normalized(model, inputs);
    if !function.is_empty() {
        let _ = write!(out, "\n{function}\n");
    }
    let _ = write!(
        out,
        "session = onnxruntime.InferenceSession({})\ninputs = {}\n\
         outputs = session.run(None, inputs)\n\
         for output, values in zip(session.get_outputs(), outputs):\n    \
         print(output.name, values.dtype, values.shape)\n",
        quoted(&model.file),
        arrays(inputs, &sizes, "")?
    );
    Ok(out)
}

fn size_lines(sizes: &Sizes) -> String {
    if sizes.is_empty() {
        return String::new();
    }
    let lines = sizes.lines(|variable, value, axis| match axis {
        "" => format!("{variable} = {value}\n"),
        axis => format!("{variable} = {value}  # {axis}\n"),
    });
    format!("\n# Sizes that the model leaves open.\n{lines}")
}

/// The function that normalizes pixels, if floats are to be made of them.
fn normalized(model: &SnippetModel, inputs: &[SnippetInput]) -> String {
    let [input] = inputs else {
        return String::new();
    };
    let (Some(settings), PlaceholderValues::Pixels { channels, layout }) =
        (&model.picture, input.values)
    else {
        return String::new();
    };
    if !input.spec.element.is_float() {
        return String::new();
    }
    let ImageSettings {
        scale, mean, std, ..
    } = settings;
    let shape = match layout {
        ImageLayout::Nchw => format!("({channels}, 1, 1)"),
        ImageLayout::Nhwc => format!("({channels},)"),
    };
    let count = channels.min(mean.len());
    let order = match (settings.order, count) {
        (_, 1) => "grey",
        (ChannelOrder::Rgb, _) => "in the order RGB",
        (ChannelOrder::Bgr, _) => "in the order BGR",
    };
    let element = dtype(input.spec.element).unwrap_or("float32");
    format!(
        "\ndef normalized(pixels):\n    \"\"\"Pixels from 0 to 255, {order}, as proposed for this model.\"\"\"\n    \
         mean = np.reshape({:?}, {shape})\n    std = np.reshape({:?}, {shape})\n    \
         return ((pixels * {scale:?} - mean) / std).astype(np.{element})\n\n",
        &mean[..count],
        &std[..count]
    )
}

/// A dictionary of the arrays, whose lines have this indentation.
fn arrays(inputs: &[SnippetInput], sizes: &Sizes, indent: &str) -> Result<String, SnippetError> {
    let mut out = String::from("{\n");
    for input in inputs {
        let hint = input
            .hint()
            .map_or(String::new(), |hint| format!(": {hint}"));
        let _ = write!(
            out,
            "{indent}    # {}{hint}\n{indent}    {}: {},\n",
            input.described(),
            quoted(&input.spec.name),
            array(input, sizes)?
        );
    }
    out.push_str(indent);
    out.push('}');
    Ok(out)
}

fn array(input: &SnippetInput, sizes: &Sizes) -> Result<String, SnippetError> {
    let element = input.spec.element;
    let refused = || SnippetError::Element {
        input: input.spec.name.clone(),
        element,
        language: "numpy",
    };
    let kind = format!("np.{}", dtype(element).ok_or_else(refused)?);
    let axes = input.axes(sizes);
    let shape = match axes.as_slice() {
        [one] => format!("({one},)"),
        axes => format!("({})", axes.join(", ")),
    };
    Ok(match input.values {
        PlaceholderValues::Pixels { .. } if element.is_float() => {
            format!("normalized(random.integers(0, 256, {shape}))")
        }
        PlaceholderValues::Pixels { .. } => {
            format!("random.integers(0, 256, {shape}, dtype={kind})")
        }
        PlaceholderValues::Below(limit) => {
            format!("random.integers(0, {limit}, {shape}).astype({kind})")
        }
        PlaceholderValues::Positions => {
            let last = axes.last().map_or("1", String::as_str);
            format!("np.broadcast_to(np.arange({last}), {shape}).astype({kind})")
        }
        PlaceholderValues::Ones => format!("np.ones({shape}, dtype={kind})"),
        PlaceholderValues::Zeros => format!("np.zeros({shape}, dtype={kind})"),
        PlaceholderValues::Normal => format!("random.standard_normal({shape}).astype({kind})"),
    })
}

/// Name of the type in numpy; `None` if numpy has none. Octet rounds float32 to bfloat16.
fn dtype(element: DataType) -> Option<&'static str> {
    Some(match element {
        DataType::Float | DataType::Bfloat16 => "float32",
        DataType::Float16 => "float16",
        DataType::Double => "float64",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::Uint8 => "uint8",
        DataType::Uint16 => "uint16",
        DataType::Uint32 => "uint32",
        DataType::Uint64 => "uint64",
        DataType::Bool => "bool_",
        _ => return None,
    })
}
