//! Transposed convolutions, without zero-stuffing the input.
//!
//! Output pixel (y, x) receives the taps with `y + pad = iy · stride + ky · dilation` for some
//! input row iy, and likewise for x. These taps depend only on the phase `(y + pad) mod stride`.
//! Each phase is therefore a forward convolution with its own taps, which writes every stride-th
//! pixel.

use core::ops::Range;

use super::super::Isa;
use super::super::error::{Error, at_least, equal, product};
use super::super::gemm::{WeightLayout, Weights};
use super::super::output::Output;
use super::super::shape::{Image, Window, row_count, zero_points};
use super::ConvShape;
use super::gather::{Gather, multiply_gathered};

/// Weights of a transposed convolution, packed once for one ISA and one window.
#[derive(Clone, Debug)]
pub struct TransposedWeights {
    shape: ConvShape,
    window: Window,
    phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
struct Phase {
    /// `(y + pad) mod stride`, and likewise for x.
    at: [usize; 2],
    /// Taps of the phase, vertical and horizontal.
    taps: [Vec<usize>; 2],
    /// Depth order: taps, channels.
    groups: Vec<Weights>,
}

impl TransposedWeights {
    /// Packs weights in ONNX order: [in, out per group, rows, columns], with one zero point per
    /// output channel or none. The window is ONNX's: its pads crop the output.
    pub fn pack(
        isa: Isa,
        values: &[i8],
        shape: ConvShape,
        window: &Window,
        zero_points_of_outputs: &[i8],
    ) -> Result<TransposedWeights, Error> {
        let [inputs, outputs] = shape.per_group()?;
        let area = product("the kernel", &shape.kernel)?;
        let count = product("the weights", &[shape.inputs, outputs, area])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_outputs, shape.outputs)?;
        shape.fits(window)?;
        // Checks strides and dilations.
        window.output(0, 0)?;
        product("the groups", &[shape.groups, size_of::<Weights>()])?;
        if outputs == 0 && shape.groups > 1 {
            return Err(Error::Zero {
                what: "the number of output channels per group",
            });
        }
        // Phases without taps produce only the bias and need no weights.
        let taps = |axis: usize| -> Vec<(usize, Vec<usize>)> {
            let (stride, dilation) = (window.strides[axis], window.dilations[axis]);
            let mut phases: Vec<(usize, Vec<usize>)> = Vec::new();
            for tap in 0..window.kernel[axis] {
                let at = (tap as u128 * dilation as u128 % stride as u128) as usize;
                match phases.iter_mut().find(|(phase, _)| *phase == at) {
                    Some((_, taps)) => taps.push(tap),
                    None => phases.push((at, vec![tap])),
                }
            }
            phases
        };
        let mut phases = Vec::new();
        for (py, rows) in taps(0) {
            for (px, columns) in taps(1) {
                let depth = product("the weights", &[rows.len(), columns.len(), inputs])?;
                let mut groups = Vec::with_capacity(shape.groups);
                for group in 0..shape.groups {
                    let mut reordered = Vec::with_capacity(depth * outputs);
                    for (ky, kx) in rows
                        .iter()
                        .flat_map(|&ky| columns.iter().map(move |&kx| (ky, kx)))
                    {
                        for channel in group * inputs..(group + 1) * inputs {
                            let tap = ky * shape.kernel[1] + kx;
                            reordered.extend(
                                (0..outputs).map(|column| {
                                    values[(channel * outputs + column) * area + tap]
                                }),
                            );
                        }
                    }
                    let zeros = zero_points_of_outputs.get(group * outputs..(group + 1) * outputs);
                    groups.push(Weights::pack(
                        isa,
                        &reordered,
                        WeightLayout::DepthFirst,
                        [depth, outputs],
                        zeros.unwrap_or_default(),
                    )?);
                }
                phases.push(Phase {
                    at: [py, px],
                    taps: [rows.clone(), columns],
                    groups,
                });
            }
        }
        Ok(TransposedWeights {
            shape,
            window: window.clone(),
            phases,
        })
    }

    /// Returns the ISA that runs. It is that of the first phase and group; others may differ with
    /// their weights.
    pub fn form(&self) -> Isa {
        let first = self.phases.first().and_then(|phase| phase.groups.first());
        first.map_or(Isa::Portable, Weights::form)
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        let groups = self.phases.iter().flat_map(|phase| &phase.groups);
        groups.map(Weights::bytes).sum()
    }
}

/// Checks the output size [height, width] of a transposed convolution. The window must have exactly
/// one position in it per input pixel; ONNX's output_padding stays below the stride.
pub(in crate::int8) fn transposed_size(
    image: &Image,
    window: &Window,
    size: [usize; 2],
) -> Result<(), Error> {
    let positions = window.output(size[0], size[1])?;
    for (expected, actual) in [image.height, image.width].into_iter().zip(positions) {
        equal(
            "the output's size, as positions of the window",
            expected,
            actual,
        )?;
    }
    Ok(())
}

/// Computes a range of output rows for an output of this size [height, width]. The output slice
/// begins with the first of them.
pub fn transposed(
    image: &Image,
    size: [usize; 2],
    weights: &TransposedWeights,
    bias: Option<&[i32]>,
    rows: Range<usize>,
    mut output: Output,
) -> Result<(), Error> {
    let (shape, window) = (&weights.shape, &weights.window);
    let [inputs, outputs] = shape.per_group()?;
    bias.map_or(Ok(()), |bias| equal("bias", shape.outputs, bias.len()))?;
    image.check()?;
    equal("channels", shape.inputs, image.channels)?;
    transposed_size(image, window, size)?;
    let [height, width] = size;
    let count = product("the output", &[row_count(&rows, height)?, width])?;
    output.check(count, shape.outputs)?;
    if count == 0 || outputs == 0 {
        return Ok(());
    }
    let padding = vec![image.zero_point; inputs];
    // Pixels of a phase without taps get the bias.
    let phase_of = |axis: usize, at: usize| (at + window.pads[axis]) % window.strides[axis];
    let has = |axis: usize, at: usize| {
        let phase = phase_of(axis, at);
        weights.phases.iter().any(|other| other.at[axis] == phase)
    };
    let alone = bias.map_or_else(|| vec![0; shape.outputs], <[i32]>::to_vec);
    let with_taps: Vec<bool> = (0..width).map(|x| has(1, x)).collect();
    for y in rows.clone() {
        let row_has = has(0, y);
        for x in (0..width).filter(|&x| !(row_has && with_taps[x])) {
            output.put_row((y - rows.start) * width + x, &alone);
        }
    }
    for phase in &weights.phases {
        let initial: Vec<Vec<i32>> = phase
            .groups
            .iter()
            .enumerate()
            .map(|(group, weights)| {
                let bias = bias.map(|bias| &bias[group * outputs..][..outputs]);
                weights.initial_accumulators(0..outputs, image.zero_point, bias)
            })
            .collect();
        let step = window.strides[1];
        let Some(first) = (0..width.min(step)).find(|&x| phase_of(1, x) == phase.at[1]) else {
            continue;
        };
        let positions = (width - first).div_ceil(step);
        // Input row or column of a tap, if any. The division is exact by the choice of the phase.
        let source = |axis: usize, at: usize, tap: usize, size: usize| {
            let at = (at + window.pads[axis]).checked_sub(tap * window.dilations[axis])?;
            Some(at / window.strides[axis]).filter(|&at| at < size)
        };
        for y in rows.clone().filter(|&y| phase_of(0, y) == phase.at[0]) {
            for (group, weights) in phase.groups.iter().enumerate() {
                let gather = Gather {
                    image,
                    first_channel: group * inputs,
                    channels: inputs,
                    padding: &padding,
                };
                let part = output
                    .part((y - rows.start) * width + first, group * outputs, outputs)
                    .strided(step);
                multiply_gathered(
                    weights,
                    &initial[group],
                    positions,
                    part,
                    |panel, positions| {
                        for (row, position) in positions.enumerate() {
                            let x = first + position * step;
                            let mut depth = 0;
                            for &ky in &phase.taps[0] {
                                let iy = source(0, y, ky, image.height);
                                for &kx in &phase.taps[1] {
                                    let ix = source(1, x, kx, image.width);
                                    let pixel = iy.zip(ix).map(|(iy, ix)| iy * image.width + ix);
                                    gather.tap(panel, row, depth, pixel);
                                    depth += inputs;
                                }
                            }
                        }
                    },
                );
            }
        }
    }
    Ok(())
}
