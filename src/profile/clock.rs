//! The time: `performance.now` in the browser, the system's clocks natively.

/// A clock that never runs backwards.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment.
    fn now_ms(&self) -> f64;

    /// Seconds since 1970, UTC.
    fn unix_seconds(&self) -> f64;
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
        match performance() {
            Some(performance) => performance.time_origin() + performance.now(),
            None => js_sys::Date::now(),
        }
    }

    fn unix_seconds(&self) -> f64 {
        self.now_ms() / 1e3
    }
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
