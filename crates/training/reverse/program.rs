//! Programs of operations: a run forward keeps what the run backward reads, and nothing else.

use super::rounding::Mixture;
use super::{Kept, ReverseOperation};

/// An operation and the values that it reads and writes.
#[derive(Clone, Debug)]
pub struct ProgramStep {
    /// The operation.
    pub operation: ReverseOperation,
    /// Values that it reads.
    pub inputs: Vec<usize>,
    /// The value that it writes.
    pub output: usize,
}

/// Steps in order. Values that no step writes are leaves, which the caller gives.
#[derive(Clone, Debug)]
pub struct ReverseProgram {
    /// Numbers in each value.
    lens: Vec<usize>,
    steps: Vec<ProgramStep>,
    outputs: Vec<usize>,
    /// Values whose gradient is needed.
    wanted: Vec<bool>,
    /// Values that the gradients read.
    read: Vec<bool>,
    /// The last step that reads each value.
    last: Vec<usize>,
}

/// The values of a run.
#[derive(Debug, Default)]
pub struct ProgramRun {
    values: Vec<Vec<f32>>,
    kept: Vec<Kept>,
}

impl ProgramRun {
    /// A value that the program keeps, such as an output.
    pub fn value(&self, value: usize) -> &[f32] {
        self.values.get(value).map_or(&[], Vec::as_slice)
    }

    /// Bytes of the values that are kept.
    pub fn value_bytes(&self) -> usize {
        let values = self.values.iter();
        values.map(|value| size_of_val(value.as_slice())).sum()
    }

    /// Bytes of what is kept besides values: bits, and taps of maxima.
    pub fn mask_bytes(&self) -> usize {
        self.kept.iter().map(Kept::bytes).sum()
    }
}

impl ReverseProgram {
    /// A program whose values have these lengths. `learned` are leaves that need a gradient.
    ///
    /// `None` if a step reads a value before it is written, or the lengths do not fit.
    pub fn new(
        lens: Vec<usize>,
        steps: Vec<ProgramStep>,
        outputs: Vec<usize>,
        learned: &[usize],
    ) -> Option<ReverseProgram> {
        let mut wanted = vec![false; lens.len()];
        for &leaf in learned {
            *wanted.get_mut(leaf)? = true;
        }
        let mut read = vec![false; lens.len()];
        let mut last = vec![0; lens.len()];
        let mut open: Vec<bool> = vec![true; lens.len()];
        for step in &steps {
            *open.get_mut(step.output)? = false;
        }
        for (at, step) in steps.iter().enumerate() {
            let known = |value: &usize| open.get(*value).copied() == Some(true);
            if !step.inputs.iter().all(known) || known(&step.output) {
                return None;
            }
            let own: Vec<usize> = step.inputs.iter().map(|&value| lens[value]).collect();
            if !step.operation.fits(&own, lens[step.output]) {
                return None;
            }
            let wants: Vec<bool> = step.inputs.iter().map(|&value| wanted[value]).collect();
            step.inputs.iter().for_each(|&value| last[value] = at);
            open[step.output] = true;
            if wants.contains(&true) {
                wanted[step.output] = true;
                let (slots, own) = step.operation.reads(&wants);
                slots
                    .into_iter()
                    .filter_map(|slot| step.inputs.get(slot))
                    .for_each(|&value| read[value] = true);
                read[step.output] |= own;
            }
        }
        let known = outputs
            .iter()
            .all(|&output| open.get(output) == Some(&true));
        known.then_some(ReverseProgram {
            lens,
            steps,
            outputs,
            wanted,
            read,
            last,
        })
    }

    /// Numbers in a value.
    pub fn len_of(&self, value: usize) -> usize {
        self.lens.get(value).copied().unwrap_or(0)
    }

    /// Runs the steps. `leaves` has a slice for each value, which is read for leaves only. With
    /// `gradient`, the run keeps what [`ReverseProgram::backward`] reads.
    pub fn forward(
        &self,
        leaves: &[&[f32]],
        mixture: Option<Mixture>,
        gradient: bool,
    ) -> ProgramRun {
        let mut run = ProgramRun {
            values: vec![Vec::new(); self.lens.len()],
            kept: vec![Kept::default(); self.steps.len()],
        };
        for (at, step) in self.steps.iter().enumerate() {
            let mut out = vec![0.0; self.lens[step.output]];
            let inputs = self.inputs(step, leaves, &run.values);
            let mixture = mixture.map(|mixture| mixture.at(at));
            step.operation
                .forward(&inputs, &mut out, &mut run.kept[at], mixture);
            run.values[step.output] = out;
            if !(gradient && self.wanted[step.output]) {
                run.kept[at] = Kept::default();
            }
            for &value in &step.inputs {
                let kept = gradient && self.read[value] || self.outputs.contains(&value);
                if self.last[value] == at && !kept {
                    run.values[value] = Vec::new();
                }
            }
        }
        run
    }

    /// The gradients of the leaves that learn, from those of the outputs.
    pub fn backward(
        &self,
        leaves: &[&[f32]],
        mut run: ProgramRun,
        slopes: Vec<(usize, Vec<f32>)>,
    ) -> Vec<Option<Vec<f32>>> {
        let mut all: Vec<Option<Vec<f32>>> = vec![None; self.lens.len()];
        for (output, slope) in slopes {
            if slope.len() == self.len_of(output) {
                all[output] = Some(slope);
            }
        }
        for (step, kept) in self.steps.iter().zip(std::mem::take(&mut run.kept)).rev() {
            let Some(slope) = all[step.output].take().filter(|_| self.wanted[step.output]) else {
                continue;
            };
            // A value that is read twice has a buffer for each.
            let mut gradients: Vec<Option<Vec<f32>>> = step
                .inputs
                .iter()
                .map(|&value| {
                    let own = || {
                        all[value]
                            .take()
                            .unwrap_or_else(|| vec![0.0; self.lens[value]])
                    };
                    self.wanted[value].then(own)
                })
                .collect();
            let lens: Vec<usize> = step.inputs.iter().map(|&value| self.lens[value]).collect();
            let inputs = self.inputs(step, leaves, &run.values);
            let given = (inputs.as_slice(), run.value(step.output), &kept);
            step.operation
                .backward(given, &lens, &slope, &mut gradients);
            run.values[step.output] = Vec::new();
            for (&value, gradient) in step.inputs.iter().zip(gradients) {
                let Some(gradient) = gradient else { continue };
                match &mut all[value] {
                    Some(known) => {
                        let pairs = known.iter_mut().zip(&gradient);
                        pairs.for_each(|(known, more)| *known += more);
                    }
                    none => *none = Some(gradient),
                }
            }
        }
        all
    }

    fn inputs<'a>(
        &self,
        step: &ProgramStep,
        leaves: &[&'a [f32]],
        values: &'a [Vec<f32>],
    ) -> Vec<&'a [f32]> {
        let of = |&value: &usize| match leaves.get(value) {
            Some(leaf) if !leaf.is_empty() => *leaf,
            _ => values[value].as_slice(),
        };
        step.inputs.iter().map(of).collect()
    }
}
