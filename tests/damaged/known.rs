//! Models with a constant of other sizes in place of a value before convolutions. tract computed
//! for minutes at these.

use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use octet::onnx;
use octet::quantize::Settings;
use octet::samples;
use octet::session::{Session, Source};
use serde_json::json;

use crate::networks::network;

/// Convolutions behind an operator with the first result and the first bias.
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
    // Another operator reads the input, so that only these sizes are odd.
    net.plain("Mul", &["r", "put"], "v0");
    if let Some(operator) = between {
        net.plain(operator, &["v0"], "v0.between");
    }
    let mut last = between.map_or("v0", |_| "v0.between").to_owned();
    for step in 1..7 {
        let (made, bent) = (format!("c{step}"), format!("v{step}"));
        net.conv(&last, &made, [8, 8, 3, 3], 1 + step % 2, 1);
        net.plain("HardSwish", &[&made], &bent);
        last = bent;
    }
    net.plain("GlobalAveragePool", &[&last], "y");
    net.output("y");
    onnx::write(&net.model()).unwrap().into()
}

/// Runs a model through each entry point and returns the results; fails if one takes longer than
/// ten seconds.
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
    let said = |error: octet::session::Error| error.to_string();
    let demo = samples::Settings {
        demo: true,
        ..Default::default()
    };
    let mut session = Session::open(Source::new("model.onnx", file.clone())).map_err(said)?;
    let mut specs = session.input_specs();
    specs[0].shape = [1, 3, size, size]
        .map(|d| octet::graph::Dim::Known(d as usize))
        .into();
    let sample = samples::demo(&specs, &Default::default(), 1, 0).unwrap();
    if way == "run" {
        let inputs = session.decode(&sample, &demo).map_err(said)?;
        let runner = session.runner().map_err(said)?;
        return runner.run(&inputs, &()).map(drop).map_err(said);
    }
    let settings = Settings::from_value(json!({ "scheme": way })).unwrap();
    if settings.need_samples() {
        session.begin_calibration(demo).map_err(said)?;
        session.feed(vec![sample], &()).map_err(said)?;
        session
            .finish_calibration(Default::default())
            .map_err(said)?;
    }
    session.quantize(&settings).map(drop).map_err(said)
}

#[test]
fn a_constant_that_does_not_fit_is_refused_by_name_before_anything_hangs() {
    for operator in ["Max", "Mul", "Clip"] {
        for sizes in [["1", "3", "64", "64"], ["n", "3", "h", "w"]] {
            // Sinh has no shape rule of ours.
            for between in [None, Some("Sinh")] {
                let file = biased(operator, &sizes, between);
                for how in each_way(&file, 64) {
                    // Without known sizes and without a run, there is no error yet.
                    let Err(said) = how else {
                        assert_eq!(sizes[0], "n", "{operator} {between:?}");
                        continue;
                    };
                    let of_model = ["must be", "correct the model"];
                    // A different size might fit.
                    let of_size = ["don't fit", "choose a size"];
                    let all = |parts: &[&str]| parts.iter().all(|part| said.contains(part));
                    let next = all(&of_model) || (sizes[0] == "n" && all(&of_size));
                    let whole = all(&["(node `", "the shape", "[8]"]) && next;
                    assert!(whole, "{operator}: {said}");
                }
                let run = &each_way(&file, 64)[0];
                assert!(run.is_err(), "{operator} {between:?}");
            }
        }
    }
}

#[test]
fn a_constant_that_fits_by_being_spread_runs() {
    for operator in ["Max", "Mul", "Clip"] {
        let file = biased(operator, &["n", "3", "h", "w"], None);
        // The rows of the first result are eight wide, as the bias is.
        for how in each_way(&file, 16) {
            assert_eq!(how, Ok(()), "{operator}");
        }
    }
}
