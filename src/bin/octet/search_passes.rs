//! The complete passes of a search in shards: first those of its calibration, then its own.

use std::path::{Path, PathBuf};

use octet::search::Measurements;
use octet::shards::{CompletePasses, FileIdentity, Payload, SharedWork, StatsHeader};

use super::Failure;
use super::search_shards::BoundSettings;
use super::stats_files::{self, refused};

/// The passes so far.
pub struct SearchPasses {
    /// Those of the calibration.
    pub calibration: CompletePasses,
    /// Measurements of the search's passes.
    pub measured: Measurements,
    identities: Vec<String>,
}

impl SearchPasses {
    /// Reads the files of all passes. Each must be complete and belong to those before.
    pub fn read(
        paths: &[PathBuf],
        model: &[FileIdentity],
        bound: &BoundSettings,
    ) -> Result<SearchPasses, Failure> {
        let first = |path: &PathBuf| -> Result<bool, Failure> {
            Ok(stats_files::read_header(path)?.work == SharedWork::Search)
        };
        let mut own = paths.len();
        for (at, path) in paths.iter().enumerate() {
            if first(path)? {
                own = at;
                break;
            }
        }
        let (calibration, own) = paths.split_at(own);
        let calibration = stats_files::complete_passes(calibration, model)?;
        stats_files::require_settings(&calibration, &bound.calibration)?;
        let mut all = SearchPasses {
            identities: calibration.identities().to_vec(),
            calibration,
            measured: Measurements::default(),
        };
        for path in own {
            all.add(path, model, bound)?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        path: &Path,
        model: &[FileIdentity],
        bound: &BoundSettings,
    ) -> Result<(), Failure> {
        let file = stats_files::read(path)?;
        let refuse = |error| refused(path, &error);
        file.header.require_complete().map_err(refuse)?;
        let wanted = StatsHeader {
            work: SharedWork::Search,
            octet: env!("CARGO_PKG_VERSION").into(),
            model: model.to_vec(),
            settings: bound.search.clone(),
            pass: self.identities.len() as u32 + 1,
            after: self.identities.clone(),
            ..file.header.clone()
        };
        wanted
            .require_alike("this search", &path.display().to_string(), &file.header)
            .map_err(|error| Failure::input(error.to_string()))?;
        let Payload::Search(measured) = Payload::of(&file).map_err(refuse)? else {
            return Err(Failure::input(format!(
                "{}: these are no measurements of a search; name files of octet search --save-stats",
                path.display()
            )));
        };
        let merged = self.measured.merge(&measured);
        merged.map_err(|error| refused(path, &error.into()))?;
        self.identities.push(file.identity());
        Ok(())
    }

    /// Number of complete passes.
    pub fn count(&self) -> usize {
        self.identities.len()
    }

    /// Identities of the files, to which a later pass is bound.
    pub fn identities(&self) -> Vec<String> {
        self.identities.clone()
    }
}
