//! Converts a quantized model: `forms qoperator QDQ.onnx OUT.onnx`, or `forms simulated QDQ.onnx
//! FLOAT.onnx OUT.onnx` with its prepared float model.
//!
//! The oracle (`tests/oracle/test_formats.py`) compares the results in ONNX Runtime.

use std::{env, error::Error, fs};

use octet::graph::Model;
use octet::quantize::{to_integer_operators, with_float_weights};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (converted, to) = match arguments[..] {
        ["qoperator", from, to] => (to_integer_operators(&read(from)?)?, to),
        ["simulated", from, float, to] => (with_float_weights(&read(from)?, &read(float)?)?, to),
        _ => {
            let usage = "usage: forms qoperator QDQ.onnx OUT.onnx | forms simulated QDQ.onnx FLOAT.onnx OUT.onnx";
            return Err(usage.into());
        }
    };
    fs::write(to, octet::onnx::write(&converted.to_proto())?)?;
    Ok(())
}

fn read(path: &str) -> Result<Model, Box<dyn Error>> {
    Ok(Model::from_proto(octet::onnx::read(
        fs::read(path)?.into(),
    )?)?)
}
