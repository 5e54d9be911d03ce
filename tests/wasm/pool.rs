//! The thread pool of the `threads` build, started once for all tests: rayon accepts a pool only
//! before its first work.

#[cfg(feature = "threads")]
pub async fn started() {
    use std::cell::OnceCell;
    thread_local! {
        static STARTING: OnceCell<js_sys::Promise> = const { OnceCell::new() };
    }
    // Tests run concurrently, so all of them wait for the same start.
    let start = || wasm_bindgen_rayon::init_thread_pool(THREADS);
    let starting = STARTING.with(|starting| starting.get_or_init(start).clone());
    wasm_bindgen_futures::JsFuture::from(starting)
        .await
        .expect("workers start");
}

/// The number of threads.
#[cfg(feature = "threads")]
pub const THREADS: usize = 3;

#[cfg(not(feature = "threads"))]
pub async fn started() {}
