//! Convolutions of floats, channels first, for the machines whose engine leaves them slow: in wasm they take a
//! fraction of the engine's time (docs/benches.md).
//!
//! A [`Convolution`] is made once of its sizes and weights, which stay where they lie: in the bytes of a file. It is run as
//! often as wanted. Every output is summed in one order, so that the same input gives the same floats on any number of
//! threads.

mod dense;
mod depthwise;
mod gemm;
mod lanes;
mod padded;

use dense::Dense;
use depthwise::Depthwise;
#[cfg(target_arch = "wasm32")]
pub(crate) use lanes::Lanes;

/// A float as it is in a file.
type Raw = [u8; 4];

/// Sizes of a two-dimensional convolution, height before width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Channels that come in.
    pub input_channels: usize,
    /// Channels that go out.
    pub output_channels: usize,
    /// In so many parts, of which none sees the others' channels.
    pub groups: usize,
    /// The picture that comes in.
    pub input: [usize; 2],
    /// The picture that goes out.
    pub output: [usize; 2],
    /// The window.
    pub kernel: [usize; 2],
    /// Steps from window to window.
    pub stride: [usize; 2],
    /// Steps from point to point within a window.
    pub dilation: [usize; 2],
    /// Zeros before the first row and column. After the last there are as many as the windows reach.
    pub pad: [usize; 2],
}

/// Why a convolution can't be made or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// A size is zero, or doesn't fit the others.
    Sizes(Geometry),
    /// A slice is not as long as the sizes say.
    Length {
        /// Whose.
        of: &'static str,
        /// How many it has, of weights in bytes.
        found: usize,
        /// How many it needs.
        needed: usize,
    },
}

impl std::fmt::Display for GeometryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GeometryError::Sizes(geometry) => {
                write!(f, "the sizes of a convolution contradict: {geometry:?}")
            }
            GeometryError::Length { of, found, needed } => {
                write!(
                    f,
                    "the {of} of a convolution has a length of {found}, not {needed}"
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

    /// How many products are summed for an output.
    fn depth(&self) -> usize {
        self.inputs_per_group() * self.taps()
    }

    /// How many floats come in for one picture.
    pub fn input_len(&self) -> usize {
        self.input_channels * self.input[0] * self.input[1]
    }

    /// How many floats go out for one picture.
    pub fn output_len(&self) -> usize {
        self.output_channels * self.output[0] * self.output[1]
    }

    /// Rows and columns from the first to the last point any window reads.
    fn reach(&self, axis: usize) -> usize {
        (self.output[axis] - 1) * self.stride[axis]
            + (self.kernel[axis] - 1) * self.dilation[axis]
            + 1
    }

    fn check(&self) -> Result<(), GeometryError> {
        const MOST: usize = 1 << 20;
        let wrong = Err(GeometryError::Sizes(*self));
        let sizes = [
            self.input,
            self.output,
            self.kernel,
            self.stride,
            self.dilation,
        ];
        let channels = [self.input_channels, self.output_channels, self.groups];
        let all = || sizes.iter().flatten().chain(&channels);
        if all().any(|&size| size == 0 || size > MOST) || self.pad.iter().any(|&pad| pad > MOST) {
            return wrong;
        }
        let whole = |channels: usize| channels.is_multiple_of(self.groups);
        if !whole(self.input_channels) || !whole(self.output_channels) {
            return wrong;
        }
        // Nothing that is multiplied later may overflow, also where a usize has 32 bits.
        let product = |factors: &[usize]| {
            let whole = factors
                .iter()
                .try_fold(4usize, |all, &f| all.checked_mul(f));
            whole.filter(|&bytes| bytes <= isize::MAX as usize)
        };
        let mut reached = [0; 2];
        for (axis, reached) in reached.iter_mut().enumerate() {
            let steps = product(&[self.output[axis] - 1, self.stride[axis]]);
            let window = product(&[self.kernel[axis] - 1, self.dilation[axis]]);
            let (Some(steps), Some(window)) = (steps, window) else {
                return wrong;
            };
            *reached = (steps / 4 + window / 4 + 1).max(self.input[axis] + self.pad[axis]);
        }
        let depth = [self.inputs_per_group(), self.kernel[0], self.kernel[1]];
        let fits = product(&[self.input_channels, reached[0], reached[1]]).is_some()
            && product(&[self.output_channels, self.output[0], self.output[1]]).is_some()
            && product(&[self.output_channels, depth[0], depth[1], depth[2]]).is_some();
        if fits { Ok(()) } else { wrong }
    }
}

/// A convolution with its weights: whatever holds the bytes of their little-endian floats, wherever these lie.
#[derive(Clone, Debug)]
pub struct Convolution<W> {
    geometry: Geometry,
    weights: W,
    bias: Vec<f32>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Dense(Dense),
    Depthwise(Depthwise),
}

impl<W: AsRef<[u8]>> Convolution<W> {
    /// Of weights in the order output channel, input channel, row, column; `bias` is one value a channel that
    /// goes out.
    pub fn new(
        geometry: Geometry,
        weights: W,
        bias: Vec<f32>,
    ) -> Result<Convolution<W>, GeometryError> {
        Convolution::within(dense::ROOM, geometry, weights, bias)
    }

    /// The same, with room for so many floats of pictures.
    fn within(
        room: usize,
        geometry: Geometry,
        weights: W,
        bias: Vec<f32>,
    ) -> Result<Convolution<W>, GeometryError> {
        geometry.check()?;
        let wanted = size_of::<Raw>() * geometry.output_channels * geometry.depth();
        length("weight", weights.as_ref().len(), wanted)?;
        length("bias", bias.len(), geometry.output_channels)?;
        let kind = match geometry.inputs_per_group() {
            1 if geometry.groups > 1 => Kind::Depthwise(Depthwise::new(&geometry)),
            _ => Kind::Dense(Dense::new(&geometry, room)),
        };
        Ok(Convolution {
            geometry,
            weights,
            bias,
            kind,
        })
    }

    /// Its sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// One picture, every output raised to `low` and then lowered to `high`.
    pub fn run(
        &self,
        input: &[f32],
        output: &mut [f32],
        (low, high): (f32, f32),
    ) -> Result<(), GeometryError> {
        length("input", input.len(), self.geometry.input_len())?;
        length("output", output.len(), self.geometry.output_len())?;
        let ends = Ends {
            bias: &self.bias,
            low,
            high,
        };
        let (weights, _) = self.weights.as_ref().as_chunks();
        match &self.kind {
            Kind::Dense(dense) => dense.run(&self.geometry, weights, input, output, ends),
            Kind::Depthwise(depthwise) => {
                depthwise.run(&self.geometry, weights, input, output, ends);
            }
        }
        Ok(())
    }
}

/// What is added to the sums, and where they are cut.
#[derive(Clone, Copy)]
struct Ends<'a> {
    bias: &'a [f32],
    low: f32,
    high: f32,
}

fn length(of: &'static str, found: usize, needed: usize) -> Result<(), GeometryError> {
    match found == needed {
        true => Ok(()),
        false => Err(GeometryError::Length { of, found, needed }),
    }
}

#[cfg(test)]
mod tests;
