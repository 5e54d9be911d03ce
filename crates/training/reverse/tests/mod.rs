//! Each operation's product of a vector and its Jacobian against central differences.

mod programs;

use super::*;

/// Numbers between −1 and 1, none near 0, no two alike.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |i: usize| {
        let whole = ((i + 1) * 7919 + seed * 104_729) % 2003;
        let number = whole as f32 / 1001.5 - 1.0;
        number + 0.05f32.copysign(number)
    };
    (0..count).map(number).collect()
}

/// Holds all gradients of an operation against central differences. `leaves` are its inputs.
fn check(operation: ReverseOperation, leaves: Vec<Vec<f32>>, output: usize) {
    let name = format!("{operation:?}");
    let count = leaves.len();
    let lens: Vec<usize> = leaves.iter().map(Vec::len).chain([output]).collect();
    let step = ProgramStep {
        operation,
        inputs: (0..count).collect(),
        output: count,
    };
    let learned: Vec<usize> = (0..count).collect();
    let program = ReverseProgram::new(lens, vec![step], vec![count], &learned).expect(&name);
    let slope = numbers(output, 5);
    let value = |leaves: &[Vec<f32>]| -> f64 {
        let slices: Vec<&[f32]> = leaves.iter().map(Vec::as_slice).collect();
        let run = program.forward(&slices, None, false);
        let products = run.value(count).iter().zip(&slope);
        products.map(|(y, slope)| f64::from(y * slope)).sum()
    };
    let slices: Vec<&[f32]> = leaves.iter().map(Vec::as_slice).collect();
    let run = program.forward(&slices, None, true);
    let gradients = program.backward(&slices, run, vec![(count, slope.clone())]);
    for leaf in 0..count {
        let gradient = gradients[leaf].as_ref().expect(&name);
        for place in 0..leaves[leaf].len() {
            let step = 2e-3;
            let [above, below] = [step, -step].map(|step| {
                let mut moved = leaves.clone();
                moved[leaf][place] += step;
                value(&moved)
            });
            let difference = (above - below) / (2.0 * f64::from(step));
            let error = (difference - f64::from(gradient[place])).abs();
            assert!(
                error < 4e-3 * (1.0 + difference.abs()),
                "{name}, leaf {leaf}, place {place}: {} against {difference}",
                gradient[place]
            );
        }
    }
}

fn axis(extent: usize, taps: usize, stride: usize, dilation: usize, pads: [i64; 2]) -> WindowAxis {
    let span = (dilation * (taps - 1) + 1) as i64;
    WindowAxis {
        extent,
        places: ((extent as i64 + pads[0] + pads[1] - span) / stride as i64 + 1) as usize,
        taps,
        stride,
        dilation,
        before: pads[0],
    }
}

/// Planes and windows of all kinds.
fn windows() -> Vec<PlaneWindows> {
    let none = WindowAxis::NONE;
    vec![
        PlaneWindows([none, none, axis(5, 1, 1, 1, [0, 0])]),
        PlaneWindows([none, axis(5, 3, 1, 1, [1, 1]), axis(4, 3, 1, 1, [1, 1])]),
        PlaneWindows([none, axis(7, 3, 2, 1, [0, 1]), axis(6, 2, 2, 2, [1, 1])]),
        PlaneWindows([
            axis(3, 2, 1, 1, [0, 1]),
            axis(4, 2, 2, 1, [0, 0]),
            axis(5, 3, 1, 2, [2, 2]),
        ]),
        // Values that no window reaches, and windows in the padding alone.
        PlaneWindows([none, none, axis(6, 2, 1, 1, [-1, -1])]),
        PlaneWindows([none, none, axis(3, 2, 1, 1, [3, 3])]),
    ]
}

#[test]
fn convolutions_of_all_kinds() {
    for windows in windows() {
        for (images, groups, channels, outputs) in
            [(2, 1, 3, 2), (1, 2, 2, 3), (2, 3, 1, 1), (1, 2, 1, 2)]
        {
            let of = PlaneConvolution {
                images,
                groups,
                channels,
                outputs,
                windows,
            };
            let leaves = vec![
                numbers(of.input_len(), 1),
                numbers(of.weights_len(), 2),
                numbers(groups * outputs, 3),
            ];
            let len = of.output_len();
            check(
                ReverseOperation::Convolution(of.clone()),
                leaves[..2].to_vec(),
                len,
            );
            check(ReverseOperation::Convolution(of), leaves, len);
        }
    }
}

#[test]
fn a_convolution_is_its_definition() {
    for windows in windows() {
        let of = PlaneConvolution {
            images: 2,
            groups: 2,
            channels: 2,
            outputs: 3,
            windows,
        };
        let (x, weights) = (numbers(of.input_len(), 1), numbers(of.weights_len(), 2));
        let mut y = vec![0.0; of.output_len()];
        of.forward(&x, &weights, None, &mut y);
        let [depth, height, width] = windows.0;
        let value = |axis: WindowAxis, place: usize, tap: usize| {
            let value = (place * axis.stride + tap * axis.dilation) as i64 - axis.before;
            (0..axis.extent as i64)
                .contains(&value)
                .then_some(value as usize)
        };
        for (at, &actual) in y.iter().enumerate() {
            let (plane, place) = (at / windows.places(), at % windows.places());
            let (image, output) = (plane / 6, plane % 6);
            let along = [
                place / width.places / height.places,
                place / width.places % height.places,
                place % width.places,
            ];
            let mut expected = 0.0;
            for channel in 0..2 {
                for tap in 0..windows.taps() {
                    let taps = [
                        tap / width.taps / height.taps,
                        tap / width.taps % height.taps,
                        tap % width.taps,
                    ];
                    let found = [depth, height, width].into_iter().zip(along).zip(taps);
                    let found: Option<Vec<usize>> = found
                        .map(|((axis, place), tap)| value(axis, place, tap))
                        .collect();
                    let Some(found) = found else { continue };
                    let at = (found[0] * height.extent + found[1]) * width.extent + found[2];
                    let plane = image * 4 + output / 3 * 2 + channel;
                    expected += x[plane * windows.plane() + at]
                        * weights[(output * 2 + channel) * windows.taps() + tap];
                }
            }
            assert!(
                (actual - expected).abs() < 1e-5,
                "{windows:?} {at}: {actual} {expected}"
            );
        }
    }
}

#[test]
fn products() {
    let of = RowProducts {
        count: 5,
        inputs: 4,
        outputs: 3,
    };
    let leaves = vec![numbers(20, 1), numbers(12, 2), numbers(3, 3)];
    check(ReverseOperation::Rows(of), leaves[..2].to_vec(), 15);
    check(ReverseOperation::Rows(of), leaves, 15);
    let pairs = vec![[0, 0], [1, 0], [0, 1]];
    let of = MatrixProducts {
        pairs,
        rows: 2,
        inner: 3,
        columns: 4,
    };
    check(
        ReverseOperation::Matrices(of),
        vec![numbers(12, 1), numbers(24, 2)],
        24,
    );
}

#[test]
fn functions_of_values() {
    let curves = [
        ScalarFunction::Sigmoid,
        ScalarFunction::Tanh,
        ScalarFunction::HardSigmoid(0.6, 0.5),
        ScalarFunction::HardSwish,
        ScalarFunction::Erf,
        ScalarFunction::Gelu,
        ScalarFunction::GeluTanh,
        ScalarFunction::Exp,
        ScalarFunction::Negative,
        ScalarFunction::Absolute,
        ScalarFunction::Softplus,
        ScalarFunction::Elu(0.7),
    ];
    for curve in curves {
        let mut x = numbers(40, 1);
        x.iter_mut().for_each(|x| *x *= 1.4);
        check(ReverseOperation::Curve(curve), vec![x], 40);
    }
    // Defined for positive values.
    for curve in [
        ScalarFunction::Log,
        ScalarFunction::Sqrt,
        ScalarFunction::Reciprocal,
        ScalarFunction::Power(1.7),
    ] {
        let x = numbers(40, 1).into_iter().map(|x| x.abs() + 0.5).collect();
        check(ReverseOperation::Curve(curve), vec![x], 40);
    }
    check(
        ReverseOperation::Clamp(-0.4637, 0.5671),
        vec![numbers(40, 1)],
        40,
    );
    check(ReverseOperation::Leaky(0.1), vec![numbers(70, 1)], 70);
    for of in [
        Pairwise::Add,
        Pairwise::Subtract,
        Pairwise::Multiply,
        Pairwise::Divide,
    ] {
        let divisor = numbers(10, 2)
            .into_iter()
            .map(|x| x + 1.0f32.copysign(x))
            .collect();
        check(
            ReverseOperation::Pairwise(of),
            vec![numbers(10, 1), divisor],
            10,
        );
    }
}

#[test]
fn operations_along_an_axis() {
    for (count, inner) in [(5, 1), (3, 4)] {
        check(
            ReverseOperation::Softmax(SoftmaxRows { count, inner }),
            vec![numbers(60, 1)],
            60,
        );
    }
    for centred in [true, false] {
        let of = Normalization {
            count: 6,
            epsilon: 1e-3,
            centred,
        };
        check(
            ReverseOperation::Normalization(of),
            vec![numbers(18, 1)],
            18,
        );
    }
}

#[test]
fn pools() {
    for windows in windows() {
        for counts in [
            Vec::new(),
            Pooling::mean(2, windows, true).counts,
            Pooling::mean(2, windows, false).counts,
        ] {
            let of = Pooling {
                planes: 2,
                windows,
                counts,
            };
            let (inputs, outputs) = (2 * windows.plane(), 2 * windows.places());
            // A maximum of padding alone is minus infinity, as in ONNX.
            let empty = Pooling::mean(1, windows, false).counts.contains(&0.0);
            if !(empty && of.counts.is_empty()) {
                check(
                    ReverseOperation::Pooling(of),
                    vec![numbers(inputs, 1)],
                    outputs,
                );
            }
        }
    }
}

#[test]
fn moved_values() {
    let places = vec![4, NOWHERE, 0, 0, 7, 9];
    let of = ValueGather {
        places: Some(places),
        constant: 2.5,
    };
    check(
        ReverseOperation::Gather(of.clone()),
        vec![numbers(4, 1), numbers(6, 2)],
        6,
    );
    let (mut y, values) = (vec![0.0; 6], numbers(10, 1));
    of.forward(&[&values[..4], &values[4..]], &mut y);
    assert_eq!(
        y,
        [values[4], 2.5, values[0], values[0], values[7], values[9]]
    );
    let of = ValueGather {
        places: None,
        constant: 0.0,
    };
    check(
        ReverseOperation::Gather(of),
        vec![numbers(4, 1), numbers(6, 2)],
        10,
    );
    let of = GroupedSums {
        places: vec![0, 1, 0, 2, 2, 2],
        factor: 0.5,
    };
    check(ReverseOperation::Sums(of), vec![numbers(6, 1)], 3);
}
