//! Number of threads for the operators of a run.

use std::cell::Cell;

thread_local! {
    static MAX_THREADS: Cell<usize> = const { Cell::new(usize::MAX) };
    static PARALLEL_OPERATORS: Cell<usize> = const { Cell::new(0) };
}

/// Number of threads that operators of this thread run on.
pub fn threads() -> usize {
    rayon::current_num_threads().min(MAX_THREADS.get())
}

/// Returns true on a thread of rayon's pool, which runs one of several samples.
pub fn is_worker() -> bool {
    rayon::current_thread_index().is_some()
}

/// Number of parallel operators that this thread has run. The difference over a run tells whether
/// threads had a part in it.
pub fn parallel_operators() -> usize {
    PARALLEL_OPERATORS.get()
}

/// Runs `work` with at most `limit` threads for each of its operators. An enclosing limit holds too.
pub fn with_threads<T>(limit: usize, work: impl FnOnce() -> T) -> T {
    struct RestoreLimit(usize);
    impl Drop for RestoreLimit {
        fn drop(&mut self) {
            MAX_THREADS.set(self.0);
        }
    }
    let outer = MAX_THREADS.get();
    let _restore = RestoreLimit(outer);
    MAX_THREADS.set(limit.clamp(1, outer));
    work()
}

/// Counts a parallel operator.
pub(super) fn count_operator() {
    PARALLEL_OPERATORS.set(PARALLEL_OPERATORS.get().wrapping_add(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_limit_holds_within_the_outer_one_and_ends() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build();
        pool.unwrap().install(|| {
            assert_eq!(threads(), 4);
            with_threads(2, || {
                assert_eq!(with_threads(3, threads), 2);
                assert_eq!(with_threads(0, threads), 1);
                assert_eq!(threads(), 2);
            });
            assert_eq!(threads(), 4);
        });
    }

    #[test]
    fn parallel_operators_are_counted_and_those_on_one_thread_are_not() {
        use crate::program::split_rows;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
        pool.unwrap().install(|| {
            let count = |limit: usize| {
                let before = parallel_operators();
                with_threads(limit, || {
                    split_rows(&mut [0u8; 8], 1, usize::MAX, |_, _| Ok(())).unwrap();
                });
                parallel_operators() - before
            };
            assert_eq!((count(1), count(2)), (0, 1));
        });
    }
}
