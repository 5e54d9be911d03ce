//! The machine under the command line: files, standard streams, time and processors.
//!
//! Natively these are the standard library's. The standard library of `wasm32-unknown-unknown` has
//! none of them, so in wasm the same names call Node (`host.js`). Only what the command line uses
//! is here, with the signatures of the standard library.

#![forbid(unsafe_code)]

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(target_family = "wasm")]
mod node;

#[cfg(not(target_family = "wasm"))]
pub use native::{fs, process, time};
#[cfg(target_family = "wasm")]
pub use node::{fs, process, time};

/// Prints a line on the error stream, formatted as by `format!`. A closed stream is no error.
#[macro_export]
macro_rules! error_line {
    ($($argument:tt)*) => {
        $crate::process::print_error(&format!($($argument)*))
    };
}
