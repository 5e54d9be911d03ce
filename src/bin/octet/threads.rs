//! The thread pool.

use super::Failure;

/// Number of threads: as requested, or one per processor.
pub fn wanted(requested: Option<usize>) -> usize {
    requested.unwrap_or_else(octet_host::process::processors)
}

/// Starts the pool, by default with one thread per processor. Returns the number of threads.
pub fn start(requested: Option<usize>) -> Result<usize, Failure> {
    let threads = match wanted(requested) {
        0 => {
            return Err(Failure::usage(
                "--threads 0 can't run anything: give 1 or more",
            ));
        }
        threads => threads,
    };
    build(threads)?;
    Ok(threads)
}

#[cfg(not(target_family = "wasm"))]
fn build(threads: usize) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| {
            Failure::unfinished(format!(
                "can't start {threads} threads: {error}; give fewer with --threads"
            ))
        })
}

/// In Node the workers start before the command, with [`wanted`] threads.
#[cfg(target_family = "wasm")]
fn build(_threads: usize) -> Result<(), Failure> {
    Ok(())
}
