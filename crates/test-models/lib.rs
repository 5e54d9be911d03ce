//! Models and samples for tests.
//!
//! [`model`] builds a small graph from nodes and constants. [`networks`] has networks of common
//! kinds, as exporters write them. [`valid_models`] chains random operators, and [`hostile_models`]
//! damages any model. [`equalizable`] surrounds nodes with layers whose channels differ in range.
//! All random numbers are equal in each run.

#![forbid(unsafe_code)]
// A builder of tests panics on a model that it should not have built.
#![allow(clippy::unwrap_used)]

mod checks;
pub mod equalizable;
mod graphs;
pub mod hostile_models;
pub mod networks;
pub mod qdq;
mod random;
mod samples;
pub mod valid_models;

pub use checks::{assert_valid, assert_valid_like, operators, producer, repeated_node_names};
pub use graphs::{choice, constant, float16_constant, model, node, typed_value, value};
pub use random::{RandomChoice, numbers};
pub use samples::npy;
