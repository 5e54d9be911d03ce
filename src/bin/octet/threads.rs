//! The thread pool.

use super::Failure;

/// Starts the pool, by default with one thread per processor. Returns the number of threads.
pub fn start(requested: Option<usize>) -> Result<usize, Failure> {
    let threads = match requested {
        Some(0) => {
            return Err(Failure::usage(
                "--threads 0 can't run anything: give 1 or more",
            ));
        }
        Some(n) => n,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| {
            Failure::unfinished(format!(
                "can't start {threads} threads: {error}; give fewer with --threads"
            ))
        })?;
    Ok(threads)
}
