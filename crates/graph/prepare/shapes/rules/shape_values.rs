//! Operators on shapes: Shape, ConstantOfShape, Range, Expand, Tile.

use super::{Context, broadcast};
use crate::Dim;
use crate::prepare::shapes::small_values::{broadcast_positions, known_dims};
use crate::prepare::shapes::{InferredValue, LARGEST, count};
use octet_onnx::schema::DataType;

impl Context<'_> {
    pub(super) fn shape_of(&self) -> Option<InferredValue> {
        let shape = self.input(0)?.shape.as_ref()?;
        let rank = shape.len() as i64;
        let clamp = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank) as usize;
        let start = clamp(self.node.int("start").unwrap_or(0));
        let end = clamp(self.node.int("end").unwrap_or(rank)).max(start);
        let mut result = InferredValue::new(DataType::Int64, known_dims(&[end - start]));
        let size = |d: &Dim| {
            if let Dim::Known(size) = d {
                Some(*size as i64)
            } else {
                None
            }
        };
        result.integers = Some(shape[start..end].iter().map(size).collect());
        Some(result)
    }

    /// The shape that an integer input describes; `None` if its length is unknown.
    pub(super) fn shape_from_input(&self, slot: usize) -> Option<Vec<Dim>> {
        let input = self.input(slot)?;
        if let Some(integers) = &input.integers {
            let size = |v: &Option<i64>| {
                v.and_then(|v| usize::try_from(v).ok())
                    .map_or(Dim::Unknown, Dim::Known)
            };
            return Some(integers.iter().map(size).collect());
        }
        match input.shape.as_deref()? {
            [Dim::Known(rank)] if *rank < 64 => Some(vec![Dim::Unknown; *rank]),
            _ => None,
        }
    }

    pub(super) fn constant_of_shape(&self) -> Option<InferredValue> {
        let value = self.node.tensor("value");
        let constant = match value {
            Some(tensor) => InferredValue::from_constant(tensor)?,
            None => {
                let mut zero = InferredValue::new(DataType::Float, None);
                zero.floats = Some(vec![0.0]);
                zero
            }
        };
        let result = InferredValue::new(constant.element, self.shape_from_input(0));
        let Some(shape) = result.sizes() else {
            return Some(result);
        };
        let count = count(&shape);
        if count > LARGEST {
            return Some(result);
        }
        Some(result.with_elements_at(&constant, &vec![0; count]))
    }

    pub(super) fn range(&self) -> Option<InferredValue> {
        let number = |slot: usize| self.input(slot)?.all_integers()?.first().copied();
        let element = self.input(0).or(self.input(1)).or(self.input(2))?.element;
        let mut result = InferredValue::new(element, Some(vec![Dim::Unknown]));
        let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), number(2)) else {
            result.shape = self
                .range_of_floats()
                .map_or(result.shape, |count| known_dims(&[count]));
            return Some(result);
        };
        let mut numbers = Vec::new();
        let mut at = start;
        while delta != 0 && (if delta > 0 { at < limit } else { at > limit }) {
            if numbers.len() == LARGEST {
                return Some(result);
            }
            numbers.push(Some(at));
            let Some(next) = at.checked_add(delta) else {
                break;
            };
            at = next;
        }
        result.shape = known_dims(&[numbers.len()]);
        result.integers = Some(numbers);
        Some(result)
    }

    /// Length of a Range of known floats.
    fn range_of_floats(&self) -> Option<usize> {
        let number = |slot: usize| self.input(slot)?.floats.as_ref()?.first().copied();
        let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
        let count = ((limit - start) / delta).ceil();
        (count.is_finite() && count < (1 << 24) as f32).then_some(count.max(0.0) as usize)
    }

    pub(super) fn expand(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = match (&input.shape, self.shape_from_input(1)) {
            (Some(a), Some(b)) => Some(broadcast(&[a, &b])),
            _ => None,
        };
        let result = InferredValue::new(input.element, shape);
        let places = input
            .sizes()
            .zip(result.sizes())
            .and_then(|(from, to)| broadcast_positions(&from, &to));
        Some(match places {
            Some(places) => result.with_elements_at(input, &places),
            None => result,
        })
    }

    pub(super) fn tile(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let repeats = self.input(1).and_then(InferredValue::all_integers);
        let dims = match repeats {
            Some(repeats) if repeats.len() == shape.len() => {
                let times = |(d, r): (&Dim, i64)| match (d, r) {
                    (d, 1) => d.clone(),
                    (Dim::Known(size), r) if r >= 0 => Dim::Known(size.saturating_mul(r as usize)),
                    _ => Dim::Unknown,
                };
                shape.iter().zip(repeats).map(times).collect()
            }
            _ => vec![Dim::Unknown; shape.len()],
        };
        Some(InferredValue::new(input.element, Some(dims)))
    }
}
