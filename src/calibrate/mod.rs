//! Calibration: samples run through the float model, and their statistics are collected.

mod error;
mod extra_pass;
mod partial_run;
mod pass;
pub mod run;
mod skipped;
mod watched_value;
