//! Octet quantizes ONNX models on one core: in a web page, as a wasm package and on the command
//! line.
//!
//! This crate holds the stages that need an engine, and the interfaces; the layers below are crates
//! in `crates/` (`docs/architecture.md`). Data flows one way: `onnx` → `graph` → `prepare` →
//! `calibrate` → `quantize` → `onnx`. `runtime` runs models for `calibrate`, `profile` measures every
//! stage, and `session` runs the whole pipeline. `web` and the binary are interfaces to `session`;
//! the core does not depend on them.

#![cfg_attr(test, allow(clippy::unwrap_used))]
// Errors are rare, and a session holds one instance of each large variant.
#![allow(clippy::result_large_err, clippy::large_enum_variant)]
#![allow(clippy::type_complexity)]

pub use octet_allocator as allocator;
pub use octet_graph as graph;
pub use octet_graph::prepare;
pub use octet_onnx as onnx;
pub use octet_onnx::in_memory as tensor;
pub use octet_quantize as quantize;
pub use octet_runtime as runtime;
pub use octet_samples as samples;
pub use octet_stats as stats;
pub use octet_stream as stream;
pub use octet_targets as targets;
pub use octet_tune as tune;

mod broken_invariant;
pub mod calibrate;
pub mod compare;
pub mod exchange;
pub mod profile;
pub mod search;
pub mod session;
pub mod shards;
pub mod snippets;

#[cfg(target_family = "wasm")]
pub mod web;

/// The allocator of every program that links this crate. `profile` reads its counts.
#[global_allocator]
static ALLOCATOR: allocator::CountingAllocator = allocator::CountingAllocator;
