//! A small model that passes the whole pipeline before the user's model. A browser compiles a
//! function at its first call and optimizes it only after some use.

mod network;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use octet_kernels::int8::Isa;

use self::network::WarmUpNetwork;
use super::Error;
use crate::graph::Dim;
use crate::graph::TensorType;
use crate::onnx;
use crate::onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, ValueInfoProto,
};
use crate::profile::{Clock, SystemClock};

/// Channels of the model, between its blocks and inside them.
const CHANNELS: usize = 16;
const WIDE: usize = 48;

/// Number of blocks. With this many, the work for each node weighs about as much as that for each
/// element.
const BLOCKS: usize = 10;

/// Height and width of the input image.
const SIDE: usize = 40;

/// File of the warm-up model, to be opened, calibrated and quantized like any other. Also times the
/// ISAs of the integer kernels.
pub fn warm_up() -> Result<Vec<u8>, Error> {
    choose_isa();
    model()
}

/// Makes sure that the ISA of the integer kernels was chosen by warm timings.
///
/// A browser optimizes hot code in the background. The first timing makes the code hot and may
/// measure it before it is optimized. The choice is therefore repeated each time a model is made
/// ready, until two choices at least half a second apart agree. Native builds use the first choice.
pub(super) fn ensure_isa_chosen() {
    if !SETTLED.load(Ordering::Relaxed) {
        choose_isa();
    }
}

static SETTLED: AtomicBool = AtomicBool::new(false);

/// The previous choice and its time in milliseconds.
static BEFORE: Mutex<Option<(Isa, f64)>> = Mutex::new(None);

/// Minimum milliseconds between two equal choices that settle it.
const APART_MS: f64 = 500.0;

fn choose_isa() {
    let times = Isa::choose(|| SystemClock.now_ms() / 1000.0);
    let Some(&(form, _)) = times.first() else {
        return;
    };
    let now = SystemClock.now_ms();
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let confirmed = |(known, at): (Isa, f64)| known == form && now - at >= APART_MS;
    if !cfg!(target_family = "wasm") || before.is_some_and(confirmed) {
        SETTLED.store(true, Ordering::Relaxed);
    }
    // Keep the first of several equal choices, so that frequent calls settle it, too.
    if before.is_none_or(|(known, _)| known != form) {
        *before = Some((form, now));
    }
}

/// A small network with common parts: image, convolution, inverted residual blocks, global average
/// pooling, classes. A block has an expanding, a depthwise and a narrowing convolution with their
/// normalization and Clip, and a residual Add.
fn model() -> Result<Vec<u8>, Error> {
    let mut network = WarmUpNetwork::default();
    let mut last = network.convolution("picture", "stem", [CHANNELS, 3, 3, 2]);
    last = network.clip(&last);
    for block in 0..BLOCKS {
        let part = |name: &str| format!("{block}.{name}");
        let wide = network.convolution(&last, &part("wide"), [WIDE, CHANNELS, 1, 1]);
        let wide = network.clip(&wide);
        let each = network.convolution(&wide, &part("each"), [WIDE, 1, 3, 1]);
        let each = network.clip(&each);
        let narrow = network.convolution(&each, &part("narrow"), [CHANNELS, WIDE, 1, 1]);
        last = network.node("Add", &[&last, &narrow], &part("add"));
    }
    let mean = network.node("GlobalAveragePool", &[&last], "mean");
    let flat = network.node("Flatten", &[&mean], "flat");
    network.weight("classes.weight", &[8, CHANNELS]);
    network.weight("classes.bias", &[8]);
    let inputs = [&*flat, "classes.weight", "classes.bias"];
    let gemm = NodeProto::new("Gemm", "classes", &inputs, &["classes"]);
    network
        .nodes
        .push(gemm.with(AttributeProto::int("transB", 1)));
    let port = |name: &str, shape: &[usize]| {
        let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
        let declared = TensorType {
            element: DataType::Float,
            shape: Some(shape),
        };
        ValueInfoProto::new(name, &declared)
    };
    let graph = GraphProto {
        node: network.nodes,
        input: vec![port("picture", &[1, 3, SIDE, SIDE])],
        output: vec![port("classes", &[1, 8])],
        initializer: network.weights,
        ..Default::default()
    };
    let model = ModelProto::from_graph(graph, 17);
    Ok(onnx::write(&model)?)
}

#[cfg(test)]
mod tests {
    use crate::quantize::Settings;
    use crate::samples;
    use crate::session::{ModelFile, Session};
    use crate::stats::Method;

    #[test]
    fn the_warm_up_model_passes_the_whole_pipeline() {
        let file = super::warm_up().unwrap();
        let mut session = Session::open(ModelFile::new("warm-up", file.into())).unwrap();
        session
            .begin_calibration(samples::SampleSettings::default())
            .unwrap();
        let sample = session.demo_sample(0, 0).unwrap();
        session.feed(vec![sample], &()).unwrap();
        session.finish_calibration(Method::default()).unwrap();
        let outcome = session.quantize(&Settings::default()).unwrap();
        assert!(outcome.summary.nodes.iter().all(|node| node.quantized));
    }
}
