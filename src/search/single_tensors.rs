//! The passes that measure tensors one by one.
//!
//! All tensors are measured with 8 bits on the first sample, and the worst of them on the other
//! samples, too. Noises of the others are scaled by the same ratio. The worst weights are measured
//! with 4 bits on the first sample. Other numbers of bits follow from the tensor's own rounding error.

use super::measure::{FloatRuns, in_parallel};
use super::measurements::NoisePass;
use super::prepare::PreparedSearch;
use super::run::{BudgetSearch, SearchStage};
use super::sensitivities::Sensitivity;
use super::tensors::TensorChange;
use super::{Bits, SearchError};
use crate::runtime::EngineError;

/// The number of weights that are measured with 4 bits, the worst ones.
const MEASURED_WITH_FOUR: usize = 20;

impl BudgetSearch {
    /// The stage that measures all tensors on the first sample.
    pub(super) fn first_stage(&mut self) -> Result<SearchStage, SearchError> {
        let known = self.known_mut()?;
        known.begin_noises();
        let order = (0..known.tensors.len()).collect();
        Ok(SearchStage::Noises {
            pass: NoisePass::First,
            order,
            done: 0,
        })
    }

    /// The stage behind a pass over tensors.
    pub(super) fn stage_behind(&mut self, pass: NoisePass) -> Result<SearchStage, SearchError> {
        let samples = self.options.measured.min(self.counts()[0]);
        let count = self.options.exact;
        let known = self.known_mut()?;
        let (next, count) = match pass {
            NoisePass::First => {
                known.estimate(samples);
                (NoisePass::Others, count)
            }
            NoisePass::Others => {
                known.scale_the_rest();
                (NoisePass::Four, count.min(MEASURED_WITH_FOUR))
            }
            NoisePass::Four => return Ok(SearchStage::Outputs),
        };
        let order = match next.samples(samples).is_empty() {
            true => Vec::new(),
            false => known.worst(next.bits(), count),
        };
        match order.is_empty() {
            true => self.stage_behind(next),
            false => Ok(SearchStage::Noises {
                pass: next,
                order,
                done: 0,
            }),
        }
    }
}

impl PreparedSearch {
    /// Measures the noise of tensors in a pass.
    pub(super) fn noises(
        &self,
        float: &FloatRuns,
        pass: NoisePass,
        places: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f64>, EngineError> {
        let samples = pass.samples(float.values.len());
        in_parallel(places, |&place| {
            let change = TensorChange {
                tensor: &self.tensors[place],
                bits: pass.bits(),
            };
            float.noise(&self.segmented, change, samples.clone(), stop)
        })
    }

    /// Lists the tensors with their times, without noises.
    fn begin_noises(&mut self) {
        self.first = vec![0.0; self.tensors.len()];
        self.found.clear();
        for (place, tensor) in self.tensors.iter().enumerate() {
            let bits = tensor.rounded.keys().copied().chain([Bits::Float]);
            let time = |bits: Bits| (bits, self.costs.added_time(place, bits));
            self.found.push(Sensitivity {
                name: tensor.group.name.clone(),
                weight: tensor.group.is_weight,
                exact: false,
                time: bits.clone().map(time).collect(),
                noise: bits.map(|bits| (bits, 0.0)).collect(),
            });
        }
    }

    /// Takes a measured noise.
    pub(super) fn take_noise(&mut self, place: usize, pass: NoisePass, noise: f64) {
        match pass {
            NoisePass::First => self.first[place] = noise,
            NoisePass::Others => {
                self.set_eight(place, self.first[place] + noise);
                self.found[place].exact = true;
            }
            NoisePass::Four => {
                let eight = self.found[place].noise[&Bits::Eight];
                let on_first = self.first[place];
                let ratio = match on_first > 0.0 {
                    true => noise / on_first,
                    false => 1.0,
                };
                self.found[place].noise.insert(Bits::Four, eight * ratio);
            }
        }
    }

    /// Estimates noises on all samples from the first, as if samples were alike.
    fn estimate(&mut self, samples: usize) {
        for place in 0..self.found.len() {
            self.set_eight(place, self.first[place] * samples as f64);
            self.found[place].exact = samples == 1;
        }
    }

    /// Estimates the noises that only the first sample shows by the ratio of the others.
    fn scale_the_rest(&mut self) {
        let (mut all, mut first) = (0.0, 0.0);
        for (found, on_first) in self.found.iter().zip(&self.first) {
            if found.exact {
                all += found.noise[&Bits::Eight];
                first += on_first;
            }
        }
        if first > 0.0 {
            for place in 0..self.found.len() {
                if !self.found[place].exact {
                    self.set_eight(place, self.first[place] * all / first);
                }
            }
        }
    }

    /// Sets the noise with 8 bits. Noises with other bits follow by the tensor's own rounding errors.
    fn set_eight(&mut self, place: usize, noise: f64) {
        let local = &self.tensors[place].local;
        let eight = local.get(&Bits::Eight).copied().unwrap_or(0.0);
        for (other, value) in &mut self.found[place].noise {
            if let Some(local) = local.get(other).filter(|_| eight > 0.0) {
                *value = noise * local / eight;
            }
        }
        self.found[place].noise.insert(Bits::Eight, noise);
    }

    /// The tensors whose noise with these bits is largest, in that order.
    fn worst(&self, bits: Bits, count: usize) -> Vec<usize> {
        let noise = |(place, known): (usize, &Sensitivity)| Some((place, *known.noise.get(&bits)?));
        let mut worst: Vec<(usize, f64)> =
            self.found.iter().enumerate().filter_map(noise).collect();
        worst.sort_by(|a, b| b.1.total_cmp(&a.1));
        let worst = worst.into_iter().take(count);
        worst.map(|(place, _)| place).collect()
    }
}
