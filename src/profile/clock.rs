//! The time: `performance.now` in the browser, the system's clocks natively.

/// A clock that never runs backwards.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> f64;

    /// Seconds since 1970, UTC.
    fn unix_seconds(&self) -> f64;
}

/// The smallest step this clock was seen to take, in milliseconds: browsers round theirs, from 5 µs to 1 ms, and times
/// below it mean nothing one by one.
pub fn resolution_ms(clock: &dyn Clock) -> f64 {
    /// So many steps are looked at, and so often the clock is read at most: a clock that stands must end, too.
    const STEPS: usize = 8;
    const READS: usize = 4_000_000;
    let mut least = f64::INFINITY;
    let mut steps = 0;
    let mut before = clock.now_ms();
    for _ in 0..READS {
        let now = clock.now_ms();
        if now > before {
            least = least.min(now - before);
            before = now;
            steps += 1;
            if steps == STEPS {
                break;
            }
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(not(target_family = "wasm"))]
impl Clock for SystemClock {
    fn now_ms(&self) -> f64 {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
    }

    fn unix_seconds(&self) -> f64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0.0, |d| d.as_secs_f64())
    }
}

#[cfg(target_family = "wasm")]
impl Clock for SystemClock {
    fn now_ms(&self) -> f64 {
        // Each worker counts from its own start: the origin makes them one clock. Where there is no
        // `performance` at all (a bare JS engine) the wall clock serves.
        PERFORMANCE.with(|performance| match performance {
            Some((performance, origin)) => origin + performance.now(),
            None => js_sys::Date::now(),
        })
    }

    fn unix_seconds(&self) -> f64 {
        self.now_ms() / 1e3
    }
}

#[cfg(target_family = "wasm")]
thread_local! {
    /// This worker's, and its origin: looked up once, since a profile reads the clock at every layer.
    static PERFORMANCE: Option<(web_sys::Performance, f64)> =
        performance().map(|found| { let origin = found.time_origin(); (found, origin) });
}

#[cfg(target_family = "wasm")]
fn performance() -> Option<web_sys::Performance> {
    use wasm_bindgen::JsCast;
    // The same name in a page and in a worker, whose globals are of different types.
    js_sys::Reflect::get(&js_sys::global(), &"performance".into())
        .ok()?
        .dyn_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Read ten times before it moves on by a quarter of a millisecond.
    #[derive(Default)]
    struct Coarse(AtomicU64);

    impl Clock for Coarse {
        fn now_ms(&self) -> f64 {
            (self.0.fetch_add(1, Relaxed) / 10) as f64 * 0.25
        }

        fn unix_seconds(&self) -> f64 {
            0.0
        }
    }

    #[test]
    fn the_resolution_is_the_step_of_the_clock() {
        assert_eq!(resolution_ms(&Coarse::default()), 0.25);
        let real = resolution_ms(&SystemClock);
        assert!(real > 0.0 && real < 5.0, "{real}");
    }
}
