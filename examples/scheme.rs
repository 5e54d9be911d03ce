//! Quantizes a model by a scheme that needs no samples: `scheme MODEL.onnx SETTINGS.json OUT.onnx`.
//!
//! SETTINGS.json holds the settings of one scheme under its name, such as `{"dynamic": {"weights":
//! "u8"}}`; under `blocks` a whole settings document. The treatment of each node and tensor is
//! written to standard output as JSON, which the oracle (`tests/oracle/schemes.py`) reads.

use std::{env, error::Error, fs};

use octet::graph::Model;
use octet::quantize::{
    DynamicSettings, HalfSettings, Settings, WeightSettings, apply, quantize_dynamic,
    quantize_half, quantize_weights,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    Dynamic(DynamicSettings),
    Blocks(Box<Settings>),
    Weights(WeightSettings),
    Float16(HalfSettings),
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(from), Some(settings), Some(to)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: scheme MODEL.onnx SETTINGS.json OUT.onnx".into());
    };
    let proto = octet::onnx::read(fs::read(from)?.into())?;
    let model = octet::prepare::prepare(Model::from_proto(proto)?)?.model;
    let quantized = match serde_json::from_slice(&fs::read(settings)?)? {
        Scheme::Dynamic(settings) => quantize_dynamic(&model, &settings),
        Scheme::Blocks(settings) => {
            let scheme = octet::quantize::Scheme::Blocks;
            apply(
                &model,
                &Settings {
                    scheme,
                    ..*settings
                },
                None,
            )
        }
        Scheme::Weights(settings) => quantize_weights(&model, &settings),
        Scheme::Float16(settings) => quantize_half(&model, &settings),
    }
    .map_err(|error| error.to_string())?;
    fs::write(to, octet::onnx::write(&quantized.model.to_proto())?)?;
    let summary = serde_json::json!({
        "nodes": quantized.nodes,
        "tensors": quantized.tensors,
        "notes": quantized.notes,
    });
    println!("{summary}");
    Ok(())
}
