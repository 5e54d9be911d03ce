//! What `scripts/bench-kernels.mjs` calls: make a job, run it so many times, in turns with another.
#![cfg(target_family = "wasm")]

mod float;
mod make;

use float::Floats;
use octet_kernels::fake_quantize::{QuantizationGrid, fake_quantize};
use octet_kernels::float::Convolution;
use octet_kernels::int8::{
    BlockWeights, ConvWeights, DepthwiseWeights, Image, Operand, Output, Requantize, Rows, Scale,
    Table, Target, Weights, Window, add, block_gemm, conv, depthwise, dequantize_to_channels_first,
    gemm, quantize_to_channels_last, rows_of_tiles,
};

/// Something to measure.
pub enum Job {
    /// A gemm.
    Gemm {
        /// Packed for a form.
        weights: Weights,
        /// Rows.
        activations: Vec<u8>,
        /// Where they go.
        output: Vec<u8>,
        /// One a column.
        multipliers: Vec<f32>,
    },
    /// Fake quantization with its mask in bits.
    FakeQuantize {
        /// Integers to round to.
        grid: QuantizationGrid,
        /// What is rounded.
        values: Vec<f32>,
        /// Where it goes.
        output: Vec<f32>,
        /// Which were not clamped.
        passed: Vec<u32>,
    },
    /// Floats by tiles of 2 × 16 or 4 × 8.
    Floats(Floats, bool),
    /// Floats by weights of four bits in blocks of 32.
    Blocks {
        /// Packed.
        weights: BlockWeights,
        /// Rows.
        activations: Vec<f32>,
        /// Tiles of sums.
        tiles: Vec<f32>,
        /// Where they go.
        output: Vec<f32>,
    },
    /// What stands at the border of a region, or changes all bytes of an image inside.
    Conversion {
        /// Which.
        kind: Conversion,
        /// Channels, and pixels.
        size: [usize; 2],
        /// The image, channels first.
        floats: Vec<f32>,
        /// Another.
        others: Vec<f32>,
        /// The image, channels last.
        bytes: Vec<u8>,
        /// Another.
        made: Vec<u8>,
    },
    /// A convolution of 3 × 3 of square images that keeps their size.
    Conv {
        /// Packed for a form and a way.
        weights: ConvWeights,
        /// Pixels of a side.
        side: usize,
        /// The image.
        activations: Vec<u8>,
        /// Where it goes.
        output: Vec<u8>,
        /// One a column.
        multipliers: Vec<f32>,
    },
    /// A depthwise convolution of floats, channels first, by our kernel.
    FloatDepthwise {
        /// Sizes and weights.
        convolution: Convolution<Vec<u8>>,
        /// The image.
        activations: Vec<f32>,
        /// Where it goes.
        output: Vec<f32>,
    },
    /// A depthwise convolution of square images that keeps their size.
    Depthwise {
        /// Packed for a form.
        weights: DepthwiseWeights,
        /// Pixels of a side.
        side: usize,
        /// The kernel's dilation and pads.
        window: Window,
        /// The image.
        activations: Vec<u8>,
        /// Where it goes.
        output: Vec<u8>,
        /// One a channel.
        multipliers: Vec<f32>,
    },
}

/// A pass over an image.
#[derive(Clone, Copy)]
pub enum Conversion {
    /// Floats with channels first to bytes with channels last.
    Quantize,
    /// And back.
    Dequantize,
    /// Bytes to other bytes.
    Table,
    /// Two images' bytes to those of their sum.
    Add,
    /// Floats to where others were: what memory allows.
    Copy,
}

/// Runs a job so many times. False where a kernel refused.
///
/// # Safety
///
/// The job comes from one of the functions above and was not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(job: *mut Job, times: u32) -> bool {
    // SAFETY: by the contract.
    let job = unsafe { &mut *job };
    (0..times).all(|_| once(job))
}

/// Ends a job.
///
/// # Safety
///
/// The job comes from one of the functions above and was not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn end(job: *mut Job) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(job) });
}

fn once(job: &mut Job) -> bool {
    let by = |multipliers| Requantize {
        multipliers,
        zero_point: 128,
        low: 0,
        high: u8::MAX,
    };
    match job {
        Job::FakeQuantize {
            grid,
            values,
            output,
            passed,
        } => return fake_quantize(values, *grid, output, passed),
        Job::Floats(floats, true) => floats.run::<2, 4>(),
        Job::Floats(floats, false) => floats.run::<4, 2>(),
        Job::Gemm {
            weights,
            activations,
            output,
            multipliers,
        } => {
            let rows = Rows {
                values: activations,
                count: activations.len() / weights.depth(),
                stride: weights.depth(),
                zero_point: 7,
            };
            let output = Output::Requantized {
                values: output,
                stride: weights.columns(),
                by: by(multipliers),
            };
            return gemm(&rows, weights, None, output).is_ok();
        }
        Job::Blocks {
            weights,
            activations,
            tiles,
            output,
        } => {
            return block_gemm(activations, weights, 0..weights.tiles(), tiles)
                .and_then(|()| rows_of_tiles(tiles, weights.columns(), output))
                .is_ok();
        }
        Job::Conversion {
            kind,
            size: [channels, pixels],
            floats,
            others,
            bytes,
            made,
        } => {
            let (channels, pixels) = (*channels, *pixels);
            let scale = Scale {
                scale: 0.013,
                zero_point: 120,
            };
            let done = match kind {
                Conversion::Quantize => quantize_to_channels_last(
                    floats,
                    pixels,
                    [channels, pixels],
                    scale,
                    made,
                    channels,
                ),
                Conversion::Dequantize => {
                    dequantize_to_channels_first(bytes, channels, [pixels, channels], scale, others)
                }
                Conversion::Table => {
                    let half = Scale {
                        scale: 0.026,
                        zero_point: 128,
                    };
                    Table::rescale(scale, half).apply(bytes, made)
                }
                Conversion::Add => {
                    let operand = Operand::new(bytes, 120);
                    add((&operand, 0.6), (&operand, 0.4), Target::whole(128), made)
                }
                Conversion::Copy => {
                    others.copy_from_slice(floats);
                    Ok(())
                }
            };
            return done.is_ok();
        }
        Job::FloatDepthwise {
            convolution,
            activations,
            output,
        } => {
            let ends = (f32::NEG_INFINITY, f32::INFINITY);
            return convolution.run(activations, output, ends).is_ok();
        }
        Job::Conv {
            weights,
            side,
            activations,
            output,
            multipliers,
        } => {
            let inputs = weights.shape().inputs;
            let image = Image {
                values: activations,
                height: *side,
                width: *side,
                channels: inputs,
                stride: inputs,
                zero_point: 7,
            };
            let output = Output::Requantized {
                values: output,
                stride: multipliers.len(),
                by: by(multipliers),
            };
            let window = Window {
                pads: [1; 4],
                ..Window::of([3, 3])
            };
            return conv(&image, &window, weights, None, 0..*side * *side, output).is_ok();
        }
        Job::Depthwise {
            weights,
            side,
            window,
            activations,
            output,
            multipliers,
        } => {
            let image = Image {
                values: activations,
                height: *side,
                width: *side,
                channels: multipliers.len(),
                stride: multipliers.len(),
                zero_point: 7,
            };
            let output = Output::Requantized {
                values: output,
                stride: multipliers.len(),
                by: by(multipliers),
            };
            return depthwise(&image, window, weights, None, 0..*side, output).is_ok();
        }
    }
    true
}
