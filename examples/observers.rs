//! Measures the cost of observers in a calibration: `observers MODEL.onnx IN.npz ROUNDS`.
//!
//! Runs one sample on one thread in four alternating modes: nothing watched, minimum and maximum,
//! histogram too, channel means too. Writes medians to standard output as JSON: the milliseconds of
//! a run with minimum and maximum, and the ratios of neighbouring turns. `scripts/bench.mjs` makes
//! a table row of it.

use std::time::Instant;
use std::{env, error::Error, fs};

use octet::graph::{Model, tensor_type_of};
use octet::prepare::prepare;
use octet::quantize::{Plan, channel_axes};
use octet::runtime::Engine;
use octet::samples::{Encoded, InputSpec, SampleSettings, decode};
use octet::stats::TensorStatistics;
use octet_kernels::Extrema;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, input, rounds] = &arguments[..] else {
        return Err("observers MODEL.onnx IN.npz ROUNDS".into());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()?;
    let file = octet::onnx::read(fs::read(model)?.into())?;
    let model = prepare(Model::from_proto(file)?)?.model;
    let specs = model.graph.inputs.iter().filter_map(|value| {
        let declared = tensor_type_of(value)?;
        Some(InputSpec {
            name: value.name.clone()?,
            element: declared.element,
            shape: declared.shape.unwrap_or_default(),
        })
    });
    let sample = Encoded {
        name: input.clone(),
        parts: vec![(input.clone(), fs::read(input)?.into())],
    };
    let specs: Vec<InputSpec> = specs.collect();
    let tensors = decode(&sample, &specs, &SampleSettings::default())?;
    let watched = Plan::observed_values(&model)?;
    let axes = channel_axes(&model);
    let axes: Vec<Option<usize>> = watched.iter().map(|name| axes.get(name).copied()).collect();
    let (plain, watching) = (
        Engine::new(model.clone(), Vec::new()),
        Engine::new(model, watched.clone()),
    );
    let mut ends = [f32::INFINITY, f32::NEG_INFINITY];
    // 0: nothing, 1: minimum and maximum, 2: histogram, 3: channel means.
    let mut run = |observers: usize| -> Result<f64, Box<dyn Error>> {
        let mut seen = vec![TensorStatistics::new(); watched.len()];
        let began = Instant::now();
        let see = |slot: usize, values: &[f32], shape: &[usize]| {
            if observers == 1 {
                let [least, greatest, _] = Extrema::of(values).reach;
                ends = [ends[0].min(least), ends[1].max(greatest)];
                return;
            }
            seen[slot].observe(values);
            if let Some(axis) = axes[slot].filter(|_| observers == 3) {
                seen[slot].observe_channel_means(values, shape, axis);
            }
        };
        let engine = if observers == 0 { &plain } else { &watching };
        engine.run_shaped(&tensors, see, || false)?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    };
    for observers in 0..4 {
        run(observers)?;
    }
    let mut turns: Vec<[f64; 4]> = Vec::new();
    for _ in 0..rounds.parse()? {
        let mut turn = [0.0; 4];
        for (observers, time) in turn.iter_mut().enumerate() {
            *time = run(observers)?;
        }
        turns.push(turn);
    }
    let of = |value: &dyn Fn(&[f64; 4]) -> f64| median(turns.iter().map(value).collect());
    println!(
        "{{\"ms\": {:.2}, \"nothing\": {:.4}, \"histograms\": {:.4}, \"means\": {:.4}}}",
        of(&|turn| turn[1]),
        of(&|turn| turn[0] / turn[1]),
        of(&|turn| turn[2] / turn[1]),
        of(&|turn| turn[3] / turn[2]),
    );
    if ends[0] > ends[1] {
        return Err("nothing was watched".into());
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
