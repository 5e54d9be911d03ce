//! Batched matrix products of two values, with numpy's rules. A vector is a row on the left and a
//! column on the right, and batch axes broadcast.

use crate::float_reason::FloatReason;

/// Pairs of matrices in a batched product of two values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MatrixBatch {
    /// For each product, the batch index of its matrix in both values.
    pub(crate) places: Vec<[usize; 2]>,
    /// [rows, depth] times [depth, columns].
    pub(crate) sizes: [usize; 3],
}

/// The matrices of two values whose product has this shape.
pub(crate) fn matrix_batch(
    left: &[usize],
    right: &[usize],
    output: &[usize],
) -> Result<MatrixBatch, FloatReason> {
    let other = || FloatReason::Matrices(left.to_vec(), right.to_vec());
    let (before, [rows, depth]) = match left {
        [depth] => (&[][..], [1, *depth]),
        [before @ .., rows, depth] => (before, [*rows, *depth]),
        [] => return Err(other()),
    };
    let (beside, [again, columns]) = match right {
        [depth] => (&[][..], [*depth, 1]),
        [before @ .., depth, columns] => (before, [*depth, *columns]),
        [] => return Err(other()),
    };
    let spread = broadcast(before, beside).filter(|_| again == depth);
    let stack = spread.ok_or_else(other)?;
    let mut result = stack.clone();
    result.extend(Some(rows).filter(|_| left.len() > 1));
    result.extend(Some(columns).filter(|_| right.len() > 1));
    if result != output {
        return Err(FloatReason::OtherOutputShape(output.to_vec(), result));
    }
    if depth == 0 || result.contains(&0) {
        return Err(FloatReason::EmptyFactors);
    }
    let count = stack.iter().product();
    let place = |at| {
        [
            batch_index(at, &stack, before),
            batch_index(at, &stack, beside),
        ]
    };
    Ok(MatrixBatch {
        places: (0..count).map(place).collect(),
        sizes: [rows, depth, columns],
    })
}

/// Broadcasts two lists of sizes.
fn broadcast(one: &[usize], other: &[usize]) -> Option<Vec<usize>> {
    let rank = one.len().max(other.len());
    let size = |axis: usize| match (size_along(one, rank, axis), size_along(other, rank, axis)) {
        (1, size) | (size, 1) => Some(size),
        (size, same) => (size == same).then_some(size),
    };
    (0..rank).map(size).collect()
}

/// Size along an axis after sizes of 1 are prepended up to `rank`.
fn size_along(sizes: &[usize], rank: usize, axis: usize) -> usize {
    let own = (axis + sizes.len()).checked_sub(rank);
    own.map_or(1, |own| sizes[own])
}

/// Index into a factor's batch for an index into the broadcast batch.
fn batch_index(at: usize, stack: &[usize], sizes: &[usize]) -> usize {
    let (mut rest, mut step, mut place) = (at, 1, 0);
    for (axis, &size) in stack.iter().enumerate().rev() {
        let own = size_along(sizes, stack.len(), axis);
        // An axis of size 1 broadcasts.
        place += rest % size % own * step;
        rest /= size;
        step *= own;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_broadcast() {
        let found = matrix_batch(&[2, 1, 4, 5], &[3, 5, 6], &[2, 3, 4, 6]).unwrap();
        assert_eq!(found.sizes, [4, 5, 6]);
        let places = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]];
        assert_eq!(found.places, places);
    }

    #[test]
    fn a_vector_is_a_row_on_the_left_and_a_column_on_the_right() {
        for (left, right, output, sizes) in [
            (&[5][..], &[5, 6][..], &[6][..], [1, 5, 6]),
            (&[4, 5], &[5], &[4], [4, 5, 1]),
            (&[5], &[5], &[], [1, 5, 1]),
            (&[2, 4, 5], &[5], &[2, 4], [4, 5, 1]),
        ] {
            let found = matrix_batch(left, right, output).unwrap();
            assert_eq!(found.sizes, sizes, "{left:?} {right:?}");
            let stacked = left.len().max(right.len()) > 2;
            assert_eq!(found.places.len(), if stacked { 2 } else { 1 });
        }
    }

    #[test]
    fn a_mismatch_is_a_reason() {
        for (left, right, output) in [
            (&[4, 5][..], &[6, 5][..], &[4, 5][..]),
            (&[2, 4, 5], &[3, 5, 6], &[2, 4, 6]),
            (&[4, 5], &[5, 6], &[4, 7]),
            (&[4, 0], &[0, 6], &[4, 6]),
            (&[0, 5], &[5, 6], &[0, 6]),
            (&[], &[5, 6], &[6]),
        ] {
            assert!(
                matrix_batch(left, right, output).is_err(),
                "{left:?} {right:?}"
            );
        }
    }
}
