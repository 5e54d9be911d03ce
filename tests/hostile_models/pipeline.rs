//! The pipeline of a model: open, inspect, run, quantize by each scheme, run the result, compare.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use octet::graph::{Dim, Model};
use octet::onnx;
use octet::onnx::schema::*;
use octet::quantize::Settings;
use octet::samples::{self, Encoded, InputSpec};
use octet::session::{Event, ModelFile, ProgressMonitor, Session, compare_sample};
use octet::tensor::Tensor;
use serde_json::{Value, json};

use octet_test_models::networks;
use octet_test_models::valid_models::valid_model;
use octet_test_models::{RandomChoice, assert_valid_like, repeated_node_names};

type TestResult<T> = Result<T, Box<dyn Error>>;

/// The kinds of models to damage.
pub struct ModelKinds(Vec<(&'static str, ModelProto)>);

impl ModelKinds {
    pub fn new() -> ModelKinds {
        let picture = ["n", "3", "h", "w"];
        let fixed = ["1", "3", "16", "16"];
        let open = ["", "3", "", ""];
        let mut kinds = vec![
            ("classifier", networks::classifier(&picture)),
            ("classifier, fixed", networks::classifier(&fixed)),
            ("mobile", networks::mobile(&picture)),
            ("mobile, fixed", networks::mobile(&fixed)),
            ("pyramid", networks::pyramid(&picture)),
            ("pyramid, fixed", networks::pyramid(&fixed)),
            ("encoder", networks::encoder(&["n", "length"])),
            ("patches", networks::patches(&["n", "3", "16", "16"])),
            ("anchors", networks::anchors(&picture)),
            ("selection", networks::selection(&open)),
            ("choices", networks::choices(&picture)),
            ("loops", networks::loops(&picture)),
            ("counted", networks::counted(&fixed)),
            ("recurrent", networks::recurrent(&["t", "1", "5"])),
        ];
        for (name, at) in [("classifier with pairs", 1), ("patches with pairs", 7)] {
            let pairs = quantized(&kinds[at].1, &json!({})).unwrap();
            kinds.push((name, onnx::read(pairs).unwrap()));
        }
        ModelKinds(kinds)
    }

    /// A random kind, or a model of few operators.
    pub fn one(&self, random: &mut RandomChoice) -> (&'static str, ModelProto) {
        match random.below(self.0.len() + 3) {
            place if place < self.0.len() => self.0[place].clone(),
            _ => ("few operators", valid_model(random)),
        }
    }

    #[cfg(test)]
    pub fn all(&self) -> &[(&'static str, ModelProto)] {
        &self.0
    }
}

#[test]
fn each_kind_passes_the_pipeline_undamaged() {
    let mut random = RandomChoice(1);
    for (kind, model) in ModelKinds::new().all() {
        let file = Bytes::from(onnx::write(model).unwrap());
        for _ in 0..3 {
            let how = run_pipeline(&file, &mut random);
            let pairs = kind.contains("pairs") && how == "refused";
            assert!(how == "whole" || pairs, "{kind}: {how}");
        }
    }
}

/// Takes a file through the pipeline; returns `whole`, `refused`, or a description of a failure.
pub fn run_pipeline(file: &Bytes, random: &mut RandomChoice) -> String {
    let schemes = [
        json!({}),
        json!({ "format": "qoperator", "by_name": { "": { "always": true } } }),
        json!({ "activations": { "type": "u16" }, "weights": { "type": "i4" } }),
        json!({ "scheme": "dynamic" }),
        json!({ "scheme": "float16" }),
    ];
    let scheme = random.one(&schemes);
    let steps: [&dyn Fn() -> TestResult<()>; 3] = [
        &|| runs(file),
        &|| quantized(&onnx::read(file.clone())?, &json!({ "scheme": "weights" })).map(drop),
        &|| compared(file, scheme),
    ];
    let mut how = "whole".to_owned();
    for step in steps {
        if let Err(error) = step() {
            let message = error.to_string();
            // The engine reports a caught panic like this. A browser can't catch panics.
            if message.contains("broke off") {
                return format!("panicked, {message}");
            }
            how = "refused".to_owned();
        }
    }
    how
}

fn open(file: &Bytes) -> TestResult<Session> {
    Ok(Session::open(ModelFile::new("damaged.onnx", file.clone()))?)
}

/// Makes a small sample, with small values for open dimensions.
fn sample(session: &Session) -> TestResult<(Encoded, Vec<Tensor>)> {
    let mut specs: Vec<InputSpec> = session.input_specs();
    for spec in &mut specs {
        let rank = spec.shape.len();
        for (axis, size) in spec.shape.iter_mut().enumerate() {
            if !matches!(size, Dim::Known(_)) {
                let open = match (axis, rank) {
                    (0, _) => 1,
                    (1, 4) => 3,
                    (_, 4) => 16,
                    _ => 6,
                };
                *size = Dim::Known(open);
            }
        }
    }
    let all = |n: usize, spec: &InputSpec| {
        let size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            _ => 1,
        };
        spec.shape
            .iter()
            .fold(n, |n, dim| n.saturating_mul(size(dim)))
    };
    if specs.iter().any(|spec| all(1, spec) > 1 << 16) {
        return Err("a sample of this model is too large for a test".into());
    }
    let tables: BTreeMap<String, u64> = specs.iter().map(|spec| (spec.name.clone(), 20)).collect();
    let sample = samples::demo(&specs, &tables, 1, 0)?;
    let inputs = session.decode(&sample, &demo())?;
    Ok((sample, inputs))
}

fn demo() -> samples::SampleSettings {
    samples::SampleSettings {
        demo: true,
        ..Default::default()
    }
}

/// Cancels a run after two seconds, because the loops of a damaged model may not end. A run that
/// ignores this is a failure.
struct TimeLimit(Instant);

impl TimeLimit {
    fn new() -> TimeLimit {
        TimeLimit(Instant::now())
    }
}

impl ProgressMonitor for TimeLimit {
    fn event(&self, _event: &Event) {}

    fn cancelled(&self) -> bool {
        self.0.elapsed() > Duration::from_secs(2)
    }
}

/// Inspects and runs the model.
fn runs(file: &Bytes) -> TestResult<()> {
    let mut session = open(file)?;
    let (_, inputs) = sample(&session)?;
    session.runner()?.run(&inputs, &TimeLimit::new())?;
    session.graph()?;
    Ok(())
}

fn quantized(model: &ModelProto, settings: &Value) -> TestResult<Bytes> {
    let file = Bytes::from(onnx::write(model)?);
    let mut session = open(&file)?;
    calibrate_and_quantize(&file, &mut session, settings).map(|(file, _)| file)
}

/// Quantizes; returns the file and the calibration inputs. Only node names that are repeated in the
/// source may be repeated in the result.
fn calibrate_and_quantize(
    source: &Bytes,
    session: &mut Session,
    settings: &Value,
) -> TestResult<(Bytes, Option<Vec<Tensor>>)> {
    let settings = Settings::from_value(settings.clone())?;
    let mut fed = None;
    if settings.needs_samples() {
        let (sample, inputs) = sample(session)?;
        fed = Some(inputs);
        session.begin_calibration(demo())?;
        session.feed(vec![sample], &TimeLimit::new())?;
        session.finish_calibration(settings.method.unwrap_or_default())?;
    }
    let file = Bytes::from(session.quantize(&settings)?.model.as_slice().concat());
    let repeated = repeated_node_names(&Model::from_proto(onnx::read(source.clone())?)?);
    assert_valid_like(&Model::from_proto(onnx::read(file.clone())?)?, &repeated);
    Ok((file, fed))
}

/// Quantizes the model, runs the result and compares both.
fn compared(file: &Bytes, settings: &Value) -> TestResult<()> {
    let mut session = open(file)?;
    let (file, fed) = calibrate_and_quantize(file, &mut session, settings)?;
    let inputs = match fed {
        Some(inputs) => inputs,
        None => sample(&session)?.1,
    };
    let runner = open(&file)?.runner()?;
    runner.run(&inputs, &TimeLimit::new())?;
    let mut comparing = session.begin_comparison(&runner)?;
    compare_sample(&mut comparing, &inputs, None, &TimeLimit::new())?;
    comparing.finish();
    Ok(())
}
