//! Clocks: `performance.now` in browsers, the system's clocks natively.

/// A monotonic clock.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> f64;

    /// Seconds since 1970, UTC.
    fn unix_seconds(&self) -> f64;
}

/// Resolution of a clock in milliseconds: its smallest observed step. Browsers round their clocks
/// to between 5 µs and 1 ms. A single time below the resolution means nothing.
pub fn resolution_ms(clock: &dyn Clock) -> f64 {
    /// Number of steps to observe, and the maximum number of readings: a clock that stands still
    /// must not hang this.
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
        // Each worker counts from its own start; adding the origin makes all of them one clock.
        // Engines without `performance` use the wall clock.
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
    /// This worker's clock and its origin. They are looked up once, since a profile reads the clock
    /// at each layer.
    static PERFORMANCE: Option<(web_sys::Performance, f64)> =
        performance().map(|clock| { let origin = clock.time_origin(); (clock, origin) });
}

#[cfg(target_family = "wasm")]
fn performance() -> Option<web_sys::Performance> {
    use wasm_bindgen::JsCast;
    // The name is the same in a page and in a worker, although their globals differ in type.
    js_sys::Reflect::get(&js_sys::global(), &"performance".into())
        .ok()?
        .dyn_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Moves on by a quarter of a millisecond after ten readings.
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
