//! The float baseline: tiles with a multiplication and an addition per product, packed weights,
//! sums in registers.

use core::arch::wasm32::{
    f32x4_add, f32x4_mul, f32x4_splat, v128, v128_load, v128_load32_splat, v128_store,
};

/// A float GEMM in tiles of `MR` rows by `4 · VECTORS` columns.
pub struct Floats {
    rows: Vec<f32>,
    weights: Vec<f32>,
    output: Vec<f32>,
    sizes: [usize; 3],
}

impl Floats {
    /// Creates a GEMM of rows, depth and columns. Rows and columns fill whole tiles.
    pub fn new(sizes: [usize; 3]) -> Floats {
        let [rows, depth, columns] = sizes;
        let value = |at: usize| (at * 37 % 256) as f32 / 256.0;
        Floats {
            rows: (0..rows * depth).map(value).collect(),
            weights: (0..depth * columns).map(value).collect(),
            output: vec![0.0; rows * columns],
            sizes,
        }
    }

    /// Runs the GEMM once.
    pub fn run<const MR: usize, const VECTORS: usize>(&mut self) {
        let [rows, depth, columns] = self.sizes;
        let width = VECTORS * 4;
        assert!(rows % MR == 0 && columns % width == 0, "whole tiles");
        // A block of rows stays in the L1 cache, as in the int8 kernels.
        let at_once = (24 * 1024 / (depth * 4)).next_multiple_of(4).clamp(8, 256);
        for block in (0..rows).step_by(at_once) {
            let end = rows.min(block + at_once);
            for column in (0..columns).step_by(width) {
                for row in (block..end).step_by(MR) {
                    // SAFETY: whole tiles lie inside the three vectors, by the sizes of `new`.
                    unsafe {
                        let mut sums = [[f32x4_splat(0.0); VECTORS]; MR];
                        let mut weights = self.weights.as_ptr().add(column * depth);
                        let mut values: [*const f32; MR] =
                            core::array::from_fn(|at| self.rows.as_ptr().add((row + at) * depth));
                        for _ in 0..depth {
                            let columns: [v128; VECTORS] =
                                core::array::from_fn(|at| v128_load(weights.add(at * 4).cast()));
                            for (value, sums) in values.iter_mut().zip(&mut sums) {
                                let row = v128_load32_splat((*value).cast());
                                for (sum, &column) in sums.iter_mut().zip(&columns) {
                                    *sum = f32x4_add(*sum, f32x4_mul(row, column));
                                }
                                *value = value.add(1);
                            }
                            weights = weights.add(width);
                        }
                        for (at, sums) in sums.iter().enumerate() {
                            let to = self.output.as_mut_ptr().add((row + at) * columns + column);
                            for (at, &sum) in sums.iter().enumerate() {
                                v128_store(to.add(at * 4).cast(), sum);
                            }
                        }
                    }
                }
            }
        }
    }
}
