//! SIGINT and SIGTERM during a conversion: it ends between two writes.

#[cfg(not(target_family = "wasm"))]
pub use native::{happened, watch};
#[cfg(target_family = "wasm")]
pub use node::{happened, watch};

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::Failure;

    static HAPPENED: AtomicBool = AtomicBool::new(false);

    /// Exit code of a program that a second signal ends at once.
    const KILLED: i32 = 130;

    /// From now on a signal only sets a flag; a second one ends the program.
    pub fn watch() -> Result<(), Failure> {
        let signalled = || {
            if HAPPENED.swap(true, Ordering::Relaxed) {
                std::process::exit(KILLED);
            }
        };
        match ctrlc::set_handler(signalled) {
            // A second conversion of this run finds the handler of the first.
            Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(()),
            Err(error) => Err(Failure::unfinished(format!(
                "can't watch for signals: {error}; run the command again"
            ))),
        }
    }

    /// True after a signal.
    pub fn happened() -> bool {
        HAPPENED.load(Ordering::Relaxed)
    }
}

/// Node's main thread receives the signals, while a worker runs the command.
#[cfg(target_family = "wasm")]
mod node {
    use super::super::Failure;

    /// From now on a signal only sets a flag; a second one ends the program.
    pub fn watch() -> Result<(), Failure> {
        octet::web::watch_stop_requests();
        Ok(())
    }

    /// True after a signal.
    pub fn happened() -> bool {
        octet::web::stop_requested()
    }
}
