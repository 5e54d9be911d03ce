//! Export of measurements to files for other tools and for people.

use serde::Deserialize;

use super::html_report::{self, HtmlReport};
use super::stored_profile::StoredProfile;
use super::{Error, OrderError, Session};
use crate::profile::text;
use crate::profile::trace::{self, Traced};

/// Format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Export {
    /// The layer table as CSV.
    Csv,
    /// Chrome trace events, for Perfetto.
    Trace,
    /// Profile for speedscope.
    Speedscope,
    /// Node data for Model Explorer.
    ModelExplorer,
    /// Self-contained HTML report.
    Html,
}

impl Session {
    /// Writes one export. All formats but HTML need a profile. With several profiles, the formats
    /// of one table use the first.
    pub fn export(&self, kind: Export) -> Result<String, Error> {
        if kind == Export::Html {
            let yaml = self.report();
            return Ok(html_report::write(&HtmlReport {
                summary: self.summary(),
                profiles: &self.profiles,
                comparison: self.comparisons.latest(),
                yaml: &yaml,
            }));
        }
        let first = self.profiles.first().ok_or(OrderError::NotProfiled)?;
        let traced: Vec<Traced<'_>> = self.profiles.iter().map(StoredProfile::traced).collect();
        Ok(match kind {
            Export::Trace => trace::chrome(self.journal.profiler.records(), &traced),
            Export::Speedscope => trace::speedscope(&traced),
            Export::ModelExplorer => trace::model_explorer(&first.table),
            Export::Csv | Export::Html => text::csv(&first.table.layers),
        })
    }
}
