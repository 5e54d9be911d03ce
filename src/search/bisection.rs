//! The choice of a point of the curve: at once for a budget of costs, by bisection for one of errors.
//!
//! The bisection for a budget of SQNR begins at the point whose predicted noise is within the limit.
//! It leaves that point in steps that double, until points on both sides are known.

use super::budget::Budget;
use super::choose::decibels;
use super::costs::TimeSource;
use super::divided::{PendingPass, integer_engine};
use super::interval::Estimate;
use super::judge::{SampleSums, estimate};
use super::measure::in_parallel;
use super::measurements::{Half, JudgedModel};
use super::run::{BudgetSearch, SearchSample, SearchStage};
use super::{Bits, Metric, SearchError, SearchedModel};
use crate::quantize::Quantized;
use crate::runtime::EngineError;
use crate::tensor::Tensor;

/// The search for the cheapest point of the curve within a limit on the error.
pub(super) struct Bisection {
    pub(super) low: usize,
    pub(super) high: usize,
    /// True once the most accurate point is known.
    pub(super) begun: bool,
    /// True if the interval of even that point is beyond the limit, so that values decide.
    pub(super) by_value: bool,
    /// The point to measure next, if it is not yet known to lie outside.
    guess: Option<usize>,
    /// The distance to the next guess.
    stride: usize,
}

impl Bisection {
    /// Begins with a number of points and the likely one.
    fn new(points: usize, guess: Option<usize>) -> Bisection {
        Bisection {
            low: 0,
            high: points - 1,
            begun: false,
            by_value: false,
            guess,
            stride: (points / 64).max(1),
        }
    }

    /// The point to measure next.
    fn next_point(&self) -> usize {
        let guess = self
            .guess
            .filter(|guess| (self.low..self.high).contains(guess));
        guess.unwrap_or(usize::midpoint(self.low, self.high))
    }

    /// Takes the answer on that point.
    fn take(&mut self, within: bool) {
        let point = self.next_point();
        let distance = self.stride;
        self.stride *= 2;
        match within {
            true => {
                self.high = point;
                self.guess = point.checked_sub(distance);
            }
            false => {
                self.low = point + 1;
                self.guess = Some(point + distance);
            }
        }
    }
}

impl BudgetSearch {
    /// Errors of a quantized model on one half of the samples of this process.
    pub(super) fn errors(
        &self,
        quantized: &Quantized,
        half: Half,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<SampleSums>, EngineError> {
        let (samples, float) = match half {
            Half::Choosing => (&self.choosing, &self.float_outputs[0]),
            Half::Held => (&self.held, &self.float_outputs[1]),
        };
        let engine = integer_engine(&quantized.model);
        let pairs: Vec<(&SearchSample, &Vec<Tensor>)> = samples.iter().zip(float).collect();
        in_parallel(&pairs, |(sample, float)| {
            let outputs = engine.run(&sample.inputs[..], |_, _| {}, stop)?;
            Ok(self.judge.compare(float, &outputs, sample.label))
        })
    }

    /// Error and SQNR of samples.
    pub(super) fn estimate(&self, errors: &[SampleSums]) -> Result<(Estimate, f64), SearchError> {
        let error = estimate(errors, self.metric).ok_or(SearchError::NoClasses)?;
        let noise = estimate(errors, Metric::Sqnr).map_or(0.0, |noise| noise.value);
        Ok((error, decibels(noise)))
    }

    /// Measures a point on the samples that choose. Returns nothing if shards have to measure it.
    fn measure_point(
        &mut self,
        model: &dyn SearchedModel,
        point: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Estimate>, SearchError> {
        if let Some((known, _)) = self.measured_points.get(&point) {
            return Ok(Some(*known));
        }
        let settings = self.settings_for(self.known()?, &self.choices()?.points[point]);
        let judged = JudgedModel::Point(point as u32);
        let errors = match &self.shared {
            Some(shared) => shared.known.errors(Half::Choosing, judged),
            None => Some(self.errors(&model.quantize(&settings)?, Half::Choosing, stop)?),
        };
        let Some(errors) = errors else {
            self.wait_for(PendingPass::Errors {
                half: Half::Choosing,
                models: vec![(judged, settings)],
            });
            return Ok(None);
        };
        let measured = self.estimate(&errors)?;
        self.measured_points.insert(point, measured);
        Ok(Some(measured.0))
    }

    /// Chooses at once for a budget of costs, or begins the bisection for one of errors.
    pub(super) fn begin_choosing(
        &mut self,
        model: &dyn SearchedModel,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let known = self.known()?;
        let choices = self.choices()?;
        let points = choices.points.len();
        let (limit, cost): (f64, Box<dyn Fn(&[Bits]) -> f64 + '_>) = match self.options.budget {
            Budget::Bytes(amount) => {
                let limit = amount.of(model.float_bytes() as f64);
                (limit, Box::new(|choice| known.costs.bytes(choice)))
            }
            Budget::Time(amount) => {
                let limit = amount.of(known.costs.float_time());
                (limit, Box::new(|choice| known.costs.time(choice)))
            }
            Budget::Wide(_) => {
                let (choice, bound) = choices.within.clone().ok_or(SearchError::NothingToChoose)?;
                let settings = self.settings_for(known, &choice);
                return self.finish(model, &choice, &settings, decibels(bound), stop);
            }
            Budget::Accuracy(_) | Budget::Kl(_) | Budget::Sqnr(_) => {
                let limit = self.options.budget.error_limit().unwrap_or(0.0);
                let within = |choice: &Vec<Bits>| choices.noise(choice) <= limit;
                let guess = choices.points.iter().position(within);
                let guess = guess.filter(|_| self.metric == Metric::Sqnr);
                self.stage = SearchStage::Choosing(Bisection::new(points, guess));
                return Ok(());
            }
        };
        let costs: Vec<f64> = choices.points.iter().map(|choice| cost(choice)).collect();
        let fitting = (0..points).rev().find(|&point| costs[point] <= limit);
        let Some(point) = fitting else {
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            return Err(SearchError::Unreachable {
                budget: self.options.budget,
                best: match (self.options.budget, known.times) {
                    (Budget::Bytes(_), _) => format!("{least:.0} bytes"),
                    (_, TimeSource::Profile) => format!("{least:.2} ms"),
                    (_, TimeSource::Model) => {
                        format!(
                            "{:.0} % of the float model's time",
                            100.0 * least / known.costs.float_time()
                        )
                    }
                },
                hint: "allow more, or allow fewer bits (4 for weights)",
            });
        };
        let choice = choices.points[point].clone();
        drop(cost);
        let settings = self.settings_for(known, &choice);
        let bound = decibels(choices.noise(&choice));
        self.finish(model, &choice, &settings, bound, stop)
    }

    pub(super) fn bisect(
        &mut self,
        model: &dyn SearchedModel,
        mut at: Bisection,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SearchError> {
        let limit = self.options.budget.error_limit().unwrap_or(0.0);
        if !at.begun {
            let Some(found) = self.measure_point(model, at.high, stop)? else {
                return Ok(());
            };
            if found.value > limit {
                return Err(SearchError::Unreachable {
                    budget: self.options.budget,
                    best: self.in_words(found.value),
                    hint: "allow more, or allow more bits (16 or float)",
                });
            }
            at.by_value = found.high_of_others > limit;
            at.begun = true;
        } else if at.low < at.high {
            let Some(found) = self.measure_point(model, at.next_point(), stop)? else {
                return Ok(());
            };
            at.take(match at.by_value {
                true => found.value <= limit,
                false => found.high_of_others <= limit,
            });
        }
        if at.low < at.high {
            self.stage = SearchStage::Choosing(at);
            return Ok(());
        }
        let choice = self.choices()?.points[at.high].clone();
        let settings = self.settings_for(self.known()?, &choice);
        let bound = decibels(self.choices()?.noise(&choice));
        self.finish(model, &choice, &settings, bound, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches for the first point within; returns it and the number of measured points.
    fn found(points: usize, first: usize, guess: Option<usize>) -> (usize, usize) {
        let mut at = Bisection::new(points, guess);
        let mut measured = 0;
        while at.low < at.high {
            let point = at.next_point();
            assert!(point < points - 1, "the last point is known to be within");
            at.take(point >= first);
            measured += 1;
        }
        (at.high, measured)
    }

    #[test]
    fn every_point_is_found_from_every_guess_and_a_near_guess_takes_few_measurements() {
        for points in [1, 2, 3, 17, 64] {
            for first in 0..points {
                for guess in (0..points).map(Some).chain([None]) {
                    assert_eq!(found(points, first, guess).0, first, "{points} {guess:?}");
                }
            }
        }
        assert_eq!(found(512, 300, None).1, 9);
        for guess in 296..304 {
            let (_, measured) = found(512, 300, Some(guess));
            assert!(measured <= 5, "{guess}: {measured}");
        }
    }
}
