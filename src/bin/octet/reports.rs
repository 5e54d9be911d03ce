//! The files that tell of a run, for people and for other tools.

use std::path::{Path, PathBuf};

use clap::Args;
use octet::session::{Export, Session};

use super::{Failure, files};

/// Where they go. Each asks for a profile by itself.
#[derive(Args)]
pub struct ReportFiles {
    /// Where the report goes: model, environment, layers, comparison
    #[arg(long, value_name = "REPORT.yaml")]
    report: Option<PathBuf>,
    /// Where the same goes as one page that opens without a network
    #[arg(long, value_name = "REPORT.html")]
    html: Option<PathBuf>,
    /// Where the table of layers goes
    #[arg(long, value_name = "LAYERS.csv")]
    csv: Option<PathBuf>,
    /// Where the trace goes, for Perfetto or chrome://tracing
    #[arg(long, value_name = "TRACE.json")]
    trace: Option<PathBuf>,
    /// Where the profile goes for speedscope
    #[arg(long, value_name = "PROFILE.json")]
    speedscope: Option<PathBuf>,
    /// Where the node data goes for Model Explorer
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

    /// Whether any is wanted.
    pub fn any(&self) -> bool {
        self.report.is_some() || self.exports().next().is_some()
    }

    /// Whether one is wanted that needs times.
    pub fn need_profile(&self) -> bool {
        self.exports().any(|(_, _, kind)| kind != Export::Html)
    }

    /// That all can be written, found out before the work begins.
    pub fn check(&self) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            files::check_target(path, "--report")?;
        }
        self.exports()
            .try_for_each(|(path, option, _)| files::check_target(path, option))
    }

    /// Writes them.
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
