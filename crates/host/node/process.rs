//! This process.

use std::io::{self, Write};

use super::host::{self, error};

const STDOUT: u32 = 1;
const STDERR: u32 = 2;

struct StandardStream(u32);

impl Write for StandardStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = host::write(self.0, bytes, -1.0).map_err(error)?;
        Ok(count as usize)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The standard output.
pub fn stdout() -> impl Write {
    StandardStream(STDOUT)
}

/// Prints a line on the error stream.
pub fn print_error(line: &str) {
    let _ = StandardStream(STDERR).write_all(format!("{line}\n").as_bytes());
}

/// True where `std::thread` starts threads.
pub const STARTS_THREADS: bool = false;

/// The number of this process.
pub fn id() -> u32 {
    host::process_id()
}

/// Bytes of memory that this process may still take.
pub fn free_memory() -> Option<u64> {
    Some(host::free_memory() as u64)
}

/// The name of the build.
pub const BUILD: &str = "wasm for Node";

/// The number of processors that this process may use.
pub fn processors() -> usize {
    host::processors().max(1) as usize
}
