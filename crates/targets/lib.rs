//! The rules of targets, the places where a model will run, and the check of a file against them.
//!
//! Each target is a file with a table of rules; each rule names its source, a document of the
//! target. The check reads the ONNX file only. It is independent of the code that quantizes, so it
//! finds mistakes of that code.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod arm_cmsis;
mod check;
mod coreml;
mod file;
mod integers;
mod onnxruntime;
mod onnxruntime_web;
mod openvino;
mod qnn;
mod quantized_values;
mod rule;
mod target;
mod tensorrt;
mod transformers_js;

pub use check::{Violation, check};
pub use rule::{RuleData, TargetRule};
pub use target::RunTarget;
