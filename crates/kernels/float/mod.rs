//! Float convolutions, pools and sums in NCHW, for targets on which the engine's own are slow. In wasm they take a
//! fraction of its time (docs/benches.md).
//!
//! A [`Convolution`] is built once from its geometry and its weights. The weights stay in place, in
//! the bytes of the model file. Every output is summed in one fixed order. Results are therefore
//! the same on any number of threads, which share the output of one image.

mod dense;
mod depthwise;
mod elementwise;
mod gemm;
mod lanes;
mod max_pool;
mod output_parts;
mod packed_once;
mod polyphase;
mod shared_floats;

use dense::Dense;
use depthwise::Depthwise;
pub use elementwise::{add, clamp};
#[cfg(target_arch = "wasm32")]
pub(crate) use lanes::Lanes;
pub use max_pool::MaxPooling;
use output_parts::{ConvolutionPart, once_each};
use shared_floats::SharedFloats;

/// A little-endian float as stored in a file.
pub(crate) type FloatBytes = [u8; 4];

/// Geometry of a 2-D convolution. Pairs are (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Input channels.
    pub input_channels: usize,
    /// Output channels.
    pub output_channels: usize,
    /// Number of groups.
    pub groups: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Strides.
    pub stride: [usize; 2],
    /// Dilations.
    pub dilation: [usize; 2],
    /// Padding above and to the left. Padding below and to the right reaches as far as the windows
    /// do.
    pub pad: [usize; 2],
}

/// Error of building or running a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// A size is zero, too large, or contradicts the others.
    Sizes(Geometry),
    /// A slice does not have the length that the geometry requires.
    Length {
        /// Name of the slice.
        of: &'static str,
        /// Actual length; for weights in bytes.
        actual: usize,
        /// Required length.
        needed: usize,
    },
}

impl std::fmt::Display for GeometryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GeometryError::Sizes(geometry) => {
                write!(f, "invalid convolution geometry: {geometry:?}")
            }
            GeometryError::Length { of, actual, needed } => {
                write!(
                    f,
                    "the {of} of a convolution has length {actual}, expected {needed}"
                )
            }
        }
    }
}

impl std::error::Error for GeometryError {}

impl Geometry {
    fn inputs_per_group(&self) -> usize {
        self.input_channels / self.groups
    }

    fn outputs_per_group(&self) -> usize {
        self.output_channels / self.groups
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Number of products per output: the reduction dimension.
    fn depth(&self) -> usize {
        self.inputs_per_group() * self.taps()
    }

    /// Number of floats of one input image.
    pub fn input_len(&self) -> usize {
        self.input_channels * self.input[0] * self.input[1]
    }

    /// Number of floats of one output image.
    pub fn output_len(&self) -> usize {
        self.output_channels * self.output[0] * self.output[1]
    }

    /// Extent of the padded input that the windows read along an axis.
    fn reach(&self, axis: usize) -> usize {
        (self.output[axis] - 1) * self.stride[axis]
            + (self.kernel[axis] - 1) * self.dilation[axis]
            + 1
    }

    fn check(&self) -> Result<(), GeometryError> {
        const MAX: usize = 1 << 20;
        let invalid = Err(GeometryError::Sizes(*self));
        let sizes = [
            self.input,
            self.output,
            self.kernel,
            self.stride,
            self.dilation,
        ];
        let channels = [self.input_channels, self.output_channels, self.groups];
        let all = || sizes.iter().flatten().chain(&channels);
        if all().any(|&size| size == 0 || size > MAX) || self.pad.iter().any(|&pad| pad > MAX) {
            return invalid;
        }
        let whole = |channels: usize| channels.is_multiple_of(self.groups);
        if !whole(self.input_channels) || !whole(self.output_channels) {
            return invalid;
        }
        // Later products of sizes must not overflow, even with a 32-bit usize.
        let product = |factors: &[usize]| {
            let whole = factors
                .iter()
                .try_fold(4usize, |all, &f| all.checked_mul(f));
            whole.filter(|&bytes| bytes <= isize::MAX as usize)
        };
        let mut extent = [0; 2];
        for (axis, extent) in extent.iter_mut().enumerate() {
            let steps = product(&[self.output[axis] - 1, self.stride[axis]]);
            let window = product(&[self.kernel[axis] - 1, self.dilation[axis]]);
            let (Some(steps), Some(window)) = (steps, window) else {
                return invalid;
            };
            *extent = (steps / 4 + window / 4 + 1).max(self.input[axis] + self.pad[axis]);
        }
        let depth = [self.inputs_per_group(), self.kernel[0], self.kernel[1]];
        let fits = product(&[self.input_channels, extent[0], extent[1]]).is_some()
            && product(&[self.output_channels, self.output[0], self.output[1]]).is_some()
            && product(&[self.output_channels, depth[0], depth[1], depth[2]]).is_some();
        if fits { Ok(()) } else { invalid }
    }
}

/// A convolution with its weights. `W` holds their little-endian floats as bytes at any alignment.
#[derive(Clone, Debug)]
pub struct Convolution<W> {
    geometry: Geometry,
    weights: W,
    bias: Vec<f32>,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Dense(Dense),
    Depthwise(Depthwise),
}

impl<W: AsRef<[u8]>> Convolution<W> {
    /// Builds a convolution from weights in OIHW order, with one bias per output channel.
    pub fn new(
        geometry: Geometry,
        weights: W,
        bias: Vec<f32>,
    ) -> Result<Convolution<W>, GeometryError> {
        Convolution::with_band_floats(dense::BAND_FLOATS, geometry, weights, bias)
    }

    /// Builds a convolution that lays out at most this many padded floats at a time.
    fn with_band_floats(
        band_floats: usize,
        geometry: Geometry,
        weights: W,
        bias: Vec<f32>,
    ) -> Result<Convolution<W>, GeometryError> {
        geometry.check()?;
        let expected = size_of::<FloatBytes>() * geometry.output_channels * geometry.depth();
        length("weight", weights.as_ref().len(), expected)?;
        length("bias", bias.len(), geometry.output_channels)?;
        let algorithm = match geometry.inputs_per_group() {
            1 if geometry.groups > 1 => Algorithm::Depthwise(Depthwise::new(&geometry)),
            _ => Algorithm::Dense(Dense::new(&geometry, band_floats)),
        };
        Ok(Convolution {
            geometry,
            weights,
            bias,
            algorithm,
        })
    }

    /// Returns the geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Convolves one image and clamps every output to two bounds.
    pub fn run(
        &self,
        input: &[f32],
        output: &mut [f32],
        bounds: (f32, f32),
    ) -> Result<(), GeometryError>
    where
        W: Sync,
    {
        self.run_in_parts(input, output, bounds, 1, &|_, part| part(0))
    }

    /// Like [`Convolution::run`], in at most `most` parts that may run at the same time. `each` is
    /// called once or twice, and runs all parts. The bits of the output do not depend on the parts.
    pub fn run_in_parts(
        &self,
        input: &[f32],
        output: &mut [f32],
        (low, high): (f32, f32),
        most: usize,
        each: &PartRunner<'_>,
    ) -> Result<(), GeometryError>
    where
        W: Sync,
    {
        length("input", input.len(), self.geometry.input_len())?;
        length("output", output.len(), self.geometry.output_len())?;
        let epilogue = Epilogue {
            bias: &self.bias,
            low,
            high,
        };
        let (weights, _) = self.weights.as_ref().as_chunks();
        let geometry = &self.geometry;
        let depthwise = matches!(self.algorithm, Algorithm::Depthwise(_));
        let parts = match most {
            0 | 1 => vec![ConvolutionPart::whole(geometry)],
            most => ConvolutionPart::split(geometry, most, depthwise),
        };
        let output = SharedFloats::new(output);
        let by_channels = parts.len() > 1 && parts[0].rows.len() == geometry.output[0];
        match &self.algorithm {
            Algorithm::Dense(dense)
                if by_channels && dense.is_one_band(geometry) && packed_once::fits(geometry) =>
            {
                let channels: Vec<_> = parts.into_iter().map(|part| part.channels).collect();
                let (from, to) = ((weights, input), (&channels[..], &output));
                // SAFETY: parts are disjoint.
                unsafe { dense.run_packed_once(geometry, from, to, each, epilogue) };
            }
            Algorithm::Dense(dense) => once_each(parts.len(), each, &|part| {
                let to = (&parts[part], &output);
                // SAFETY: parts are disjoint and each runs once.
                unsafe { dense.run(geometry, weights, input, to, epilogue) };
            }),
            Algorithm::Depthwise(depthwise) => once_each(parts.len(), each, &|part| {
                let to = (parts[part].channels.clone(), &output);
                // SAFETY: parts are disjoint and each runs once.
                unsafe { depthwise.run(geometry, weights, input, to, epilogue) };
            }),
        }
        Ok(())
    }
}

/// Runs parts: it gets their number, and a function that computes the part of an index.
pub type PartRunner<'a> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'a;

/// Bias and clamp, applied to the sums.
#[derive(Clone, Copy)]
struct Epilogue<'a> {
    bias: &'a [f32],
    low: f32,
    high: f32,
}

fn length(of: &'static str, actual: usize, needed: usize) -> Result<(), GeometryError> {
    match actual == needed {
        true => Ok(()),
        false => Err(GeometryError::Length { of, actual, needed }),
    }
}

#[cfg(test)]
mod tests;
