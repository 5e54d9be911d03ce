//! What the browser tests in `tests/` share; nothing runs natively.
#![cfg(target_family = "wasm")]
