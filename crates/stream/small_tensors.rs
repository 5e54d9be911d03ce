//! Small external tensors, which the graph's passes read.

use std::collections::VecDeque;

use octet_onnx::schema::{ModelProto, TensorProto};
use octet_onnx::skeleton::LARGE;
use octet_onnx::{Stretch, stretch_of, tensors};

use crate::StreamError;

/// Loads the external tensors of a skeleton that are not large.
pub struct SmallTensors {
    model: ModelProto,
    wanted: VecDeque<Stretch>,
    loaded: Vec<(Stretch, Vec<u8>)>,
}

impl SmallTensors {
    /// Lists the small tensors of a model whose stretches were checked.
    pub fn new(model: ModelProto) -> Result<SmallTensors, StreamError> {
        let mut wanted = Vec::new();
        tensors::each(&model, &mut |tensor: &TensorProto| {
            wanted.extend(stretch_of(tensor)?.filter(|stretch| stretch.length < LARGE));
            Ok::<_, StreamError>(())
        })?;
        wanted.sort();
        wanted.dedup();
        Ok(SmallTensors {
            model,
            wanted: wanted.into(),
            loaded: Vec::new(),
        })
    }

    /// The stretch that [`Self::feed`] needs next; `None` at the end.
    pub fn next(&self) -> Option<&Stretch> {
        self.wanted.front()
    }

    /// Takes the bytes of the stretch that [`Self::next`] asked for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let Some(stretch) = self.wanted.pop_front() else {
            return Ok(());
        };
        if bytes.len() as u64 != stretch.length {
            return Err(StreamError::Short {
                missing: stretch.length.saturating_sub(bytes.len() as u64),
                file: stretch.file,
            });
        }
        self.loaded.push((stretch, bytes.to_vec()));
        Ok(())
    }

    /// The model with its small tensors; only large ones are external.
    pub fn finish(mut self) -> Result<ModelProto, StreamError> {
        let loaded = self.loaded;
        tensors::each_mut(&mut self.model, &mut |tensor: &mut TensorProto| {
            let Some(stretch) = stretch_of(tensor)? else {
                return Ok(());
            };
            let at = loaded.binary_search_by(|(known, _)| known.cmp(&stretch));
            if let Some((_, bytes)) = at.ok().and_then(|at| loaded.get(at)) {
                tensor.raw_data = Some(bytes.clone().into());
                tensor.external_data.clear();
                tensor.data_location = None;
            }
            Ok::<_, StreamError>(())
        })?;
        Ok(self.model)
    }
}
