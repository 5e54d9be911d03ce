//! Selection of an instruction set: by name, or the fastest of a GEMM.

use super::error::Error;
use super::gemm::{WeightLayout, Weights, gemm};
use super::isa::Isa;
use super::output::{Output, Requantize};
use super::shape::Rows;

impl Isa {
    /// Selects an ISA, if it is available. Weights packed earlier keep theirs.
    pub fn set_best(isa: Isa) -> Result<(), Error> {
        if !isa.is_available() {
            return Err(Error::Unavailable(isa));
        }
        isa.select();
        Ok(())
    }

    /// Times the vector ISAs on a small GEMM and selects the fastest. Returns seconds per call,
    /// fastest first.
    ///
    /// `clock` returns seconds from any origin. The run takes a few milliseconds per ISA.
    pub fn choose(clock: impl FnMut() -> f64) -> Vec<(Isa, f64)> {
        let times = timed(clock);
        if let Some(&(isa, _)) = times.first() {
            isa.select();
        }
        let time = |wanted| times.iter().find(|&&(isa, _)| isa == wanted);
        if let (Some(best), Some(words)) = (times.first(), time(Isa::Simd128)) {
            Isa::set_i16_slowdown((words.1 / best.1) as f32);
        }
        times
    }
}

/// Returns the seconds per call of each ISA worth timing, fastest first.
fn timed(mut clock: impl FnMut() -> f64) -> Vec<(Isa, f64)> {
    const SIZES: [usize; 3] = [64, 256, 64];
    /// Long compared to a clock tick, which is 0.1 ms on a page without cross-origin isolation.
    const SECONDS: f64 = 1.5e-3;
    let [count, depth, columns] = SIZES;
    let activations: Vec<u8> = (0..count * depth).map(|at| (at * 37 % 256) as u8).collect();
    // Within the weight limit of every ISA.
    let values: Vec<i8> = (0..depth * columns)
        .map(|at| (at * 29 % 128) as i8 - 64)
        .collect();
    let multipliers = vec![1e-3; columns];
    let mut bytes = vec![0; count * columns];
    let rows = Rows {
        values: &activations,
        count,
        stride: depth,
        zero_point: 128,
    };
    let mut run = |weights: &Weights| {
        let output = Output::Requantized {
            values: &mut bytes,
            stride: columns,
            by: Requantize {
                multipliers: &multipliers,
                zero_point: 128,
                low: 0,
                high: u8::MAX,
            },
        };
        gemm(&rows, weights, None, output)
    };
    let mut isas = Isa::available();
    // Scalar loops are never the fastest if a vector ISA is available.
    if isas.len() > 1 {
        isas.retain(|&isa| isa != Isa::Portable);
    }
    let mut times: Vec<(Isa, Weights, f64)> = isas
        .into_iter()
        .filter_map(|isa| {
            let packed = Weights::pack(
                isa,
                &values,
                WeightLayout::DepthFirst,
                [depth, columns],
                &[],
            );
            Some((isa, packed.ok()?, f64::INFINITY))
        })
        .collect();
    // ISAs take turns, since the clock speed drifts, and the minimum counts, since noise only adds.
    // The rounds in wasm give the browser time to compile with its optimizing tier.
    let rounds = if cfg!(target_family = "wasm") { 8 } else { 3 };
    for _ in 0..rounds {
        for (_, weights, least) in &mut times {
            // A warm-up run for the caches and the engine's compiler.
            let _ = run(weights);
            let (begin, mut calls) = (clock(), 0);
            let mut seconds = 0.0;
            // The call limit ends the loop if the clock stands still.
            while seconds < SECONDS && calls < 500 {
                if run(weights).is_err() {
                    break;
                }
                calls += 1;
                seconds = clock() - begin;
            }
            *least = least.min(seconds / f64::from(calls.max(1)));
        }
    }
    let mut times: Vec<(Isa, f64)> = times
        .into_iter()
        .map(|(isa, _, time)| (isa, time))
        .collect();
    // A frozen clock makes all times equal; then the most specialized ISA comes first.
    times.reverse();
    times.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    times
}
