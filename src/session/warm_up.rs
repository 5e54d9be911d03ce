//! A run of everything on a little model, so that a browser has compiled the loops that matter before a
//! person's model comes: it compiles a function well only once it has seen it work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use octet_kernels::int8::Form;

use super::{Error, Event, Session, Source, Watch};
use crate::calibrate::Method;
use crate::graph::Dim;
use crate::graph::TensorType;
use crate::onnx;
use crate::onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    ValueInfoProto,
};
use crate::profile::{Clock, SystemClock};
use crate::quantize::Settings;
use crate::samples;

/// Channels of the little model, and the side of its picture.
const CHANNELS: usize = 32;
const SIDE: usize = 28;

/// Opens, calibrates and quantizes the little model once, and times the forms of the integer kernels: some
/// milliseconds.
pub fn warm_up() -> Result<(), Error> {
    choose_form();
    let mut session = Session::open(Source::new("warm-up", Bytes::from(model()?)))?;
    session.begin_calibration(samples::Settings::default())?;
    let sample = session.demo_sample(0, 0)?;
    session.feed(vec![sample], &Unwatched)?;
    session.finish_calibration(Method::default())?;
    session.quantize(&Settings::default())?;
    Ok(())
}

/// Sees to it that the form of the integer kernels was chosen by its speed when warm.
///
/// A browser compiles what got hot in the background: the first timing makes it hot and may measure the simple code
/// from before. So the choice is made again by whoever makes a model ready, until two at least half a second apart
/// agree. Natively the first holds.
pub(super) fn form_chosen() {
    if !SETTLED.load(Ordering::Relaxed) {
        choose_form();
    }
}

static SETTLED: AtomicBool = AtomicBool::new(false);

/// The choice before this one, and when it was made.
static BEFORE: Mutex<Option<(Form, f64)>> = Mutex::new(None);

/// Milliseconds between two choices that settle it.
const APART_MS: f64 = 500.0;

fn choose_form() {
    let times = Form::choose(|| SystemClock.now_ms() / 1000.0);
    let Some(&(form, _)) = times.first() else {
        return;
    };
    let now = SystemClock.now_ms();
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let confirmed = |(known, at): (Form, f64)| known == form && now - at >= APART_MS;
    if !cfg!(target_family = "wasm") || before.is_some_and(confirmed) {
        SETTLED.store(true, Ordering::Relaxed);
    }
    // The first of a row of equal choices stays, so that choosing often settles it, too.
    if before.is_none_or(|(known, _)| known != form) {
        *before = Some((form, now));
    }
}

struct Unwatched;

impl Watch for Unwatched {
    fn event(&self, _: &Event) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// picture → dense, depthwise and pointwise convolutions, each cut at 0 and 6 → their mean → classes
fn model() -> Result<Vec<u8>, Error> {
    let mut nodes = Vec::new();
    let mut weights = Vec::new();
    let mut last = "picture".to_string();
    let convolutions = [
        ("dense", 3, 1, 3, 2),
        ("depthwise", 1, CHANNELS as i64, 3, 1),
        ("pointwise", CHANNELS, 1, 1, 1),
    ];
    for (name, depth, group, size, stride) in convolutions {
        let values = varied(CHANNELS * depth * size * size);
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        weights.push(TensorProto::from_f32(
            &weight,
            &[CHANNELS, depth, size, size],
            &values,
        ));
        weights.push(TensorProto::from_f32(&bias, &[CHANNELS], &varied(CHANNELS)));
        let pad = (size / 2) as i64;
        let conv = NodeProto::new(
            "Conv",
            name,
            &[&last, &weight, &bias],
            &[&format!("{name}.sum")],
        );
        nodes.push(
            conv.with(AttributeProto::int("group", group))
                .with(AttributeProto::ints("strides", &[stride, stride]))
                .with(AttributeProto::ints("pads", &[pad; 4])),
        );
        let cut = format!("{name}.cut");
        nodes.push(NodeProto::new(
            "Clip",
            &cut,
            &[&format!("{name}.sum"), "low", "high"],
            &[&cut],
        ));
        last = cut;
    }
    weights.push(TensorProto::from_f32("low", &[], &[0.0]));
    weights.push(TensorProto::from_f32("high", &[], &[6.0]));
    weights.push(TensorProto::from_f32(
        "classes.weight",
        &[CHANNELS, 8],
        &varied(CHANNELS * 8),
    ));
    nodes.push(NodeProto::new(
        "GlobalAveragePool",
        "mean",
        &[&last],
        &["mean"],
    ));
    nodes.push(NodeProto::new("Flatten", "flat", &["mean"], &["flat"]));
    nodes.push(NodeProto::new(
        "MatMul",
        "classes",
        &["flat", "classes.weight"],
        &["classes"],
    ));
    let port = |name: &str, shape: &[usize]| {
        let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
        let declared = TensorType {
            element: DataType::Float,
            shape: Some(shape),
        };
        ValueInfoProto::of(name, &declared)
    };
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto {
            version: Some(17),
            ..Default::default()
        }],
        graph: Some(GraphProto {
            node: nodes,
            input: vec![port("picture", &[1, 3, SIDE, SIDE])],
            output: vec![port("classes", &[1, 8])],
            initializer: weights,
            ..Default::default()
        }),
        ..Default::default()
    };
    Ok(onnx::write(&model)?)
}

/// Weights on both sides of zero.
fn varied(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at * 37 % 101) as f32 / 101.0 - 0.5)
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_little_model_goes_the_whole_way() {
        super::warm_up().unwrap();
    }
}
