//! The `threads` build really has threads.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rayon::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;

use octet::calibrate::Observation;

use crate::{pool, recorded};

#[wasm_bindgen_test]
async fn the_pool_has_the_threads_that_were_asked_for() {
    pool::started().await;
    assert_eq!(rayon::current_num_threads(), pool::THREADS);

    let met: BTreeSet<Option<usize>> = rayon::broadcast(|context| Some(context.index()))
        .into_iter()
        .collect();
    assert_eq!(met, (0..pool::THREADS).map(Some).collect());

    // Memory is shared and the result does not depend on who did what.
    let values = recorded::numbers(100_000, 11);
    let total = Mutex::new(Observation::new());
    values.par_chunks(1000).for_each(|part| {
        let mut observation = Observation::new();
        observation.observe(part);
        total
            .lock()
            .expect("no thread panicked")
            .merge(&observation);
    });
    let mut alone = Observation::new();
    alone.observe(&values);
    assert_eq!(total.into_inner().expect("no thread panicked"), alone);
}
