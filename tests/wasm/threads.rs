//! The `threads` build runs several threads.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rayon::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;

use octet::stats::TensorStatistics;

use crate::{pool, recorded};

#[wasm_bindgen_test]
async fn the_pool_has_the_threads_that_were_asked_for() {
    pool::started().await;
    assert_eq!(rayon::current_num_threads(), pool::THREADS);

    let met: BTreeSet<Option<usize>> = rayon::broadcast(|context| Some(context.index()))
        .into_iter()
        .collect();
    assert_eq!(met, (0..pool::THREADS).map(Some).collect());

    // Memory is shared, and the result does not depend on the assignment of work.
    let values = recorded::numbers(100_000, 11);
    let total = Mutex::new(TensorStatistics::new());
    values.par_chunks(1000).for_each(|part| {
        let mut observation = TensorStatistics::new();
        observation.observe(part);
        total
            .lock()
            .expect("no thread panicked")
            .merge(&observation);
    });
    let mut alone = TensorStatistics::new();
    alone.observe(&values);
    assert_eq!(total.into_inner().expect("no thread panicked"), alone);
}

#[wasm_bindgen_test]
async fn threads_take_and_give_back_large_blocks_and_nobody_writes_into_anothers() {
    pool::started().await;
    (0..600u32).into_par_iter().for_each(|turn| {
        let sizes = [20_000, 200_000, 50_000, 400_000].map(|size| size + 97 * (turn as usize % 50));
        let mut blocks = sizes.map(|size| vec![turn; size]);
        blocks[0].resize(sizes[0] * 3, turn);
        blocks[1].truncate(sizes[1] / 2);
        blocks[1].shrink_to_fit();
        assert!(blocks.iter().flatten().all(|&value| value == turn));
    });
}
