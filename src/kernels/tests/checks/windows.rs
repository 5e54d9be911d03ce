//! Convolutions of every kind.

use core::ops::Range;

use octet_kernels::int8::{
    ConvShape, ConvWeights, DepthwiseWeights, Form, Image, TransposedWeights, Way, Window, conv,
    depthwise, reference, transposed,
};

use super::{Random, outputs};

/// A convolution, plain, depthwise or transposed.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// Height and width of the image.
    pub size: [usize; 2],
    /// The window.
    pub window: Window,
    /// Groups, channels in and out of a group.
    pub channels: [usize; 3],
    /// Between pixels of the image, and of the output.
    pub gaps: [usize; 2],
    /// The kind of weights.
    pub kind: usize,
    /// Whether weights have zero points.
    pub zero_points: bool,
    /// For the rest.
    pub seed: u64,
}

impl Windowed {
    /// Any convolution: what proptest does natively.
    #[cfg(target_family = "wasm")]
    pub fn random(random: &mut Random) -> Windowed {
        let mut two = |least, most| [random.within(least, most), random.within(least, most)];
        let (size, kernel, strides, dilations) = (two(1, 11), two(1, 4), two(1, 3), two(1, 3));
        let ([top, left], [bottom, right], gaps) = (two(0, 3), two(0, 3), two(0, 5));
        Windowed {
            size,
            window: Window {
                kernel,
                strides,
                dilations,
                pads: [top, left, bottom, right],
            },
            channels: [
                random.within(1, 3),
                random.within(1, 9),
                random.within(1, 11),
            ],
            gaps,
            kind: random.within(0, 3),
            zero_points: random.coin(),
            seed: random.0,
        }
    }

    /// Holds every form of a plain convolution against the plain one.
    pub fn check_conv(&self) {
        self.check_way(Way::Gathered);
    }

    /// The same of windows of 3 × 3 that move by one pixel, by fewer products.
    pub fn check_winograd(&self) {
        let [groups, inputs, outputs] = self.channels;
        let window = Window {
            kernel: [3, 3],
            strides: [1, 1],
            ..self.window.clone()
        };
        let fitting = |axis: usize| self.size[axis] + 2 * window.dilations[axis];
        let case = Windowed {
            size: [fitting(0), fitting(1)],
            channels: [groups, inputs * 3 + 5, outputs * 2],
            window,
            ..self.clone()
        };
        case.check_way(Way::Winograd);
    }

    /// The same where all weights are one number and all activations 255: the way that such weights are packed for.
    #[cfg(not(target_family = "wasm"))]
    pub fn check_extremes(&self, weight: i8, packed_for: Way) {
        let shape = self.dense();
        let mut made = Made::of(self, &shape, &mut Random(self.seed));
        made.weights.fill(weight);
        made.activations.fill(u8::MAX);
        made.zero_point = 0;
        self.check_made(&made, Way::Winograd, packed_for);
    }

    fn check_way(&self, way: Way) {
        let made = Made::of(self, &self.dense(), &mut Random(self.seed));
        self.check_made(&made, way, way);
    }

    fn check_made(&self, made: &Made, way: Way, packed_for: Way) {
        let shape = self.dense();
        let mut random = Random(self.seed.wrapping_add(1));
        let image = made.image(self, shape.inputs);
        let [height, width] = self
            .window
            .output(self.size[0], self.size[1])
            .expect("a good window");
        let places = match packed_for {
            Way::Gathered => some_of(&mut random, height * width),
            Way::Winograd => places_of(some_of(&mut random, height), width),
        };
        let sizes = [places.len(), shape.outputs, self.gaps[1]];
        let bias = made.bias();
        let given = outputs(&mut random.clone(), sizes, |output| {
            reference::conv(
                &image,
                &self.window,
                &made.weights,
                &shape,
                &made.zeros,
                bias,
                places.clone(),
                output,
            )
        });
        for form in Form::available() {
            let weights = ConvWeights::pack((form, way), &made.weights, shape, &made.zeros)
                .expect("a good shape");
            assert_eq!(weights.way(), packed_for, "{form} {self:?}");
            let seen = outputs(&mut random.clone(), sizes, |output| {
                conv(&image, &self.window, &weights, bias, places.clone(), output)
            });
            assert!(seen == given, "{form} (ran as {}) {self:?}", weights.form());
        }
    }

    /// Holds every form of a depthwise convolution against the plain one.
    pub fn check_depthwise(&self) {
        // Fewer and more than the vectors have lanes.
        let channels = self.channels.iter().product::<usize>() % 70 + 1;
        let shape = self.shape(channels, channels, channels);
        let mut random = Random(self.seed);
        let made = Made::of(self, &shape, &mut random);
        let image = made.image(self, channels);
        let [height, width] = self
            .window
            .output(self.size[0], self.size[1])
            .expect("a good window");
        let rows = some_of(&mut random, height);
        let sizes = [(rows.end - rows.start) * width, channels, self.gaps[1]];
        let bias = made.bias();
        let given = outputs(&mut random.clone(), sizes, |output| {
            reference::conv(
                &image,
                &self.window,
                &made.weights,
                &shape,
                &made.zeros,
                bias,
                places_of(rows.clone(), width),
                output,
            )
        });
        for form in Form::available() {
            let weights = DepthwiseWeights::pack(
                form,
                &made.weights,
                channels,
                self.window.kernel,
                &made.zeros,
            )
            .expect("a good shape");
            let seen = outputs(&mut random.clone(), sizes, |output| {
                depthwise(&image, &self.window, &weights, bias, rows.clone(), output)
            });
            assert!(seen == given, "{form} (ran as {}) {self:?}", weights.form());
        }
    }

    /// The same of larger kernels, wider images, and rows far apart: what vectors compute strip by strip.
    pub fn check_wide_depthwise(&self) {
        let odd = |size: usize| size * 2 - 1;
        let [down, right] = self.window.dilations;
        let window = Window {
            kernel: self.window.kernel.map(odd),
            dilations: [down * 4, right],
            ..self.window.clone()
        };
        let reach = (window.kernel[0] - 1) * window.dilations[0];
        let case = Windowed {
            size: [self.size[0] + reach, self.size[1] * 40],
            window,
            ..self.clone()
        };
        case.check_depthwise();
    }

    /// Holds every form of a transposed convolution against the plain one.
    pub fn check_transposed(&self) {
        let [groups, inputs, outputs_of_group] = self.channels;
        let shape = self.shape(groups * inputs, groups * outputs_of_group, groups);
        let mut random = Random(self.seed);
        let made = Made::of(self, &shape, &mut random);
        let image = made.image(self, shape.inputs);
        let size: [usize; 2] = core::array::from_fn(|axis| {
            let window = &self.window;
            let reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
            let more = random.within(0, window.strides[axis] - 1);
            let whole = (self.size[axis] - 1) * window.strides[axis] + reach + more;
            whole.saturating_sub(window.pads[axis] + window.pads[axis + 2])
        });
        if size.contains(&0) || self.window.output(size[0], size[1]) != Ok(self.size) {
            // The pads leave nothing: refused.
            return;
        }
        let rows = some_of(&mut random, size[0]);
        let sizes = [
            (rows.end - rows.start) * size[1],
            shape.outputs,
            self.gaps[1],
        ];
        let bias = made.bias();
        let given = outputs(&mut random.clone(), sizes, |output| {
            reference::transposed(
                &image,
                &self.window,
                size,
                &made.weights,
                &shape,
                &made.zeros,
                bias,
                rows.clone(),
                output,
            )
        });
        for form in Form::available() {
            let weights =
                TransposedWeights::pack(form, &made.weights, shape, &self.window, &made.zeros)
                    .expect("a good shape");
            let seen = outputs(&mut random.clone(), sizes, |output| {
                transposed(&image, size, &weights, bias, rows.clone(), output)
            });
            assert!(seen == given, "{form} (ran as {}) {self:?}", weights.form());
        }
    }

    /// Channels of a plain convolution.
    fn dense(&self) -> ConvShape {
        let [groups, inputs, outputs] = self.channels;
        self.shape(groups * inputs, groups * outputs, groups)
    }

    fn shape(&self, inputs: usize, outputs: usize, groups: usize) -> ConvShape {
        ConvShape {
            inputs,
            outputs,
            kernel: self.window.kernel,
            groups,
        }
    }
}

/// A range of rows or places: all of them, or some.
fn some_of(random: &mut Random, count: usize) -> Range<usize> {
    let start = if random.coin() {
        0
    } else {
        random.within(0, count)
    };
    start..random.within(start, count)
}

/// The places of rows of this width.
fn places_of(rows: Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

/// A case's data.
struct Made {
    activations: Vec<u8>,
    weights: Vec<i8>,
    zeros: Vec<i8>,
    biases: Option<Vec<i32>>,
    zero_point: u8,
}

impl Made {
    fn of(case: &Windowed, shape: &ConvShape, random: &mut Random) -> Made {
        let [height, width] = case.size;
        let area = shape.kernel[0] * shape.kernel[1];
        Made {
            activations: random.bytes(height * width * (shape.inputs + case.gaps[0])),
            weights: random.weights(
                shape.inputs * shape.outputs / shape.groups * area,
                case.kind,
            ),
            zeros: if case.zero_points {
                random.weights(shape.outputs, 0)
            } else {
                Vec::new()
            },
            biases: random.coin().then(|| random.biases(shape.outputs)),
            zero_point: random.bits() as u8,
        }
    }

    fn image(&self, case: &Windowed, channels: usize) -> Image<'_> {
        Image {
            values: &self.activations,
            height: case.size[0],
            width: case.size[1],
            channels,
            stride: channels + case.gaps[0],
            zero_point: self.zero_point,
        }
    }

    fn bias(&self) -> Option<&[i32]> {
        self.biases.as_deref()
    }
}
