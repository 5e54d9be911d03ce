//! Bytes that a training step keeps for its gradient, with and without fake quantization.
//!
//! `benches/training_memory.py` prints them beside those of PyTorch for the same network: a bottleneck
//! of MobileNetV2, with a batch of 4 and planes of 28 × 28.

use octet_training::reverse::{
    FakeQuantize, Pairwise, PlaneConvolution, PlaneWindows, ProgramStep, ReverseOperation,
    ReverseProgram, WindowAxis,
};

const BATCH: usize = 4;
const SIDE: usize = 28;
/// Outputs, channels that one reads, groups, and taps along an axis.
const LAYERS: [(usize, usize, usize, usize); 3] =
    [(192, 32, 1, 1), (1, 1, 192, 3), (32, 192, 1, 1)];

#[derive(Default)]
struct Bottleneck {
    lens: Vec<usize>,
    steps: Vec<ProgramStep>,
    leaves: Vec<Vec<f32>>,
}

impl Bottleneck {
    fn leaf(&mut self, values: Vec<f32>) -> usize {
        self.lens.push(values.len());
        self.leaves.push(values);
        self.lens.len() - 1
    }

    fn step(&mut self, operation: ReverseOperation, inputs: Vec<usize>, len: usize) -> usize {
        let output = self.lens.len();
        self.lens.push(len);
        self.steps.push(ProgramStep {
            operation,
            inputs,
            output,
        });
        output
    }

    /// A value as the quantized model has it, or the value itself.
    fn rounded(&mut self, value: usize, scale: Option<usize>) -> usize {
        let of = FakeQuantize {
            low: -128,
            high: 127,
        };
        let len = self.lens[value];
        match scale {
            Some(scale) => self.step(ReverseOperation::FakeQuantize(of), vec![value, scale], len),
            None => value,
        }
    }
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|at| (at as f32 * 0.37).sin()).collect()
}

fn convolution(
    (outputs, channels, groups, taps): (usize, usize, usize, usize),
) -> PlaneConvolution {
    let axis = WindowAxis {
        extent: SIDE,
        places: SIDE,
        taps,
        stride: 1,
        dilation: 1,
        before: (taps / 2) as i64,
    };
    PlaneConvolution {
        images: BATCH,
        groups,
        channels,
        outputs,
        windows: PlaneWindows([WindowAxis::NONE, axis, axis]),
    }
}

/// Bytes of values and of bits, after the forward half of a step.
fn kept(fake: bool, learned_scales: bool) -> Option<(usize, usize)> {
    let mut network = Bottleneck::default();
    let planes = |channels: usize| BATCH * channels * SIDE * SIDE;
    let x = network.leaf(numbers(planes(32)));
    let weights = LAYERS.map(|(outputs, channels, groups, taps)| {
        network.leaf(numbers(groups * outputs * channels * taps * taps))
    });
    let step_size = network.leaf(vec![0.02]);
    let scale = fake.then_some(step_size);
    // What is before the block is computed, too.
    let before = network.step(ReverseOperation::Clamp(0.0, 6.0), vec![x], planes(32));
    let mut value = network.rounded(before, scale);
    let first = value;
    for (index, (layer, weights)) in LAYERS.into_iter().zip(weights).enumerate() {
        let len = planes(layer.0 * layer.2);
        let weights = network.rounded(weights, scale);
        let of = ReverseOperation::Convolution(convolution(layer));
        value = network.step(of, vec![value, weights], len);
        if index < 2 {
            value = network.step(ReverseOperation::Clamp(0.0, 6.0), vec![value], len);
        }
        value = network.rounded(value, scale);
    }
    let len = network.lens[value];
    let sum = ReverseOperation::Pairwise(Pairwise::Add);
    let sum = network.step(sum, vec![value, first], len);
    let output = network.rounded(sum, scale);
    let mut learned = weights.to_vec();
    if learned_scales {
        learned.push(step_size);
    }
    let program = ReverseProgram::new(network.lens, network.steps, vec![output], &learned)?;
    let leaves: Vec<&[f32]> = network.leaves.iter().map(Vec::as_slice).collect();
    let run = program.forward(&leaves, None, true);
    Some((run.value_bytes(), run.mask_bytes()))
}

fn main() {
    for (name, fake, learned_scales) in [
        ("float", false, false),
        ("fake quantization", true, false),
        ("learned scales", true, true),
    ] {
        if let Some((values, masks)) = kept(fake, learned_scales) {
            println!("{name}\t{values}\t{masks}");
        }
    }
}
