//! What `scripts/bench-kernels.mjs` calls: make a job, run it so many times, in turns with another.
#![cfg(target_family = "wasm")]

mod float;

use float::Floats;
use octet_kernels::fake_quantize::{Grid, fake_quantize, mask_len};
use octet_kernels::float::{Convolution, Geometry};
use octet_kernels::int8::{
    BlockWeights, Blocks, DepthwiseWeights, Form, Image, Layout, Output, Requantize, Rows, Scale,
    Table, Weights, Window, ZeroPoints, block_gemm, depthwise, dequantize_to_channels_first, gemm,
    quantize_to_channels_last, rows_of_tiles,
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
        grid: Grid,
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

fn form(id: u32) -> Option<Form> {
    Form::ALL.into_iter().find(|&form| form as u32 == id)
}

fn leaked(job: Option<Job>) -> *mut Job {
    job.map_or(core::ptr::null_mut(), |job| Box::into_raw(Box::new(job)))
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 37 % 256) as u8).collect()
}

fn floats(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at * 37 % 256) as f32 / 99.0 - 1.2)
        .collect()
}

/// Weights in -64..=63, which every form takes.
fn weights(count: usize) -> Vec<i8> {
    (0..count).map(|at| (at * 29 % 128) as i8 - 64).collect()
}

/// Whether a form runs here.
#[unsafe(no_mangle)]
pub extern "C" fn is_available(id: u32) -> bool {
    form(id).is_some_and(Form::is_available)
}

/// A gemm in a form; null where the form can't run.
#[unsafe(no_mangle)]
pub extern "C" fn new_gemm(id: u32, rows: usize, depth: usize, columns: usize) -> *mut Job {
    let made = form(id).and_then(|form| {
        let values = weights(depth * columns);
        Weights::pack(form, &values, Layout::DepthFirst, [depth, columns], &[]).ok()
    });
    leaked(made.map(|weights| Job::Gemm {
        weights,
        activations: bytes(rows * depth),
        output: vec![0; rows * columns],
        multipliers: vec![1e-4; columns],
    }))
}

/// The same of floats, by tiles of 2 × 16 or 4 × 8.
#[unsafe(no_mangle)]
pub extern "C" fn new_floats(wide: bool, rows: usize, depth: usize, columns: usize) -> *mut Job {
    leaked(Some(Job::Floats(Floats::new([rows, depth, columns]), wide)))
}

/// Fake quantization of so many values to eight bits; every sixteenth or so is clamped.
#[unsafe(no_mangle)]
pub extern "C" fn new_fake_quantize(count: usize) -> *mut Job {
    let made = Grid::new(0.05, -128, 127).map(|grid| Job::FakeQuantize {
        grid,
        values: (0..count)
            .map(|at| (at * 37 % 1009) as f32 / 73.0 - 6.9)
            .collect(),
        output: vec![0.0; count],
        passed: vec![0; mask_len(count)],
    });
    leaked(made)
}

/// Bytes of the mask of so many values.
#[unsafe(no_mangle)]
pub extern "C" fn mask_bytes(count: usize) -> usize {
    size_of_val(vec![0u32; mask_len(count)].as_slice())
}

/// A depthwise convolution in a form; null where the form can't run.
#[unsafe(no_mangle)]
pub extern "C" fn new_depthwise(
    id: u32,
    side: usize,
    channels: usize,
    kernel: usize,
    dilation: usize,
) -> *mut Job {
    let made = form(id).and_then(|form| {
        let values = weights(channels * kernel * kernel);
        DepthwiseWeights::pack(form, &values, channels, [kernel, kernel], &[]).ok()
    });
    leaked(made.map(|weights| Job::Depthwise {
        weights,
        side,
        window: Window {
            dilations: [dilation, dilation],
            pads: [(kernel - 1) / 2 * dilation; 4],
            ..Window::of([kernel, kernel])
        },
        activations: bytes(side * side * channels),
        output: vec![0; side * side * channels],
        multipliers: vec![1e-3; channels],
    }))
}

/// Rows of floats by weights of four bits in blocks of 32.
#[unsafe(no_mangle)]
pub extern "C" fn new_blocks(rows: usize, depth: usize, columns: usize) -> *mut Job {
    const BLOCK: usize = 32;
    let count = columns * depth.div_ceil(BLOCK);
    let made = BlockWeights::pack(&Blocks {
        bits: 4,
        block: BLOCK,
        depth,
        columns,
        integers: &bytes(count * BLOCK / 2),
        scales: &vec![0.01; count],
        zero_points: ZeroPoints::Middle,
    });
    leaked(made.ok().map(|weights| Job::Blocks {
        activations: floats(rows * depth),
        tiles: vec![0.0; rows * columns.next_multiple_of(8)],
        output: vec![0.0; rows * columns],
        weights,
    }))
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
    /// Floats to where others were: what memory allows.
    Copy,
}

/// A pass over an image of so many channels and pixels: quantized, dequantized, looked up, or copied as floats.
#[unsafe(no_mangle)]
pub extern "C" fn new_conversion(kind: u32, channels: usize, pixels: usize) -> *mut Job {
    let kind = match kind {
        0 => Conversion::Quantize,
        1 => Conversion::Dequantize,
        2 => Conversion::Table,
        _ => Conversion::Copy,
    };
    let count = channels * pixels;
    leaked(Some(Job::Conversion {
        kind,
        size: [channels, pixels],
        floats: floats(count),
        others: vec![0.0; count],
        bytes: bytes(count),
        made: vec![0; count],
    }))
}

/// The depthwise convolution of [`new_depthwise`] on floats.
#[unsafe(no_mangle)]
pub extern "C" fn new_float_depthwise(
    side: usize,
    channels: usize,
    kernel: usize,
    dilation: usize,
) -> *mut Job {
    let geometry = Geometry {
        input_channels: channels,
        output_channels: channels,
        groups: channels,
        input: [side; 2],
        output: [side; 2],
        kernel: [kernel; 2],
        stride: [1; 2],
        dilation: [dilation; 2],
        pad: [(kernel - 1) / 2 * dilation; 2],
    };
    let weights = floats(channels * kernel * kernel).into_iter();
    let weights: Vec<u8> = weights.flat_map(f32::to_le_bytes).collect();
    let made = Convolution::new(geometry, weights, vec![0.5; channels]);
    leaked(made.ok().map(|convolution| Job::FloatDepthwise {
        activations: floats(geometry.input_len()),
        output: vec![0.0; geometry.output_len()],
        convolution,
    }))
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
