//! Executes a plan operator by operator and reports values and times.

use std::borrow::Cow;
use std::collections::HashMap;

use tract_onnx::prelude::*;
use tract_onnx::tract_core::plan;

use super::int8::region::RegionOperator;
use super::observe::Observe;
use super::panics::caught;
use super::plan::{ExecutionPlan, ModelPlanner};
use super::run_context::RunContext;
use super::steps::{self, Timing};
use super::thread_choice::ThreadRun;
use super::{EngineError, chain, indices, values};
use octet_onnx::in_memory::Tensor;

impl ModelPlanner {
    /// Runs the model, which has no control flow, by the plan for these shapes.
    pub(super) fn execute(
        &self,
        inputs: Cow<'_, [Tensor]>,
        mut run: RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let plan = self.plan(&inputs)?;
        // A thread of the pool runs one of several samples.
        let clock = self.thread_clock.filter(|_| !octet_int8::is_worker());
        let most = octet_int8::threads();
        let on = match clock {
            Some(_) => plan.threads.next(most),
            None => ThreadRun::on_all(most),
        };
        if let Some(timing) = &mut run.timing {
            timing.threads(on.threads, on.trial);
        }
        let Some(now_ms) = clock else {
            return self.execute_plan(&plan, inputs, run);
        };
        let (began, parallel_before) = (now_ms(), octet_int8::parallel_operators());
        let outputs =
            octet_int8::with_threads(on.threads, || self.execute_plan(&plan, inputs, run))?;
        let parallel = octet_int8::parallel_operators() != parallel_before;
        plan.threads.ran(on, now_ms() - began, parallel);
        Ok(outputs)
    }

    fn execute_plan(
        &self,
        plan: &ExecutionPlan,
        inputs: Cow<'_, [Tensor]>,
        run: RunContext,
    ) -> Result<Vec<Tensor>, EngineError> {
        let RunContext {
            see,
            stop,
            mut timing,
            mut clock,
            ..
        } = run;
        let run_error = |error: TractError| {
            if error.root_cause().is::<StopRequested>() {
                return EngineError::Stopped;
            }
            EngineError::Run {
                detail: chain(&error),
            }
        };
        if self.kernels || !plan.steps.is_empty() {
            let values = |tensor: &Tensor| tensor.shape().iter().product::<usize>();
            octet_int8::wake_ahead(inputs.iter().map(values).sum());
        }
        let places = match timing {
            Some(_) => steps::places(&plan.run, plan.regions()),
            None => HashMap::new(),
        };
        caught(|| {
            for &(slot, index) in &self.watched_inputs {
                let fed = inputs.get(index);
                if let Some((tensor, values)) = fed.and_then(|t| Some((t, t.as_f32()?))) {
                    see(slot, &[values], tensor.shape());
                }
            }
            let fed = values::inputs_to_tract(inputs).map_err(run_error)?;
            let outputs = plan
                .run
                .spawn()
                .and_then(|mut state| {
                    state.run_plan_with_eval(fed, |context, op_state, node, inputs| {
                        if stop() {
                            return Err(TractError::new(StopRequested));
                        }
                        if let Some(observer) = node.op_as::<Observe>() {
                            let seen = inputs.iter().map(|input| input.cast_to::<f32>());
                            let seen: TVec<_> = seen.collect::<TractResult<_>>()?;
                            let slices =
                                seen.iter().map(|s| s.try_as_plain_ram()?.as_slice::<f32>());
                            let slices = slices.collect::<TractResult<TVec<_>>>()?;
                            see(observer.slot, &slices, inputs[0].shape());
                        }
                        if let (Some(region), Some(clock)) =
                            (node.op_as::<RegionOperator>(), &mut clock)
                            && let Some(steps) = plan.steps.get(region.place)
                        {
                            let mut clock = |step: usize| clock(steps[step]);
                            return region.run(&inputs, Some(&mut clock));
                        }
                        indices::check(node, &inputs)?;
                        let step = places.get(&node.id);
                        let (Some(&step), Some(timing)) = (step, &mut timing) else {
                            return plan::eval(context, op_state, node, inputs);
                        };
                        if let Some(region) = node.op_as::<RegionOperator>() {
                            return timed(region, &inputs, step, *timing);
                        }
                        timing.begin(step);
                        let outputs = plan::eval(context, op_state, node, inputs);
                        timing.end(step);
                        outputs
                    })
                })
                .map_err(run_error)?;
            // Outputs behind the model's own exist only for observers.
            outputs
                .into_iter()
                .take(self.model.graph.outputs().len())
                .map(values::from_tract)
                .collect::<TractResult<_>>()
                .map_err(run_error)
        })
    }
}

/// Runs a region whose first step has index `first`.
fn timed(
    region: &RegionOperator,
    inputs: &[TValue],
    first: usize,
    timing: &mut dyn Timing,
) -> TractResult<TVec<TValue>> {
    // The clock reports the step of an instruction when it is done; the next instruction begins
    // then.
    let mut left = region.instructions();
    timing.begin(first);
    let outputs = region.run(
        inputs,
        Some(&mut |step| {
            timing.end(first + step);
            left = left.saturating_sub(1);
            if left > 0 {
                timing.begin(first + step);
            }
        }),
    );
    if left > 0 {
        timing.end(first);
    }
    outputs
}

#[derive(Debug)]
struct StopRequested;

impl std::fmt::Display for StopRequested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped on request")
    }
}

impl std::error::Error for StopRequested {}
