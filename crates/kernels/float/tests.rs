//! Tests against the definition, accumulated in f64.

use super::{Convolution, Geometry, GeometryError};

const WHOLE: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Computes every window by the definition of a convolution.
fn reference(g: &Geometry, weights: &[f32], bias: &[f32], input: &[f32]) -> Vec<f32> {
    let (inputs, outputs) = (g.input_channels / g.groups, g.output_channels / g.groups);
    let mut all = Vec::new();
    for (channel, &start) in bias.iter().enumerate().take(g.output_channels) {
        for row in 0..g.output[0] {
            for column in 0..g.output[1] {
                let mut sum = f64::from(start);
                for from in 0..inputs {
                    for down in 0..g.kernel[0] {
                        for right in 0..g.kernel[1] {
                            let y =
                                (row * g.stride[0] + down * g.dilation[0]).checked_sub(g.pad[0]);
                            let x = (column * g.stride[1] + right * g.dilation[1])
                                .checked_sub(g.pad[1]);
                            let (Some(y), Some(x)) = (y, x) else { continue };
                            if y >= g.input[0] || x >= g.input[1] {
                                continue;
                            }
                            let plane = channel / outputs * inputs + from;
                            let value = input[(plane * g.input[0] + y) * g.input[1] + x];
                            let weight = ((channel * inputs + from) * g.kernel[0] + down)
                                * g.kernel[1]
                                + right;
                            sum += f64::from(value) * f64::from(weights[weight]);
                        }
                    }
                }
                all.push(sum as f32);
            }
        }
    }
    all
}

/// Input channels, output channels, groups; then input, kernel, stride, dilation, pad before, pad
/// after.
type Case = (
    [usize; 3],
    [usize; 2],
    [usize; 2],
    [usize; 2],
    [usize; 2],
    [usize; 2],
    [usize; 2],
);

const CASES: [Case; 17] = [
    ([3, 8, 1], [9, 11], [1, 1], [1, 1], [1, 1], [0, 0], [0, 0]),
    ([5, 7, 1], [4, 4], [1, 1], [1, 1], [1, 1], [0, 0], [0, 0]),
    ([3, 9, 1], [12, 10], [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
    ([3, 9, 1], [12, 10], [3, 3], [2, 2], [1, 1], [1, 1], [0, 0]),
    ([4, 6, 2], [7, 8], [3, 2], [1, 1], [1, 1], [1, 0], [1, 1]),
    ([2, 5, 1], [20, 9], [3, 3], [3, 2], [2, 3], [2, 3], [1, 0]),
    ([6, 4, 1], [5, 5], [5, 5], [1, 1], [1, 1], [2, 2], [2, 2]),
    ([8, 8, 8], [14, 14], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1]),
    ([8, 8, 8], [15, 13], [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
    ([4, 8, 4], [7, 7], [5, 5], [1, 1], [1, 1], [2, 2], [2, 2]),
    (
        [3, 3, 3],
        [40, 33],
        [5, 5],
        [1, 1],
        [5, 5],
        [10, 10],
        [10, 10],
    ),
    ([2, 2, 2], [17, 16], [4, 3], [3, 2], [2, 3], [3, 1], [2, 2]),
    ([5, 4, 1], [1, 37], [1, 4], [1, 1], [1, 2], [0, 2], [0, 3]),
    // Few rows and many channels.
    ([20, 130, 1], [7, 7], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1]),
    ([24, 96, 1], [7, 7], [1, 1], [1, 1], [1, 1], [0, 0], [0, 0]),
    ([9, 70, 1], [8, 7], [2, 2], [3, 2], [1, 1], [0, 1], [0, 0]),
    (
        [70, 33, 1],
        [30, 31],
        [3, 3],
        [1, 1],
        [1, 1],
        [1, 1],
        [1, 1],
    ),
];

fn geometry(case: Case) -> Geometry {
    let ([inputs, outputs, groups], input, kernel, stride, dilation, pad, after) = case;
    let output = std::array::from_fn(|axis| {
        let whole = input[axis] + pad[axis] + after[axis];
        (whole - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1
    });
    Geometry {
        input_channels: inputs,
        output_channels: outputs,
        groups,
        input,
        output,
        kernel,
        stride,
        dilation,
        pad,
    }
}

/// The bytes of the weights after one byte: files guarantee no alignment.
fn unaligned_bytes(weights: &[f32]) -> Vec<u8> {
    let bytes = weights.iter().flat_map(|weight| weight.to_le_bytes());
    std::iter::once(0).chain(bytes).collect()
}

fn test_data(g: &Geometry) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let weights = g.output_channels * (g.input_channels / g.groups) * g.kernel[0] * g.kernel[1];
    (
        numbers(weights, 1),
        numbers(g.output_channels, 2),
        numbers(g.input_len(), 3),
    )
}

#[test]
fn outputs_match_the_definition() {
    for case in CASES {
        let g = geometry(case);
        let (weights, bias, input) = test_data(&g);
        let expected = reference(&g, &weights, &bias, &input);
        let file = unaligned_bytes(&weights);
        let run = |band_floats: usize| {
            let weights = &file[1..];
            let convolution =
                Convolution::with_band_floats(band_floats, g, weights, bias.clone()).unwrap();
            let mut output = vec![f32::NAN; g.output_len()];
            convolution.run(&input, &mut output, WHOLE).unwrap();
            output
        };
        let output = run(super::dense::BAND_FLOATS);
        let largest = expected
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        for (at, (actual, expected)) in output.iter().zip(&expected).enumerate() {
            let error = (actual - expected).abs();
            assert!(
                error <= 1e-5 * largest,
                "{g:?}: {actual} for {expected} at {at}"
            );
        }
        // The results do not depend on the parts, in any order.
        for most in [2, 3, 8, 1000] {
            let convolution = Convolution::new(g, &file[1..], bias.clone()).unwrap();
            let mut parts = vec![f32::NAN; g.output_len()];
            let each = |count: usize, part: &(dyn Fn(usize) + Sync)| {
                assert!((1..=most).contains(&count));
                std::thread::scope(|scope| {
                    (0..count)
                        .rev()
                        .for_each(|at| _ = scope.spawn(move || part(at)));
                });
            };
            convolution
                .run_in_parts(&input, &mut parts, WHOLE, most, &each)
                .unwrap();
            assert_eq!(parts, output, "{g:?} in {most}");
        }
        // The results do not depend on the band size.
        for band_floats in [1, 300, 5000] {
            assert_eq!(run(band_floats), output, "{g:?} in {band_floats}");
        }
    }
}

#[test]
fn outputs_are_clamped_and_nan_stays_nan() {
    for case in [CASES[0], CASES[7]] {
        let g = geometry(case);
        let (weights, bias, mut input) = test_data(&g);
        let file = unaligned_bytes(&weights);
        let convolution = Convolution::new(g, &file[1..], bias).unwrap();
        let mut whole = vec![0.0; g.output_len()];
        convolution.run(&input, &mut whole, WHOLE).unwrap();
        assert!(whole.iter().any(|&v| v < -0.25) && whole.iter().any(|&v| v > 0.5));
        let mut output = vec![0.0; g.output_len()];
        let cut = (-0.25, 0.5);
        convolution.run(&input, &mut output, cut).unwrap();
        let expected: Vec<f32> = whole.iter().map(|value| value.clamp(-0.25, 0.5)).collect();
        assert_eq!(output, expected);
        input.fill(f32::NAN);
        convolution.run(&input, &mut output, cut).unwrap();
        assert!(output.iter().all(|value| value.is_nan()));
    }
}

#[test]
fn contradicting_sizes_are_errors() {
    let g = geometry(CASES[7]);
    let (weights, bias, input) = test_data(&g);
    let file = unaligned_bytes(&weights);
    let weights = &file[1..];
    let invalid = |g: Geometry| Convolution::new(g, weights, bias.clone()).unwrap_err();
    for g in [
        Geometry { groups: 0, ..g },
        Geometry { groups: 3, ..g },
        Geometry {
            stride: [0, 1],
            ..g
        },
        Geometry {
            kernel: [usize::MAX, 1],
            ..g
        },
        Geometry {
            output: [1 << 20, 1 << 20],
            stride: [1 << 20, 1 << 20],
            ..g
        },
    ] {
        assert_eq!(invalid(g), GeometryError::Sizes(g));
    }
    assert!(Convolution::new(g, &weights[1..], bias.clone()).is_err());
    assert!(Convolution::new(g, weights, bias[1..].to_vec()).is_err());
    let convolution = Convolution::new(g, weights, bias).unwrap();
    let mut output = vec![0.0; g.output_len()];
    assert!(convolution.run(&input[1..], &mut output, WHOLE).is_err());
    assert!(convolution.run(&input, &mut output[1..], WHOLE).is_err());
}
