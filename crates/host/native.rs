//! The standard library's.

/// Files and folders.
pub mod fs {
    use std::io;
    use std::path::{Path, PathBuf};

    pub use std::fs::*;

    /// The system's folder of temporary files.
    pub fn temporary_folder() -> PathBuf {
        std::env::temp_dir()
    }

    /// True for a file, also behind a symbolic link.
    pub fn is_file(path: &Path) -> bool {
        path.is_file()
    }

    /// True for a folder, also behind a symbolic link.
    pub fn is_dir(path: &Path) -> bool {
        path.is_dir()
    }

    /// The absolute path without symbolic links.
    pub fn canonical(path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }
}

/// This process.
pub mod process {
    use std::io::{self, Write};

    pub use std::process::id;

    /// True where `std::thread` starts threads.
    pub const STARTS_THREADS: bool = true;

    /// The standard output.
    pub fn stdout() -> impl Write {
        io::stdout()
    }

    /// Prints a line on the error stream.
    pub fn print_error(line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// The number of processors that this process may use.
    pub fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Time.
pub mod time {
    pub use std::time::Instant;
}
