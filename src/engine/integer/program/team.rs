//! Threads that stand by while a program runs.
//!
//! An operator takes some microseconds, and a thread that sleeps takes longer than that to wake. So the first operator that is
//! shared calls the other threads of rayon's pool, and these look out for the next one without sleeping; who has found
//! nothing for a while goes, and is called again. The thread that runs the program does all that nobody comes for, so it never
//! waits for somebody who sleeps.
//!
//! It takes pieces from the front, and who helps takes them from the back: so each finds most of what it reads where it wrote it, in its own
//! cache, and not in that of another core, which may be far away.

use std::any::Any;
use std::cell::{RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::threads::LEAST;

/// How many times one looks out for work before going: a hundred microseconds or so, as long as what one thread does between two operators
/// that are shared. A quarter of it loses some hundredths of two threads' speed to waking, and so does four times as much.
const PATIENCE: u32 = 1 << 16;

/// After so many looks a thread lets others have its processor for once.
const POLITE: u32 = 1 << 10;

/// What is between two looks, after so many; how many they are then. Where programs want more processors than there are, the very
/// thread that is waited for may be the one that has none.
fn look_again(looked: u32) -> u32 {
    match looked % POLITE {
        0 if looked > 0 => std::thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
    looked.wrapping_add(1)
}

thread_local! {
    /// The team of the program that this thread runs.
    static TEAM: RefCell<Option<Arc<Team>>> = const { RefCell::new(None) };
    /// That of the program before it. Who looks out there still need not be called: of runs one behind the other only the first
    /// waits for somebody to wake.
    static BEFORE: RefCell<Option<Arc<Team>>> = const { RefCell::new(None) };
}

/// What there is to do: the function and what it works on.
#[derive(Clone, Copy)]
struct Job {
    data: *const (),
    call: unsafe fn(*const (), usize),
}

/// From which end of a job's pieces one takes them.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

/// Claims of pieces: which job, how many pieces it has, and how many of these are taken from the front and from the back. In one
/// word, 16 bits each, so that nobody takes a piece of one job for that of another.
#[derive(Clone, Copy)]
struct Claims(u64);

impl Claims {
    const BITS: u32 = 16;
    const MOST: u64 = (1 << Claims::BITS) - 1;

    fn field(self, at: u32) -> u64 {
        self.0 >> (at * Claims::BITS) & Claims::MOST
    }

    fn of_next(self, pieces: u64) -> Claims {
        let job = self.field(3) + 1;
        Claims(job << (3 * Claims::BITS) | pieces << (2 * Claims::BITS))
    }

    /// The next piece from an end, and the claims once it is taken; nothing where all are.
    fn next(self, end: End) -> Option<(usize, Claims)> {
        let (pieces, front, back) = (self.field(2), self.field(1), self.field(0));
        if front + back >= pieces {
            return None;
        }
        Some(match end {
            End::Front => (front as usize, Claims(self.0 + (1 << Claims::BITS))),
            End::Back => ((pieces - 1 - back) as usize, Claims(self.0 + 1)),
        })
    }
}

#[derive(Default)]
struct Team {
    claims: AtomicU64,
    /// Written only where all pieces of the job before are done, and read only by who has claimed a piece.
    job: UnsafeCell<Option<Job>>,
    done: AtomicUsize,
    /// What the first piece that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    over: AtomicBool,
    /// How many others were called and have not gone.
    called: AtomicUsize,
}

// SAFETY: the job is shared as its description says: what it points to outlives it, since the thread that made it waits for all
// its pieces, and it is called from several threads only where it may be (`run` asks for `Sync`).
unsafe impl Send for Team {}
// SAFETY: as above.
unsafe impl Sync for Team {}

/// Runs a program whose operators may be shared.
pub(in super::super) fn with_team<T>(program: impl FnOnce() -> T) -> T {
    /// Gives back the team of a program around this one, also where the program panics. The pool's own threads send theirs away: others
    /// have samples of their own to run.
    struct Over(Option<Arc<Team>>);
    impl Drop for Over {
        fn drop(&mut self) {
            let Some(ended) = TEAM.replace(self.0.take()) else {
                return;
            };
            match rayon::current_thread_index() {
                Some(_) => ended.over.store(true, Ordering::Release),
                None => BEFORE.set(Some(ended)),
            }
        }
    }
    let _over = Over(TEAM.replace(BEFORE.take()));
    program()
}

/// Calls who will share the operators of the next program: they wake while its inputs, so many values, are brought to it. Not where
/// these are too few to be shared themselves, as of a loop that turns in some microseconds.
pub(in crate::engine) fn call_ahead(values: usize) {
    let others = rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1;
    if values >= LEAST && others {
        BEFORE.with(|team| Arc::clone(team.borrow_mut().get_or_insert_default()).call());
    }
}

/// Calls `piece` with each number below `pieces`, on whichever threads there are.
pub(super) fn run(pieces: usize, piece: impl Fn(usize) + Sync) {
    if !(2..=Claims::MOST as usize).contains(&pieces) {
        return (0..pieces).for_each(piece);
    }
    let team = TEAM.with(|team| Arc::clone(team.borrow_mut().get_or_insert_default()));
    team.call();
    team.work(pieces, &piece);
}

impl Team {
    /// Calls who is not there. Who comes late, or never, is not missed.
    fn call(self: &Arc<Team>) {
        let others = rayon::current_num_threads() - 1;
        while self.called.load(Ordering::Acquire) < others {
            self.called.fetch_add(1, Ordering::AcqRel);
            let team = Arc::clone(self);
            rayon::spawn(move || team.help());
        }
    }

    fn work<F: Fn(usize) + Sync>(&self, pieces: usize, piece: &F) {
        /// # Safety
        /// `data` is a `F` that lives.
        unsafe fn call<F: Fn(usize)>(data: *const (), piece: usize) {
            // SAFETY: as promised.
            unsafe { (*data.cast::<F>())(piece) }
        }
        let before = Claims(self.claims.load(Ordering::Relaxed));
        self.done.store(0, Ordering::Relaxed);
        // SAFETY: all pieces of the job before are done and no more can be claimed, so nobody reads it.
        unsafe {
            *self.job.get() = Some(Job {
                data: std::ptr::from_ref(piece).cast(),
                call: call::<F>,
            });
        }
        let claims = before.of_next(pieces as u64);
        self.claims.store(claims.0, Ordering::Release);
        while self.take_piece(End::Front) {}
        // What is left is under way on other threads.
        let mut looked = 0;
        while self.done.load(Ordering::Acquire) < pieces {
            looked = look_again(looked);
        }
        let panicked = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cause) = { panicked }.take() {
            resume_unwind(cause);
        }
    }

    /// Does a piece, if there is one that nobody has taken.
    fn take_piece(&self, end: End) -> bool {
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
        // SAFETY: a piece of this job is claimed and not done, so it stays, and what it points to lives.
        let ended = catch_unwind(AssertUnwindSafe(|| unsafe {
            if let Some(job) = *self.job.get() {
                (job.call)(job.data, piece);
            }
        }));
        if let Err(cause) = ended {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(cause);
        }
        self.done.fetch_add(1, Ordering::Release);
        true
    }

    /// Does pieces until the program is over, or none has come for a while.
    fn help(&self) {
        let mut looked = 0;
        while looked < PATIENCE && !self.over.load(Ordering::Acquire) {
            looked = match self.take_piece(End::Back) {
                true => 0,
                false => look_again(looked),
            };
        }
        self.called.fetch_sub(1, Ordering::AcqRel);
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
                with_team(|| {
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
    fn who_has_gone_is_called_again() {
        in_pool(2, || {
            with_team(|| {
                for _ in 0..3 {
                    // Each waits for the other: done only where both threads come.
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
    fn who_stands_by_serves_the_next_program_too() {
        // Outside of the pool, as a page runs its programs.
        let teams = std::thread::spawn(|| {
            [(); 2].map(|()| {
                with_team(|| {
                    let count = AtomicUsize::new(0);
                    run(8, |_| _ = count.fetch_add(1, Ordering::Relaxed));
                    assert_eq!(count.into_inner(), 8);
                    TEAM.with(|team| team.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize))
                })
            })
        });
        let [first, second] = teams.join().unwrap();
        assert!(first.is_some() && first == second);
    }

    #[test]
    fn who_was_called_ahead_serves_the_next_program() {
        let there = std::thread::spawn(|| {
            call_ahead(LEAST);
            let called =
                BEFORE.with(|team| team.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize));
            let team = with_team(|| {
                run(2, |_| ());
                TEAM.with(|team| team.borrow().as_ref().map(Arc::as_ptr).map(|p| p as usize))
            });
            (called, team)
        });
        let (called, team) = there.join().unwrap();
        let alone = rayon::current_num_threads() == 1;
        assert!(alone || called.is_some() && called == team);
    }

    #[test]
    fn a_panic_comes_out_where_the_work_was_given() {
        let ended = catch_unwind(|| {
            in_pool(2, || {
                with_team(|| run(8, |piece| assert!(piece != 5, "the fifth piece")));
            });
        });
        assert!(ended.is_err());
        // The pool's threads are free again.
        in_pool(2, || with_team(|| run(4, |_| ())));
    }

    #[test]
    fn a_program_inside_of_another_has_a_team_of_its_own() {
        let count = AtomicUsize::new(0);
        in_pool(2, || {
            with_team(|| {
                run(4, |_| {
                    with_team(|| {
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
