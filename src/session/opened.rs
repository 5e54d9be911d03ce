//! The first stage: a model as it was read, with everything that needs no preparation.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;

use super::advice;
use super::error::Error;
use super::free_weights::{free_half_weights, free_unused};
use super::model_summary::{DataFile, ModelSummary};
use super::prepared::PreparedModel;
use super::source::ModelFile;
use crate::allocator;
use crate::graph::{Dim, Model, tensor_type_of};
use crate::onnx::schema::ModelProto;
use crate::profile::{Profiler, RunStep};
use crate::samples::{self, Encoded, InputSpec, ShapeMismatch};
use crate::tensor::Tensor;
use crate::{onnx, quantize};

/// A model as it was read.
pub(super) struct OpenedModel {
    file: ModelFile,
    wanted_files: Vec<String>,
    pub(super) header: ModelProto,
    pub(super) summary: ModelSummary,
    /// Bytes of all constants.
    pub(super) constants: usize,
    /// Cached shape checks: the reason why inputs of these shapes don't fit the model, if any.
    pub(super) refusals: HashMap<Vec<Vec<usize>>, Option<ShapeMismatch>>,
}

impl OpenedModel {
    /// Reads a file and summarizes it. The bytes are shared, not copied.
    pub(super) fn read(file: ModelFile) -> Result<OpenedModel, Error> {
        let header = onnx::read(file.bytes.clone())?;
        let model = Model::from_proto(header.clone())?;
        Ok(OpenedModel {
            wanted_files: onnx::external::files(&header),
            summary: ModelSummary::new(&file, model, &input_specs(&header)),
            constants: advice::constants(&header),
            refusals: HashMap::new(),
            file,
            header,
        })
    }

    /// Files of external data that have yet to be attached.
    pub(super) fn wanted_files(&self) -> &[String] {
        &self.wanted_files
    }

    /// Attaches files of external data. All that the model needs must come in one call.
    pub(super) fn attach(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), Error> {
        onnx::external::attach(&mut self.header, files)?;
        let attached = std::mem::take(&mut self.wanted_files);
        self.wanted_files = onnx::external::files(&self.header);
        self.summary = ModelSummary::new(&self.file, self.model()?, &self.input_specs());
        let attached = attached.into_iter().filter_map(|name| {
            let bytes = onnx::external::find(files, &name)?.len() as u64;
            Some(DataFile { name, bytes })
        });
        self.summary.data_files = attached.collect();
        Ok(())
    }

    /// The graph of the file. After preparation it may lack its weights.
    pub(super) fn model(&self) -> Result<Model, Error> {
        Ok(Model::from_proto(self.header.clone())?)
    }

    /// Fails while files of external data are missing.
    pub(super) fn require_files(&self) -> Result<(), Error> {
        match self.wanted_files.is_empty() {
            true => Ok(()),
            false => Err(Error::FilesMissing {
                files: self.wanted_files.clone(),
            }),
        }
    }

    /// Fails if the model is quantized already.
    pub(super) fn refuse_quantized(&self) -> Result<(), Error> {
        if self.summary.already_quantized {
            quantize::refuse_quantized(&self.model()?)?;
        }
        Ok(())
    }

    /// Inputs that a sample must provide.
    pub(super) fn input_specs(&self) -> Vec<InputSpec> {
        input_specs(&self.header)
    }

    /// Decodes a sample for the model's inputs.
    pub(super) fn decode(
        &self,
        sample: &Encoded,
        settings: &samples::SampleSettings,
    ) -> Result<Vec<Tensor>, Error> {
        Ok(samples::decode(sample, &self.input_specs(), settings)?)
    }

    /// The next stage. It frees the weights that it no longer needs.
    pub(super) fn prepare(&mut self, profiler: &mut Profiler) -> Result<PreparedModel, Error> {
        self.require_files()?;
        profiler.begin(RunStep::Preparation);
        let (ready, peak) = allocator::peak_of(|| {
            let mut ready = PreparedModel::new(&self.header)?;
            free_half_weights(&mut self.header);
            free_unused(&mut self.file.bytes, &mut self.header, &mut ready.model)?;
            Ok::<_, Error>(ready)
        });
        profiler.end();
        Ok(ready?.with_peak(peak))
    }
}

/// Graph inputs without an initializer.
pub(super) fn input_specs(header: &ModelProto) -> Vec<InputSpec> {
    let Some(graph) = &header.graph else {
        return Vec::new();
    };
    let constants: HashSet<_> = graph
        .initializer
        .iter()
        .map(|t| t.name.as_deref())
        .collect();
    let fed = graph
        .input
        .iter()
        .filter(|input| !constants.contains(&input.name.as_deref()));
    fed.filter_map(|input| {
        let declared = tensor_type_of(input)?;
        Some(InputSpec {
            name: input.name.clone()?,
            element: declared.element,
            shape: declared.shape.unwrap_or_default(),
        })
    })
    .collect()
}

/// True if samples may choose the size of some axis. If none is free, a shape that doesn't fit is
/// the model's fault.
pub(super) fn has_free_axis(inputs: &[InputSpec]) -> bool {
    let free = |dim: &Dim| !matches!(dim, Dim::Known(1..));
    inputs.iter().any(|input| input.shape.iter().any(free))
}
