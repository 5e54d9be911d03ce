//! Learned rounding on whole models: error on other samples, threads, memory, and the forms of a file.
#![allow(clippy::unwrap_used)]

mod journal;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use octet::allocator::peak_of;
use octet::graph::Dim;
use octet::onnx;
use octet::onnx::schema::ModelProto;
use octet::quantize::Settings;
use octet::samples::{self, Encoded, SampleSettings};
use octet::session::{ModelFile, Session};
use octet::tune::TuningSummary;
use octet_test_models::networks;

/// The tests run one after another, because one of them measures memory.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work on a number of threads.
fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

/// A model, and samples of it.
struct Subject {
    file: Bytes,
    shape: Vec<usize>,
}

/// Samples that calibrate and learn, and those that judge.
const TAUGHT: std::ops::Range<u64> = 0..12;
const JUDGED: std::ops::Range<u64> = 100..112;

impl Subject {
    fn new(model: &ModelProto, shape: &[usize]) -> Subject {
        Subject {
            file: onnx::write(model).unwrap().into(),
            shape: shape.to_vec(),
        }
    }

    /// Convolutions of all kinds, Relus, and a product.
    fn mobile() -> Subject {
        Subject::new(&networks::mobile(&["1", "3", "24", "24"]), &[1, 3, 24, 24])
    }

    fn open(file: Bytes) -> Session {
        Session::open(ModelFile::new("model.onnx", file)).unwrap()
    }

    fn samples(&self, which: std::ops::Range<u64>) -> Vec<Encoded> {
        let session = Subject::open(self.file.clone());
        let mut specs = session.input_specs();
        specs[0].shape = self.shape.iter().map(|&size| Dim::Known(size)).collect();
        let one = |index| samples::demo(&specs, &BTreeMap::new(), 1, index).unwrap();
        which.map(one).collect()
    }

    fn decoding() -> SampleSettings {
        SampleSettings {
            demo: true,
            ..SampleSettings::default()
        }
    }

    /// The quantized file, and what was learned.
    fn quantized(&self, text: &str) -> (Bytes, Option<TuningSummary>) {
        let (settings, samples) = (settings(text), self.samples(TAUGHT));
        let mut session = Subject::open(self.file.clone());
        let plain = Settings {
            finetune: None,
            rounding: Default::default(),
            ..settings.clone()
        };
        let calibrated = if settings.tunes() { &plain } else { &settings };
        session
            .calibrate(&samples, &Subject::decoding(), calibrated)
            .unwrap();
        let learned = settings.tunes().then(|| {
            let mut tuning = session
                .begin_tuning(&settings, &octet::tune::unnamed_file)
                .unwrap();
            for sample in &samples {
                let inputs = session.decode(sample, &Subject::decoding()).unwrap();
                tuning.add(inputs).unwrap();
            }
            session.tune(tuning, &()).unwrap()
        });
        let made = session.quantize(&settings).unwrap();
        (made.model.as_slice().concat().into(), learned)
    }

    /// The mean squared error of a file's outputs on the samples that judge.
    fn error(&self, file: Bytes) -> f64 {
        let float = Subject::open(self.file.clone());
        let runners = [
            float.runner().unwrap(),
            Subject::open(file).runner().unwrap(),
        ];
        let mut sum = 0.0;
        for sample in self.samples(JUDGED) {
            let inputs = float.decode(&sample, &Subject::decoding()).unwrap();
            let [float, quantized] = [0, 1].map(|which| runners[which].run(&inputs, &()).unwrap());
            let pairs = float[0]
                .1
                .as_f32()
                .unwrap()
                .iter()
                .zip(quantized[0].1.as_f32().unwrap());
            sum += pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        }
        sum
    }
}

const FOUR_BITS: &str = r#""weights": {"type": "i4"}, "guard": false"#;
const STEPS: &str = r#""num_iterations": 200, "positions": 128"#;

#[test]
fn learned_weights_have_a_smaller_error_on_samples_that_did_not_teach() {
    let _alone = alone();
    let subject = Subject::mobile();
    let error = |text: &str| {
        let (file, learned) = subject.quantized(&format!("{{{FOUR_BITS}, {text}}}"));
        for layer in learned.iter().flat_map(|learned| &learned.layers) {
            assert!(layer.after <= layer.before, "{layer:?}");
        }
        subject.error(file)
    };
    let nearest = error(r#""rounding": "nearest""#);
    let closed = error(r#""rounding": "closed-form""#);
    let adaround = error(&format!(r#""finetune": {{{STEPS}}}"#));
    let adaquant = error(&format!(
        r#""finetune": {{"algorithm": "adaquant", "learning_rate": 1e-3, {STEPS}}}"#
    ));
    let both = error(&format!(
        r#""rounding": "closed-form", "finetune": {{{STEPS}}}"#
    ));
    println!(
        "nearest {nearest:.5}, closed form {closed:.5}, AdaRound {adaround:.5}, AdaQuant {adaquant:.5}, both {both:.5}"
    );
    assert!(closed < 0.7 * nearest);
    assert!(adaround < 0.8 * nearest);
    assert!(adaquant < 0.95 * nearest);
    assert!(both < 0.7 * nearest);
}

#[test]
fn all_numbers_of_threads_and_all_places_of_values_give_the_same_file() {
    let _alone = alone();
    let subject = Subject::mobile();
    let made = |threads: usize, level: u8| {
        let text = format!(
            r#"{{{FOUR_BITS}, "rounding": "closed-form", "finetune": {{"num_iterations": 30, "update_bias": true, "mem_opt_level": {level}}}}}"#
        );
        on_threads(threads, || subject.quantized(&text).0)
    };
    let one = made(1, 1);
    assert!(made(2, 1) == one);
    assert!(made(5, 2) == one);
}

/// Blocks learn what single layers can't: how the layers of a residual block err together.
#[test]
fn blocks_have_a_smaller_error_than_layers_on_samples_that_did_not_teach() {
    let _alone = alone();
    let subject = Subject::new(
        &networks::residual(&["1", "3", "12", "12"]),
        &[1, 3, 12, 12],
    );
    let error = |text: &str| {
        let (file, learned) = subject.quantized(&format!("{{{FOUR_BITS}, {text}}}"));
        let reports = learned.map_or(Vec::new(), |learned| learned.layers);
        for report in &reports {
            assert!(report.after <= report.before, "{report:?}");
        }
        (subject.error(file), reports)
    };
    let (nearest, _) = error(r#""rounding": "nearest""#);
    let (layers, _) = error(r#""finetune": {"num_iterations": 300}"#);
    let block = |more: &str| {
        error(&format!(
            r#""finetune": {{"num_iterations": 300, "blocks": true{more}}}"#
        ))
    };
    let (blocks, reports) = block("");
    let (mixed, _) = block(r#", "drop_ratio": 0.5"#);
    let (steps, _) = block(r#", "drop_ratio": 0.5, "activation_scales": true"#);
    let (distilled, after) = block(r#", "drop_ratio": 0.5, "distillation": 200"#);
    println!(
        "nearest {nearest:.2}, layers {layers:.2}, blocks {blocks:.2}, with QDrop {mixed:.2}, and with steps {steps:.2}, or distilled {distilled:.2}"
    );
    let operators: Vec<&str> = reports
        .iter()
        .map(|report| report.operator.as_str())
        .collect();
    assert!(operators.contains(&"block of 2"), "{operators:?}");
    let last = after.last().unwrap();
    assert!(last.operator == "distillation" && last.taken == "learned");
    assert!(layers < 0.7 * nearest);
    assert!(blocks < 0.92 * layers);
    assert!(mixed < 0.97 * layers);
    assert!(steps < 0.97 * mixed);
    assert!(distilled < 0.97 * mixed);
}

#[test]
fn blocks_give_the_same_file_for_all_numbers_of_threads() {
    let _alone = alone();
    let subject = Subject::mobile();
    let made = |threads: usize, level: u8| {
        let text = format!(
            r#"{{{FOUR_BITS}, "rounding": "closed-form", "finetune": {{"num_iterations": 20, "blocks": true, "drop_ratio": 0.5, "activation_scales": true,
                "update_bias": true, "distillation": 10, "mem_opt_level": {level}}}}}"#
        );
        on_threads(threads, || subject.quantized(&text))
    };
    let (one, learned) = made(1, 1);
    let learned = learned.unwrap().layers;
    let blocks = learned
        .iter()
        .filter(|layer| layer.operator.starts_with("block"));
    assert!(blocks.count() > 1, "{learned:?}");
    assert!(made(2, 1).0 == one);
    assert!(made(5, 2).0 == one);
}

#[test]
fn other_forms_of_the_file_hold_the_same_numbers() {
    let _alone = alone();
    let subject = Subject::mobile();
    let error = |format: &str| {
        let text =
            format!(r#"{{"guard": false, "rounding": "closed-form", "format": "{format}"}}"#);
        subject.error(subject.quantized(&text).0)
    };
    let written = error("qdq");
    for form in ["simulated", "qoperator"] {
        let ratio = error(form) / written;
        assert!((0.9..1.1).contains(&ratio), "{form}: {ratio}");
    }
}

#[test]
fn constants_of_other_settings_are_not_used() {
    let _alone = alone();
    let subject = Subject::mobile();
    let mut session = Subject::open(subject.file.clone());
    let learned = settings(&format!(r#"{{{FOUR_BITS}, "rounding": "closed-form"}}"#));
    session
        .calibrate(&subject.samples(0..4), &Subject::decoding(), &learned)
        .unwrap();
    assert!(session.quantize(&learned).is_ok());
    let other = Settings {
        finetune: Some(Default::default()),
        ..learned.clone()
    };
    let error = session.quantize(&other).err().unwrap().to_string();
    assert!(error.contains("tune the model with them first"), "{error}");
    // A new calibration has other ranges.
    session.begin_calibration(Subject::decoding()).unwrap();
    assert!(session.quantize(&learned).is_err());
}

#[test]
fn the_forecast_of_memory_holds() {
    let _alone = alone();
    let subject = Subject::new(&networks::mobile(&["1", "3", "64", "64"]), &[1, 3, 64, 64]);
    let text = format!(
        r#"{{{FOUR_BITS}, "finetune": {{"num_iterations": 10, "select_max_mem_layer": true}}}}"#
    );
    let (settings, samples) = (settings(&text), subject.samples(0..8));
    let mut session = Subject::open(subject.file.clone());
    let plain = Settings {
        finetune: None,
        ..settings.clone()
    };
    session
        .calibrate(&samples, &Subject::decoding(), &plain)
        .unwrap();
    let mut tuning = session
        .begin_tuning(&settings, &octet::tune::unnamed_file)
        .unwrap();
    for sample in &samples {
        let inputs = session.decode(sample, &Subject::decoding()).unwrap();
        tuning.add(inputs).unwrap();
    }
    assert_eq!(tuning.layers(), 1);
    let forecast = tuning.forecast().unwrap();
    let before = octet::allocator::live();
    let (learned, peak) = peak_of(|| session.tune(tuning, &()).unwrap());
    let used = peak as f64 - before as f64;
    let share = used / (forecast.layer_bytes + learned.frontier_bytes) as f64;
    println!(
        "forecast {forecast:?}, frontier {}, peak {used}, share {share}",
        learned.frontier_bytes
    );
    // The layer has fewer positions than the most that a layer takes.
    assert!((0.3..1.1).contains(&share), "{share}");
}

#[test]
fn a_loop_is_refused_with_its_name() {
    let _alone = alone();
    let subject = Subject::new(&networks::loops(&["1", "3", "16", "16"]), &[1, 3, 16, 16]);
    let mut session = Subject::open(subject.file.clone());
    let settings = settings(r#"{"rounding": "closed-form"}"#);
    let sample = session.demo_sample(0, 0).unwrap();
    let error = session
        .calibrate(&[sample], &Subject::decoding(), &settings)
        .unwrap_err();
    assert!(error.to_string().contains("control flow"), "{error}");
}
