//! Dense, depthwise and transposed convolutions.

use core::ops::Range;

use octet_kernels::int8::{
    ConvAlgorithm, ConvShape, ConvWeights, DepthwiseWeights, Image, Isa, TransposedWeights, Window,
    conv, depthwise, reference, transposed,
};

use super::{Random, outputs};

/// A convolution case.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// Height and width of the image.
    pub size: [usize; 2],
    /// The window.
    pub window: Window,
    /// Groups, input and output channels per group.
    pub channels: [usize; 3],
    /// Gaps between pixels of the image, and of the output.
    pub gaps: [usize; 2],
    /// Kind of weights.
    pub kind: usize,
    /// True if the weights have zero points.
    pub zero_points: bool,
    /// Seed of the data.
    pub seed: u64,
}

impl Windowed {
    /// Generates a case; natively proptest does.
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

    /// Compares every ISA with the reference, using im2col.
    pub fn check_conv(&self) {
        self.check_algorithm(ConvAlgorithm::Gathered);
    }

    /// Compares every ISA with the reference, using Winograd, for 3 × 3 windows with stride 1.
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
        case.check_algorithm(ConvAlgorithm::Winograd);
    }

    /// Checks Winograd at the extremes: all weights equal and all activations 255. `packed_for` is
    /// the algorithm that packing must select.
    #[cfg(not(target_family = "wasm"))]
    pub fn check_extremes(&self, weight: i8, packed_for: ConvAlgorithm) {
        let shape = self.dense();
        let mut data = TestData::random(self, &shape, &mut Random(self.seed));
        data.weights.fill(weight);
        data.activations.fill(u8::MAX);
        data.zero_point = 0;
        self.check_with(&data, ConvAlgorithm::Winograd, packed_for);
    }

    fn check_algorithm(&self, algorithm: ConvAlgorithm) {
        let data = TestData::random(self, &self.dense(), &mut Random(self.seed));
        self.check_with(&data, algorithm, algorithm);
    }

    fn check_with(&self, data: &TestData, algorithm: ConvAlgorithm, packed_for: ConvAlgorithm) {
        let shape = self.dense();
        let mut random = Random(self.seed.wrapping_add(1));
        let image = data.image(self, shape.inputs);
        let [height, width] = self
            .window
            .output(self.size[0], self.size[1])
            .expect("a good window");
        let positions = match packed_for {
            ConvAlgorithm::Gathered => random_range(&mut random, height * width),
            ConvAlgorithm::Winograd => positions_of(random_range(&mut random, height), width),
        };
        let sizes = [positions.len(), shape.outputs, self.gaps[1]];
        let bias = data.bias();
        let expected = outputs(&mut random.clone(), sizes, |output| {
            reference::conv(
                &image,
                &self.window,
                &data.weights,
                &shape,
                &data.zeros,
                bias,
                positions.clone(),
                output,
            )
        });
        for isa in Isa::available() {
            let weights = ConvWeights::pack((isa, algorithm), &data.weights, shape, &data.zeros)
                .expect("a good shape");
            assert_eq!(weights.way(), packed_for, "{isa} {self:?}");
            let actual = outputs(&mut random.clone(), sizes, |output| {
                conv(
                    &image,
                    &self.window,
                    &weights,
                    bias,
                    positions.clone(),
                    output,
                )
            });
            assert!(
                actual == expected,
                "{isa} (ran as {}) {self:?}",
                weights.form()
            );
        }
    }

    /// Compares every ISA with the reference for a depthwise convolution.
    pub fn check_depthwise(&self) {
        // Fewer and more channels than the vectors have lanes.
        let channels = self.channels.iter().product::<usize>() % 70 + 1;
        let shape = self.shape(channels, channels, channels);
        let mut random = Random(self.seed);
        let data = TestData::random(self, &shape, &mut random);
        let image = data.image(self, channels);
        let [height, width] = self
            .window
            .output(self.size[0], self.size[1])
            .expect("a good window");
        let rows = random_range(&mut random, height);
        let sizes = [(rows.end - rows.start) * width, channels, self.gaps[1]];
        let bias = data.bias();
        let expected = outputs(&mut random.clone(), sizes, |output| {
            reference::conv(
                &image,
                &self.window,
                &data.weights,
                &shape,
                &data.zeros,
                bias,
                positions_of(rows.clone(), width),
                output,
            )
        });
        for isa in Isa::available() {
            let weights = DepthwiseWeights::pack(
                isa,
                &data.weights,
                channels,
                self.window.kernel,
                &data.zeros,
            )
            .expect("a good shape");
            let actual = outputs(&mut random.clone(), sizes, |output| {
                depthwise(&image, &self.window, &weights, bias, rows.clone(), output)
            });
            assert!(
                actual == expected,
                "{isa} (ran as {}) {self:?}",
                weights.form()
            );
        }
    }

    /// Checks depthwise convolutions with larger kernels, wider images and distant rows, which
    /// vector code computes in strips.
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

    /// Compares every ISA with the reference for a transposed convolution.
    pub fn check_transposed(&self) {
        let [groups, inputs, outputs_of_group] = self.channels;
        let shape = self.shape(groups * inputs, groups * outputs_of_group, groups);
        let mut random = Random(self.seed);
        let data = TestData::random(self, &shape, &mut random);
        let image = data.image(self, shape.inputs);
        let size: [usize; 2] = core::array::from_fn(|axis| {
            let window = &self.window;
            let reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
            let more = random.within(0, window.strides[axis] - 1);
            let whole = (self.size[axis] - 1) * window.strides[axis] + reach + more;
            whole.saturating_sub(window.pads[axis] + window.pads[axis + 2])
        });
        if size.contains(&0) || self.window.output(size[0], size[1]) != Ok(self.size) {
            // The pads crop everything; such a case is refused.
            return;
        }
        let rows = random_range(&mut random, size[0]);
        let sizes = [
            (rows.end - rows.start) * size[1],
            shape.outputs,
            self.gaps[1],
        ];
        let bias = data.bias();
        let expected = outputs(&mut random.clone(), sizes, |output| {
            reference::transposed(
                &image,
                &self.window,
                size,
                &data.weights,
                &shape,
                &data.zeros,
                bias,
                rows.clone(),
                output,
            )
        });
        for isa in Isa::available() {
            let weights =
                TransposedWeights::pack(isa, &data.weights, shape, &self.window, &data.zeros)
                    .expect("a good shape");
            let actual = outputs(&mut random.clone(), sizes, |output| {
                transposed(&image, size, &weights, bias, rows.clone(), output)
            });
            assert!(
                actual == expected,
                "{isa} (ran as {}) {self:?}",
                weights.form()
            );
        }
    }

    /// Channels of the dense convolution.
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

/// Returns a range of rows or positions, often starting at the first.
fn random_range(random: &mut Random, count: usize) -> Range<usize> {
    let start = if random.coin() {
        0
    } else {
        random.within(0, count)
    };
    start..random.within(start, count)
}

/// Returns the positions of rows of this width.
fn positions_of(rows: Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

/// Data of a case.
struct TestData {
    activations: Vec<u8>,
    weights: Vec<i8>,
    zeros: Vec<i8>,
    biases: Option<Vec<i32>>,
    zero_point: u8,
}

impl TestData {
    fn random(case: &Windowed, shape: &ConvShape, random: &mut Random) -> TestData {
        let [height, width] = case.size;
        let area = shape.kernel[0] * shape.kernel[1];
        TestData {
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
