//! Inferred type, shape and numbers of a value.

use std::collections::BTreeMap;

use crate::{Dim, TensorType};
use octet_onnx::schema::{DataType, TensorProto};

/// Limit on the elements of a value whose numbers are followed.
pub(crate) const LARGEST: usize = 4096;

/// Inferred type, shape and numbers of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct InferredValue {
    /// Element type.
    pub element: DataType,
    /// Shape, or `None` if even the rank is unknown.
    pub shape: Option<Vec<Dim>>,
    /// Numbers of a small integer or bool value; each may be unknown.
    pub integers: Option<Vec<Option<i64>>>,
    /// Numbers of a small `f32` value.
    pub floats: Option<Vec<f32>>,
}

/// Inferred values by name; a value of which nothing is known is absent.
pub type Types = BTreeMap<String, InferredValue>;

impl InferredValue {
    /// A value of this type and shape, of whose numbers nothing is known.
    pub fn new(element: DataType, shape: Option<Vec<Dim>>) -> InferredValue {
        InferredValue {
            element,
            shape,
            integers: None,
            floats: None,
        }
    }

    /// The shape, if every size is known.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        sizes(self.shape.as_deref()?)
    }

    /// All integers, if each is known.
    pub fn all_integers(&self) -> Option<Vec<i64>> {
        self.integers.as_ref()?.iter().copied().collect()
    }

    /// The first integer, if all are known.
    pub fn first_integer(&self) -> Option<i64> {
        self.all_integers()?.first().copied()
    }

    pub(crate) fn from_constant(tensor: &TensorProto) -> Option<InferredValue> {
        let shape = tensor.shape().ok()?;
        let dims = shape.into_iter().map(Dim::Known).collect();
        let mut known = InferredValue::new(tensor.element().ok()?, Some(dims));
        if tensor.element_count().ok()? <= LARGEST && !tensor.is_external() {
            known.integers = tensor
                .to_i64()
                .ok()
                .map(|v| v.into_iter().map(Some).collect());
            if known.element == DataType::Float {
                known.floats = tensor.to_f32().ok();
            }
        }
        Some(known)
    }

    /// Takes the elements of `source` at these positions.
    pub(crate) fn with_elements_at(
        mut self,
        source: &InferredValue,
        places: &[usize],
    ) -> InferredValue {
        if places.len() <= LARGEST {
            let take = |v: &Vec<Option<i64>>| {
                places
                    .iter()
                    .map(|&p| v.get(p).copied().flatten())
                    .collect()
            };
            self.integers = source.integers.as_ref().map(take);
            self.floats = source
                .floats
                .as_ref()
                .and_then(|v| places.iter().map(|&p| v.get(p).copied()).collect());
        }
        self
    }

    /// Takes all elements of `source`; the shape stays.
    pub(crate) fn with_elements_of(mut self, source: &InferredValue) -> InferredValue {
        self.integers = source.integers.clone();
        self.floats = source.floats.clone();
        self
    }
}

impl From<InferredValue> for TensorType {
    fn from(known: InferredValue) -> TensorType {
        TensorType {
            element: known.element,
            shape: known.shape,
        }
    }
}

/// The sizes of a shape, if each is known.
pub(crate) fn sizes(shape: &[Dim]) -> Option<Vec<usize>> {
    shape
        .iter()
        .map(|d| match d {
            Dim::Known(size) => Some(*size),
            _ => None,
        })
        .collect()
}

/// Sizes as known dimensions.
pub(crate) fn known_dims(sizes: &[usize]) -> Option<Vec<Dim>> {
    Some(sizes.iter().map(|&s| Dim::Known(s)).collect())
}

/// Number of elements of a value of these sizes, saturating.
pub fn count(sizes: &[usize]) -> usize {
    sizes
        .iter()
        .fold(1, |count: usize, &size| count.saturating_mul(size))
}

/// An axis counted from the front; `None` if it is out of range.
pub fn position(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&a| a < rank)
}

/// Axes counted from the front; `None` if one is out of range.
pub(crate) fn positions(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    axes.iter().map(|&a| position(a, rank)).collect()
}
