//! The command line of `src/bin`, compiled into a wasm module for Node.
//!
//! Options, texts, results and exit codes are those of the native program, since the code is the
//! same; `octet-host` gives it Node's files. The package's `octet` command calls it from a worker.

#![forbid(unsafe_code)]
#![cfg(target_family = "wasm")]
#![allow(clippy::result_large_err)]

#[path = "../../../src/bin/octet.rs"]
mod program;

use std::ffi::OsString;

use wasm_bindgen::prelude::*;

fn words(arguments: Vec<String>) -> Vec<OsString> {
    let program = std::iter::once(OsString::from("octet"));
    program
        .chain(arguments.into_iter().map(OsString::from))
        .collect()
}

/// Number of threads that the command wants; 0 if it needs no pool.
#[wasm_bindgen(js_name = threadsWanted)]
pub fn threads_wanted(arguments: Vec<String>) -> usize {
    program::threads_wanted(words(arguments))
}

/// Runs a command and returns its exit code. It blocks until the command has ended.
#[wasm_bindgen(js_name = commandLine)]
pub fn command_line(arguments: Vec<String>) -> u8 {
    program::command_line(words(arguments))
}
