//! Operators that rearrange values: Reshape, Transpose, Pad, Resize and similar ones.

use super::{Context, positions, product};
use crate::Dim;
use crate::prepare::shapes::small_values::{positions_of, strides};
use crate::prepare::shapes::{InferredValue, LARGEST, count, sizes};

impl Context<'_> {
    pub(super) fn reshape(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let Some(target) = (match self.node.ints("shape") {
            Some(shape) => Some(shape.iter().map(|&v| Some(v)).collect::<Vec<_>>()),
            None => self.input(1)?.integers.clone(),
        }) else {
            return Some(InferredValue::new(input.element, self.shape_from_input(1)));
        };
        let keeps = self.node.int("allowzero").unwrap_or(0) == 0;
        let from = input.shape.as_deref();
        // Sizes that are copied cancel out of the inferred one, known or not.
        let mut rest: Option<Vec<Dim>> = from.map(<[Dim]>::to_vec);
        let mut taken = Some(1usize);
        let mut dims = Vec::new();
        let mut open = None;
        for (axis, &size) in target.iter().enumerate() {
            dims.push(match size {
                Some(0) if keeps => {
                    let size = from
                        .and_then(|f| f.get(axis))
                        .cloned()
                        .unwrap_or(Dim::Unknown);
                    if let Some(rest) = rest.as_mut().and_then(|r| r.get_mut(axis)) {
                        *rest = Dim::Known(1);
                    }
                    size
                }
                Some(-1) => {
                    open = Some(axis);
                    Dim::Unknown
                }
                Some(size) if size >= 0 => {
                    taken = taken.and_then(|t| t.checked_mul(size as usize));
                    Dim::Known(size as usize)
                }
                _ => {
                    taken = None;
                    Dim::Unknown
                }
            });
        }
        if let (Some(axis), Some(taken), Some(rest)) =
            (open, taken, rest.as_deref().and_then(sizes))
        {
            let count = count(&rest);
            if taken > 0 && count.is_multiple_of(taken) {
                dims[axis] = Dim::Known(count / taken);
            }
        }
        Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input))
    }

    pub(super) fn flatten(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let result =
            |dims| Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input));
        let Some(shape) = &input.shape else {
            return result(vec![Dim::Unknown; 2]);
        };
        let axis = self.node.int("axis").unwrap_or(1);
        let axis = if axis < 0 {
            axis + shape.len() as i64
        } else {
            axis
        };
        let (left, right) = shape.split_at_checked(usize::try_from(axis).ok()?)?;
        result(vec![product(left), product(right)])
    }

    pub(super) fn squeeze(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let unknown = Some(InferredValue::new(input.element, None));
        let Some(shape) = &input.shape else {
            return unknown;
        };
        let axes = match (self.list("axes", 1), self.is_present("axes", 1)) {
            (Some(axes), _) => positions(&axes, shape.len())?,
            (None, true) => return unknown,
            (None, false) if shape.iter().all(|d| matches!(d, Dim::Known(_))) => (0..shape.len())
                .filter(|&a| shape[a] == Dim::Known(1))
                .collect(),
            (None, false) => return unknown,
        };
        let remaining = shape.iter().enumerate().filter(|(a, _)| !axes.contains(a));
        let dims = remaining.map(|(_, d)| d.clone()).collect();
        Some(InferredValue::new(input.element, Some(dims)).with_elements_of(input))
    }

    pub(super) fn unsqueeze(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let (Some(shape), Some(axes)) = (&input.shape, self.list("axes", 1)) else {
            return Some(InferredValue::new(input.element, None));
        };
        let rank = shape.len() + axes.len();
        let axes = positions(&axes, rank)?;
        let mut old = shape.iter();
        let dims: Option<Vec<Dim>> = (0..rank)
            .map(|a| {
                if axes.contains(&a) {
                    Some(Dim::Known(1))
                } else {
                    old.next().cloned()
                }
            })
            .collect();
        Some(InferredValue::new(input.element, dims).with_elements_of(input))
    }

    pub(super) fn transpose(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let Some(shape) = &input.shape else {
            return Some(InferredValue::new(input.element, None));
        };
        let order: Vec<usize> = match self.node.ints("perm") {
            Some(order) => positions(order, shape.len())?,
            None => (0..shape.len()).rev().collect(),
        };
        let dims: Vec<Dim> = order.iter().map(|&a| shape[a].clone()).collect();
        let result = InferredValue::new(input.element, Some(dims));
        let (Some(from), Some(to)) = (input.sizes(), result.sizes()) else {
            return Some(result);
        };
        if count(&to) > LARGEST {
            return Some(result);
        }
        let steps = strides(&from);
        let places = positions_of(&to, |index| {
            order.iter().zip(index).map(|(&a, i)| steps[a] * i).sum()
        });
        Some(result.with_elements_at(input, &places))
    }

    pub(super) fn pad(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let pads = match self.node.ints("paddings") {
            Some(pads) => Some(pads.to_vec()),
            None => self.list("pads", 1),
        };
        let rank = shape.len();
        // The pads are those of the listed axes, or of all.
        let axes = match self.node.input_at(3) {
            Some(_) => self.list("axes", 3).and_then(|axes| positions(&axes, rank)),
            None => Some((0..rank).collect()),
        };
        let around = pads.zip(axes).and_then(|(pads, axes)| {
            let mut around = vec![(0, 0); rank];
            for (place, &axis) in axes.iter().enumerate() {
                around[axis] = (*pads.get(place)?, *pads.get(place + axes.len())?);
            }
            Some(around)
        });
        let size = |axis: usize| match (&shape[axis], &around) {
            (Dim::Known(size), Some(around)) => {
                let (before, after) = around[axis];
                let size = *size as i128 + i128::from(before) + i128::from(after);
                usize::try_from(size).map_or(Dim::Unknown, Dim::Known)
            }
            (dim, Some(around)) if around[axis] == (0, 0) => dim.clone(),
            _ => Dim::Unknown,
        };
        Some(InferredValue::new(
            input.element,
            Some((0..rank).map(size).collect()),
        ))
    }

    pub(super) fn resize(&self) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let unknown = Some(InferredValue::new(
            input.element,
            Some(vec![Dim::Unknown; shape.len()]),
        ));
        if self.node.attribute("axes").is_some()
            || self
                .node
                .text("keep_aspect_ratio_policy")
                .is_some_and(|p| p != "stretch")
            || self.node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
        {
            return unknown;
        }
        if let Some(dims) = self.shape_from_input(3).filter(|d| d.len() == shape.len()) {
            return Some(InferredValue::new(input.element, Some(dims)));
        }
        let slot = if self.node.input.len() <= 2 { 1 } else { 2 };
        let scales = match self.node.attribute("scales") {
            Some(attribute) => Some(attribute.floats.clone()),
            None => self.input(slot).and_then(|k| k.floats.clone()),
        };
        let Some(scales) = scales.filter(|s| s.len() == shape.len()) else {
            return unknown;
        };
        let size = |(dim, &scale): (&Dim, &f32)| match dim {
            Dim::Known(size) => Dim::Known((*size as f32 * scale).floor() as usize),
            dim if scale == 1.0 => dim.clone(),
            _ => Dim::Unknown,
        };
        Some(InferredValue::new(
            input.element,
            Some(shape.iter().zip(&scales).map(size).collect()),
        ))
    }

    /// DepthToSpace and SpaceToDepth.
    pub(super) fn blocks(&self, to_space: bool) -> Option<InferredValue> {
        let input = self.input(0)?;
        let shape = input.shape.as_deref()?;
        let block = usize::try_from(self.node.int("blocksize")?)
            .ok()
            .filter(|&b| b > 0)?;
        let [batch, channel, height, width] = shape else {
            return None;
        };
        let times = |d: &Dim, by: usize, up: bool| match d {
            Dim::Known(size) => Dim::Known(if up {
                size.saturating_mul(by)
            } else {
                size / by
            }),
            _ => Dim::Unknown,
        };
        let dims = vec![
            batch.clone(),
            times(channel, block.saturating_mul(block), !to_space),
            times(height, block, to_space),
            times(width, block, to_space),
        ];
        Some(InferredValue::new(input.element, Some(dims)))
    }
}
