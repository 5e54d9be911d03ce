//! Reads of a node's inputs, outputs and axes, with reasons on failure.

use octet_graph::Node;
use octet_graph::prepare::position;

use crate::float_reason::FloatReason;

/// Maximum size of a selection, which lists every position.
const LARGEST: usize = 1 << 24;

/// Name of an input.
pub(crate) fn slot(node: &Node, slot: usize) -> Result<&str, FloatReason> {
    node.input_at(slot).ok_or(FloatReason::NoInput(slot + 1))
}

/// Name of the first output.
pub(crate) fn slot_out(node: &Node) -> Result<&str, FloatReason> {
    node.output
        .first()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .ok_or(FloatReason::NoOutput)
}

/// Converts an axis to its index from the front.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, FloatReason> {
    position(axis, rank).ok_or(FloatReason::AxisOutOfRange(axis, rank))
}

/// Checks that no axis is too long for a list of its positions.
pub(crate) fn bounded(shape: &[usize]) -> Result<(), FloatReason> {
    match shape.iter().all(|&size| size <= LARGEST) {
        true => Ok(()),
        false => Err(FloatReason::AxisTooLong(shape.to_vec())),
    }
}

/// Checks that an input broadcasts to the output.
pub(crate) fn check_broadcast(
    name: &str,
    shape: &[usize],
    output: &[usize],
) -> Result<(), FloatReason> {
    let mut along = shape.iter().rev().zip(output.iter().rev());
    match shape.len() <= output.len() && along.all(|(a, b)| *a == 1 || a == b) {
        true => Ok(()),
        false => Err(FloatReason::Broadcast(
            name.to_owned(),
            shape.to_vec(),
            output.to_vec(),
        )),
    }
}

/// Sizes without leading ones.
pub(crate) fn without_leading_ones(sizes: &[usize]) -> &[usize] {
    let first = sizes.iter().position(|&size| size != 1);
    &sizes[first.unwrap_or(sizes.len())..]
}

/// The permutation of a Transpose: for each output axis, its input axis.
pub(crate) fn permutation(node: &Node, rank: usize) -> Result<Vec<usize>, FloatReason> {
    let Some(perm) = node.ints("perm") else {
        return Ok((0..rank).rev().collect());
    };
    let order = perm
        .iter()
        .map(|&a| axis(a, rank))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(FloatReason::Permutation(perm.to_vec(), rank));
    }
    Ok(order)
}
