//! How many threads work.

use super::Failure;

/// Starts so many, or one for each processor; says how many.
pub fn start(wanted: Option<usize>) -> Result<usize, Failure> {
    let threads = match wanted {
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
