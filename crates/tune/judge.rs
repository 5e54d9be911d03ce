//! The judgement of the whole model, on samples that did not teach.

use octet_graph::Model;
use octet_onnx::in_memory::Tensor;
use octet_runtime::Engine;
use rayon::prelude::*;

use crate::TuneError;
use crate::tuning::{Judgement, Tuning};

impl Tuning {
    /// Compares the model before and after with the float model, on the samples that judge.
    pub(crate) fn judge(
        &self,
        before: &Model,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Judgement>, TuneError> {
        if self.judges.is_empty() {
            return Ok(None);
        }
        let engines = [&self.float, before, &self.quantized];
        let engines = engines.map(|model| Engine::new(model.clone(), Vec::new()));
        let of_sample = |inputs: &Vec<Tensor>| -> Result<[f64; 3], TuneError> {
            let mut outputs = Vec::new();
            for engine in &engines {
                outputs.push(engine.run(inputs.as_slice(), |_, _| {}, stop)?);
            }
            let mut sums = [0.0; 3];
            for (index, float) in outputs[0].iter().enumerate() {
                let Some(float) = float.as_f32() else {
                    continue;
                };
                sums[0] += octet_kernels::sum_of_squares(float);
                for (sum, outputs) in sums[1..].iter_mut().zip(&outputs[1..]) {
                    let other = outputs[index].as_f32().unwrap_or_default();
                    let squares = float
                        .iter()
                        .zip(other)
                        .map(|(a, b)| f64::from(a - b).powi(2));
                    *sum += squares.sum::<f64>();
                }
            }
            Ok(sums)
        };
        let sums = self
            .judges
            .par_iter()
            .map(of_sample)
            .collect::<Result<Vec<_>, _>>()?;
        let total = |which: usize| sums.iter().map(|sums| sums[which]).sum::<f64>();
        let decibels = |noise: f64| 10.0 * (total(0) / noise.max(f64::MIN_POSITIVE)).log10();
        let (before, after) = (total(1), total(2));
        Ok(Some(Judgement {
            before: decibels(before),
            after: decibels(after),
            taken: after <= before,
        }))
    }
}
