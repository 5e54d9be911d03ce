//! Constructors of jobs with fixed data. They return null for ISAs that are not available.

use octet_kernels::float::{Convolution, Geometry};
use octet_kernels::int8::{
    BlockWeights, BlockwiseMatrix, ConvAlgorithm, ConvShape, ConvWeights, DepthwiseWeights, Isa,
    WeightLayout, Weights, Window, ZeroPoints,
};
use octet_training::{QuantizationGrid, mask_len};

use super::float::Floats;
use super::{Conversion, Job};

fn isa(id: u32) -> Option<Isa> {
    Isa::ALL.into_iter().find(|&isa| isa as u32 == id)
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

/// Weights in -64..=63, within the limit of every ISA.
fn weights(count: usize) -> Vec<i8> {
    (0..count).map(|at| (at * 29 % 128) as i8 - 64).collect()
}

/// Returns true if the ISA is available.
#[unsafe(no_mangle)]
pub extern "C" fn is_available(id: u32) -> bool {
    isa(id).is_some_and(Isa::is_available)
}

/// Creates an int8 GEMM; null if the ISA is not available.
#[unsafe(no_mangle)]
pub extern "C" fn new_gemm(id: u32, rows: usize, depth: usize, columns: usize) -> *mut Job {
    let packed = isa(id).and_then(|isa| {
        let values = weights(depth * columns);
        Weights::pack(
            isa,
            &values,
            WeightLayout::DepthFirst,
            [depth, columns],
            &[],
        )
        .ok()
    });
    leaked(packed.map(|weights| Job::Gemm {
        weights,
        activations: bytes(rows * depth),
        output: vec![0; rows * columns],
        multipliers: vec![1e-4; columns],
    }))
}

/// Creates a float GEMM in tiles of 2 × 16 or 4 × 8.
#[unsafe(no_mangle)]
pub extern "C" fn new_floats(wide: bool, rows: usize, depth: usize, columns: usize) -> *mut Job {
    leaked(Some(Job::Floats(Floats::new([rows, depth, columns]), wide)))
}

/// Creates a product of the steps in which weights learn.
#[unsafe(no_mangle)]
pub extern "C" fn new_learning(
    transposed: bool,
    rows: usize,
    depth: usize,
    columns: usize,
) -> *mut Job {
    leaked(Some(Job::Learning {
        left: floats(rows * depth),
        right: floats(depth * columns),
        output: vec![0.0; rows * columns],
        sizes: [rows, depth, columns],
        transposed,
    }))
}

/// Creates a fake quantization of `count` values to eight bits. About every sixteenth is clamped.
#[unsafe(no_mangle)]
pub extern "C" fn new_fake_quantize(count: usize) -> *mut Job {
    let packed = QuantizationGrid::new(0.05, -128, 127).map(|grid| Job::FakeQuantize {
        grid,
        values: (0..count)
            .map(|at| (at * 37 % 1009) as f32 / 73.0 - 6.9)
            .collect(),
        output: vec![0.0; count],
        passed: vec![0; mask_len(count)],
    });
    leaked(packed)
}

/// Returns the bytes of a mask for `count` values.
#[unsafe(no_mangle)]
pub extern "C" fn mask_bytes(count: usize) -> usize {
    size_of_val(vec![0u32; mask_len(count)].as_slice())
}

/// Creates a depthwise convolution; null if the ISA is not available.
#[unsafe(no_mangle)]
pub extern "C" fn new_depthwise(
    id: u32,
    side: usize,
    channels: usize,
    kernel: usize,
    dilation: usize,
) -> *mut Job {
    let packed = isa(id).and_then(|isa| {
        let values = weights(channels * kernel * kernel);
        DepthwiseWeights::pack(isa, &values, channels, [kernel, kernel], &[]).ok()
    });
    leaked(packed.map(|weights| Job::Depthwise {
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

/// Creates a 3 × 3 convolution with im2col or Winograd; null if the ISA is not available.
#[unsafe(no_mangle)]
pub extern "C" fn new_conv(
    id: u32,
    winograd: bool,
    side: usize,
    inputs: usize,
    outputs: usize,
) -> *mut Job {
    let algorithm = match winograd {
        true => ConvAlgorithm::Winograd,
        false => ConvAlgorithm::Gathered,
    };
    let shape = ConvShape {
        inputs,
        outputs,
        kernel: [3, 3],
        groups: 1,
    };
    let packed = isa(id).and_then(|isa| {
        let values = weights(inputs * outputs * 9);
        ConvWeights::pack((isa, algorithm), &values, shape, &[]).ok()
    });
    leaked(packed.map(|weights| Job::Conv {
        weights,
        side,
        activations: bytes(side * side * inputs),
        output: vec![0; side * side * outputs],
        multipliers: vec![1e-4; outputs],
    }))
}

/// Creates a float GEMM with 4-bit weights in blocks of 32.
#[unsafe(no_mangle)]
pub extern "C" fn new_blocks(rows: usize, depth: usize, columns: usize) -> *mut Job {
    const BLOCK: usize = 32;
    let count = columns * depth.div_ceil(BLOCK);
    let packed = BlockWeights::pack(&BlockwiseMatrix {
        bits: 4,
        block: BLOCK,
        depth,
        columns,
        integers: &bytes(count * BLOCK / 2),
        scales: &vec![0.01; count],
        zero_points: ZeroPoints::Middle,
    });
    leaked(packed.ok().map(|weights| Job::Blocks {
        activations: floats(rows * depth),
        tiles: vec![0.0; rows * columns.next_multiple_of(8)],
        output: vec![0.0; rows * columns],
        weights,
    }))
}

/// Creates a pass over an image of `channels` × `pixels`: quantization, dequantization, table
/// lookup, addition or copy.
#[unsafe(no_mangle)]
pub extern "C" fn new_conversion(kind: u32, channels: usize, pixels: usize) -> *mut Job {
    let kind = match kind {
        0 => Conversion::Quantize,
        1 => Conversion::Dequantize,
        2 => Conversion::Table,
        3 => Conversion::Add,
        _ => Conversion::Copy,
    };
    let count = channels * pixels;
    leaked(Some(Job::Conversion {
        conversion: kind,
        size: [channels, pixels],
        floats: floats(count),
        others: vec![0.0; count],
        bytes: bytes(count),
        converted: vec![0; count],
    }))
}

/// Creates the convolution of [`new_depthwise`] on floats.
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
    let packed = Convolution::new(geometry, weights, vec![0.5; channels]);
    leaked(packed.ok().map(|convolution| Job::FloatDepthwise {
        activations: floats(geometry.input_len()),
        output: vec![0.0; geometry.output_len()],
        convolution,
    }))
}
