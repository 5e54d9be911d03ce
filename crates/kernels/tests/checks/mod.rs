//! Test cases of the int8 kernels. Each generates its data from a seed and compares every available
//! ISA with the reference, bit for bit.
//!
//! They run natively with proptest (`isas.rs`) and in browsers (`tests/wasm/kernels.rs`).

#![allow(clippy::unwrap_used)]

mod layouts;
mod products;
mod values;
mod windows;

pub use layouts::layouts;
pub use products::{Gemm, block_gemm};
pub use values::elementwise;
pub use windows::Windowed;

use octet_kernels::int8::{Output, Requantize};

/// A seeded pseudo-random generator.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns 32 bits (the upper half of splitmix64).
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 32) as u32
    }

    /// Returns a number of a range, both ends included.
    pub fn within(&mut self, least: usize, greatest: usize) -> usize {
        least + self.bits() as usize % (greatest - least + 1)
    }

    /// Returns a random bool.
    pub fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// Returns activations with frequent extreme values.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let byte = |bits: u32| match bits >> 28 {
            0 => 0,
            1 => 255,
            2 => 128,
            3 => 127,
            _ => bits as u8,
        };
        (0..count).map(|_| byte(self.bits())).collect()
    }

    /// Returns weights of a kind: the whole range (0), -64..=64 (1), a narrow range anywhere (2),
    /// extreme values (3).
    pub fn weights(&mut self, count: usize, kind: usize) -> Vec<i8> {
        let first = self.bits() % 128;
        (0..count)
            .map(|_| {
                let bits = self.bits();
                match kind % 4 {
                    0 => bits as i8,
                    1 => ((bits % 129) as i16 - 64) as i8,
                    2 => (i64::from(first.wrapping_add(bits % 128)) - 128) as i8,
                    _ => [-128, 127, -127, 64][bits as usize % 4],
                }
            })
            .collect()
    }

    /// Returns i32 biases of moderate size.
    pub fn biases(&mut self, count: usize) -> Vec<i32> {
        (0..count).map(|_| self.bits() as i32 >> 12).collect()
    }

    /// Returns floats of either sign up to this magnitude.
    pub fn floats(&mut self, count: usize, size: f32) -> Vec<f32> {
        (0..count)
            .map(|_| (self.bits() as i32 >> 8) as f32 / (1 << 23) as f32 * size)
            .collect()
    }

    /// Returns multipliers, some of them extreme.
    pub fn multipliers(&mut self, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| {
                let bits = self.bits();
                match bits % 64 {
                    0 => 1e27,
                    1 => -1e27,
                    2 => 0.0,
                    3 => 1e-42,
                    // Powers of two, so that ties occur.
                    4..32 => [0.5, 0.25, 0.125, 2f32.powi(-9)][bits as usize / 64 % 4],
                    _ => (bits >> 8) as f32 / (1 << 24) as f32 * 0.01,
                }
            })
            .collect()
    }
}

/// Output of a kernel under test.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelOutput {
    /// Requantized.
    Bytes(Vec<u8>),
    /// Accumulators.
    Sums(Vec<i32>),
    /// Floats, by their bits.
    Floats(Vec<u32>),
}

/// Runs a kernel with each kind of output, in rows with a gap, and returns all three. The gaps are
/// part of the comparison.
pub fn outputs<E: core::fmt::Debug>(
    random: &mut Random,
    [rows, columns, gap]: [usize; 3],
    mut run: impl FnMut(Output) -> Result<(), E>,
) -> [KernelOutput; 3] {
    let stride = columns + gap;
    let multipliers = random.multipliers(columns);
    let ends = random.bytes(3);
    let by = Requantize {
        multipliers: &multipliers,
        zero_point: ends[0],
        low: ends[1].min(ends[2]),
        high: ends[1].max(ends[2]),
    };
    let mut bytes = vec![77; rows * stride];
    let values = &mut bytes[..];
    run(Output::Requantized { values, stride, by }).expect("a good shape");
    let mut sums = vec![77; rows * stride];
    let values = &mut sums[..];
    run(Output::Accumulators { values, stride }).expect("a good shape");
    let mut floats = vec![77.0; rows * stride];
    let bias = random.floats(columns, 100.0);
    run(Output::Floats {
        values: &mut floats,
        stride,
        scales: &multipliers,
        bias: random.coin().then_some(&bias[..]),
    })
    .expect("a good shape");
    // All NaNs compare equal.
    let bits = |value: f32| {
        if value.is_nan() {
            f32::NAN.to_bits()
        } else {
            value.to_bits()
        }
    };
    let floats = floats.into_iter().map(bits).collect();
    [
        KernelOutput::Bytes(bytes),
        KernelOutput::Sums(sums),
        KernelOutput::Floats(floats),
    ]
}
