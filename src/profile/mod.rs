//! Measurement of a run: time and memory at each step, and the report.
//!
//! The report is a superset of AMD Quark's profile. It has Quark's keys in Quark's order, so tools
//! for Quark read it, followed by sections of our own. It can be written at any moment and is valid
//! each time, so a run that is killed leaves a report of its progress.

pub mod clock;
pub mod columns;
#[cfg(test)]
mod fake_clock;
mod layer_ports;
pub mod layers;
pub mod macs;
pub mod memory;
mod model_values;
mod plain_value;
mod profiler;
mod record;
pub mod recording;
mod run_step;
pub mod text;
mod timing_summary;
pub mod trace;
pub mod yaml;

pub use clock::{Clock, SystemClock};
pub use layers::{Layer, LayerTable};
pub use plain_value::PlainValue;
pub use profiler::{Profiler, Stopwatch};
pub use record::Record;
pub use recording::{Recording, Repeats};
pub use run_step::{Moment, RunScope, RunStep};
pub use timing_summary::TimingSummary;
pub use yaml::Section;

use serde::Serialize;

/// Environment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// Version of Octet.
    pub octet: &'static str,
    /// Architecture of the processor, or `wasm32`.
    pub architecture: &'static str,
    /// Operating system; `browser` for wasm.
    pub system: &'static str,
    /// Instruction set extensions that kernels may use.
    pub instructions: Vec<&'static str>,
    /// Number of threads that ran samples.
    pub threads: usize,
    /// Resolution of the clock in milliseconds; browsers make theirs coarse.
    pub clock_resolution_ms: f64,
}

/// The environment of this build and machine.
pub fn environment(threads: usize) -> Environment {
    let wasm = cfg!(target_family = "wasm");
    let built = [
        ("simd128", cfg!(target_feature = "simd128")),
        ("relaxed-simd", cfg!(target_feature = "relaxed-simd")),
        ("atomics", wasm && cfg!(target_feature = "atomics")),
    ];
    #[cfg(target_arch = "x86_64")]
    let built = built.into_iter().chain([
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ]);
    Environment {
        octet: env!("CARGO_PKG_VERSION"),
        architecture: std::env::consts::ARCH,
        system: if wasm {
            "browser"
        } else {
            std::env::consts::OS
        },
        instructions: built
            .into_iter()
            .filter_map(|(name, there)| there.then_some(name))
            .collect(),
        threads,
        clock_resolution_ms: clock_resolution_ms(),
    }
}

/// True if the processor multiplies bytes by VNNI, so that ONNX Runtime's sums never saturate. `None`
/// in wasm, which can't tell, and on processors of another kind.
pub fn has_vnni() -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    {
        let of_512_bits = is_x86_feature_detected!("avx512vnni");
        let of_256_bits = is_x86_feature_detected!("avxvnni");
        Some(of_512_bits || of_256_bits)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Measured once, since a coarse clock takes a while.
static RESOLUTION: std::sync::OnceLock<f64> = std::sync::OnceLock::new();

/// Resolution of this machine's clock in milliseconds.
pub fn clock_resolution_ms() -> f64 {
    *RESOLUTION.get_or_init(|| clock::resolution_ms(&SystemClock))
}
