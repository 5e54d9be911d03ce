//! Report files of a run, for people and for other tools.

use std::path::{Path, PathBuf};

use clap::Args;
use octet::session::{Export, Session};

use super::{Failure, files};

/// Options for the report files. Each of them implies profiling.
#[derive(Args)]
pub struct ReportFiles {
    /// Write the report: model, environment, layers, comparison
    #[arg(long, value_name = "REPORT.yaml")]
    report: Option<PathBuf>,
    /// Write the report as one HTML page that opens offline
    #[arg(long, value_name = "REPORT.html")]
    html: Option<PathBuf>,
    /// Write the table of layers
    #[arg(long, value_name = "LAYERS.csv")]
    csv: Option<PathBuf>,
    /// Write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "TRACE.json")]
    trace: Option<PathBuf>,
    /// Write a profile for speedscope
    #[arg(long, value_name = "PROFILE.json")]
    speedscope: Option<PathBuf>,
    /// Write node data for Model Explorer
    #[arg(long, value_name = "DATA.json")]
    model_explorer: Option<PathBuf>,
}

impl ReportFiles {
    fn exports(&self) -> impl Iterator<Item = (&Path, &'static str, Export)> {
        let all = [
            (&self.html, "--html", Export::Html),
            (&self.csv, "--csv", Export::Csv),
            (&self.trace, "--trace", Export::Trace),
            (&self.speedscope, "--speedscope", Export::Speedscope),
            (
                &self.model_explorer,
                "--model-explorer",
                Export::ModelExplorer,
            ),
        ];
        all.into_iter()
            .filter_map(|(path, option, kind)| Some((path.as_deref()?, option, kind)))
    }

    /// True if any file is requested.
    pub fn any(&self) -> bool {
        self.report.is_some() || self.exports().next().is_some()
    }

    /// True if a file is requested that contains times.
    pub fn need_profile(&self) -> bool {
        self.exports().any(|(_, _, kind)| kind != Export::Html)
    }

    /// Checks before the work begins that all of them can be written.
    pub fn check(&self) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            files::check_target(path, "--report")?;
        }
        self.exports()
            .try_for_each(|(path, option, _)| files::check_target(path, option))
    }

    /// Writes all of them.
    pub fn write(&self, session: &Session) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            files::write(path, &[session.report()], "--report")?;
        }
        for (path, option, kind) in self.exports() {
            files::write(path, &[session.export(kind)?], option)?;
        }
        Ok(())
    }
}
