//! Convolutions in which every channel has a kernel of its own.
//!
//! With channels last, the channels of a pixel are neighbours, and computed together. Plainly, all of a pixel, by a table of
//! where its taps are; in WebAssembly's vectors sixteen, along rows of the image that were brought together once for all of
//! their taps. Padding costs nothing in either inner loop: it is some zero points like others. The sums are those of a gemm
//! whose columns are the channels: `gemm` has the algebra.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod bundle;
mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod strip;

use core::ops::Range;

use super::Form;
use super::error::{Error, at_least, equal, product};
use super::output::Output;
use super::shape::{Image, Window, row_count, zero_points};

/// Channels at once.
const WIDE: usize = 16;

/// The weights of a depthwise convolution, packed once for one form.
#[derive(Clone, Debug)]
pub struct DepthwiseWeights {
    form: Form,
    channels: usize,
    kernel: [usize; 2],
    /// `w - w₀`, tap after tap: [taps, channels].
    values: Vec<i16>,
    /// For the vector forms: blocks of channels; in a block, rows of the kernel that go together; of these, column after
    /// column; of each, channel after channel four bytes: four rows as i8 or two as i16. What is missing is zero.
    #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]
    packed: Vec<u8>,
    /// `Σ (w - w₀)`, a channel each.
    sums: Vec<i32>,
}

impl DepthwiseWeights {
    /// Packs weights that lie as in ONNX: [channels, 1, rows, columns]. One zero point a channel, or none for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        channels: usize,
        kernel: [usize; 2],
        zero_points_of_channels: &[i8],
    ) -> Result<DepthwiseWeights, Error> {
        if !form.is_available() {
            return Err(Error::Unavailable(form));
        }
        let count = product("the weights", &[channels, kernel[0], kernel[1]])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_channels, channels)?;
        // Up to twice the bytes, filled up to whole blocks and rows that go together.
        product(
            "the packed weights",
            &[channels.div_ceil(WIDE), WIDE, kernel[0], kernel[1], 8],
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
        let form = match form.operands() {
            // The relaxed dot takes weights as they are, if they are near enough.
            Some(operands) => {
                let fits = |&value: &i16| {
                    let value = i32::from(value);
                    value.abs() <= operands.limit && value <= 127
                };
                if turned.iter().all(fits) {
                    form
                } else {
                    form.with_wide_weights()
                }
            }
            None => form,
        };
        // Fewer channels than a block has would be read beyond the pixel.
        let form = if channels < WIDE {
            Form::Portable
        } else {
            form
        };
        let mut weights = DepthwiseWeights {
            form,
            channels,
            kernel,
            values: turned,
            packed: Vec::new(),
            sums,
        };
        if matches!(
            form,
            Form::Simd128 | Form::RelaxedSplit | Form::RelaxedFused
        ) {
            weights.pack_blocks();
        }
        Ok(weights)
    }

    fn pack_blocks(&mut self) {
        let (deep, [high, wide]) = (self.deep(), self.kernel);
        for block in 0..self.channels.div_ceil(WIDE) {
            let first = self.first_channel(block);
            let taps =
                (0..high.div_ceil(deep)).flat_map(|rows| (0..wide).map(move |at| (rows, at)));
            for (rows, column) in taps {
                for channel in first..first + WIDE {
                    for row in rows * deep..(rows + 1) * deep {
                        let value = if row < high {
                            self.values[(row * wide + column) * self.channels + channel]
                        } else {
                            0
                        };
                        let bytes = value.to_le_bytes();
                        // An i8 is the low byte of its i16.
                        self.packed
                            .extend(if deep == 4 { &bytes[..1] } else { &bytes });
                    }
                }
            }
        }
    }

    /// Where a block begins: the last one overlaps the one before it rather than leave the pixel.
    fn first_channel(&self, block: usize) -> usize {
        (block * WIDE).min(self.channels - WIDE)
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Rows of the kernel whose products one instruction adds.
    fn deep(&self) -> usize {
        if self.form.operands().is_some() { 4 } else { 2 }
    }

    /// What each accumulator begins with: `bias + t Σ w - a₀ Σ (w - w₀)`, in the terms of `gemm`'s algebra.
    fn beginnings(&self, zero_point: u8, bias: Option<&[i32]>) -> Vec<i32> {
        let signed = self.form.operands().is_some_and(|operands| operands.signed);
        let offset = i32::from(signed) * 128 - i32::from(zero_point);
        let beginning = |(channel, &sum): (usize, &i32)| {
            bias.map_or(0, |bias| bias[channel])
                .wrapping_add(offset.wrapping_mul(sum))
        };
        self.sums.iter().enumerate().map(beginning).collect()
    }

    /// The form that runs: the one asked for, or a plainer one where the weights or channels don't allow it.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        self.packed.len() + size_of_val(&self.values[..])
    }
}

/// A depthwise convolution under way: what the forms need of it.
struct Job<'a> {
    image: &'a Image<'a>,
    weights: &'a DepthwiseWeights,
    /// What the accumulators begin with.
    beginnings: &'a [i32],
    window: &'a Window,
    rows: Range<usize>,
    width: usize,
}

/// A range of the output's rows; the output's slice begins with the first of them. Padding is the image's zero point.
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
        // Its rows, of which the taps see padding only, would have no length.
        return Err(Error::Zero { what: "the image" });
    }
    product("the window's table", &[width, window.kernel[1], 16])?;
    let job = Job {
        image,
        weights,
        beginnings: &weights.beginnings(image.zero_point, bias),
        window,
        rows,
        width,
    };
    match weights.form {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Form::Simd128 | Form::RelaxedSplit | Form::RelaxedFused => simd128::run(&job, output),
        _ => portable::run(&job, output),
    }
    Ok(())
}
