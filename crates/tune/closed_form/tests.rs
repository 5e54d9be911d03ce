//! Tests of the closed form.

use super::*;
use crate::activation::LayerFunction;
use crate::inputs::LayerInputs;
use crate::problem::{PositionRows, product};

fn values(count: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| (((i + 1) * 7919 * (seed + 3)) % 2003) as f32 / 1000.0 - 1.0;
    (0..count).map(value).collect()
}

/// A layer whose inputs are rounded coarsely and go together.
fn problem(groups: usize, inputs: usize, outputs: usize, bias: bool) -> LayerProblem {
    let rows = |count: usize, seed: usize| {
        let (common, own) = (
            values(count, seed),
            values(groups * inputs * count, seed + 1),
        );
        let float = |at: usize| common[at % count] + 0.4 * own[at] + 0.3;
        let floats: Vec<f32> = (0..own.len()).map(float).collect();
        let word = |value: &f32| ((value * 4.0).round() + 100.0) as u16;
        let rounded = floats.iter().map(word).collect();
        let weights = values(groups * outputs * inputs, 9);
        let mut wanted = vec![0.0; groups * outputs * count];
        for group in 0..groups {
            let x = &floats[group * inputs * count..][..inputs * count];
            let weights = &weights[group * outputs * inputs..][..outputs * inputs];
            let out = &mut wanted[group * outputs * count..][..outputs * count];
            product(weights, x, (outputs, inputs, count), out).unwrap();
        }
        PositionRows {
            count,
            inputs: LayerInputs::words(rounded, (0.25, 100), count),
            wanted,
        }
    };
    LayerProblem {
        groups,
        inputs,
        outputs,
        taught: rows(1200, 1),
        judged: rows(400, 5),
        weights: values(groups * outputs * inputs, 9),
        bias: bias.then(|| vec![0.0; groups * outputs]),
        activation: LayerFunction::Identity,
        output: None,
    }
}

fn nearest(problem: &LayerProblem, scale: f32) -> Solution {
    let integer = |weight: &f32| ((weight / scale).round_ties_even() as i32).clamp(-8, 7);
    Solution {
        integers: problem.weights.iter().map(integer).collect(),
        scales: vec![scale; problem.groups * problem.outputs],
        bias: problem.bias.clone(),
    }
}

fn total(problem: &LayerProblem, rows: &PositionRows, solution: &Solution) -> f64 {
    problem.losses(rows, solution).unwrap().iter().sum()
}

#[test]
fn each_freedom_lowers_the_error_on_other_positions() {
    for (groups, inputs, outputs, bias) in [(1, 24, 20, true), (1, 600, 5, false), (6, 9, 1, true)]
    {
        let problem = problem(groups, inputs, outputs, bias);
        let start = nearest(&problem, 0.15);
        let closed_form = ClosedForm::new(&problem, [-8, 7], &[0], true).unwrap();
        let solved = |shift, scales, refit| {
            let freedom = Freedom {
                shift,
                scales,
                refit,
            };
            closed_form.solve(&start, freedom).unwrap()
        };
        // With two positions for each input, other positions gain nothing; two blocks of inputs
        // still have to fit those that teach.
        let rows = match inputs {
            600 => &problem.taught,
            _ => &problem.judged,
        };
        let error = |solution: &Solution| total(&problem, rows, solution);
        let before = error(&start);
        let symmetric = error(&solved(0.0, false, false));
        let asymmetric = error(&solved(1.0, false, false));
        let all = error(&solved(1.0, true, true));
        assert!(symmetric < before, "{inputs}: {symmetric} {before}");
        assert!(all < before, "{inputs}: {all} {before}");
        if inputs != 9 {
            assert!(asymmetric < symmetric, "{inputs}: {asymmetric} {symmetric}");
        }
    }
}

#[test]
fn all_numbers_of_threads_give_the_same_solution() {
    let problem = problem(2, 40, 33, true);
    let start = nearest(&problem, 0.15);
    let freedom = Freedom {
        shift: 1.0,
        scales: true,
        refit: true,
    };
    let solved = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let closed_form = ClosedForm::new(&problem, [-8, 7], &[0], true).unwrap();
            closed_form.solve(&start, freedom).unwrap()
        })
    };
    let one = solved(1);
    assert_eq!(one, solved(2));
    assert_eq!(one, solved(5));
}

#[test]
fn the_refit_finds_gain_and_bias() {
    let made = values(300, 2);
    let wanted: Vec<f32> = made.iter().map(|value| 1.25 * value + 0.5).collect();
    let residual: Vec<f32> = wanted
        .iter()
        .zip(&made)
        .map(|(wanted, made)| wanted - made)
        .collect();
    let mut solution = Solution {
        integers: vec![],
        scales: vec![2.0],
        bias: Some(vec![0.0]),
    };
    refit(&mut solution, &residual, &wanted, Some(&[0.0]));
    assert!((solution.scales[0] - 2.5).abs() < 1e-4);
    assert!((solution.bias_of(0) - 0.5).abs() < 1e-4);
}
