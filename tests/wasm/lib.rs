//! Helpers for the browser tests in `tests/`; nothing runs natively.
#![cfg(target_family = "wasm")]
