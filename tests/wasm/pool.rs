//! The threads of the `threads` build, started once for all tests: rayon takes its pool only before its first work.

#[cfg(feature = "threads")]
pub async fn started() {
    use std::cell::OnceCell;
    thread_local! {
        static STARTING: OnceCell<js_sys::Promise> = const { OnceCell::new() };
    }
    // A test goes on while another waits, so every one of them waits for the same.
    let start = || wasm_bindgen_rayon::init_thread_pool(THREADS);
    let starting = STARTING.with(|starting| starting.get_or_init(start).clone());
    wasm_bindgen_futures::JsFuture::from(starting)
        .await
        .expect("workers start");
}

/// How many there are.
#[cfg(feature = "threads")]
pub const THREADS: usize = 3;

#[cfg(not(feature = "threads"))]
pub async fn started() {}
