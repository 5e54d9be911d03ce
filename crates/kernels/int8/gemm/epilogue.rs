//! The GEMM epilogue in WebAssembly SIMD. The compiler does not vectorize the loops of
//! [`Output::put_tile`] there.

use core::arch::wasm32::{f32x4_add, f32x4_convert_i32x4, f32x4_mul, v128, v128_store64_lane};

use super::super::output::Output;
use super::super::vector::{Requantizer, load, store, store_eight};
use super::NR;

/// Vectors per tile row.
const VECTORS: usize = NR / 4;

/// Epilogue of one tile's columns, for any row.
pub(in crate::int8) struct Epilogue<'o, 'a> {
    output: &'o mut Output<'a>,
    column: usize,
    columns: usize,
    factors: [v128; VECTORS],
    biases: [v128; VECTORS],
    requantizer: Requantizer,
}

impl<'o, 'a> Epilogue<'o, 'a> {
    #[inline(always)]
    pub(in crate::int8) fn new(output: &'o mut Output<'a>, column: usize, columns: usize) -> Self {
        let eight = |values: Option<&[f32]>| {
            let mut all = [0.0f32; NR];
            if let Some(values) = values {
                all[..columns].copy_from_slice(&values[column..][..columns]);
            }
            core::array::from_fn(|at| load(&all, at * 4))
        };
        let (factors, biases, requantizer) = match output {
            Output::Requantized { by, .. } => {
                (Some(by.multipliers), None, [by.zero_point, by.low, by.high])
            }
            Output::Accumulators { .. } => (None, None, [0; 3]),
            Output::Floats { scales, bias, .. } => (Some(*scales), *bias, [0; 3]),
        };
        Epilogue {
            column,
            columns,
            factors: eight(factors),
            biases: eight(biases),
            requantizer: Requantizer::new(requantizer[0], requantizer[1], requantizer[2]),
            output,
        }
    }

    /// Applies the epilogue to consecutive rows of sums.
    #[inline(always)]
    pub(super) fn rows(&mut self, first: usize, sums: &[[i32; NR]]) {
        match self.output {
            Output::Requantized { values, stride, .. } if self.columns == NR => {
                let values = &mut values[first * *stride + self.column..];
                whole_rows(values, *stride, sums, &self.factors, &self.requantizer);
            }
            _ => {
                for (row, sums) in sums.iter().enumerate() {
                    self.sums(first + row, sums);
                }
            }
        }
    }

    /// Applies the epilogue to one row of sums.
    #[inline(always)]
    pub(in crate::int8) fn sums(&mut self, row: usize, sums: &[i32; NR]) {
        let columns = self.column..self.column + self.columns;
        match self.output {
            Output::Requantized { values, stride, .. } => {
                let bytes = self.requantizer.eight(scaled(sums, self.factors));
                put(&mut values[row * *stride..][columns], |all| {
                    store_eight(all, bytes)
                });
            }
            Output::Accumulators { values, stride } => {
                values[row * *stride..][columns].copy_from_slice(&sums[..self.columns]);
            }
            Output::Floats {
                values,
                stride,
                bias,
                ..
            } => {
                let [mut low, mut high] = scaled(sums, self.factors);
                if bias.is_some() {
                    low = f32x4_add(low, self.biases[0]);
                    high = f32x4_add(high, self.biases[1]);
                }
                put(&mut values[row * *stride..][columns], |all| {
                    store(all, 0, low);
                    store(all, 4, high);
                });
            }
        }
    }
}

/// Requantizes full tile rows, two at a time. In a loop of its own, its operands stay in registers.
#[inline(never)]
fn whole_rows(
    values: &mut [u8],
    stride: usize,
    sums: &[[i32; NR]],
    factors: &[v128; VECTORS],
    requantizer: &Requantizer,
) {
    let (factors, requantizer) = (*factors, *requantizer);
    let Some(last) = sums.len().checked_sub(1) else {
        return;
    };
    assert!(values.len() >= last * stride + NR, "room for the rows");
    let mut to = values.as_mut_ptr();
    let mut put = |first: &[i32; NR], second: &[i32; NR], both: bool| {
        let ([a, b], [c, d]) = (scaled(first, factors), scaled(second, factors));
        let bytes = requantizer.sixteen([a, b, c, d]);
        // SAFETY: asserted above.
        unsafe {
            v128_store64_lane::<0>(bytes, to.cast());
            if both {
                v128_store64_lane::<1>(bytes, to.wrapping_add(stride).cast());
            }
        }
        to = to.wrapping_add(2 * stride);
    };
    let (pairs, rest) = sums.as_chunks::<2>();
    for [first, second] in pairs {
        put(first, second, true);
    }
    for row in rest {
        put(row, row, false);
    }
}

/// Multiplies the sums by their columns' factors.
#[inline(always)]
fn scaled(sums: &[i32; NR], factors: [v128; VECTORS]) -> [v128; VECTORS] {
    core::array::from_fn(|at| f32x4_mul(f32x4_convert_i32x4(load(sums, at * 4)), factors[at]))
}

/// Stores a full tile row, or the first columns of one.
#[inline(always)]
fn put<T: Copy + Default>(values: &mut [T], store: impl FnOnce(&mut [T; NR])) {
    if let Ok(values) = (&mut *values).try_into() {
        store(values);
    } else {
        let mut all = [T::default(); NR];
        store(&mut all);
        values.copy_from_slice(&all[..values.len()]);
    }
}
