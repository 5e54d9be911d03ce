//! Resize: the scale of each axis and the pixels that are read; shared by floats and integers.

use octet_kernels::int8::{Coordinates, Nearest, nearest_pixels};

use octet_graph::prepare::position;

/// Reason why a Resize node is not supported; “it” is the node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ResizeError {
    #[error("its coordinate_transformation_mode {0} is not supported")]
    Coordinates(String),
    #[error("its nearest_mode {0} is not supported")]
    Rounding(String),
    #[error("it changes the number of axes")]
    Rank,
    #[error("its scales must be positive numbers")]
    Scales,
    #[error("axis {0} is outside a tensor of {1} axes")]
    Axis(i64, usize),
    #[error("it has {0} scales for the axes {1:?}")]
    ScaleCount(usize, Vec<usize>),
    #[error("its keep_aspect_ratio_policy {0} is not supported")]
    Policy(String),
    #[error("it keeps the aspect ratio, and its sizes are not constant")]
    SizesNotConstant,
    #[error("it has no sizes")]
    NoSizes,
}

/// The coordinate attributes of a Resize node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResizeSampling {
    /// Map from output to input positions.
    pub coordinates: Coordinates,
    /// Rounding of nearest positions.
    pub rounding: Nearest,
}

impl ResizeSampling {
    /// Parses coordinate_transformation_mode and nearest_mode.
    pub fn parse(
        coordinates: Option<&str>,
        rounding: Option<&str>,
    ) -> Result<ResizeSampling, ResizeError> {
        let coordinates = match coordinates.unwrap_or("half_pixel") {
            "half_pixel" => Coordinates::HalfPixel,
            "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            other => return Err(ResizeError::Coordinates(other.to_owned())),
        };
        let rounding = match rounding.unwrap_or("round_prefer_floor") {
            "round_prefer_floor" => Nearest::RoundPreferFloor,
            "round_prefer_ceil" => Nearest::RoundPreferCeil,
            "floor" => Nearest::Floor,
            "ceil" => Nearest::Ceil,
            other => return Err(ResizeError::Rounding(other.to_owned())),
        };
        Ok(ResizeSampling {
            coordinates,
            rounding,
        })
    }

    /// For each output index of each axis, the nearest input index.
    pub fn nearest(
        self,
        shape: &[usize],
        output: &[usize],
        scales: &[f32],
    ) -> Vec<Vec<Option<usize>>> {
        let along = |axis: usize| {
            let sizes = [shape[axis], output[axis]];
            let found = nearest_pixels(self.coordinates, self.rounding, sizes, scales[axis]);
            found.into_iter().map(Some).collect()
        };
        (0..shape.len()).map(along).collect()
    }
}

/// The requested output size of a Resize node.
#[derive(Clone, Debug, Default)]
pub struct ResizeTarget {
    /// The resized axes; `None` for all.
    pub axes: Option<Vec<i64>>,
    /// Empty if the node has sizes.
    pub scales: Vec<f32>,
    /// Output sizes of the resized axes.
    pub sizes: Option<Vec<i64>>,
    /// keep_aspect_ratio_policy.
    pub policy: Option<String>,
}

impl ResizeTarget {
    /// The scale of each axis: as given, or derived from the sizes. All are positive.
    pub fn scales(&self, shape: &[usize], output: &[usize]) -> Result<Vec<f32>, ResizeError> {
        if shape.len() != output.len() {
            return Err(ResizeError::Rank);
        }
        let scales = self.unchecked_scales(shape, output)?;
        let sound = |(&size, &scale): (&usize, &f32)| size > 0 && scale.is_normal() && scale > 0.0;
        match shape.iter().zip(&scales).all(sound) {
            true => Ok(scales),
            false => Err(ResizeError::Scales),
        }
    }

    fn unchecked_scales(&self, shape: &[usize], output: &[usize]) -> Result<Vec<f32>, ResizeError> {
        // ONNX Runtime copies an input whose size stays the same, whatever the scales: 1.1 times
        // two pixels are two.
        if shape == output {
            return Ok(vec![1.0; shape.len()]);
        }
        let rank = shape.len();
        let axis = |&axis: &i64| position(axis, rank).ok_or(ResizeError::Axis(axis, rank));
        let axes: Vec<usize> = match &self.axes {
            Some(named) => named.iter().map(axis).collect::<Result<_, _>>()?,
            None => (0..rank).collect(),
        };
        let mut scales = vec![1.0; rank];
        if !self.scales.is_empty() {
            if self.scales.len() != axes.len() {
                return Err(ResizeError::ScaleCount(self.scales.len(), axes));
            }
            for (&axis, &scale) in axes.iter().zip(&self.scales) {
                scales[axis] = scale;
            }
            return Ok(scales);
        }
        let ratio = |size: usize, axis: usize| size as f32 / shape[axis] as f32;
        // To keep the aspect ratio, one axis determines the scale of all, so the output can have
        // other sizes than requested.
        let one: Option<fn(f32, f32) -> f32> = match self.policy.as_deref() {
            None | Some("stretch") => None,
            Some("not_larger") => Some(f32::min),
            Some("not_smaller") => Some(f32::max),
            Some(other) => return Err(ResizeError::Policy(other.to_owned())),
        };
        let Some(one) = one else {
            for axis in axes {
                scales[axis] = ratio(output[axis], axis);
            }
            return Ok(scales);
        };
        let sizes = self.sizes.as_ref();
        let sizes = sizes.filter(|sizes| sizes.len() == axes.len());
        let sizes = sizes.ok_or(ResizeError::SizesNotConstant)?;
        let ratios = sizes.iter().zip(&axes);
        let ratios = ratios.map(|(&size, &axis)| ratio(usize::try_from(size).unwrap_or(0), axis));
        let scale = ratios.reduce(one).ok_or(ResizeError::NoSizes)?;
        for axis in axes {
            scales[axis] = scale;
        }
        Ok(scales)
    }
}
