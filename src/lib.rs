//! Octet quantizes ONNX models on one core: in a web page, as a wasm package and on the command
//! line.
//!
//! The folders follow the architecture (`docs/architecture.md`); `onnx`, `graph` and `prepare` are
//! crates below this one. Data flows one way: `onnx` → `graph` → `prepare` → `calibrate` →
//! `quantize` → `onnx`. `engine` runs models for `calibrate`, `profile` measures every stage, and
//! `session` runs the whole pipeline. `web` and the binary are interfaces to `session`; the core
//! does not depend on them.

#![cfg_attr(test, allow(clippy::unwrap_used))]
// Errors are rare, and a session holds one instance of each large variant.
#![allow(clippy::result_large_err, clippy::large_enum_variant)]
#![allow(clippy::type_complexity)]

pub use octet_graph as graph;
pub use octet_graph::prepare;
pub use octet_onnx as onnx;
pub use octet_onnx::in_memory as tensor;

pub mod calibrate;
pub mod compare;
pub mod engine;
pub mod profile;
pub mod quantize;
pub mod samples;
pub mod session;

#[cfg(target_family = "wasm")]
pub mod web;
