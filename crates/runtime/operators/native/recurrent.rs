//! GRU, LSTM and RNN in all their variants. tract runs the usual ones; the others come here
//! ([`crate::operators::recurrent`]).

use octet_kernels::FloatRows;
use tract_onnx::tract_hir::internal::*;

use super::gate_functions::activations;
use super::gate_weights::GateWeights;
use super::recurrent_cells::{RecurrentCell, RecurrentDirection, RecurrentLayer};
use super::{NativeCall, NativeKernel};

/// The operators of this file, and the names under which tract knows them.
pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::several("GRU", |call, made| run(call, made, RecurrentCell::Gru))
        .known_as("GRU in general"),
    NativeKernel::several("LSTM", |call, made| run(call, made, RecurrentCell::Lstm))
        .known_as("LSTM in general"),
    NativeKernel::several("RNN", |call, made| run(call, made, RecurrentCell::Rnn))
        .known_as("RNN in general"),
];

pub(in crate::operators) const LENGTHS: usize = 4;
pub(in crate::operators) const STATE: usize = 5;
pub(in crate::operators) const CELL_STATE: usize = 6;
const PEEPHOLES: usize = 7;

fn run(call: &NativeCall, made: &mut [Tensor], cell: RecurrentCell) -> TractResult<()> {
    let batch_first = call.is_set("layout");
    let [first, second, inputs] = call.sizes(0)?;
    let [steps, batch] = if batch_first {
        [second, first]
    } else {
        [first, second]
    };
    let [sides, _, hidden] = call.sizes(2)?;
    let wide = cell.gates() * hidden;
    let direction = call.node.text("direction").unwrap_or("forward");
    ensure!(
        sides == if direction == "bidirectional" { 2 } else { 1 },
        "its weights are for {sides} directions, but its direction is {direction}"
    );
    ensure!(hidden > 0, "its recurrence weights are empty");
    let clip = call.node.float("clip").unwrap_or(f32::INFINITY);
    ensure!(clip >= 0.0, "its clip {clip} is negative");
    let lengths = match call.input(LENGTHS) {
        Some(_) => call.integers(LENGTHS)?,
        None => vec![steps as i64; batch],
    };
    ensure!(
        lengths.len() == batch
            && lengths
                .iter()
                .all(|length| (0..=steps as i64).contains(length)),
        "its lengths {lengths:?} do not fit {batch} sequences of at most {steps} steps"
    );
    let layer = RecurrentLayer {
        cell,
        batch_first,
        steps,
        batch,
        hidden,
        sides,
        inputs: FloatRows::new(call.floats(0)?, steps * batch, inputs).context("its input")?,
        lengths: lengths.iter().map(|&length| length as usize).collect(),
        clip,
        resets_after: call.is_set("linear_before_reset"),
        coupled: call.is_set("input_forget"),
    };
    let activations = activations(call, sides)?;
    let each = activations.len() / sides.max(1);
    // A part of a constant for each direction.
    let part = |slot: usize, side: usize, size: usize| -> TractResult<&[f32]> {
        let Some(all) = call.optional_floats(slot)? else {
            return Ok(&[]);
        };
        let own = all.get(side * size..(side + 1) * size);
        own.with_context(|| format!("its input {slot} has {} values", all.len()))
    };
    let states = |slot: usize, side: usize| -> TractResult<Vec<f32>> {
        let Some(all) = call.optional_floats(slot)? else {
            return Ok(vec![0.0; batch * hidden]);
        };
        let of_sequence =
            |sequence: usize| all.get(layer.state_place(side, sequence)..)?.get(..hidden);
        let rows: Option<Vec<&[f32]>> = (0..batch).map(of_sequence).collect();
        Ok(rows
            .with_context(|| format!("its input {slot} has {} values", all.len()))?
            .concat())
    };
    let mut outputs = vec![0.0; steps * sides * batch * hidden];
    let [mut last, mut last_cells] = [0, 1].map(|_| vec![0.0; sides * batch * hidden]);
    for at in 0..sides {
        let rows = |slot: usize, columns: usize| -> TractResult<FloatRows> {
            FloatRows::new(part(slot, at, wide * columns)?, wide, columns).context("its weights")
        };
        let mut side = RecurrentDirection {
            backwards: direction == "reverse" || at == 1,
            weights: GateWeights::new(rows(1, inputs)?, steps * batch),
            recurrence: GateWeights::new(rows(2, hidden)?, batch),
            bias: part(3, at, 2 * wide)?,
            peepholes: part(PEEPHOLES, at, 3 * hidden)?,
            activations: &activations[at * each..(at + 1) * each],
            state: states(STATE, at)?,
            cell_state: states(CELL_STATE, at)?,
        };
        layer.run(&mut side, |step, sequence, state| {
            let place = layer.place(step, at, sequence);
            outputs[place..][..hidden].copy_from_slice(state);
        })?;
        // As in ONNX Runtime, the states of sequences without steps are 0.
        let with_steps = (0..batch).filter(|&sequence| layer.lengths[sequence] > 0);
        for sequence in with_steps {
            let (place, own) = (layer.state_place(at, sequence), sequence * hidden);
            last[place..][..hidden].copy_from_slice(&side.state[own..][..hidden]);
            last_cells[place..][..hidden].copy_from_slice(&side.cell_state[own..][..hidden]);
        }
    }
    for (slot, floats) in [outputs, last, last_cells].iter().enumerate() {
        call.fill(made, slot, floats)?;
    }
    Ok(())
}
