//! AffineGrid, which maps output pixels to input positions, and Det.

use tract_onnx::tract_hir::internal::*;

use super::{NativeCall, NativeKernel};
use octet_graph::prepare::count;

/// The operators of this file.
pub(super) static KERNELS: &[NativeKernel] = &[
    NativeKernel::floats("AffineGrid", affine),
    NativeKernel::floats("Det", determinant),
];

/// Transforms each position of a grid from -1 to 1 by theta.
fn affine(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let theta = call.floats(0)?;
    // Planes if there are any, rows, columns.
    let sizes = &call.output_shape[1..call.output_shape.len() - 1];
    let axes = sizes.len();
    let wanted = [call.output_shape[0], axes, axes + 1];
    ensure!(
        call.tensor(0)?.shape() == wanted,
        "its theta must have shape {wanted:?}, as its size requires"
    );
    let corners = call.node.int("align_corners").unwrap_or(0) != 0;
    let middle = |at: usize, size: usize| match (corners, size) {
        (true, 1) => 1.0,
        (true, _) => 2.0 * at as f32 / (size - 1) as f32 - 1.0,
        (false, _) => (2 * at + 1) as f32 / size as f32 - 1.0,
    };
    let pixels = count(sizes);
    for (place, made) in made.chunks_exact_mut(axes).enumerate() {
        let theta = &theta[place / pixels * axes * (axes + 1)..];
        let mut rest = place % pixels;
        // Theta has the column coordinate first.
        let mut at = [0.0; 3];
        for (axis, &size) in sizes.iter().rev().enumerate() {
            at[axis] = middle(rest % size, size);
            rest /= size;
        }
        for (made, row) in made.iter_mut().zip(theta.chunks_exact(axes + 1)) {
            let moved = row.iter().zip(&at[..axes]).map(|(by, at)| by * at);
            *made = moved.sum::<f32>() + row[axes];
        }
    }
    Ok(())
}

/// Determinants of matrices, by elimination.
fn determinant(call: &NativeCall, made: &mut [f32]) -> TractResult<()> {
    let shape = call.tensor(0)?.shape();
    let size = shape[shape.len() - 1];
    ensure!(
        shape[shape.len() - 2] == size,
        "its input of shape {shape:?} does not hold square matrices"
    );
    let mut all = call.floats(0)?.to_vec();
    for (place, made) in made.iter_mut().enumerate() {
        let matrix = &mut all[place * size * size..][..size * size];
        *made = 1.0;
        for step in 0..size {
            let largest = |&a: &usize, &b: &usize| {
                let [a, b] = [a, b].map(|row| matrix[row * size + step].abs());
                a.total_cmp(&b)
            };
            let pivot = (step..size).max_by(largest).unwrap_or(step);
            if pivot != step {
                *made = -*made;
                for column in 0..size {
                    matrix.swap(step * size + column, pivot * size + column);
                }
            }
            let head = matrix[step * size + step];
            *made *= head;
            if head == 0.0 {
                break;
            }
            for row in step + 1..size {
                let by = matrix[row * size + step] / head;
                for column in step..size {
                    matrix[row * size + column] -= by * matrix[step * size + column];
                }
            }
        }
    }
    Ok(())
}
