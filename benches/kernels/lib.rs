//! The kernel benchmark that `scripts/bench-kernels.mjs` drives. It creates jobs and runs them
//! alternately.
#![cfg(target_family = "wasm")]

mod float;
mod make;

use float::Floats;
use octet_kernels::float::Convolution;
use octet_kernels::int8::{
    BlockWeights, ConvWeights, DepthwiseWeights, Image, Operand, Output, Requantize, Rows, Scale,
    Table, Target, Weights, Window, add, block_gemm, conv, depthwise, dequantize_to_channels_first,
    gemm, quantize_to_channels_last, rows_of_tiles,
};
use octet_kernels::{FloatRows, multiply, multiply_transposed};
use octet_training::{QuantizationGrid, fake_quantize};

/// A benchmark.
pub enum Job {
    /// An int8 GEMM.
    Gemm {
        /// Weights, packed for an ISA.
        weights: Weights,
        /// Activation rows.
        activations: Vec<u8>,
        /// The output.
        output: Vec<u8>,
        /// One multiplier per column.
        multipliers: Vec<f32>,
    },
    /// Fake quantization with its bit mask.
    FakeQuantize {
        /// Quantization grid.
        grid: QuantizationGrid,
        /// Input values.
        values: Vec<f32>,
        /// Output values.
        output: Vec<f32>,
        /// Gradient mask.
        passed: Vec<u32>,
    },
    /// A float GEMM in tiles of 2 × 16 (true) or 4 × 8 (false).
    Floats(Floats, bool),
    /// A product of the steps in which weights learn: of two matrices, or of one and the transpose of
    /// the other (true).
    Learning {
        /// The first matrix.
        left: Vec<f32>,
        /// The second matrix, or its transpose.
        right: Vec<f32>,
        /// The product.
        output: Vec<f32>,
        /// Rows, depth and columns.
        sizes: [usize; 3],
        /// True for the transpose.
        transposed: bool,
    },
    /// A float GEMM with 4-bit weights in blocks of 32.
    Blocks {
        /// Packed weights.
        weights: BlockWeights,
        /// Activation rows.
        activations: Vec<f32>,
        /// Tiles of sums.
        tiles: Vec<f32>,
        /// The output.
        output: Vec<f32>,
    },
    /// A conversion at a region's boundary, or an elementwise pass over bytes.
    Conversion {
        /// The conversion.
        conversion: Conversion,
        /// Channels and pixels.
        size: [usize; 2],
        /// The image as NCHW floats.
        floats: Vec<f32>,
        /// Output floats.
        others: Vec<f32>,
        /// The image as NHWC bytes.
        bytes: Vec<u8>,
        /// Output bytes.
        converted: Vec<u8>,
    },
    /// A 3 × 3 convolution of a square image with padding 1.
    Conv {
        /// Weights, packed for an ISA and an algorithm.
        weights: ConvWeights,
        /// Side of the image in pixels.
        side: usize,
        /// The image.
        activations: Vec<u8>,
        /// The output.
        output: Vec<u8>,
        /// One multiplier per column.
        multipliers: Vec<f32>,
    },
    /// A depthwise convolution of NCHW floats.
    FloatDepthwise {
        /// Geometry and weights.
        convolution: Convolution<Vec<u8>>,
        /// The image.
        activations: Vec<f32>,
        /// The output.
        output: Vec<f32>,
    },
    /// A depthwise convolution of a square image that keeps its size.
    Depthwise {
        /// Weights, packed for an ISA.
        weights: DepthwiseWeights,
        /// Side of the image in pixels.
        side: usize,
        /// Dilation and padding.
        window: Window,
        /// The image.
        activations: Vec<u8>,
        /// The output.
        output: Vec<u8>,
        /// One multiplier per channel.
        multipliers: Vec<f32>,
    },
}

/// A pass over an image.
#[derive(Clone, Copy)]
pub enum Conversion {
    /// NCHW floats to NHWC bytes.
    Quantize,
    /// NHWC bytes to NCHW floats.
    Dequantize,
    /// Bytes through a lookup table.
    Table,
    /// The sum of two byte images.
    Add,
    /// A copy of floats: the memory bandwidth.
    Copy,
}

/// Runs a job `times` times. Returns false if a kernel refused its arguments.
///
/// # Safety
///
/// A `new_*` function returned the job, and it was not passed to `end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(job: *mut Job, times: u32) -> bool {
    // SAFETY: by the contract.
    let job = unsafe { &mut *job };
    (0..times).all(|_| once(job))
}

/// Frees a job.
///
/// # Safety
///
/// A `new_*` function returned the job, and it was not passed to `end` before.
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
        Job::Learning {
            left,
            right,
            output,
            sizes: [rows, depth, columns],
            transposed,
        } => {
            let shape = match transposed {
                true => [*columns, *depth],
                false => [*depth, *columns],
            };
            let left = FloatRows::new(left, *rows, *depth);
            let right = FloatRows::new(right, shape[0], shape[1]);
            return left
                .zip(right)
                .is_some_and(|(left, right)| match transposed {
                    true => multiply_transposed(left, right, output),
                    false => multiply(left, right, output),
                });
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
            conversion,
            size: [channels, pixels],
            floats,
            others,
            bytes,
            converted,
        } => {
            let (channels, pixels) = (*channels, *pixels);
            let scale = Scale {
                scale: 0.013,
                zero_point: 120,
            };
            let done = match conversion {
                Conversion::Quantize => quantize_to_channels_last(
                    floats,
                    pixels,
                    [channels, pixels],
                    scale,
                    converted,
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
                    Table::rescale(scale, half).apply(bytes, converted)
                }
                Conversion::Add => {
                    let operand = Operand::new(bytes, 120);
                    add(
                        (&operand, 0.6),
                        (&operand, 0.4),
                        Target::whole(128),
                        converted,
                    )
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
