//! Targets of the fuzzer: functions that take any bytes.
//!
//! A target reads the bytes as a file of its kind and does with it what Octet would do. It returns
//! for a file that is refused, and for one that passes. It panics where a promise is broken: a file
//! that is written differently from how it was read, or two ways that disagree. The compiler's own
//! panics, such as an index out of range, count as well.

#![forbid(unsafe_code)]
// A target panics where a promise is broken.
#![allow(clippy::unwrap_used)]

mod conversion;
mod damage;
mod model;
mod sample;
mod seeds;
mod text;

pub use damage::{damaged_bytes, damaged_model};

/// A reader of files that may be damaged.
pub struct FuzzTarget {
    /// Its name; that of its program in `fuzz/`, too.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
    /// Valid files, from which a fuzzer starts.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// True if the files are models, which [`damaged_model`] damages with knowledge of their grammar.
    pub models: bool,
}

/// All targets.
pub const TARGETS: &[FuzzTarget] = &[
    target("model_file", model::file, seeds::models, true),
    target("prepare", model::prepare, seeds::models, true),
    target("quantize", model::quantize, seeds::models, true),
    target(
        "int8_compiler",
        model::compile,
        seeds::quantized_models,
        true,
    ),
    target("conversion", conversion::run, seeds::models, true),
    target("sample", sample::run, seeds::samples, false),
    target("settings", text::settings, seeds::settings, false),
    target("journal", text::journal, seeds::journals, false),
    target("statistics", text::statistics, seeds::statistics, false),
];

const fn target(
    name: &'static str,
    run: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    models: bool,
) -> FuzzTarget {
    FuzzTarget {
        name,
        run,
        seeds,
        models,
    }
}

/// The target of this name.
pub fn named(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}
