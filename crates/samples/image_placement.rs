//! Layout of an image in an input tensor, from the input's shape and the settings.

use super::decode_image::LONGEST_SIDE;
use super::error::shape_text;
use super::image_settings::{ImageLayout, ImageSettings, ResizeMode};
use super::{InputSpec, SampleProblem};
use octet_graph::Dim;
use octet_onnx::schema::DataType;

/// Layout of an image in the input tensor.
pub(super) struct ImagePlacement {
    pub(super) layout: ImageLayout,
    pub(super) channels: usize,
    /// True if there is a leading batch axis.
    batch: bool,
    pub(super) height: Option<usize>,
    pub(super) width: Option<usize>,
}

impl ImagePlacement {
    /// Shape of the tensor for an image of this size.
    pub(super) fn shape(&self, height: usize, width: usize) -> Vec<usize> {
        shape(self.batch, self.layout, self.channels, (height, width))
    }
}

fn shape(
    batch: bool,
    layout: ImageLayout,
    channels: usize,
    (height, width): (usize, usize),
) -> Vec<usize> {
    let mut shape = if batch { vec![1] } else { vec![] };
    shape.extend(match layout {
        ImageLayout::Nchw => [channels, height, width],
        ImageLayout::Nhwc => [height, width, channels],
    });
    shape
}

/// Axes of an input that can take an image, as far as its shape tells them.
#[derive(Clone)]
pub(super) struct Axes<'a> {
    pub(super) layout: ImageLayout,
    /// True if the shape shows which axis has the channels.
    pub(super) explicit: bool,
    /// True if there is a leading batch axis.
    batch: bool,
    channels: usize,
    pub(super) height: &'a Dim,
    pub(super) width: &'a Dim,
}

impl Axes<'_> {
    /// Number of channels.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Shape of the tensor for an image of this size.
    pub(super) fn shape(&self, height: usize, width: usize) -> Vec<usize> {
        shape(self.batch, self.layout, self.channels, (height, width))
    }
}

/// True for element types that can hold pixels.
fn takes_pixels(element: DataType) -> bool {
    let whole = [DataType::Uint8, DataType::Int32, DataType::Int64];
    element.is_float() || whole.contains(&element)
}

/// The axes of an input; `None` if it cannot take an image.
pub(super) fn axes(input: &InputSpec) -> Option<Axes<'_>> {
    let (batch, sides) = match input.shape.as_slice() {
        [Dim::Known(size), ..] if input.shape.len() == 4 && *size > 1 => return None,
        [_, sides @ ..] if sides.len() == 3 => (true, sides),
        sides if sides.len() == 3 => (false, sides),
        _ => return None,
    };
    // Audio has one long axis.
    let long = |dim: &Dim| matches!(dim, Dim::Known(size) if *size > LONGEST_SIDE as usize);
    if !takes_pixels(input.element) || sides.iter().any(long) {
        return None;
    }
    let few = |dim: &Dim| match dim {
        Dim::Known(count @ (1 | 3)) => Some(*count),
        _ => None,
    };
    let (layout, explicit, channels) = match (few(&sides[0]), few(&sides[2])) {
        (Some(count), _) => (ImageLayout::Nchw, true, count),
        (None, Some(count)) => (ImageLayout::Nhwc, true, count),
        (None, None) if matches!(sides[0], Dim::Known(1..)) => return None,
        (None, None) => (ImageLayout::Nchw, false, 3),
    };
    let (height, width) = match layout {
        ImageLayout::Nchw => (&sides[1], &sides[2]),
        ImageLayout::Nhwc => (&sides[0], &sides[1]),
    };
    Some(Axes {
        layout,
        explicit,
        batch,
        channels,
        height,
        width,
    })
}

/// Layout of an image in an input tensor, or the reason why there is none.
pub(super) fn place(
    file: &str,
    input: &InputSpec,
    settings: &ImageSettings,
) -> Result<ImagePlacement, SampleProblem> {
    let refused = |why: String, next| {
        Err(SampleProblem::NoPicture {
            file: file.into(),
            why,
            next,
        })
    };
    let wants = || {
        format!(
            "the model's input {:?} expects {}",
            input.name,
            shape_text(&input.shape)
        )
    };
    if !takes_pixels(input.element) {
        let why = format!(
            "the model's input {:?} expects {}",
            input.name, input.element
        );
        return refused(why, "give .npy or .npz files");
    }
    let (batch, axes) = match input.shape.as_slice() {
        [batch, axes @ ..] if axes.len() == 3 => (Some(batch), axes),
        axes if axes.len() == 3 => (None, axes),
        _ => return refused(wants(), "give .npy or .npz files of that shape"),
    };
    if matches!(batch, Some(Dim::Known(n)) if *n != 1) {
        return refused(wants(), "give .npy or .npz files that hold a whole batch");
    }
    let colour = |d: &Dim| matches!(d, Dim::Known(1 | 3));
    let layout = match settings.layout {
        Some(layout) => layout,
        None if colour(&axes[0]) => ImageLayout::Nchw,
        None if colour(&axes[2]) => ImageLayout::Nhwc,
        None if matches!(axes[0], Dim::Known(_)) && matches!(axes[2], Dim::Known(_)) => {
            return refused(
                wants(),
                "images have 1 or 3 channels; use .npy or .npz files",
            );
        }
        None => {
            return refused(
                wants(),
                "the channel axis is unknown: set the layout to nchw or nhwc",
            );
        }
    };
    let (channel, height, width) = match layout {
        ImageLayout::Nchw => (&axes[0], &axes[1], &axes[2]),
        ImageLayout::Nhwc => (&axes[2], &axes[0], &axes[1]),
    };
    let channels = match channel {
        Dim::Known(n @ (1 | 3)) => *n,
        Dim::Known(_) => {
            return refused(
                wants(),
                "images have 1 or 3 channels; check the layout or use .npy files",
            );
        }
        _ => 3,
    };
    let side = |dim: &Dim, set: Option<u32>| match dim {
        Dim::Known(n) => Some(*n),
        // An image that is not resized keeps its own size.
        _ if settings.resize == ResizeMode::None => None,
        _ => set.map(|n| n as usize),
    };
    let (height, width) = (side(height, settings.height), side(width, settings.width));
    if settings.resize != ResizeMode::None && (height.is_none() || width.is_none()) {
        let next = "set the image height and width (--image-size HxW on the command line), or do not resize";
        return refused(format!("{} and leaves its size open", wants()), next);
    }
    if [height, width]
        .iter()
        .flatten()
        .any(|&n| n == 0 || n > LONGEST_SIDE as usize)
    {
        return refused(wants(), "set an image size between 1 and 16384");
    }
    Ok(ImagePlacement {
        layout,
        channels,
        batch: batch.is_some(),
        height,
        width,
    })
}
