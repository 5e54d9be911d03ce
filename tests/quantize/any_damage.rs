//! Whatever is wrong with a file is an error in words, or goes by: never a panic, and never a file that can't be read again.

use std::error::Error;

use bytes::Bytes;
use octet::graph::Model;
use octet::onnx;
use octet::quantize::Settings;
use octet::samples;
use octet::session::{Session, Source};
use serde_json::json;

use crate::damaged::damaged;
use crate::graphs::{Random, check_valid};
use crate::sound::sound;

/// Runs a model, quantizes it and runs what came out; says whether that much was done.
fn whole_way(file: &Bytes, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let random = samples::Settings {
        demo: true,
        ..Default::default()
    };
    let open = |file: &Bytes| -> Result<Session, Box<dyn Error>> {
        Ok(Session::open(Source::new("damaged.onnx", file.clone()))?)
    };
    let mut session = open(file)?;
    let sample = session.demo_sample(1, 0)?;
    let inputs = session.decode(&sample, &random)?;
    session.runner()?.run(&inputs, &())?;
    if settings.need_samples() {
        session.begin_calibration(random)?;
        session.feed(vec![sample], &())?;
        session.finish_calibration(settings.method.unwrap_or_default())?;
    }
    let made = session.quantize(settings)?.model.as_slice().concat();
    let made = Bytes::from(made);
    check_valid(&Model::from_proto(onnx::read(made.clone())?)?);
    open(&made)?.runner()?.run(&inputs, &())?;
    Ok(())
}

#[test]
fn a_damaged_model_is_an_error_or_becomes_a_valid_one() {
    let settings = [
        json!({}),
        json!({ "format": "qoperator", "by_name": { "": { "always": true } } }),
        json!({ "scheme": "dynamic" }),
        json!({ "activations": { "type": "u16" }, "weights": { "type": "i4" } }),
    ];
    let settings = settings.map(|said| Settings::from_value(said).unwrap());
    let mut random = Random(3);
    let mut done = 0;
    for round in 0..250 {
        let model = sound(&mut random);
        let file = Bytes::from(damaged(model, &mut random));
        let settings = random.one(&settings);
        match whole_way(&file, settings) {
            Ok(()) => done += 1,
            // So says the engine of a panic that it caught, which it can't in a browser.
            Err(error) => {
                let said = error.to_string();
                assert!(!said.contains("broke off"), "round {round}: {said}");
            }
        }
    }
    assert!((20..230).contains(&done), "{done} came through");
}
