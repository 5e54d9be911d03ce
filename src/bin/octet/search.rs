//! `octet search`: the bits of each tensor under a budget.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use octet::profile::Section;
use octet::profile::yaml;
use octet::quantize::Settings;
use octet::search::{
    Amount, Bits, Budget, BudgetSearch, Half, Metric, Prefer, SearchOptions, Sensitivities,
};
use octet::session::{Error, ErrorKind, Session};
use octet::tensor::Tensor;
use octet_host::time::Instant;

use super::images::ImageOptions;
use super::progress::Progress;
use super::samples::BadSampleOptions;
use super::search_samples::SearchSamples;
use super::search_shards::SearchShardOptions;
use super::settings::SettingsOptions;
use super::texts::TextOptions;
use super::{
    Failure, calibration, files, messages, open, search_shards, search_table, targets, threads,
};

#[derive(Args)]
pub struct SearchCommand {
    /// The float model
    pub model: PathBuf,
    /// Samples, as for `octet quantize`: one half calibrates and chooses, the other verifies
    #[arg(long, visible_alias = "calib", aliases = ["data", "input"], value_name = "PATH", num_args = 1.., required = true)]
    pub samples: Vec<PathBuf>,
    /// Samples that verify, in place of a half of --samples
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub verify: Vec<PathBuf>,
    /// Limit that the result must keep: accuracy=0.5%, kl=0.01, sqnr=30, bytes=4MB, bytes=30%, time=60%,
    /// time=12ms or wide=8 (tensors with more than 8 bits)
    #[arg(long, value_name = "BUDGET")]
    budget: String,
    /// Class labels: lines of `SAMPLE,CLASS` with the sample's name or path and the class number
    #[arg(long, value_name = "LABELS.csv")]
    pub labels: Option<PathBuf>,
    /// The measure of the error [default: by the budget, the labels and the outputs]
    #[arg(long, value_enum, value_name = "METRIC")]
    metric: Option<MetricName>,
    /// The bits that a weight may get
    #[arg(long, value_name = "BITS", default_value = "4,8,16,float")]
    weight_bits: String,
    /// The bits that an activation may get
    #[arg(long, value_name = "BITS", default_value = "8,16,float")]
    activation_bits: String,
    /// Cost that counts among choices with equal noise
    #[arg(long, value_enum, value_name = "COST", default_value = "both")]
    prefer: PreferName,
    /// Number of tensors that are measured on all these samples, the worst ones, or `all`; the others are measured on
    /// the first sample
    #[arg(long, value_name = "N", default_value = "30")]
    exact: String,
    /// Number of samples on which sensitivities are measured
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    measure: u32,
    /// Measure the times of layers on this machine; without it, times come from a model of costs
    #[arg(long)]
    pub profile: bool,
    /// Draws the halves of --samples anew
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    /// Use the sensitivities of this file in place of a measurement
    #[arg(long, value_name = "FILE.json")]
    pub sensitivities: Option<PathBuf>,
    /// Save the sensitivities to this file; it can be edited and read again
    #[arg(long, value_name = "FILE.json")]
    pub save_sensitivities: Option<PathBuf>,
    /// Save the settings of the chosen point, for `octet quantize --config`
    #[arg(long, value_name = "SETTINGS.yaml")]
    pub save_settings: Option<PathBuf>,
    /// File of the quantized model of the chosen point
    #[arg(long, value_name = "OUT.onnx")]
    pub out: Option<PathBuf>,
    /// File of the report: the curve, the choice, the verdict
    #[arg(long, value_name = "REPORT.yaml")]
    pub report: Option<PathBuf>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
    /// Print when each stage begins
    #[arg(long)]
    pub verbose: bool,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub shards: SearchShardOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    #[command(flatten)]
    pub bad: BadSampleOptions,
    #[command(flatten)]
    pub images: ImageOptions,
    #[command(flatten)]
    pub texts: TextOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum MetricName {
    Labels,
    Agreement,
    Kl,
    Sqnr,
}

#[derive(Clone, Copy, ValueEnum)]
enum PreferName {
    Both,
    Size,
    Time,
}

impl SearchCommand {
    fn options(&self) -> Result<SearchOptions, Failure> {
        let budget: Budget = self
            .budget
            .parse()
            .map_err(|error| Failure::usage(format!("--budget: {error}")))?;
        if matches!(budget, Budget::Time(Amount::Absolute(_))) && !self.profile {
            return Err(Failure::usage(
                "--budget: milliseconds need measured times; add --profile, or give a share such as time=60%",
            ));
        }
        let list = |text: &str, option: &str| -> Result<Vec<Bits>, Failure> {
            let all = text.split(',').map(str::parse::<Bits>);
            all.collect::<Result<_, _>>()
                .map_err(|error| Failure::usage(format!("{option}: {error}")))
        };
        let exact = match self.exact.as_str() {
            "all" => usize::MAX,
            number => number.parse().map_err(|_| {
                Failure::usage(format!(
                    "--exact: `{number}` is not a number of tensors or `all`"
                ))
            })?,
        };
        let sensitivities = match &self.sensitivities {
            Some(path) => {
                let text =
                    String::from_utf8_lossy(&files::read(path, "sensitivities")?).into_owned();
                let named = |error| Failure::input(format!("{}: {error}", path.display()));
                Some(Sensitivities::read(&text).map_err(named)?)
            }
            None => None,
        };
        Ok(SearchOptions {
            metric: self.metric.map(|metric| match metric {
                MetricName::Labels => Metric::Labels,
                MetricName::Agreement => Metric::Agreement,
                MetricName::Kl => Metric::Kl,
                MetricName::Sqnr => Metric::Sqnr,
            }),
            weights: list(&self.weight_bits, "--weight-bits")?,
            activations: list(&self.activation_bits, "--activation-bits")?,
            exact,
            measured: self.measure as usize,
            prefer: match self.prefer {
                PreferName::Both => Prefer::Both,
                PreferName::Size => Prefer::Size,
                PreferName::Time => Prefer::Time,
            },
            sensitivities,
            ..SearchOptions::new(budget)
        })
    }
}

/// A search that is prepared: the model is open, and the samples are listed and halved.
pub struct SearchJob<'a> {
    pub command: &'a SearchCommand,
    pub options: SearchOptions,
    pub settings: Settings,
    pub session: Session,
    pub samples: SearchSamples<'a>,
    pub threads: usize,
    pub progress: Progress,
    began: Instant,
}

/// Runs the command.
pub fn run(command: &SearchCommand) -> Result<(), Failure> {
    command.shards.check(command)?;
    let job = SearchJob::open(command)?;
    match command.shards.are_used() {
        true => search_shards::run(job),
        false => job.whole(),
    }
}

impl SearchJob<'_> {
    fn open(command: &SearchCommand) -> Result<SearchJob<'_>, Failure> {
        let options = command.options()?;
        let settings = command.settings.document()?;
        let outputs = [
            (&command.out, "--out"),
            (&command.report, "--report"),
            (&command.save_settings, "--save-settings"),
            (&command.save_sensitivities, "--save-sensitivities"),
            (command.shards.save_stats(), "--save-stats"),
        ];
        let outputs: Vec<(&Path, &str)> = outputs
            .into_iter()
            .filter_map(|(path, option)| Some((path.as_deref()?, option)))
            .collect();
        targets::check(&outputs, &command.model, &[])?;
        let threads = threads::start(command.threads)?;
        let progress = Progress::reading(&command.model);
        let mut session = open::open(&command.model)?;
        targets::check(
            &outputs,
            &command.model,
            &open::data(&command.model, &session),
        )?;
        let refused = session.refuse_quantized();
        refused.map_err(|error| named(command, error))?;
        let began = Instant::now();
        let (samples, proposed) = SearchSamples::read(command, &settings, &mut session)?;
        progress.set_length(samples.count() as u64);
        if let Some(proposed) = proposed {
            progress.note(&proposed);
        }
        if let Some(note) = samples.left_out() {
            progress.note(&note);
        }
        Ok(SearchJob {
            command,
            options,
            settings,
            session,
            samples,
            threads,
            progress,
            began,
        })
    }

    /// Searches in this process.
    fn whole(mut self) -> Result<(), Failure> {
        let command = self.command;
        let named = |error| named(command, error);
        let session = &mut self.session;
        self.progress.stage("Calibrating");
        session.equalize(self.settings.equalizes());
        let begun = session.begin_calibration(self.samples.reading.clone());
        begun.map_err(named)?;
        let method = self.settings.method.unwrap_or_default();
        let samples = self.samples.half(Half::Choosing);
        let feed = |session: &mut Session| {
            calibration::feed(
                session,
                samples,
                self.threads,
                &self.progress,
                named,
                |_| {},
                |_, _| Ok(()),
            )
        };
        feed(session)?;
        while session
            .begin_extra_pass(method, self.settings.needs_gram_matrices())
            .map_err(named)?
        {
            self.progress.stage("Extra pass");
            feed(session)?;
        }
        session.finish_calibration(method).map_err(named)?;
        let choosing = self.samples.decoded(session, Half::Choosing)?;
        let held = self.samples.decoded(session, Half::Held)?;
        let profiled = choosing.first().filter(|_| command.profile);
        let profiled = profiled.map(|sample| sample.inputs.clone());
        let options = self.options.clone();
        let mut search = session
            .begin_search(&self.settings, options, choosing, held)
            .map_err(named)?;
        self.steps(&mut search, profiled.as_deref())?;
        self.finish(&search)
    }

    /// Makes the steps of a search, and tells its stages.
    pub fn steps(
        &mut self,
        search: &mut BudgetSearch,
        profiled: Option<&[Tensor]>,
    ) -> Result<(), Failure> {
        let mut stage = "";
        loop {
            let now = search.progress();
            if now.stage != stage {
                stage = now.stage;
                let line = format!("{stage}, after {:.1} s", self.began.elapsed().as_secs_f64());
                match self.command.verbose {
                    true => messages::line(&line),
                    false => self.progress.tell(&line),
                }
            }
            let more = self.session.search_step(search, profiled, &self.progress);
            if !more.map_err(|error| named(self.command, error))? {
                break;
            }
        }
        self.progress.clear();
        Ok(())
    }

    /// Writes the files of a search that is done, and prints its result.
    pub fn finish(&mut self, search: &BudgetSearch) -> Result<(), Failure> {
        let (command, session) = (self.command, &mut self.session);
        let name = session.summary().name.clone();
        if let (Some(path), Some(file)) = (&command.save_sensitivities, search.sensitivities(&name))
        {
            files::write(path, &[file.text()?], "--save-sensitivities")?;
        }
        let Some((result, _)) = search.result() else {
            return Err(Failure::unfinished(
                "the search ended without a result; start it again",
            ));
        };
        if let Some(path) = &command.save_settings {
            files::write(path, &[search_table::document(result)?], "--save-settings")?;
        }
        if let Some(out) = &command.out {
            let quantized = session.quantize(&result.settings);
            let quantized = quantized.map_err(|error| named(command, error))?;
            files::write(out, quantized.model.as_slice(), "--out")?;
        }
        if let Some(path) = &command.report {
            let section = Section::new("search", "The search under a budget.", result);
            files::write(path, &[yaml::sections(&[section])], "--report")?;
        }
        files::print(&match command.json {
            true => serde_json::to_string_pretty(result)? + "\n",
            false => search_table::table(result)?,
        })
    }
}

/// The failure of an error, prefixed with the model's path. Errors of a sample name the sample
/// already.
pub fn named(command: &SearchCommand, error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Sample => Failure::from(error),
        _ => Failure::from(error).about(command.model.display()),
    }
}
