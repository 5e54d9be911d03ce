//! Matrix products of u8 activations and i8 weights.

use super::error::{Error, at_least, equal, product, span};
use super::output::Output;
use super::shape::{Rows, zero_points};
use super::{Form, reference};

/// How a weight matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All of a column's values together: [columns, depth] (Conv's, and Gemm's with transB).
    ColumnAfterColumn,
    /// [depth, columns]: MatMul's.
    DepthFirst,
}

/// A weight matrix, packed once for one form.
#[derive(Clone, Debug)]
pub struct Weights {
    form: Form,
    depth: usize,
    columns: usize,
    values: Vec<i8>,
    layout: Layout,
    zero_points: Vec<i8>,
}

impl Weights {
    /// Packs `depth × columns` weights. No zero points stand for zeros.
    pub fn pack(
        form: Form,
        values: &[i8],
        layout: Layout,
        [depth, columns]: [usize; 2],
        zero_points_of_columns: &[i8],
    ) -> Result<Weights, Error> {
        if !form.is_available() {
            return Err(Error::Unavailable(form));
        }
        let count = product("the weights", &[depth, columns])?;
        at_least("the weights", values.len(), count)?;
        zero_points(zero_points_of_columns, columns)?;
        Ok(Weights {
            form,
            depth,
            columns,
            values: values[..count].to_vec(),
            layout,
            zero_points: zero_points_of_columns.to_vec(),
        })
    }

    /// The form that runs: the one asked for, or [`Form::Simd128`] where these weights are too far apart for
    /// what this machine's relaxed dot can take.
    pub fn form(&self) -> Form {
        self.form
    }

    /// How many products make a sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many sums a row gets.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What the packed weights take.
    pub fn bytes(&self) -> usize {
        self.values.len()
    }
}

/// `Σ (a - a_zero) · (w - w_zero) + bias` for each row and column, then what the output says.
pub fn gemm(
    rows: &Rows,
    weights: &Weights,
    bias: Option<&[i32]>,
    output: Output,
) -> Result<(), Error> {
    at_least(
        "the activations",
        rows.values.len(),
        span("the activations", rows.count, rows.stride, weights.depth)?,
    )?;
    bias.map_or(Ok(()), |bias| equal("bias", weights.columns, bias.len()))?;
    output.check(rows.count, weights.columns)?;
    reference::gemm(
        rows,
        &weights.values,
        weights.layout,
        [weights.depth, weights.columns],
        &weights.zero_points,
        bias,
        output,
    )
}
