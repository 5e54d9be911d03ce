//! Quantizes a model to 8 bits with the default settings: `quantize MODEL.onnx SAMPLES OUT.onnx`.
//!
//! SAMPLES is a folder of `.npz`, `.npy`, PNG or JPEG files, one sample each. The report of the run
//! is written to `OUT.onnx.yaml`.

use std::{env, error::Error, fs};

use octet::quantize::Settings;
use octet::samples::{self, Encoded};
use octet::session::{ModelFile, Session};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [model, folder, out] => quantize(model, folder, out),
        _ => Err("usage: quantize MODEL.onnx SAMPLES OUT.onnx".into()),
    }
}

/// Reads the model and the samples, calibrates, quantizes, and writes the result and the report.
pub fn quantize(model: &str, folder: &str, out: &str) -> Result<(), Box<dyn Error>> {
    let samples = samples_in(folder)?;
    let settings = Settings::default();
    let mut session = Session::open(ModelFile::new(model, fs::read(model)?.into()))?;
    session.calibrate(&samples, &samples::SampleSettings::default(), &settings)?;
    let outcome = session.quantize(&settings)?;
    fs::write(out, outcome.model.as_slice().concat())?;
    fs::write(format!("{out}.yaml"), session.report())?;
    Ok(())
}

fn samples_in(folder: &str) -> Result<Vec<Encoded>, Box<dyn Error>> {
    let mut samples = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.display().to_string();
        let parts = vec![(name.clone(), fs::read(&path)?.into())];
        samples.push(Encoded { name, parts });
    }
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(samples)
}
