//! Operators that only move elements of any type: ReverseSequence, CenterCropPad and OneHot.

use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use crate::operator_inputs::{axis_of, integers};
use octet_graph::prepare::count;

/// The operators of this file.
pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::bytes("CenterCropPad", centre),
    NativeKernel::bytes("OneHot", one_hot),
    NativeKernel::bytes("ReverseSequence", reverse),
];

/// Reverses the first elements of each sequence, as many as its length.
fn reverse(call: &NativeCall, made: &mut [u8]) -> TractResult<()> {
    let input = call.tensor(0)?;
    let shape = input.shape();
    let time = call.node.int("time_axis").unwrap_or(0) as usize;
    let batch = call.node.int("batch_axis").unwrap_or(1) as usize;
    ensure!(
        shape.len() > 1 && time < 2 && batch < 2 && time != batch,
        "its time axis {time} and batch axis {batch} must be 0 and 1, in any order, of an input of shape {shape:?}"
    );
    let (steps, sequences) = (shape[time], shape[batch]);
    // Without lengths (from a recurrent operator that runs backwards), each sequence is reversed as
    // a whole.
    let lengths = match call.input(1) {
        Some(lengths) => integers(lengths)?,
        None => vec![steps as i64; sequences],
    };
    let sound = |length: &i64| (0..=steps as i64).contains(length);
    ensure!(
        lengths.len() == sequences && lengths.iter().all(sound),
        "its lengths {lengths:?} do not fit {sequences} sequences of at most {steps} steps"
    );
    let each = count(&shape[2..]) * input.datum_type().size_of();
    let source = input.try_as_plain_ram()?.as_bytes();
    let place = |step: usize, sequence: usize| {
        each * match time {
            0 => step * sequences + sequence,
            _ => sequence * steps + step,
        }
    };
    for (sequence, &length) in lengths.iter().enumerate() {
        for step in 0..steps {
            let from = match step < length as usize {
                true => length as usize - 1 - step,
                false => step,
            };
            let from = place(from, sequence);
            made[place(step, sequence)..][..each].copy_from_slice(&source[from..][..each]);
        }
    }
    Ok(())
}

/// Centers each axis: crops a longer one and pads a shorter one with zeros.
fn centre(call: &NativeCall, made: &mut [u8]) -> TractResult<()> {
    let input = call.tensor(0)?;
    let (shape, each) = (input.shape(), input.datum_type().size_of());
    let source = input.try_as_plain_ram()?.as_bytes();
    for (place, made) in made.chunks_exact_mut(each).enumerate() {
        let (mut rest, mut step, mut from) = (place, 1, Some(0));
        for (&size, &sizes) in shape.iter().zip(call.output_shape).rev() {
            let at = (rest % sizes) as i64 + (size as i64 - sizes as i64) / 2;
            let at = usize::try_from(at).ok().filter(|&at| at < size);
            from = from.and_then(|from| Some(from + at? * step));
            step *= size;
            rest /= sizes;
        }
        if let Some(from) = from {
            made.copy_from_slice(&source[from * each..][..each]);
        }
    }
    Ok(())
}

/// Fills an axis of the given depth with the off value, and sets the on value at each index inside
/// it.
fn one_hot(call: &NativeCall, made: &mut [u8]) -> TractResult<()> {
    // An index that is not an integer marks nothing.
    let indices = call.tensor(0)?.cast_to::<f64>()?;
    let indices = indices.try_as_plain_ram()?.as_slice::<f64>()?;
    let values = call.tensor(2)?;
    let (each, pair) = (
        values.datum_type().size_of(),
        values.try_as_plain_ram()?.as_bytes(),
    );
    ensure!(pair.len() == 2 * each, "its values must be two");
    let (off, on) = pair.split_at(each);
    let rank = call.output_shape.len();
    let axis = axis_of(call.node.int("axis").unwrap_or(-1), rank)?;
    let (places, behind) = (
        call.output_shape[axis],
        count(&call.output_shape[axis + 1..]),
    );
    for (at, made) in made.chunks_exact_mut(each).enumerate() {
        let place = (at / behind % places) as f64;
        let index = indices[at / (behind * places) * behind + at % behind];
        let meant = index == place || index + places as f64 == place;
        made.copy_from_slice(if meant { on } else { off });
    }
    Ok(())
}
