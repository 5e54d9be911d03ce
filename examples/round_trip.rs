//! Reads an ONNX file and writes it again, unchanged: `round_trip IN.onnx OUT.onnx`.
//!
//! The oracle (`tests/oracle/test_round_trip.py`) compares the two files with the `onnx` package.

use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: round_trip IN.onnx OUT.onnx".into());
    };
    let model = octet::onnx::read(fs::read(from)?.into())?;
    fs::write(to, octet::onnx::write(&model)?)?;
    Ok(())
}
