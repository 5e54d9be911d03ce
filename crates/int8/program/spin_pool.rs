//! Spin pool: worker threads that poll for work while a program runs.
//!
//! An operator takes some microseconds, less than the wake-up of a sleeping thread. The first
//! parallel operator therefore wakes the other threads of rayon's pool, and these poll for the next
//! one without sleeping. A worker that finds no work for a while leaves and is woken again later.
//! The calling thread computes all pieces that no worker has claimed, so it never waits for a
//! sleeping thread.
//!
//! The caller claims pieces from the front and workers claim from the back. Each thread thereby
//! finds most of its input in its own cache, where it wrote it, and not in that of a distant core.
//!
//! Another program may take the processor from a worker that has claimed a piece. The caller then
//! sleeps after a short wait, so the system can run that worker on the caller's processor. In wasm
//! this matters most: a yield does nothing there.

use std::any::Any;
use std::cell::{RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};

use super::costs::MIN_PARALLEL_COST;
use super::thread_limit::{self, is_worker, threads};

/// Polls before a worker leaves: about a hundred microseconds, the time of a thread between two
/// parallel operators. A quarter of it costs some percent of the speed of two threads in wake-ups,
/// and so does four times as much.
const MAX_POLLS: u32 = 1 << 16;

/// Polls before the caller sleeps until the last piece is done: about thirty microseconds, the time
/// of a wake-up. A poll in wasm has no pause.
const POLLS_OF_CALLER: u32 = if cfg!(target_family = "wasm") {
    1 << 14
} else {
    1 << 10
};

/// Polls before a thread yields its processor once.
const POLLS_PER_YIELD: u32 = 1 << 10;

/// Waits between two polls and returns the increased count. If there are more programs than
/// processors, the awaited thread may need this processor.
fn poll_pause(polls: u32) -> u32 {
    match polls % POLLS_PER_YIELD {
        0 if polls > 0 => thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
    polls.wrapping_add(1)
}

thread_local! {
    /// The pool of the program that this thread runs.
    static POOL: RefCell<Option<Arc<SpinPool>>> = const { RefCell::new(None) };
    /// The pool of the previous program on this thread. Its workers may still poll, so only the
    /// first of several runs pays the wake-up.
    static PREVIOUS_POOL: RefCell<Option<Arc<SpinPool>>> = const { RefCell::new(None) };
}

/// A parallel operator: a function pointer and its data.
#[derive(Clone, Copy)]
struct PoolJob {
    data: *const (),
    call: unsafe fn(*const (), usize),
}

/// End of the pieces from which a thread claims.
#[derive(Clone, Copy)]
enum ClaimEnd {
    Front,
    Back,
}

/// Claims of pieces in one word of 16-bit fields: job number, number of pieces, claims from the
/// front, claims from the back. The job number prevents a claim for an earlier job.
#[derive(Clone, Copy)]
struct Claims(u64);

impl Claims {
    const BITS: u32 = 16;
    const MOST: u64 = (1 << Claims::BITS) - 1;

    fn field(self, at: u32) -> u64 {
        self.0 >> (at * Claims::BITS) & Claims::MOST
    }

    fn next_job(self, pieces: u64) -> Claims {
        let job = self.field(3) + 1;
        Claims(job << (3 * Claims::BITS) | pieces << (2 * Claims::BITS))
    }

    /// The next piece from an end, and the claims after it; `None` if no piece is left.
    fn next(self, end: ClaimEnd) -> Option<(usize, Claims)> {
        let (pieces, front, back) = (self.field(2), self.field(1), self.field(0));
        if front + back >= pieces {
            return None;
        }
        Some(match end {
            ClaimEnd::Front => (front as usize, Claims(self.0 + (1 << Claims::BITS))),
            ClaimEnd::Back => ((pieces - 1 - back) as usize, Claims(self.0 + 1)),
        })
    }
}

struct SpinPool {
    /// The only thread that runs jobs on this pool.
    caller: Thread,
    claims: AtomicU64,
    /// Written only when all pieces of the previous job are done, and read only after a piece is
    /// claimed.
    job: UnsafeCell<Option<PoolJob>>,
    done: AtomicUsize,
    /// Payload of the first panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    over: AtomicBool,
    /// Number of workers that were woken and have not left.
    awake: AtomicUsize,
}

// SAFETY: `job` is accessed as its comment states. Its pointer outlives it, because the thread that
// created it waits for all pieces. The function may be called from several threads, because `run`
// requires `Sync`.
unsafe impl Send for SpinPool {}
// SAFETY: as above.
unsafe impl Sync for SpinPool {}

impl Default for SpinPool {
    fn default() -> SpinPool {
        SpinPool {
            caller: thread::current(),
            claims: AtomicU64::default(),
            job: UnsafeCell::default(),
            done: AtomicUsize::default(),
            panic: Mutex::default(),
            over: AtomicBool::default(),
            awake: AtomicUsize::default(),
        }
    }
}

/// Runs a program with parallel operators.
pub fn with_pool<T>(program: impl FnOnce() -> T) -> T {
    /// Restores the pool of an enclosing program, also after a panic. On rayon's own threads the
    /// workers leave at once, because these threads have other samples to run.
    struct RestorePool(Option<Arc<SpinPool>>);
    impl Drop for RestorePool {
        fn drop(&mut self) {
            let Some(ended) = POOL.replace(self.0.take()) else {
                return;
            };
            match rayon::current_thread_index() {
                Some(_) => ended.over.store(true, Ordering::Release),
                None => PREVIOUS_POOL.set(Some(ended)),
            }
        }
    }
    let _over = RestorePool(POOL.replace(PREVIOUS_POOL.take()));
    program()
}

/// Wakes the workers while `values` input values of the next program are prepared. Programs with
/// too few values, such as short loop bodies, do not run in parallel and wake no workers.
pub fn wake_ahead(values: usize) {
    if values >= MIN_PARALLEL_COST && threads() > 1 && !is_worker() {
        PREVIOUS_POOL.with(|pool| Arc::clone(pool.borrow_mut().get_or_insert_default()).wake());
    }
}

/// Calls `piece` with each number below `pieces`, in parallel, outside of a program.
pub fn run_pieces(pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
    with_pool(|| run(pieces, piece));
}

/// Calls `piece` with each number below `pieces`, in parallel.
pub(crate) fn run(pieces: usize, piece: impl Fn(usize) + Sync) {
    if !(2..=Claims::MOST as usize).contains(&pieces) {
        return (0..pieces).for_each(piece);
    }
    thread_limit::count_operator();
    let pool = POOL.with(|pool| Arc::clone(pool.borrow_mut().get_or_insert_default()));
    pool.wake();
    pool.work(pieces, &piece);
}

impl SpinPool {
    /// Wakes the missing workers without waiting for them.
    fn wake(self: &Arc<SpinPool>) {
        let others = threads() - 1;
        while self.awake.load(Ordering::Acquire) < others {
            self.awake.fetch_add(1, Ordering::AcqRel);
            let pool = Arc::clone(self);
            rayon::spawn(move || pool.help());
        }
    }

    fn work<F: Fn(usize) + Sync>(&self, pieces: usize, piece: &F) {
        /// # Safety
        /// `data` points to a live `F`.
        unsafe fn call<F: Fn(usize)>(data: *const (), piece: usize) {
            // SAFETY: by the contract above.
            unsafe { (*data.cast::<F>())(piece) }
        }
        let before = Claims(self.claims.load(Ordering::Relaxed));
        self.done.store(0, Ordering::Relaxed);
        // SAFETY: all pieces of the previous job are done and none can be claimed, so no thread
        // reads it.
        unsafe {
            *self.job.get() = Some(PoolJob {
                data: std::ptr::from_ref(piece).cast(),
                call: call::<F>,
            });
        }
        let claims = before.next_job(pieces as u64);
        self.claims.store(claims.0, Ordering::Release);
        while self.take_piece(ClaimEnd::Front) {}
        // Workers are computing the remaining pieces. The last one wakes the caller. A wake-up of
        // an earlier job may be left, so the count is read again.
        let mut polls = 0;
        while self.done.load(Ordering::Acquire) < pieces {
            if polls < POLLS_OF_CALLER {
                polls = poll_pause(polls);
            } else {
                thread::park();
            }
        }
        let panicked = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cause) = { panicked }.take() {
            resume_unwind(cause);
        }
    }

    /// Claims and computes one piece; false if none was claimed.
    fn take_piece(&self, end: ClaimEnd) -> bool {
        let seen = self.claims.load(Ordering::Acquire);
        let Some((piece, claims)) = Claims(seen).next(end) else {
            return false;
        };
        let taken =
            self.claims
                .compare_exchange_weak(seen, claims.0, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_err() {
            return true;
        }
        // SAFETY: a piece of this job is claimed and not done, so the job and its data are alive.
        let ended = catch_unwind(AssertUnwindSafe(|| unsafe {
            if let Some(job) = *self.job.get() {
                (job.call)(job.data, piece);
            }
        }));
        if let Err(cause) = ended {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(cause);
        }
        let done = self.done.fetch_add(1, Ordering::AcqRel) + 1;
        if matches!(end, ClaimEnd::Back) && done as u64 == Claims(seen).field(2) {
            self.caller.unpark();
        }
        true
    }

    /// Computes pieces until the program ends or no piece has come for a while.
    fn help(&self) {
        let mut polls = 0;
        while polls < MAX_POLLS && !self.over.load(Ordering::Acquire) {
            polls = match self.take_piece(ClaimEnd::Back) {
                true => 0,
                false => poll_pause(polls),
            };
        }
        self.awake.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(work)
    }

    #[test]
    fn every_piece_is_done_once() {
        for threads in [1, 2, 4] {
            in_pool(threads, || {
                with_pool(|| {
                    for round in 0..2000 {
                        let pieces = round % 17;
                        let counts: Vec<AtomicU32> = (0..pieces).map(|_| 0.into()).collect();
                        run(pieces, |piece| {
                            counts[piece].fetch_add(1, Ordering::Relaxed);
                        });
                        let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
                        assert!(counts.into_iter().all(|count| count == 1), "{round}");
                    }
                });
            });
        }
    }

    #[test]
    fn a_worker_that_left_is_woken_again() {
        in_pool(2, || {
            with_pool(|| {
                for _ in 0..3 {
                    // Each piece waits for the other, so the job ends only if both threads take
                    // part.
                    let here = AtomicUsize::new(0);
                    run(2, |_| {
                        here.fetch_add(1, Ordering::SeqCst);
                        while here.load(Ordering::SeqCst) < 2 {
                            std::thread::yield_now();
                        }
                    });
                    std::thread::sleep(std::time::Duration::from_millis(30));
                }
            });
        });
    }

    #[test]
    fn workers_serve_the_next_program_too() {
        // Outside of rayon's pool, as on the page.
        let teams = std::thread::spawn(|| {
            [(); 2].map(|()| {
                with_pool(|| {
                    let count = AtomicUsize::new(0);
                    run(8, |_| _ = count.fetch_add(1, Ordering::Relaxed));
                    assert_eq!(count.into_inner(), 8);
                    POOL.with(|pool| pool.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize))
                })
            })
        });
        let [first, second] = teams.join().unwrap();
        assert!(first.is_some() && first == second);
    }

    #[test]
    fn workers_woken_ahead_serve_the_next_program() {
        let there = std::thread::spawn(|| {
            wake_ahead(MIN_PARALLEL_COST);
            let awake = PREVIOUS_POOL
                .with(|pool| pool.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize));
            let pool = with_pool(|| {
                run(2, |_| ());
                POOL.with(|pool| pool.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize))
            });
            (awake, pool)
        });
        let (awake, pool) = there.join().unwrap();
        let alone = rayon::current_num_threads() == 1;
        assert!(alone || awake.is_some() && awake == pool);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let ended = catch_unwind(|| {
            in_pool(2, || {
                with_pool(|| run(8, |piece| assert!(piece != 5, "the fifth piece")));
            });
        });
        assert!(ended.is_err());
        // The pool's threads are free again.
        in_pool(2, || with_pool(|| run(4, |_| ())));
    }

    #[test]
    fn a_nested_program_has_its_own_pool() {
        let count = AtomicUsize::new(0);
        in_pool(2, || {
            with_pool(|| {
                run(4, |_| {
                    with_pool(|| {
                        run(4, |_| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                });
            });
        });
        assert_eq!(count.into_inner(), 16);
    }
}
