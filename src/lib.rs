//! Octet quantizes ONNX models: in a web page, as a wasm package and on the command line, on one core.
//!
//! The folder map is the architecture (`docs/architecture.md`). Data goes one way:
//! `onnx` → `graph` → `prepare` → `calibrate` → `quantize` → `onnx`; `engine` runs models for
//! `calibrate`, `profile` watches every stage, `session` holds the chain. `web` and the binary are
//! faces over `session`; nothing in the core names them.

#![cfg_attr(test, allow(clippy::unwrap_used))]
// An error is made once, and read by a person; a session holds one of what it holds.
#![allow(clippy::result_large_err, clippy::large_enum_variant)]
#![allow(clippy::type_complexity)]

pub mod calibrate;
pub mod compare;
pub mod engine;
pub mod graph;
pub mod onnx;
pub mod prepare;
pub mod profile;
pub mod quantize;
pub mod samples;
pub mod session;
pub mod tensor;

#[cfg(target_family = "wasm")]
pub mod web;
