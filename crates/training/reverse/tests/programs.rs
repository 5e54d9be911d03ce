//! Programs: fake quantization, mixtures, memory, and values that are read twice.

use super::super::*;
use super::{axis, numbers};
use crate::{QuantizationGrid, mask_len};

#[test]
fn fake_quantization_passes_inside_and_teaches_its_scale() {
    let of = FakeQuantize { low: -4, high: 3 };
    let scale = 0.2;
    let x = numbers(50, 1);
    let steps = vec![ProgramStep {
        operation: ReverseOperation::FakeQuantize(of),
        inputs: vec![0, 1],
        output: 2,
    }];
    let program = ReverseProgram::new(vec![50, 1, 50], steps, vec![2], &[0, 1]).unwrap();
    let leaves: [&[f32]; 2] = [&x, &[scale]];
    let mixture = Mixture {
        seed: 3,
        rounded: 128,
    };
    for mixture in [None, Some(mixture)] {
        let run = program.forward(&leaves, mixture, true);
        let y = run.value(2).to_vec();
        let slope = numbers(50, 5);
        let gradients = program.backward(&leaves, run, vec![(2, slope.clone())]);
        let (mut by_scale, mut rounded) = (0.0, 0);
        for place in 0..50 {
            let steps = x[place] / scale;
            let whole = steps.round_ties_even();
            let inside = (-4.0..=3.0).contains(&whole);
            let clamped = steps.clamp(-4.0, 3.0);
            let is_rounded = y[place] == whole.clamp(-4.0, 3.0) * scale;
            assert!(is_rounded || mixture.is_some() && (y[place] - clamped * scale).abs() < 1e-6);
            rounded += usize::from(is_rounded && inside);
            by_scale += slope[place] * (y[place] / scale - if inside { steps } else { 0.0 });
            let by_x = gradients[0].as_ref().unwrap()[place];
            assert_eq!(by_x, if inside { slope[place] } else { 0.0 });
        }
        let actual = gradients[1].as_ref().unwrap()[0];
        assert!((actual - by_scale).abs() < 1e-4, "{actual} {by_scale}");
        let all = x
            .iter()
            .filter(|x| (-4.5 * scale..3.5 * scale).contains(x))
            .count();
        match mixture {
            None => assert_eq!(rounded, all),
            Some(_) => assert!(
                (all / 4..3 * all / 4 + 1).contains(&rounded),
                "{rounded} of {all}"
            ),
        }
    }
    assert!(QuantizationGrid::new(scale, of.low, of.high).is_some());
}

#[test]
fn a_mixture_has_its_share_and_depends_on_seed_and_place() {
    let drawn = |mixture: Mixture| {
        let mut values = vec![1.0; 4001];
        mixture.mix(&mut values, |_| 0.0);
        values
    };
    let half = Mixture {
        seed: 9,
        rounded: 128,
    };
    let share = drawn(half).iter().sum::<f32>() / 4001.0;
    assert!((share - 0.5).abs() < 0.03, "{share}");
    assert_eq!(drawn(half), drawn(half));
    assert_ne!(drawn(half), drawn(half.at(1)));
    assert_ne!(drawn(half), drawn(Mixture { seed: 10, ..half }));
    assert_eq!(
        drawn(Mixture {
            rounded: 256,
            ..half
        }),
        vec![1.0; 4001]
    );
    assert_eq!(drawn(Mixture { rounded: 0, ..half }), vec![0.0; 4001]);
}

/// y = Clip(conv(fq(x))) + fq(x), whose fake-quantized value is read twice.
fn residual(fake: bool) -> (ReverseProgram, Vec<Vec<f32>>) {
    let windows = PlaneWindows([
        WindowAxis::NONE,
        axis(16, 3, 1, 1, [1, 1]),
        axis(16, 3, 1, 1, [1, 1]),
    ]);
    let of = PlaneConvolution {
        images: 1,
        groups: 1,
        channels: 4,
        outputs: 4,
        windows,
    };
    let rounding = |fake| match fake {
        true => (
            ReverseOperation::FakeQuantize(FakeQuantize {
                low: -100,
                high: 100,
            }),
            2,
        ),
        false => (
            ReverseOperation::Gather(ValueGather {
                places: None,
                constant: 0.0,
            }),
            1,
        ),
    };
    let step = |(operation, inputs): (ReverseOperation, Vec<usize>), output| ProgramStep {
        operation,
        inputs,
        output,
    };
    let rounded = |from: usize, output| {
        let (operation, inputs) = rounding(fake);
        step((operation, [from, 3][..inputs].to_vec()), output)
    };
    let len = 4 * 256;
    let steps = vec![
        step(
            (ReverseOperation::Convolution(of.clone()), vec![0, 1, 2]),
            4,
        ),
        rounded(4, 5),
        step((ReverseOperation::Convolution(of), vec![5, 1, 2]), 6),
        step((ReverseOperation::Clamp(0.0, 2.0), vec![6]), 7),
        rounded(7, 8),
        step((ReverseOperation::Pairwise(Pairwise::Add), vec![8, 5]), 9),
    ];
    let lens = vec![len, 144, 4, 1, len, len, len, len, len, len];
    let leaves = vec![numbers(len, 1), numbers(144, 2), numbers(4, 3), vec![0.05]];
    (
        ReverseProgram::new(lens, steps, vec![9], &[1, 2]).unwrap(),
        leaves,
    )
}

#[test]
fn values_that_are_read_twice_add_their_gradients() {
    let (program, leaves) = residual(false);
    let slices: Vec<&[f32]> = leaves.iter().map(Vec::as_slice).collect();
    let run = program.forward(&slices, None, true);
    let ones = vec![1.0; program.len_of(9)];
    let gradients = program.backward(&slices, run, vec![(9, ones)]);
    for (leaf, place) in [(1, 0), (1, 77), (2, 3)] {
        let value = |step: f32| -> f64 {
            let mut moved = leaves.clone();
            moved[leaf][place] += step;
            let slices: Vec<&[f32]> = moved.iter().map(Vec::as_slice).collect();
            let run = program.forward(&slices, None, false);
            run.value(9).iter().map(|&y| f64::from(y)).sum()
        };
        let difference = (value(2e-4) - value(-2e-4)) / 4e-4;
        let actual = f64::from(gradients[leaf].as_ref().unwrap()[place]);
        assert!(
            (actual - difference).abs() < 1e-2 * difference.abs(),
            "{actual} {difference}"
        );
    }
}

/// Fake quantization adds one bit a value to what a float step keeps: at most 7 % in all.
#[test]
fn masks_are_one_bit_a_value() {
    let kept = |fake: bool| {
        let (program, leaves) = residual(fake);
        let slices: Vec<&[f32]> = leaves.iter().map(Vec::as_slice).collect();
        let run = program.forward(&slices, None, true);
        (run.value_bytes(), run.mask_bytes())
    };
    let ((floats, clamp), (values, masks)) = (kept(false), kept(true));
    // The clamp alone, and the clamp with two roundings.
    assert_eq!(clamp, mask_len(4 * 256) * 4);
    assert_eq!(masks, 3 * clamp);
    assert_eq!(values, floats);
    let overhead = (values + masks) as f64 / (floats + clamp) as f64 - 1.0;
    assert!(overhead < 0.07, "{overhead}");
}

#[test]
fn programs_that_do_not_fit_are_refused() {
    let curve = |inputs: Vec<usize>, output| ProgramStep {
        operation: ReverseOperation::Curve(ScalarFunction::Exp),
        inputs,
        output,
    };
    let made = |lens: &[usize], steps, outputs| {
        ReverseProgram::new(lens.to_vec(), steps, outputs, &[0]).is_some()
    };
    assert!(made(&[3, 3], vec![curve(vec![0], 1)], vec![1]));
    assert!(!made(&[3, 4], vec![curve(vec![0], 1)], vec![1]));
    assert!(!made(&[3, 3], vec![curve(vec![0], 1)], vec![2]));
    assert!(!made(&[3, 3], vec![curve(vec![1], 1)], vec![1]));
    assert!(!made(
        &[3, 3, 3],
        vec![curve(vec![2], 1), curve(vec![0], 2)],
        vec![1]
    ));
    assert!(!made(&[3, 3], vec![curve(vec![0, 0], 1)], vec![1]));
    let shares = FakeQuantize { low: 0, high: 1 };
    let step = ProgramStep {
        operation: ReverseOperation::FakeQuantize(shares),
        inputs: vec![0, 0],
        output: 1,
    };
    assert!(!made(&[3, 3], vec![step], vec![1]));
}
