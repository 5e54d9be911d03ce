//! A search under a budget, on this session's model and ranges.

use std::collections::HashMap;

use super::error::{Error, OrderError};
use super::prepared::PreparedModel;
use super::ranges::ModelRanges;
use super::{ProgressMonitor, Runner, Session};
use crate::graph::Model;
use crate::onnx;
use crate::profile::Repeats;
use crate::quantize::{self, Quantized, ScaleGroups, Settings};
use crate::search::{
    BudgetSearch, DividedSamples, ErrorRuns, Measurements, NodeTimes, SearchError, SearchOptions,
    SearchSample, SearchedModel,
};
use crate::tensor::Tensor;

/// Runs of a profile for the times of nodes.
const REPEATS: Repeats = Repeats {
    runs: 5,
    warm_up: 1,
};

/// The calibrated model as a search sees it.
struct CalibratedModel<'a> {
    prepared: &'a PreparedModel,
    ranges: &'a ModelRanges,
    name: &'a str,
    float_bytes: usize,
    /// The sample of the profiles; `None` leaves times to the model of costs.
    profiled: Option<&'a [Tensor]>,
}

impl Session {
    /// Begins a search on the calibrated model. `choosing` are the samples that calibrated and
    /// choose; `held` are those that verify.
    pub fn begin_search(
        &mut self,
        settings: &Settings,
        options: SearchOptions,
        choosing: Vec<SearchSample>,
        held: Vec<SearchSample>,
    ) -> Result<BudgetSearch, Error> {
        let model = self.calibrated_model(None)?;
        Ok(BudgetSearch::new(
            &model, settings, options, choosing, held,
        )?)
    }

    /// Begins a search that shards share, on the calibrated model, with what they measured so far.
    pub fn begin_divided_search(
        &mut self,
        settings: &Settings,
        options: SearchOptions,
        samples: DividedSamples,
        known: Measurements,
    ) -> Result<BudgetSearch, Error> {
        let model = self.calibrated_model(None)?;
        Ok(BudgetSearch::divided(
            &model, settings, options, samples, known,
        )?)
    }

    /// Quantizes the models whose errors a search in shards needs next.
    pub fn error_runs<'a>(&mut self, search: &'a BudgetSearch) -> Result<ErrorRuns<'a>, Error> {
        let model = self.calibrated_model(None)?;
        Ok(search.error_runs(&model)?)
    }

    /// Makes one step of a search; false once it is done. With `profiled`, the times of nodes are
    /// measured on that sample.
    pub fn search_step(
        &mut self,
        search: &mut BudgetSearch,
        profiled: Option<&[Tensor]>,
        monitor: &dyn ProgressMonitor,
    ) -> Result<bool, Error> {
        let model = self.calibrated_model(profiled)?;
        Ok(search.step(&model, &|| monitor.cancelled())?)
    }

    fn calibrated_model<'a>(
        &'a mut self,
        profiled: Option<&'a [Tensor]>,
    ) -> Result<CalibratedModel<'a>, Error> {
        let float_bytes = self.opened.summary.bytes_in_all() as usize;
        let (prepared, ranges) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        Ok(CalibratedModel {
            ranges: ranges.ok_or(OrderError::NotCalibrated)?,
            prepared,
            name: &self.opened.summary.name,
            float_bytes,
            profiled,
        })
    }
}

impl SearchedModel for CalibratedModel<'_> {
    fn model(&self) -> &Model {
        self.prepared.calibrated(Some(self.ranges))
    }

    fn name(&self) -> &str {
        self.name
    }

    fn float_bytes(&self) -> usize {
        self.float_bytes
    }

    fn groups(&self, settings: &Settings) -> Result<ScaleGroups, SearchError> {
        let ranges = self.ranges.activation_ranges();
        Ok(quantize::scale_groups(self.model(), settings, ranges)?)
    }

    fn quantize(&self, settings: &Settings) -> Result<Quantized, SearchError> {
        let quantized = self.prepared.quantize(settings, Some(self.ranges), &[]);
        quantized.map_err(|error| match error {
            Error::Quantize(error) => SearchError::Quantize(error),
            other => SearchError::Other(other.to_string()),
        })
    }

    fn file_bytes(&self, quantized: &Quantized) -> Result<usize, SearchError> {
        let written = self.prepared.written(quantized.model.clone());
        let file = written.and_then(|(proto, _)| Ok(onnx::pieces(&proto)?));
        file.map(|file| file.bytes())
            .map_err(|error| SearchError::Other(error.to_string()))
    }

    fn times(
        &self,
        narrow: &Quantized,
        wide: &dyn Fn() -> Result<Quantized, SearchError>,
    ) -> Result<Option<Vec<NodeTimes>>, SearchError> {
        let Some(inputs) = self.profiled else {
            return Ok(None);
        };
        let times = |model: &Model| -> Result<HashMap<String, f64>, SearchError> {
            let runner = Runner::new(model.clone());
            let profile = runner.profile(inputs, REPEATS, &());
            let profile = profile.map_err(|error| SearchError::Other(error.to_string()))?;
            let layers = profile.table.layers.into_iter();
            Ok(layers.map(|layer| (layer.name, layer.ms.median)).collect())
        };
        let (narrow, wide) = (times(&narrow.model)?, times(&wide()?.model)?);
        let float = times(self.model())?;
        let of = |times: &HashMap<String, f64>, title: &str| times.get(title).copied();
        let node = |title: &str| {
            let float = of(&float, title).unwrap_or(0.0);
            NodeTimes {
                narrow: of(&narrow, title).unwrap_or(0.0),
                wide: of(&wide, title).unwrap_or(0.0),
                float,
                conversion: 0.0,
            }
        };
        let nodes = self.model().graph.nodes().iter();
        Ok(Some(nodes.map(|n| node(n.title())).collect()))
    }
}
