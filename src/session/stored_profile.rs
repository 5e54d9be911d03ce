//! A profile that the session stores for the report and exports.

use crate::profile::LayerTable;
use crate::profile::recording::RunRecord;
use crate::profile::trace::Traced;

/// A profile that the session stores for the report and exports.
pub(super) struct StoredProfile {
    pub(super) name: String,
    pub(super) table: LayerTable,
    pub(super) runs: Vec<RunRecord>,
    pub(super) rows: Vec<usize>,
}

impl StoredProfile {
    pub(super) fn traced(&self) -> Traced<'_> {
        Traced {
            name: &self.name,
            table: &self.table,
            runs: &self.runs,
            rows: &self.rows,
        }
    }
}
