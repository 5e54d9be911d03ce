//! Forward convolutions.

use core::ops::Range;

use super::super::Isa;
use super::super::error::{Error, at_least, equal, product};
use super::super::gemm::{MR, WeightLayout, Weights, gemm};
use super::super::output::Output;
use super::super::shape::{Image, Rows, Window, position_count, zero_points};
use super::ConvShape;
use super::gather::{Gather, Im2colRows, multiply_gathered};
use super::winograd::{self, Problem, Winograd};

/// Convolution algorithm. Results are the same integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvAlgorithm {
    /// GEMM over the im2col matrix, of which a few rows are gathered at a time.
    Gathered,
    /// Winograd F(4×4, 3×3): windows of 3 × 3 with stride 1.
    Winograd,
}

impl ConvAlgorithm {
    /// Returns the faster algorithm for an output of this height and width.
    pub fn best(isa: Isa, shape: &ConvShape, window: &Window, size: [usize; 2]) -> ConvAlgorithm {
        let faster = shape
            .per_group()
            .is_ok_and(|channels| winograd::is_faster(isa, channels, window, size));
        if faster {
            ConvAlgorithm::Winograd
        } else {
            ConvAlgorithm::Gathered
        }
    }

    /// Memory per weight in bytes, with enough channels to fill whole tiles.
    pub fn bytes_a_weight(self) -> usize {
        match self {
            ConvAlgorithm::Gathered => 2,
            ConvAlgorithm::Winograd => 8,
        }
    }
}

/// Convolution weights, packed once for one ISA and one algorithm.
#[derive(Clone, Debug)]
pub struct ConvWeights {
    shape: ConvShape,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
enum Group {
    /// Depth order: kernel rows, kernel columns, channels.
    Gathered(Weights),
    Winograd(Winograd),
}

impl ConvWeights {
    /// Packs weights in OIHW order, with one zero point per output channel or none, which means
    /// zeros.
    ///
    /// If the algorithm does not support these weights, packs them for im2col.
    pub fn pack(
        (isa, algorithm): (Isa, ConvAlgorithm),
        values: &[i8],
        shape: ConvShape,
        zero_points_of_outputs: &[i8],
    ) -> Result<ConvWeights, Error> {
        let [inputs, outputs] = shape.per_group()?;
        let count = shape.weights()?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_outputs, shape.outputs)?;
        let area = product("the kernel", &shape.kernel)?;
        let depth = product("the weights", &[inputs, area])?;
        // Bounds the allocation even with more groups than weights.
        product("the groups", &[shape.groups, size_of::<Weights>()])?;
        if outputs == 0 && shape.groups > 1 {
            return Err(Error::Zero {
                what: "the number of output channels per group",
            });
        }
        let mut reordered = vec![0; depth * outputs];
        let groups = (0..shape.groups).map(|group| {
            let values = &values[group * outputs * depth..][..outputs * depth];
            let zeros = zero_points_of_outputs.get(group * outputs..(group + 1) * outputs);
            let zeros = zeros.unwrap_or_default();
            if algorithm == ConvAlgorithm::Winograd
                && winograd::fits([inputs, outputs], shape.kernel)
                && let Some(packed) = Winograd::pack(isa, values, [inputs, outputs], zeros)?
            {
                return Ok(Group::Winograd(packed));
            }
            // From [out, in, taps] to [out, taps, in].
            for (column, at) in
                (0..outputs).flat_map(|column| (0..depth).map(move |at| (column, at)))
            {
                let (channel, tap) = (at / area, at % area);
                reordered[column * depth + tap * inputs + channel] = values[column * depth + at];
            }
            let layout = WeightLayout::ColumnAfterColumn;
            let packed = Weights::pack(isa, &reordered, layout, [depth, outputs], zeros)?;
            Ok(Group::Gathered(packed))
        });
        Ok(ConvWeights {
            shape,
            groups: groups.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the ISA that runs. It is the first group's; other groups may differ with their
    /// weights.
    pub fn form(&self) -> Isa {
        match self.groups.first() {
            Some(Group::Gathered(weights)) => weights.form(),
            Some(Group::Winograd(weights)) => weights.form(),
            None => Isa::Portable,
        }
    }

    /// Returns the algorithm that runs. It is the first group's; other groups may differ with their
    /// weights.
    pub fn way(&self) -> ConvAlgorithm {
        match self.groups.first() {
            Some(Group::Winograd(_)) => ConvAlgorithm::Winograd,
            _ => ConvAlgorithm::Gathered,
        }
    }

    /// Returns the channels and the kernel.
    pub fn shape(&self) -> ConvShape {
        self.shape
    }

    /// Returns the preferred granularity of output positions per call, for an output of this width:
    /// a GEMM tile's rows, or whole rows of Winograd tiles.
    pub fn places_together(&self, window: &Window, width: usize) -> usize {
        let tiled = |group: &Group| matches!(group, Group::Winograd(_));
        match self.groups.iter().any(tiled) {
            true => winograd::rows_together(window.dilations[0]).saturating_mul(width),
            false => MR,
        }
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        let each = self.groups.iter().map(|group| match group {
            Group::Gathered(weights) => weights.bytes(),
            Group::Winograd(weights) => weights.bytes(),
        });
        each.sum()
    }
}

/// Computes a range of output positions, counted row by row. The output slice begins with the first
/// of them. Padding takes the image's zero point.
///
/// Winograd weights require whole output rows.
pub fn conv(
    image: &Image,
    window: &Window,
    weights: &ConvWeights,
    bias: Option<&[i32]>,
    positions: Range<usize>,
    mut output: Output,
) -> Result<(), Error> {
    let shape = &weights.shape;
    let [inputs, outputs] = shape.per_group()?;
    bias.map_or(Ok(()), |bias| equal("bias", shape.outputs, bias.len()))?;
    image.check()?;
    equal("channels", shape.inputs, image.channels)?;
    shape.fits(window)?;
    let size = window.output(image.height, image.width)?;
    let count = position_count(&positions, size)?;
    output.check(count, shape.outputs)?;
    if count == 0 || outputs == 0 {
        return Ok(());
    }
    let padding = vec![image.zero_point; inputs];
    for (group, weights) in weights.groups.iter().enumerate() {
        let bias = bias.map(|bias| &bias[group * outputs..][..outputs]);
        let part = output.part(0, group * outputs, outputs);
        let weights = match weights {
            Group::Gathered(weights) => weights,
            Group::Winograd(weights) => {
                let problem = Problem {
                    image,
                    first_channel: group * inputs,
                    window,
                    bias,
                    rows: whole_rows(&positions, size[1])?,
                    width: size[1],
                };
                weights.run(&problem, part)?;
                continue;
            }
        };
        if *window == Window::PIXEL && inputs > 0 {
            let start = positions.start * image.stride + group * inputs;
            let rows = Rows {
                values: &image.values[start..],
                count,
                stride: image.stride,
                zero_point: image.zero_point,
            };
            gemm(&rows, weights, bias, part)?;
            continue;
        }
        let im2col = Im2colRows {
            gather: Gather {
                image,
                first_channel: group * inputs,
                channels: inputs,
                padding: &padding,
            },
            window,
            first_position: positions.start,
            width: size[1],
        };
        let initial = weights.initial_accumulators(0..outputs, image.zero_point, bias);
        multiply_gathered(weights, &initial, count, part, |panel, positions| {
            im2col.put(panel, positions);
        });
    }
    Ok(())
}

/// Converts a range of positions to the rows it covers.
fn whole_rows(positions: &Range<usize>, width: usize) -> Result<Range<usize>, Error> {
    for end in [positions.start, positions.end] {
        equal(
            "positions beyond a row, of weights packed for tiles",
            0,
            end % width,
        )?;
    }
    Ok(positions.start / width..positions.end / width)
}
