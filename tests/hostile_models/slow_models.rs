//! Models that kept tract busy for minutes: before convolutions, a constant of another shape
//! replaces a value.

use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use octet::onnx;
use octet::quantize::Settings;
use octet::samples;
use octet::session::{ModelFile, Session};
use serde_json::json;

use octet_test_models::networks::network;

/// Convolutions behind an operator on the first convolution's output and bias.
fn biased(operator: &str, sizes: &[&str], between: Option<&str>) -> Bytes {
    let mut net = network(sizes);
    net.conv("x", "a", [8, 3, 3, 3], 2, 1);
    net.plain("Relu", &["a"], "r");
    let reads = if operator == "Clip" {
        vec!["a.b"]
    } else {
        vec!["r", "a.b"]
    };
    net.plain(operator, &reads, "put");
    // The feature map stays an operand, so only these shapes are unusual.
    net.plain("Mul", &["r", "put"], "v0");
    if let Some(operator) = between {
        net.plain(operator, &["v0"], "v0.between");
    }
    let mut last = between.map_or("v0", |_| "v0.between").to_owned();
    for step in 1..7 {
        let (output, bent) = (format!("c{step}"), format!("v{step}"));
        net.conv(&last, &output, [8, 8, 3, 3], 1 + step % 2, 1);
        net.plain("HardSwish", &[&output], &bent);
        last = bent;
    }
    net.plain("GlobalAveragePool", &[&last], "y");
    net.output("y");
    onnx::write(&net.model()).unwrap().into()
}

/// The result of a model in each mode; fails if one takes longer than ten seconds.
fn each_way(file: &Bytes, size: i64) -> Vec<Result<(), String>> {
    let ways = ["run", "weights", "dynamic", "static"];
    let each = ways.map(|way| {
        let (file, (sender, done)) = (file.clone(), channel());
        std::thread::spawn(move || sender.send(one_way(&file, way, size)));
        let done = done.recv_timeout(Duration::from_secs(10));
        done.unwrap_or_else(|_| panic!("{way} took more than ten seconds"))
    });
    each.into()
}

fn one_way(file: &Bytes, way: &str, size: i64) -> Result<(), String> {
    let message = |error: octet::session::Error| error.to_string();
    let demo = samples::SampleSettings {
        demo: true,
        ..Default::default()
    };
    let mut session = Session::open(ModelFile::new("model.onnx", file.clone())).map_err(message)?;
    let mut specs = session.input_specs();
    specs[0].shape = [1, 3, size, size]
        .map(|d| octet::graph::Dim::Known(d as usize))
        .into();
    let sample = samples::demo(&specs, &Default::default(), 1, 0).unwrap();
    if way == "run" {
        let inputs = session.decode(&sample, &demo).map_err(message)?;
        let runner = session.runner().map_err(message)?;
        return runner.run(&inputs, &()).map(drop).map_err(message);
    }
    let settings = Settings::from_value(json!({ "scheme": way })).unwrap();
    if settings.needs_samples() {
        session.begin_calibration(demo).map_err(message)?;
        session.feed(vec![sample], &()).map_err(message)?;
        session
            .finish_calibration(Default::default())
            .map_err(message)?;
    }
    session.quantize(&settings).map(drop).map_err(message)
}

#[test]
fn a_constant_of_a_wrong_shape_is_an_error_that_names_it() {
    for operator in ["Max", "Mul", "Clip"] {
        for sizes in [["1", "3", "64", "64"], ["n", "3", "h", "w"]] {
            // Octet has no shape rule for Sinh.
            for between in [None, Some("Sinh")] {
                let file = biased(operator, &sizes, between);
                for how in each_way(&file, 64) {
                    // With unknown dimensions and no run, there is no error yet.
                    let Err(message) = how else {
                        assert_eq!(sizes[0], "n", "{operator} {between:?}");
                        continue;
                    };
                    let of_model = ["must be", "correct the model"];
                    // For an open dimension, another size might fit.
                    let of_size = ["don't match", "choose a size"];
                    let all = |parts: &[&str]| parts.iter().all(|part| message.contains(part));
                    let next = all(&of_model) || (sizes[0] == "n" && all(&of_size));
                    let whole = all(&["(node `", "the shape", "[8]"]) && next;
                    assert!(whole, "{operator}: {message}");
                }
                let run = &each_way(&file, 64)[0];
                assert!(run.is_err(), "{operator} {between:?}");
            }
        }
    }
}

#[test]
fn a_constant_that_broadcasts_runs() {
    for operator in ["Max", "Mul", "Clip"] {
        let file = biased(operator, &["n", "3", "h", "w"], None);
        // The rows of the first feature map are eight wide, as the bias is.
        for how in each_way(&file, 16) {
            assert_eq!(how, Ok(()), "{operator}");
        }
    }
}
