//! Callbacks and limits that a run passes on to its parts.

use std::cell::Cell;

use super::steps::Timing;

/// Called when a step of an integer region is done, with its index in the list of fused nodes.
pub type StepClock<'a> = &'a mut dyn FnMut(usize);

/// Callbacks and limits of a run.
pub(super) struct RunContext<'a> {
    /// Gets the watched values.
    pub(super) see: &'a mut dyn FnMut(usize, &[&[f32]], &[usize]),
    /// Called before every operator; true stops the run.
    pub(super) stop: &'a dyn Fn() -> bool,
    pub(super) timing: Option<&'a mut dyn Timing>,
    /// Called after each step of an integer region, with its index in the list of fused nodes.
    pub(super) clock: Option<StepClock<'a>>,
    /// Iterations that loops may still make.
    pub(super) iterations: &'a Cell<usize>,
}

impl RunContext<'_> {
    /// Reborrows for another part of the run.
    pub(super) fn again(&mut self) -> RunContext<'_> {
        RunContext {
            see: self.see,
            stop: self.stop,
            timing: match &mut self.timing {
                Some(timing) => Some(&mut **timing),
                None => None,
            },
            clock: match &mut self.clock {
                Some(clock) => Some(&mut **clock),
                None => None,
            },
            iterations: self.iterations,
        }
    }

    /// Reborrows for a graph inside a node; the node is one step and its inner values are not
    /// watched.
    pub(super) fn inside<'a>(
        &'a mut self,
        unseen: &'a mut dyn FnMut(usize, &[&[f32]], &[usize]),
    ) -> RunContext<'a> {
        RunContext {
            see: unseen,
            stop: self.stop,
            timing: None,
            clock: None,
            iterations: self.iterations,
        }
    }
}
