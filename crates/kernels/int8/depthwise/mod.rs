//! Depthwise convolutions.
//!
//! In NHWC the channels of a pixel are contiguous and are computed together. The portable kernel
//! takes all channels of a pixel, through an indirection table of its taps. The WebAssembly kernels
//! take sixteen channels along image rows, interleaved once for all taps.
//!
//! Padding costs nothing in either inner loop, because it consists of zero points. The sums equal
//! those of a GEMM whose columns are the channels: `gemm` has the algebra.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod interleave;
mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod strip;

use core::ops::Range;

use super::Isa;
use super::error::{Error, at_least, equal, product};
use super::output::Output;
use super::shape::{Image, Window, row_count, zero_points};

/// Channels per block.
const CHANNEL_BLOCK: usize = 16;

/// Vectors of four bytes per channel, for the channels of a block.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
const VECTORS: usize = CHANNEL_BLOCK / 4;

/// Depthwise weights, packed once for one ISA.
#[derive(Clone, Debug)]
pub struct DepthwiseWeights {
    isa: Isa,
    channels: usize,
    kernel: [usize; 2],
    /// `w - w₀` in the order [taps, channels].
    values: Vec<i16>,
    /// Weights of the vector kernels, with four bytes per channel: four kernel rows as i8 or two as
    /// i16. From outside in, the order is channel blocks, groups of kernel rows, kernel columns,
    /// channels. Missing rows are zero.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    packed: Vec<u8>,
    /// `Σ (w - w₀)` per channel.
    sums: Vec<i32>,
}

impl DepthwiseWeights {
    /// Packs weights [channels, 1, rows, columns], with one zero point per channel or none, which
    /// means zeros.
    pub fn pack(
        isa: Isa,
        values: &[i8],
        channels: usize,
        kernel: [usize; 2],
        zero_points_of_channels: &[i8],
    ) -> Result<DepthwiseWeights, Error> {
        if !isa.is_available() {
            return Err(Error::Unavailable(isa));
        }
        let count = product("the weights", &[channels, kernel[0], kernel[1]])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_channels, channels)?;
        // i16 doubles the bytes; padding fills whole blocks and row groups.
        product(
            "the packed weights",
            &[
                channels.div_ceil(CHANNEL_BLOCK),
                CHANNEL_BLOCK,
                kernel[0],
                kernel[1],
                8,
            ],
        )?;
        let taps = kernel[0] * kernel[1];
        if taps == 0 {
            return Err(Error::Zero { what: "the kernel" });
        }
        let mut turned = vec![0i16; count];
        let mut sums = vec![0i32; channels];
        for channel in 0..channels {
            let zero = zero_points_of_channels
                .get(channel)
                .map_or(0, |&zero| i16::from(zero));
            for tap in 0..taps {
                let value = i16::from(values[channel * taps + tap]) - zero;
                turned[tap * channels + channel] = value;
                sums[channel] = sums[channel].wrapping_add(i32::from(value));
            }
        }
        let isa = match isa.relaxed_dot() {
            // The relaxed dot takes weights unshifted, if they are within its limit.
            Some(dot) => {
                let fits = |&value: &i16| {
                    let value = i32::from(value);
                    value.abs() <= dot.limit && value <= 127
                };
                if turned.iter().all(fits) {
                    isa
                } else {
                    isa.wide_weight_fallback()
                }
            }
            None => isa,
        };
        // With fewer channels than a block, loads would exceed the pixel.
        let isa = if channels < CHANNEL_BLOCK {
            Isa::Portable
        } else {
            isa
        };
        let mut weights = DepthwiseWeights {
            isa,
            channels,
            kernel,
            values: turned,
            packed: Vec::new(),
            sums,
        };
        if matches!(isa, Isa::Simd128 | Isa::RelaxedSplit | Isa::RelaxedFused) {
            weights.pack_blocks();
        }
        Ok(weights)
    }

    fn pack_blocks(&mut self) {
        let (rows_per_dot, [high, wide]) = (self.rows_per_dot(), self.kernel);
        for block in 0..self.channels.div_ceil(CHANNEL_BLOCK) {
            let first = self.first_channel(block);
            let taps = (0..high.div_ceil(rows_per_dot))
                .flat_map(|rows| (0..wide).map(move |at| (rows, at)));
            for (rows, column) in taps {
                for channel in first..first + CHANNEL_BLOCK {
                    for row in rows * rows_per_dot..(rows + 1) * rows_per_dot {
                        let value = if row < high {
                            self.values[(row * wide + column) * self.channels + channel]
                        } else {
                            0
                        };
                        let bytes = value.to_le_bytes();
                        // An i8 is the low byte of its i16.
                        self.packed.extend(if rows_per_dot == 4 {
                            &bytes[..1]
                        } else {
                            &bytes
                        });
                    }
                }
            }
        }
    }

    /// Returns the first channel of a block. The last block overlaps the previous one instead of
    /// exceeding the pixel.
    fn first_channel(&self, block: usize) -> usize {
        (block * CHANNEL_BLOCK).min(self.channels - CHANNEL_BLOCK)
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Kernel rows per dot product.
    fn rows_per_dot(&self) -> usize {
        if self.isa.relaxed_dot().is_some() {
            4
        } else {
            2
        }
    }

    /// Returns the initial accumulators `bias + t Σ w - a₀ Σ (w - w₀)`, in the terms of `gemm`'s
    /// algebra.
    fn initial_accumulators(&self, zero_point: u8, bias: Option<&[i32]>) -> Vec<i32> {
        let signed = self.isa.relaxed_dot().is_some_and(|dot| dot.signed);
        let offset = i32::from(signed) * 128 - i32::from(zero_point);
        let initial = |(channel, &sum): (usize, &i32)| {
            bias.map_or(0, |bias| bias[channel])
                .wrapping_add(offset.wrapping_mul(sum))
        };
        self.sums.iter().enumerate().map(initial).collect()
    }

    /// Returns the ISA that runs: the requested one, or a more general one if weights or channels
    /// do not allow it.
    pub fn form(&self) -> Isa {
        self.isa
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        self.packed.len() + size_of_val(&self.values[..])
    }
}

/// Arguments of a depthwise convolution.
struct Job<'a> {
    image: &'a Image<'a>,
    weights: &'a DepthwiseWeights,
    /// Initial accumulators.
    initial: &'a [i32],
    window: &'a Window,
    rows: Range<usize>,
    width: usize,
}

/// Computes a range of output rows. The output slice begins with the first of them. Padding takes
/// the image's zero point.
pub fn depthwise(
    image: &Image,
    window: &Window,
    weights: &DepthwiseWeights,
    bias: Option<&[i32]>,
    rows: Range<usize>,
    output: Output,
) -> Result<(), Error> {
    image.check()?;
    equal("channels", weights.channels, image.channels)?;
    equal("rows of the kernel", weights.kernel[0], window.kernel[0])?;
    equal("columns of the kernel", weights.kernel[1], window.kernel[1])?;
    bias.map_or(Ok(()), |bias| equal("bias", weights.channels, bias.len()))?;
    let [height, width] = window.output(image.height, image.width)?;
    let count = product("the output", &[row_count(&rows, height)?, width])?;
    output.check(count, weights.channels)?;
    if count == 0 || weights.channels == 0 {
        return Ok(());
    }
    if image.height == 0 || image.width == 0 {
        // An image row of width 0 has no length, even if all taps are padding.
        return Err(Error::Zero { what: "the image" });
    }
    product("the window's table", &[width, window.kernel[1], 16])?;
    let job = Job {
        image,
        weights,
        initial: &weights.initial_accumulators(image.zero_point, bias),
        window,
        rows,
        width,
    };
    match weights.isa {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Isa::Simd128 | Isa::RelaxedSplit | Isa::RelaxedFused => simd128::run(&job, output),
        _ => portable::run(&job, output),
    }
    Ok(())
}
