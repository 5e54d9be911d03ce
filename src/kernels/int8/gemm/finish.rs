//! What becomes of the sums of a tile's columns, in WebAssembly's SIMD: the compiler makes no vectors of
//! [`Output::put_tile`]'s loops there.

use core::arch::wasm32::{f32x4_add, f32x4_convert_i32x4, f32x4_mul, v128, v128_store64_lane};

use super::super::output::Output;
use super::super::vector::{Ends, load, store, store_eight};
use super::WIDE;

/// Vectors of a tile's row.
const VECTORS: usize = WIDE / 4;

/// Where the sums of a tile's columns go, of any row.
pub(in crate::int8) struct Finish<'o, 'a> {
    output: &'o mut Output<'a>,
    column: usize,
    columns: usize,
    factors: [v128; VECTORS],
    biases: [v128; VECTORS],
    ends: Ends,
}

impl<'o, 'a> Finish<'o, 'a> {
    #[inline(always)]
    pub(in crate::int8) fn new(output: &'o mut Output<'a>, column: usize, columns: usize) -> Self {
        let eight = |values: Option<&[f32]>| {
            let mut all = [0.0f32; WIDE];
            if let Some(values) = values {
                all[..columns].copy_from_slice(&values[column..][..columns]);
            }
            core::array::from_fn(|at| load(&all, at * 4))
        };
        let (factors, biases, ends) = match output {
            Output::Requantized { by, .. } => {
                (Some(by.multipliers), None, [by.zero_point, by.low, by.high])
            }
            Output::Accumulators { .. } => (None, None, [0; 3]),
            Output::Floats { scales, bias, .. } => (Some(*scales), *bias, [0; 3]),
        };
        Finish {
            column,
            columns,
            factors: eight(factors),
            biases: eight(biases),
            ends: Ends::new(ends[0], ends[1], ends[2]),
            output,
        }
    }

    /// Neighbouring rows of sums.
    #[inline(always)]
    pub(super) fn rows(&mut self, first: usize, sums: &[[i32; WIDE]]) {
        match self.output {
            Output::Requantized { values, stride, .. } if self.columns == WIDE => {
                let values = &mut values[first * *stride + self.column..];
                whole_rows(values, *stride, sums, &self.factors, &self.ends);
            }
            _ => {
                for (row, sums) in sums.iter().enumerate() {
                    self.sums(first + row, sums);
                }
            }
        }
    }

    /// A row of sums.
    #[inline(always)]
    pub(in crate::int8) fn sums(&mut self, row: usize, sums: &[i32; WIDE]) {
        let columns = self.column..self.column + self.columns;
        match self.output {
            Output::Requantized { values, stride, .. } => {
                let bytes = self.ends.eight(scaled(sums, self.factors));
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

/// Whole rows of bytes, two at a time. With nothing else in its loop, what it needs stays in registers.
#[inline(never)]
fn whole_rows(
    values: &mut [u8],
    stride: usize,
    sums: &[[i32; WIDE]],
    factors: &[v128; VECTORS],
    ends: &Ends,
) {
    let (factors, ends) = (*factors, *ends);
    let Some(last) = sums.len().checked_sub(1) else {
        return;
    };
    assert!(values.len() >= last * stride + WIDE, "room for the rows");
    let mut to = values.as_mut_ptr();
    let mut put = |first: &[i32; WIDE], second: &[i32; WIDE], both: bool| {
        let ([a, b], [c, d]) = (scaled(first, factors), scaled(second, factors));
        let bytes = ends.sixteen([a, b, c, d]);
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

/// Sums times their columns' factors.
#[inline(always)]
fn scaled(sums: &[i32; WIDE], factors: [v128; VECTORS]) -> [v128; VECTORS] {
    core::array::from_fn(|at| f32x4_mul(f32x4_convert_i32x4(load(sums, at * 4)), factors[at]))
}

/// Stores a tile's row where it is whole, and else as much as there are columns.
#[inline(always)]
fn put<T: Copy + Default>(values: &mut [T], store: impl FnOnce(&mut [T; WIDE])) {
    if let Ok(values) = (&mut *values).try_into() {
        store(values);
    } else {
        let mut all = [T::default(); WIDE];
        store(&mut all);
        values.copy_from_slice(&all[..values.len()]);
    }
}
