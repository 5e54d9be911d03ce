//! What was measured as files for other tools and for people.

use serde::Deserialize;

use super::page::{self, Page};
use super::running::Kept;
use super::{Error, Session};
use crate::profile::text;
use crate::profile::trace::{self, Traced};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Export {
    /// The table of layers.
    Csv,
    /// Chrome trace events, for Perfetto.
    Trace,
    /// speedscope's own.
    Speedscope,
    /// Node data for Model Explorer.
    ModelExplorer,
    /// A page that stands by itself.
    Html,
}

impl Session {
    /// One of the files. All but the page need a profile of this model; of several models the first has the table.
    pub fn export(&self, kind: Export) -> Result<String, Error> {
        if kind == Export::Html {
            let yaml = self.report();
            return Ok(page::write(&Page {
                card: &self.card,
                profiles: &self.profiles,
                comparison: self.comparison.as_ref(),
                yaml: &yaml,
            }));
        }
        let first = self.profiles.first().ok_or(Error::NotProfiled)?;
        let traced: Vec<Traced<'_>> = self.profiles.iter().map(Kept::traced).collect();
        Ok(match kind {
            Export::Trace => trace::chrome(self.profiler.records(), &traced),
            Export::Speedscope => trace::speedscope(&traced),
            Export::ModelExplorer => trace::model_explorer(&first.table),
            Export::Csv | Export::Html => text::csv(&first.table.layers),
        })
    }
}
