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

    /// Bytes that this user may still write to the disk of a folder; `None` where the system does not
    /// tell.
    pub fn free_bytes(folder: &Path) -> Option<u64> {
        #[cfg(unix)]
        {
            let found = nix::sys::statvfs::statvfs(folder).ok()?;
            let unit = found.fragment_size();
            (found.blocks_available() as u64).checked_mul(unit as u64)
        }
        #[cfg(not(unix))]
        {
            let _ = folder;
            None
        }
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

    /// Bytes of memory that this process may still take: those of the system, and at most what the
    /// limits of a container leave. `None` where the system does not tell.
    pub fn free_memory() -> Option<u64> {
        let number = |path: &str| {
            std::fs::read_to_string(path)
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let table = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = table
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let system = line.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
        let containers = [
            ["memory.max", "memory.current"],
            [
                "memory/memory.limit_in_bytes",
                "memory/memory.usage_in_bytes",
            ],
        ];
        let left = containers.iter().filter_map(|names| {
            let [limit, used] = names.map(|name| number(&format!("/sys/fs/cgroup/{name}")));
            Some(limit?.saturating_sub(used?))
        });
        left.chain([system]).min()
    }

    /// The name of the build.
    pub const BUILD: &str = "native";

    /// The number of processors that this process may use.
    pub fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Time.
pub mod time {
    pub use std::time::Instant;
}
