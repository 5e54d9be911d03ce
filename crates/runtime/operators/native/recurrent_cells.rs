//! The steps of a direction.

use std::ops::Range;

use octet_kernels::FloatRows;
use tract_onnx::tract_hir::internal::*;

use super::gate_functions::GateFunction;
use super::gate_weights::GateWeights;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecurrentCell {
    Gru,
    Lstm,
    Rnn,
}

impl RecurrentCell {
    /// Number of gates.
    pub(super) fn gates(self) -> usize {
        match self {
            RecurrentCell::Gru => 3,
            RecurrentCell::Lstm => 4,
            RecurrentCell::Rnn => 1,
        }
    }
}

/// The part of a layer that its directions share.
pub(super) struct RecurrentLayer<'a> {
    pub(super) cell: RecurrentCell,
    pub(super) batch_first: bool,
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) hidden: usize,
    pub(super) sides: usize,
    /// Rows of inputs, by step and sequence or by sequence and step.
    pub(super) inputs: FloatRows<'a>,
    /// The length of each sequence.
    pub(super) lengths: Vec<usize>,
    pub(super) clip: f32,
    /// GRU: the reset gate comes after the product.
    pub(super) resets_after: bool,
    /// LSTM: the forget gate is what the input gate leaves.
    pub(super) coupled: bool,
}

/// The constants and states of a direction.
pub(super) struct RecurrentDirection<'a> {
    pub(super) backwards: bool,
    /// A row for each gate and output.
    pub(super) weights: GateWeights<'a>,
    pub(super) recurrence: GateWeights<'a>,
    /// Biases of inputs and states, or nothing.
    pub(super) bias: &'a [f32],
    pub(super) peepholes: &'a [f32],
    pub(super) activations: &'a [GateFunction],
    pub(super) state: Vec<f32>,
    pub(super) cell_state: Vec<f32>,
}

impl RecurrentLayer<'_> {
    /// The row of a step of a sequence.
    fn row(&self, step: usize, sequence: usize) -> usize {
        match self.batch_first {
            true => sequence * self.steps + step,
            false => step * self.batch + sequence,
        }
    }

    /// The place of a direction's output at a step of a sequence.
    pub(super) fn place(&self, step: usize, side: usize, sequence: usize) -> usize {
        let before = match self.batch_first {
            true => (sequence * self.steps + step) * self.sides + side,
            false => (step * self.sides + side) * self.batch + sequence,
        };
        before * self.hidden
    }

    /// The place of a direction's state of a sequence.
    pub(super) fn state_place(&self, side: usize, sequence: usize) -> usize {
        let before = match self.batch_first {
            true => sequence * self.sides + side,
            false => side * self.batch + sequence,
        };
        before * self.hidden
    }

    fn clipped(&self, value: f32) -> f32 {
        value.clamp(-self.clip, self.clip)
    }

    /// Runs a direction. `write` takes the output of a step of a sequence.
    pub(super) fn run(
        &self,
        side: &mut RecurrentDirection,
        mut write: impl FnMut(usize, usize, &[f32]),
    ) -> TractResult<()> {
        let (hidden, wide) = (self.hidden, self.cell.gates() * self.hidden);
        let mut from_inputs = side.weights.products(self.inputs)?;
        // In a GRU that resets after the product, the last gate's second bias stays with the state.
        let kept = self.cell == RecurrentCell::Gru && self.resets_after;
        let shared = if kept { 2 * hidden } else { wide };
        if let Some((of_inputs, of_states)) = side.bias.split_at_checked(wide) {
            for row in from_inputs.chunks_mut(wide) {
                let biases = of_inputs.iter().zip(of_states).enumerate();
                for (value, (at, (one, other))) in row.iter_mut().zip(biases) {
                    *value += one + if at < shared { *other } else { 0.0 };
                }
            }
        }
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        let mut gates = vec![0.0; wide];
        for step in 0..longest {
            let of_states = self.products_of_states(side)?;
            for (sequence, &length) in self.lengths.iter().enumerate() {
                if step >= length {
                    continue;
                }
                let at = if side.backwards {
                    length - 1 - step
                } else {
                    step
                };
                let own = self.row(at, sequence) * wide;
                gates.copy_from_slice(&from_inputs[own..][..wide]);
                let of_states = &of_states[sequence * wide..][..wide];
                let states = sequence * hidden..(sequence + 1) * hidden;
                match self.cell {
                    RecurrentCell::Rnn => self.rnn(side, &mut gates, of_states, states.clone()),
                    RecurrentCell::Gru => self.gru(side, &mut gates, of_states, states.clone())?,
                    RecurrentCell::Lstm => self.lstm(side, &mut gates, of_states, states.clone()),
                }
                write(at, sequence, &side.state[states]);
            }
        }
        Ok(())
    }

    /// The products of all states and the recurrence weights.
    fn products_of_states(&self, side: &RecurrentDirection) -> TractResult<Vec<f32>> {
        let states = FloatRows::new(&side.state, self.batch, self.hidden);
        side.recurrence
            .products(states.context("its state has another size")?)
    }

    fn rnn(
        &self,
        side: &mut RecurrentDirection,
        gates: &mut [f32],
        of_states: &[f32],
        states: Range<usize>,
    ) {
        let values = gates.iter().zip(of_states);
        for (state, (gate, more)) in side.state[states].iter_mut().zip(values) {
            *state = side.activations[0].of(self.clipped(gate + more));
        }
    }

    fn gru(
        &self,
        side: &mut RecurrentDirection,
        gates: &mut [f32],
        of_states: &[f32],
        states: Range<usize>,
    ) -> TractResult<()> {
        let hidden = self.hidden;
        let [of_gate, of_candidate] = [side.activations[0], side.activations[1]];
        for (gate, more) in gates[..2 * hidden].iter_mut().zip(of_states) {
            *gate = of_gate.of(self.clipped(*gate + more));
        }
        let (update, rest) = gates.split_at_mut(hidden);
        let (reset, candidate) = rest.split_at_mut(hidden);
        let state = &mut side.state[states];
        if self.resets_after {
            let wide = 3 * hidden;
            let biases = side.bias.get(wide + 2 * hidden..);
            for (at, candidate) in candidate.iter_mut().enumerate() {
                let bias = biases.map_or(0.0, |biases| biases.get(at).copied().unwrap_or(0.0));
                *candidate += reset[at] * (of_states[2 * hidden + at] + bias);
            }
        } else {
            let left: Vec<f32> = reset
                .iter()
                .zip(&*state)
                .map(|(reset, state)| reset * state)
                .collect();
            let products = side.recurrence.of_row(2 * hidden..3 * hidden, &left)?;
            for (candidate, more) in candidate.iter_mut().zip(products) {
                *candidate += more;
            }
        }
        for ((state, candidate), update) in state.iter_mut().zip(candidate).zip(update) {
            let new = of_candidate.of(self.clipped(*candidate));
            *state = (1.0 - *update) * new + *update * *state;
        }
        Ok(())
    }

    fn lstm(
        &self,
        side: &mut RecurrentDirection,
        gates: &mut [f32],
        of_states: &[f32],
        states: Range<usize>,
    ) {
        let hidden = self.hidden;
        let [of_gate, of_cell, of_hidden] = [0, 1, 2].map(|at| side.activations[at]);
        let peephole = |which: usize, at: usize| {
            let weight = side.peepholes.get(which * hidden + at);
            weight.copied().unwrap_or(0.0)
        };
        let cells = side.cell_state[states.clone()].iter_mut();
        let all = cells.zip(&mut side.state[states]).enumerate();
        for (at, (cell, state)) in all {
            // The gates are in the order of inputs, outputs, forgetting and cells.
            let [input, output, forget, new] =
                [0, 1, 2, 3].map(|gate| gates[gate * hidden + at] + of_states[gate * hidden + at]);
            let input = of_gate.of(self.clipped(input + peephole(0, at) * *cell));
            let forget = match self.coupled {
                true => 1.0 - input,
                false => of_gate.of(self.clipped(forget + peephole(2, at) * *cell)),
            };
            *cell = forget * *cell + input * of_cell.of(self.clipped(new));
            let output = of_gate.of(self.clipped(output + peephole(1, at) * *cell));
            *state = output * of_hidden.of(*cell);
        }
    }
}
