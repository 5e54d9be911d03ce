//! Statistics that several people share: files of them are read and merged, and this page's samples
//! are observed for another file.

use std::collections::BTreeSet;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::ModelSession;
use super::convert::{error, failure, from_js, settings_from_js, to_js};
use super::files::{checksum, parts};
use super::observing::Observing;
use crate::samples::SampleSettings;
use crate::session::{ErrorKind, OrderError, PassNeeds};
use crate::shards::{
    CompletePasses, FileIdentity, Shard, ShardError, ShardSamples, SharedWork, StatsFile,
    StatsHeader, bound_settings, processor,
};

#[wasm_bindgen(js_class = Session)]
impl ModelSession {
    /// Reads files of statistics, an array of `{ path, blob }`s, and merges them. They replace those
    /// that were read before. `data` has the model's external files.
    #[wasm_bindgen(js_name = readStatistics)]
    pub async fn read_statistics(&mut self, files: Array, data: Array) -> Result<JsValue, JsValue> {
        let model = self.identities(&data).await?;
        let mut read = Vec::new();
        for (name, bytes) in parts(&files, None).await? {
            let file = StatsFile::from_bytes(&bytes);
            let file =
                file.map_err(|cause| failure(ErrorKind::Sample, &format!("{name}: {cause}")))?;
            read.push((name, file));
        }
        let complete = CompletePasses::merged(read, &model).map_err(refused)?;
        let summary = to_js(&complete.summary())?;
        self.statistics = Some(complete);
        Ok(summary)
    }

    /// Calibrates for these settings with the statistics that were read, in place of samples.
    #[wasm_bindgen(js_name = calibrateByStatistics)]
    pub fn calibrate_by_statistics(&mut self, settings: JsValue) -> Result<JsValue, JsValue> {
        let settings = settings_from_js(settings)?;
        let complete = self.statistics.take().unwrap_or_default();
        if self.enter_statistics(&complete, &settings)? {
            let content = self.inner.collected().map_err(error)?.content();
            self.inner.stop_calibration();
            let text = format!(
                "these settings need another pass over the samples ({content}), which the statistics don't have: let \
                 everyone load these statistics and save those of the next pass, or choose other settings"
            );
            return Err(failure(ErrorKind::Settings, &text));
        }
        let method = settings.method.unwrap_or_default();
        to_js(&self.inner.finish_calibration(method).map_err(error)?)
    }

    /// Begins to observe samples of these names for the pass that follows the statistics that were
    /// read. The samples come by `beginSample`. Returns the places of those that the first pass left
    /// out: they must not come.
    #[wasm_bindgen(js_name = beginObserving)]
    pub fn begin_observing(
        &mut self,
        source: String,
        names: Vec<String>,
        reading: JsValue,
        settings: JsValue,
    ) -> Result<Vec<usize>, JsValue> {
        let reading: SampleSettings = from_js(reading, "sample settings")?;
        let settings = settings_from_js(settings)?;
        let bound = bound_settings(&settings, &reading).map_err(refused)?;
        let complete = self.statistics.take().unwrap_or_default();
        let checked = complete.require_settings(&bound, "this page");
        let begun = checked.map_err(refused).and_then(|()| {
            let needs = PassNeeds::of(&settings);
            let entered = complete.enter(&mut self.inner, reading, &needs);
            entered.map_err(error)
        });
        let mut seen = ShardSamples::new(source, Shard::WHOLE);
        seen.name(names);
        let skipped = complete.first().map(|first| seen.skipped_before(first));
        self.statistics = Some(complete);
        if !begun? {
            let text =
                "these settings need no further pass: the statistics that were added are complete";
            return Err(failure(ErrorKind::Settings, text));
        }
        self.observing = Some(Observing {
            seen,
            settings: bound,
        });
        Ok(skipped.unwrap_or_default().into_iter().collect())
    }

    /// Ends the observation: the bytes of its file. `data` has the model's external files.
    #[wasm_bindgen(js_name = finishObserving)]
    pub async fn finish_observing(&mut self, data: Array) -> Result<Vec<u8>, JsValue> {
        let order = || error(OrderError::NotCalibrating.into());
        let Observing { seen, settings } = self.observing.take().ok_or_else(order)?;
        let model = self.identities(&data).await?;
        let skipped = self.inner.samples_skipped();
        let samples = self.inner.samples_done() as u64;
        let collected = self.inner.collected().map_err(error)?;
        if samples == 0 {
            return Err(error(crate::session::Error::NoSamples));
        }
        let complete = self.statistics.as_ref();
        let header = StatsHeader {
            work: SharedWork::Calibration,
            octet: env!("CARGO_PKG_VERSION").into(),
            model,
            settings,
            pass: complete.map_or(0, CompletePasses::count) as u32 + 1,
            content: collected.content().to_string(),
            after: complete.map_or(Vec::new(), |complete| complete.identities().to_vec()),
            sources: seen.sources(),
            samples,
            skipped: seen.skipped(&skipped),
            digest: seen.digest(&skipped),
            processors: BTreeSet::from([processor()]),
        };
        let payload = collected.bytes();
        StatsFile { header, payload }.to_bytes().map_err(refused)
    }
}

impl ModelSession {
    /// Enters the statistics into the session. Returns true if a pass is missing.
    fn enter_statistics(
        &mut self,
        complete: &CompletePasses,
        settings: &crate::quantize::Settings,
    ) -> Result<bool, JsValue> {
        if complete.count() == 0 {
            return Err(error(crate::session::Error::NoSamples));
        }
        let reading = complete.reading();
        let bound = bound_settings(settings, &reading).map_err(refused)?;
        complete
            .require_settings(&bound, "this page")
            .map_err(refused)?;
        let entered = complete.enter(&mut self.inner, reading, &PassNeeds::of(settings));
        entered.map_err(error)
    }

    /// Names and checksums of the model's files.
    async fn identities(&self, data: &Array) -> Result<Vec<FileIdentity>, JsValue> {
        let summary = self.inner.summary();
        let mut all = vec![FileIdentity {
            name: summary.name.clone(),
            sha256: summary.sha256.clone(),
        }];
        for file in &summary.data_files {
            all.push(FileIdentity {
                name: file.name.clone(),
                sha256: checksum(data, &file.name).await?,
            });
        }
        Ok(all)
    }
}

fn refused(error: ShardError) -> JsValue {
    let kind = match error {
        ShardError::Other { .. } => ErrorKind::Settings,
        _ => ErrorKind::Sample,
    };
    failure(kind, &error.to_string())
}
