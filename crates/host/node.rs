//! Node's, through `host.js`.

pub mod fs;
mod host;
pub mod process;
pub mod time;
