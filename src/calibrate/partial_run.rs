//! Parts of a calibration that other runs carry out: what a pass over some of the samples collected
//! leaves a run, and what all of them collected enters another.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::error::FeedError;
use super::extra_pass::ExtraStatistics;
use super::pass::PassState;
use super::run::CalibrationRun;
use crate::stats::{InputGram, OtherStatistics, PassStatistics};

impl CalibrationRun {
    /// Statistics of the current pass. All started samples must have ended.
    pub fn collected(&mut self) -> Result<PassStatistics, FeedError> {
        self.settle()?;
        Ok(of_state(&self.watched, &self.pass.state()))
    }

    /// Completes the current pass with what other runs collected over all samples, whose number is
    /// `samples`. It replaces the samples of this run.
    pub fn complete_pass(
        &mut self,
        collected: &PassStatistics,
        samples: usize,
    ) -> Result<(), FeedError> {
        self.settle()?;
        let mut state = self.pass.state();
        // Merging with the empty statistics of this run checks values, layouts, edges and steps.
        let mut all = of_state(&self.watched, &state);
        all.merge(collected)?;
        let PassState { stats, counted } = &mut *state;
        let lacks = |name: &String| OtherStatistics::Value(name.clone());
        match (all, counted) {
            (PassStatistics::Tensors(mut all), ExtraStatistics::Nothing) => {
                for (name, stats) in self.watched.iter().zip(stats) {
                    *stats = all.remove(name).ok_or_else(|| lacks(name))?;
                }
            }
            (PassStatistics::Histograms(mut all), ExtraStatistics::Histograms(counted)) => {
                for (name, counted) in self.watched.iter().zip(counted) {
                    *counted = all.remove(name).ok_or_else(|| lacks(name))?;
                }
            }
            (PassStatistics::InputGrams(mut all), ExtraStatistics::InputGrams(grams)) => {
                for (name, grams) in self.watched.iter().zip(grams.iter()) {
                    let complete = all.remove(name).unwrap_or_default();
                    for (gram, complete) in grams.iter().zip(complete) {
                        *gram.lock().unwrap_or_else(PoisonError::into_inner) = complete;
                    }
                }
            }
            (all, _) => {
                return Err(OtherStatistics::Content(all.content(), collected.content()).into());
            }
        }
        drop(state);
        self.pass.done.store(samples, Ordering::Relaxed);
        Ok(())
    }
}

/// The statistics of a pass by the names of its values.
fn of_state(watched: &[String], state: &PassState) -> PassStatistics {
    let names = || watched.iter().cloned();
    match &state.counted {
        ExtraStatistics::Nothing => {
            PassStatistics::Tensors(names().zip(state.stats.iter().cloned()).collect())
        }
        ExtraStatistics::Histograms(counted) => {
            PassStatistics::Histograms(names().zip(counted.iter().cloned()).collect())
        }
        ExtraStatistics::InputGrams(grams) => {
            let copied = |gram: &Mutex<InputGram>| {
                gram.lock().unwrap_or_else(PoisonError::into_inner).clone()
            };
            let each = grams.iter().map(|all| all.iter().map(copied).collect());
            let read = names().zip(each);
            PassStatistics::InputGrams(
                read.filter(|(_, all): &(_, Vec<_>)| !all.is_empty())
                    .collect(),
            )
        }
    }
}
