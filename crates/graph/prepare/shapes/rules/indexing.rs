//! Operators that join, index and split: Concat, Slice, Gather, Split, TopK.

use super::{Context, position, positions};
use crate::Dim;
use crate::prepare::shapes::small_values::{positions_of, strides};
use crate::prepare::shapes::{InferredValue, LARGEST, count, sizes};
use octet_onnx::schema::DataType;

impl Context<'_> {
    pub(super) fn concat(&self) -> Option<InferredValue> {
        let inputs: Option<Vec<&InferredValue>> =
            (0..self.node.input.len()).map(|i| self.input(i)).collect();
        let element = (0..self.node.input.len())
            .find_map(|i| self.input(i))?
            .element;
        let unknown = Some(InferredValue::new(element, None));
        let Some(inputs) = inputs else { return unknown };
        let Some(shapes) = inputs
            .iter()
            .map(|k| k.shape.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            return unknown;
        };
        let rank = shapes.first()?.len();
        if shapes.iter().any(|s| s.len() != rank) {
            return None;
        }
        let axis = position(self.node.int("axis").unwrap_or(1), rank)?;
        let along: Vec<Dim> = shapes.iter().map(|s| s[axis].clone()).collect();
        let dims = (0..rank).map(|a| {
            if a == axis {
                return sizes(&along).map_or(Dim::Unknown, |s| {
                    Dim::Known(
                        s.iter()
                            .fold(0, |all: usize, &size| all.saturating_add(size)),
                    )
                });
            }
            let known = shapes
                .iter()
                .map(|s| &s[a])
                .find(|d| matches!(d, Dim::Known(_)));
            known.unwrap_or(&shapes[0][a]).clone()
        });
        let mut result = InferredValue::new(element, Some(dims.collect()));
        // Numbers are joined only for lists, because shapes are computed from lists.
        if rank == 1 {
            let integers = inputs
                .iter()
                .zip(&shapes)
                .map(|(k, s)| match (&k.integers, &s[0]) {
                    (Some(integers), _) => Some(integers.clone()),
                    (None, Dim::Known(size)) if *size <= LARGEST => Some(vec![None; *size]),
                    _ => None,
                });
            let integers: Option<Vec<_>> = integers.collect();
            let is_integer = !matches!(
                element,
                DataType::Float | DataType::Double | DataType::Float16
            );
            result.integers = integers
                .filter(|_| is_integer)
                .map(|v| v.concat())
                .filter(|v| v.len() <= LARGEST);
            let floats: Option<Vec<_>> = inputs.iter().map(|k| k.floats.clone()).collect();
            result.floats = floats.map(|v| v.concat()).filter(|v| v.len() <= LARGEST);
        }
        Some(result)
    }

    pub(super) fn slice(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let rank = shape.len();
        let (starts, ends) = (self.list("starts", 1), self.list("ends", 2));
        let axes = match (self.list("axes", 3), self.is_present("axes", 3)) {
            (Some(axes), _) => Some(axes),
            (None, true) => None,
            (None, false) => starts.as_ref().map(|s| (0..s.len() as i64).collect()),
        };
        let steps = match (self.list("steps", 4), self.node.input_at(4)) {
            (Some(steps), _) => Some(steps),
            (None, Some(_)) => None,
            (None, None) => starts.as_ref().map(|s| vec![1; s.len()]),
        };
        let Some(axes) = axes else {
            return Some(InferredValue::new(
                input.element,
                Some(vec![Dim::Unknown; rank]),
            ));
        };
        let axes = positions(&axes, rank)?;
        let mut dims = shape.clone();
        let mut from = vec![(0i64, 1i64); rank];
        for (i, &axis) in axes.iter().enumerate() {
            let number = |list: &Option<Vec<i64>>| list.as_ref().and_then(|l| l.get(i)).copied();
            dims[axis] = match (&shape[axis], number(&starts), number(&ends), number(&steps)) {
                (Dim::Known(size), Some(start), Some(end), Some(step)) if step != 0 => {
                    let (first, count) = slice_bounds(*size as i64, start, end, step);
                    from[axis] = (first, step);
                    Dim::Known(count)
                }
                // The whole axis, of any length.
                (dim, Some(0), Some(i64::MAX), Some(1)) => dim.clone(),
                _ => Dim::Unknown,
            };
        }
        let result = InferredValue::new(input.element, Some(dims));
        let (Some(old), Some(new)) = (input.sizes(), result.sizes()) else {
            return Some(result);
        };
        if count(&old) > LARGEST {
            return Some(result);
        }
        let stride = strides(&old);
        let places = positions_of(&new, |index| {
            let along = |a: usize| (from[a].0 + from[a].1 * index[a] as i64) as usize * stride[a];
            (0..rank).map(along).sum()
        });
        Some(result.with_elements_at(input, &places))
    }

    pub(super) fn gather(&self) -> Option<InferredValue> {
        let (input, indices) = (self.input(0)?, self.input(1)?);
        let (Some(shape), Some(index_shape)) = (&input.shape, &indices.shape) else {
            return Some(InferredValue::new(input.element, None));
        };
        let axis = position(self.node.int("axis").unwrap_or(0), shape.len())?;
        let dims = [&shape[..axis], index_shape, &shape[axis + 1..]].concat();
        let result = InferredValue::new(input.element, Some(dims));
        let (Some(old), Some(new), Some(at)) =
            (input.sizes(), result.sizes(), indices.all_integers())
        else {
            return Some(result);
        };
        if count(&new) > LARGEST || count(&old) > LARGEST {
            return Some(result);
        }
        let size = old[axis] as i64;
        let at: Option<Vec<usize>> = at
            .iter()
            .map(|&i| {
                usize::try_from(if i < 0 { i + size } else { i })
                    .ok()
                    .filter(|&i| i < old[axis])
            })
            .collect();
        let Some(at) = at else { return Some(result) };
        let after = count(&old[axis + 1..]);
        let places: Vec<usize> = (0..count(&new))
            .map(|i| {
                let (rest, inner) = (i / after.max(1), i % after.max(1));
                let (outer, which) = (rest / at.len(), rest % at.len());
                (outer * old[axis] + at[which]) * after + inner
            })
            .collect();
        Some(result.with_elements_at(input, &places))
    }

    pub(super) fn gather_nd(&self) -> Option<InferredValue> {
        let (input, indices) = (self.input(0)?, self.input(1)?);
        let unknown = Some(InferredValue::new(input.element, None));
        let (Some(shape), Some([places @ .., Dim::Known(depth)])) =
            (input.shape.as_deref(), indices.shape.as_deref())
        else {
            return unknown;
        };
        let batch = usize::try_from(self.node.int("batch_dims").unwrap_or(0)).ok()?;
        match shape.get(batch.saturating_add(*depth)..) {
            Some(rest) => {
                let dims = [places, rest].concat();
                Some(InferredValue::new(input.element, Some(dims)))
            }
            None => unknown,
        }
    }

    pub(super) fn one_hot(&self) -> Option<InferredValue> {
        let (indices, places) = (self.input(0)?, self.input(1)?.all_integers());
        let places = places.and_then(|places| usize::try_from(*places.first()?).ok());
        let shape = indices.shape.clone().and_then(|mut shape| {
            let axis = position(self.node.int("axis").unwrap_or(-1), shape.len() + 1)?;
            shape.insert(axis, places.map_or(Dim::Unknown, Dim::Known));
            Some(shape)
        });
        Some(InferredValue::new(self.input(2)?.element, shape))
    }

    pub(super) fn split(&self) -> Vec<Option<InferredValue>> {
        let count = self.node.output.len();
        let Some(input) = self.input(0) else {
            return vec![None; count];
        };
        let unknown = vec![Some(InferredValue::new(input.element, None)); count];
        let Some(shape) = &input.shape else {
            return unknown;
        };
        let Some(axis) = position(self.node.int("axis").unwrap_or(0), shape.len()) else {
            return unknown;
        };
        let parts: Option<Vec<usize>> = match (self.list("split", 1), &shape[axis]) {
            (Some(parts), _) => parts.iter().map(|&p| usize::try_from(p).ok()).collect(),
            (None, Dim::Known(size)) if !self.is_present("split", 1) && count > 0 => {
                // Equal parts, the last one smaller.
                let part = size.div_ceil(count);
                Some(
                    (0..count)
                        .map(|i| part.min(size.saturating_sub(i * part)))
                        .collect(),
                )
            }
            _ => None,
        };
        let parts = parts.filter(|p| p.len() == count);
        let all = parts.iter().flatten();
        let few = all.fold(0, |all: usize, &part| all.saturating_add(part)) <= LARGEST;
        let mut start = 0;
        (0..count)
            .map(|i| {
                let mut dims = shape.clone();
                dims[axis] = parts.as_ref().map_or(Dim::Unknown, |p| Dim::Known(p[i]));
                let result = InferredValue::new(input.element, Some(dims));
                let (Some(parts), 1, true) = (&parts, shape.len(), few) else {
                    return Some(result);
                };
                let places: Vec<usize> = (start..start + parts[i]).collect();
                start += parts[i];
                Some(result.with_elements_at(input, &places))
            })
            .collect()
    }

    pub(super) fn top_k(&self) -> Vec<Option<InferredValue>> {
        let Some(input) = self.input(0) else {
            return vec![None; 2];
        };
        let k = match self.node.int("k") {
            Some(k) => Some(k),
            None => self
                .input(1)
                .and_then(|k| k.all_integers()?.first().copied()),
        };
        let k = k
            .and_then(|k| usize::try_from(k).ok())
            .map_or(Dim::Unknown, Dim::Known);
        let shape = input.shape.clone().and_then(|mut shape| {
            let axis = position(self.node.int("axis").unwrap_or(-1), shape.len())?;
            shape[axis] = k;
            Some(shape)
        });
        vec![
            Some(InferredValue::new(input.element, shape.clone())),
            Some(InferredValue::new(DataType::Int64, shape)),
        ]
    }
}

/// First index and number of elements of a slice, clamped as ONNX specifies.
pub fn slice_bounds(size: i64, start: i64, end: i64, step: i64) -> (i64, usize) {
    let from_front = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
    let (low, high) = if step > 0 { (0, size) } else { (0, size - 1) };
    let first = from_front(start).clamp(low, high.max(low));
    let last = if step > 0 {
        from_front(end).clamp(0, size)
    } else {
        from_front(end).clamp(-1, size - 1)
    };
    let distance = if step > 0 { last - first } else { first - last };
    let count = if distance <= 0 || size == 0 {
        0
    } else {
        (distance - 1) / step.saturating_abs() + 1
    };
    (first, count as usize)
}
