//! `octet run`: one inference, and the time of each layer.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use octet::profile::columns::{self, Column};
use octet::profile::{LayerTable, Repeats, text};
use octet::runtime::FloatKernels;
use octet::samples;
use octet::tensor::Tensor;

use super::images::ImageOptions;
use super::reports::ReportFiles;
use super::samples::Samples;
use super::texts::TextOptions;
use super::{Failure, files, messages, open, threads};

#[derive(Args)]
pub struct RunOptions {
    /// The model, float or quantized; external data files beside it are found automatically
    model: PathBuf,
    /// The sample: .npz (arrays named by input), .npy, test_data_set_N/input_K.pb, pictures
    /// (.png, .jpg, .webp, .bmp, .gif), .wav or texts (.txt, .jsonl, .csv); the first one of several
    #[arg(long, visible_alias = "input", aliases = ["calib", "data"], value_name = "PATH", num_args = 1.., required_unless_present = "demo")]
    samples: Vec<PathBuf>,
    /// Use a random sample instead
    #[arg(long, conflicts_with = "samples")]
    demo: bool,
    /// Time each layer and print the table
    #[arg(long)]
    profile: bool,
    /// Run N times more with the plan of the first run, and print the times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with_all = ["profile", "overhead"])]
    repeat: Option<u32>,
    /// Measure the overhead of profiling, from N pairs of runs with and without it
    #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    overhead: Option<u16>,
    /// Sort the rows by this column [default: execution order]
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    sort: Option<Column>,
    /// Show one row per operator instead of one per layer
    #[arg(long, value_enum, default_value = "none")]
    group: Grouping,
    /// Number of measured runs
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    runs: u16,
    /// Number of warm-up runs before them
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(0..=1000))]
    warm_up: u16,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Kernels for float convolutions, octet or tract [default: the faster ones, which are tract's
    /// on this platform]
    #[arg(long, value_name = "WHOSE")]
    float_kernels: Option<FloatKernels>,
    #[command(flatten)]
    files: ReportFiles,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    texts: TextOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grouping {
    None,
    Operator,
}

fn column(name: &str) -> Result<Column, String> {
    Column::named(name).ok_or_else(|| {
        let names = Column::ALL.map(Column::name).join(", ");
        format!("there is no such column: choose one of {names}")
    })
}

/// Runs the command.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    options.files.check()?;
    threads::start(options.threads)?;
    let settings = samples::SampleSettings {
        demo: options.demo,
        ..options.images.settings()?
    };
    let mut session = open::open(&options.model)?;
    let (settings, proposed) = options.images.proposed(&session, None, settings)?;
    let named = |error: octet::session::Error| Failure::from(error).about(options.model.display());
    let samples = Samples::new(&options.samples, options.demo.then_some(1))?;
    let samples = samples.tokenized(&session, &options.model, &options.texts)?;
    let Some(sample) = samples.each(&session).next().transpose()? else {
        return Err(Failure::usage(
            "no sample was given; name one with --samples, or try --demo",
        ));
    };
    if let Some(proposed) = proposed.filter(|_| samples.have_pictures()) {
        messages::note(&proposed);
    }
    let inputs = session.decode(&sample, &settings)?;
    let kernels = options.float_kernels;
    if let Some(pairs) = options.overhead {
        let runner = session.runner().map_err(named)?.with_float_kernels(kernels);
        let share = runner.overhead(&inputs, pairs.into(), &()).map_err(named)?;
        return files::print(&format!(
            "profiling adds {:.2} % to a run, the median of {pairs} pairs\n",
            share * 100.0
        ));
    }
    if let Some(runs) = options.repeat {
        if options.files.any() {
            return Err(Failure::usage(
                "--repeat measures no layers, which a report needs; use --profile with --runs",
            ));
        }
        let runner = session.runner().map_err(named)?.with_float_kernels(kernels);
        let repeated = runner.repeat(&inputs, runs as usize, &()).map_err(named)?;
        let mut out = describe_outputs(&repeated.outputs)?;
        let total = &repeated.total;
        writeln!(
            out,
            "\n{:.3} ms per run (median of {runs}; 10 % below {:.3}, 90 % below {:.3}); the first took {:.3} ms with its plan",
            total.median, total.p10, total.p90, repeated.first_ms
        )?;
        return files::print(&out);
    }
    let profiled = options.profile || options.files.any();
    if !profiled {
        let outputs = session
            .runner()
            .and_then(|runner| runner.with_float_kernels(kernels).run(&inputs, &()))
            .map_err(named)?;
        return files::print(&describe_outputs(&outputs)?);
    }
    let repeats = Repeats {
        runs: options.runs.into(),
        warm_up: options.warm_up.into(),
    };
    let profile = session
        .profile(&inputs, repeats, kernels, &())
        .map_err(named)?;
    options.files.write(&session)?;
    let mut out = describe_outputs(&profile.outputs)?;
    writeln!(out)?;
    out.push_str(&text::rows(&rows(options, &profile.table)));
    writeln!(out)?;
    out.push_str(&text::summary(&profile.table));
    files::print(&out)
}

fn rows(options: &RunOptions, table: &LayerTable) -> Vec<octet::profile::Layer> {
    let mut layers = match options.group {
        Grouping::None => table.layers.clone(),
        Grouping::Operator => columns::by_operator(table),
    };
    if let Some(column) = options.sort {
        columns::sort(&mut layers, column);
    }
    layers
}

/// Type, shape and statistics of the outputs.
fn describe_outputs(outputs: &[(String, Tensor)]) -> Result<String, Failure> {
    let mut out = String::new();
    for (name, tensor) in outputs {
        let seen = samples::describe(tensor);
        let shape: Vec<String> = seen.shape.iter().map(ToString::to_string).collect();
        write!(out, "{name}: {} {}", seen.element, shape.join("×"))?;
        if let (Some(min), Some(max), Some(mean)) = (seen.min, seen.max, seen.mean) {
            write!(out, ", from {min:.6} to {max:.6}, mean {mean:.6}")?;
        }
        writeln!(out)?;
    }
    Ok(out)
}
