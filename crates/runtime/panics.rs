//! Turns panics inside tract into errors: tract panics on some unexpected input.
//!
//! In a browser a panic ends the engine, and the page reports that.

use super::EngineError;

#[cfg(target_family = "wasm")]
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    work()
}

#[cfg(not(target_family = "wasm"))]
pub(super) use native::caught;

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::any::Any;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::sync::Once;

    use super::EngineError;

    thread_local! {
        /// True while panics on this thread are caught.
        static CATCHING: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs `work`; a panic becomes an error. The caller must not reuse state that an interrupted
    /// call may leave half-written. That holds here: only complete plans are kept, and each run has
    /// its own state.
    pub(crate) fn caught<T>(
        work: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        keep_quiet();
        let outer = CATCHING.replace(true);
        let done = catch_unwind(AssertUnwindSafe(work));
        CATCHING.set(outer);
        done.unwrap_or_else(|panic| {
            Err(EngineError::Panicked {
                detail: in_words(&*panic),
            })
        })
    }

    /// A caught panic is reported once, as an error, and not on the terminal too.
    fn keep_quiet() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let usual = take_hook();
            set_hook(Box::new(move |panic| {
                if !CATCHING.try_with(Cell::get).unwrap_or(false) {
                    usual(panic);
                }
            }));
        });
    }

    fn in_words(panic: &(dyn Any + Send)) -> String {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        text.unwrap_or("no reason was given").replace('\n', " ")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_panic_is_an_error_with_its_message_and_others_panic_as_ever() {
            let place = 3;
            let found: Result<(), _> = caught(|| panic!("there is no place {place}"));
            let error = found.unwrap_err().to_string();
            assert!(error.contains("there is no place 3"), "{error}");
            assert_eq!(caught(|| Ok(7)).ok(), Some(7));
            assert!(!CATCHING.get());
            assert!(catch_unwind(|| panic!("this stands on the terminal")).is_err());
        }
    }
}
