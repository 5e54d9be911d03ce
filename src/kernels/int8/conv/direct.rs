//! Convolutions that go from the image to the output.

use core::ops::Range;

use super::super::Form;
use super::super::error::{Error, at_least, equal, product};
use super::super::gemm::{HIGH, Layout, Weights, gemm};
use super::super::output::Output;
use super::super::shape::{Image, Rows, Window, place_count, zero_points};
use super::ConvShape;
use super::gather::{Gather, Windows, multiply_gathered};
use super::winograd::{self, Tiled, Winograd};

/// How a convolution is computed. The integers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each window's values are gathered, and multiplied by all weights.
    Gathered,
    /// Tiles of pixels share their products: windows of 3 × 3 that move by one pixel.
    Winograd,
}

impl Way {
    /// The faster one, for an output of this height and width.
    pub fn best(form: Form, shape: &ConvShape, window: &Window, size: [usize; 2]) -> Way {
        let suits = shape
            .per_group()
            .is_ok_and(|channels| winograd::pays(form, channels, window, size));
        if suits { Way::Winograd } else { Way::Gathered }
    }

    /// What a weight takes, where there are channels enough to fill whole tiles of columns.
    pub fn bytes_a_weight(self) -> usize {
        match self {
            Way::Gathered => 2,
            Way::Winograd => 8,
        }
    }
}

/// The weights of a convolution, packed once for one form and one way.
#[derive(Clone, Debug)]
pub struct ConvWeights {
    shape: ConvShape,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
enum Group {
    /// Depth: rows of the kernel, its columns, channels.
    Gathered(Weights),
    Winograd(Winograd),
}

impl ConvWeights {
    /// Packs weights that lie as in ONNX: [out, in of a group, rows, columns]. One zero point an output channel,
    /// or none for zeros. Where a way can't be gone with these weights, they are packed to be gathered.
    pub fn pack(
        (form, way): (Form, Way),
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
        // Bounded even where there are more groups than weights.
        product("the groups", &[shape.groups, size_of::<Weights>()])?;
        if outputs == 0 && shape.groups > 1 {
            return Err(Error::Zero {
                what: "the number of channels out of a group",
            });
        }
        let mut turned = vec![0; depth * outputs];
        let groups = (0..shape.groups).map(|group| {
            let values = &values[group * outputs * depth..][..outputs * depth];
            let zeros = zero_points_of_outputs.get(group * outputs..(group + 1) * outputs);
            let zeros = zeros.unwrap_or_default();
            if way == Way::Winograd
                && winograd::fits([inputs, outputs], shape.kernel)
                && let Some(packed) = Winograd::pack(form, values, [inputs, outputs], zeros)?
            {
                return Ok(Group::Winograd(packed));
            }
            // [out, in, taps] to [out, taps, in].
            for (column, at) in
                (0..outputs).flat_map(|column| (0..depth).map(move |at| (column, at)))
            {
                let (channel, tap) = (at / area, at % area);
                turned[column * depth + tap * inputs + channel] = values[column * depth + at];
            }
            let layout = Layout::ColumnAfterColumn;
            let packed = Weights::pack(form, &turned, layout, [depth, outputs], zeros)?;
            Ok(Group::Gathered(packed))
        });
        Ok(ConvWeights {
            shape,
            groups: groups.collect::<Result<_, _>>()?,
        })
    }

    /// The form that runs (of the first group; others may differ where their weights do).
    pub fn form(&self) -> Form {
        match self.groups.first() {
            Some(Group::Gathered(weights)) => weights.form(),
            Some(Group::Winograd(weights)) => weights.form(),
            None => Form::Portable,
        }
    }

    /// The way that is gone (likewise).
    pub fn way(&self) -> Way {
        match self.groups.first() {
            Some(Group::Winograd(_)) => Way::Winograd,
            _ => Way::Gathered,
        }
    }

    /// Channels and kernel.
    pub fn shape(&self) -> ConvShape {
        self.shape
    }

    /// Places that are best computed by one call, or multiples of them, of an output of this width: the rows of a tile of sums, or
    /// whole rows of tiles of pixels.
    pub fn places_together(&self, window: &Window, width: usize) -> usize {
        let tiled = |group: &Group| matches!(group, Group::Winograd(_));
        match self.groups.iter().any(tiled) {
            true => winograd::rows_together(window.dilations[0]).saturating_mul(width),
            false => HIGH,
        }
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        let each = self.groups.iter().map(|group| match group {
            Group::Gathered(weights) => weights.bytes(),
            Group::Winograd(weights) => weights.bytes(),
        });
        each.sum()
    }
}

/// A range of the output's places, row by row; the output's slice begins with the first of them. Padding is the image's zero
/// point. (Weights packed for tiles want whole rows.)
pub fn conv(
    image: &Image,
    window: &Window,
    weights: &ConvWeights,
    bias: Option<&[i32]>,
    places: Range<usize>,
    mut output: Output,
) -> Result<(), Error> {
    let shape = &weights.shape;
    let [inputs, outputs] = shape.per_group()?;
    bias.map_or(Ok(()), |bias| equal("bias", shape.outputs, bias.len()))?;
    image.check()?;
    equal("channels", shape.inputs, image.channels)?;
    shape.fits(window)?;
    let size = window.output(image.height, image.width)?;
    let count = place_count(&places, size)?;
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
                let tiled = Tiled {
                    image,
                    first: group * inputs,
                    window,
                    bias,
                    rows: whole_rows(&places, size[1])?,
                    width: size[1],
                };
                weights.run(&tiled, part)?;
                continue;
            }
        };
        if *window == Window::PIXEL && inputs > 0 {
            let start = places.start * image.stride + group * inputs;
            let rows = Rows {
                values: &image.values[start..],
                count,
                stride: image.stride,
                zero_point: image.zero_point,
            };
            gemm(&rows, weights, bias, part)?;
            continue;
        }
        let windows = Windows {
            gather: Gather {
                image,
                first: group * inputs,
                channels: inputs,
                padding: &padding,
            },
            window,
            first: places.start,
            width: size[1],
        };
        let beginnings = weights.beginnings(0..outputs, image.zero_point, bias);
        multiply_gathered(weights, &beginnings, count, part, |panel, places| {
            windows.put(panel, places);
        });
    }
    Ok(())
}

/// The rows that a range of places is.
fn whole_rows(places: &Range<usize>, width: usize) -> Result<Range<usize>, Error> {
    for end in [places.start, places.end] {
        equal(
            "places beyond a row, of weights packed for tiles",
            0,
            end % width,
        )?;
    }
    Ok(places.start / width..places.end / width)
}
