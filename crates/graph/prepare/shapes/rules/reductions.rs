//! Operators that reduce along an axis: MatMul, Gemm, reductions, recurrent layers.

use super::{Context, broadcast, positions};
use crate::Dim;
use crate::prepare::shapes::{InferredValue, count};

impl Context<'_> {
    pub(super) fn matmul(&self) -> Option<InferredValue> {
        let (a, b) = (self.input(0), self.input(1));
        let element = a.or(b)?.element;
        let (Some(left), Some(right)) = (
            a.and_then(|k| k.shape.as_deref()),
            b.and_then(|k| k.shape.as_deref()),
        ) else {
            return Some(InferredValue::new(element, None));
        };
        let batch = |s: &[Dim]| s[..s.len().saturating_sub(2)].to_vec();
        let mut dims = broadcast(&[&batch(left), &batch(right)]);
        if left.len() > 1 {
            dims.push(left[left.len() - 2].clone());
        }
        if right.len() > 1 {
            dims.push(right[right.len() - 1].clone());
        }
        Some(InferredValue::new(element, Some(dims)))
    }

    pub(super) fn gemm(&self) -> Option<InferredValue> {
        let side = |slot: usize, key: &str, axis: usize| {
            let axis = if self.node.int(key).unwrap_or(0) != 0 {
                1 - axis
            } else {
                axis
            };
            self.input(slot)
                .and_then(|k| k.shape.as_ref()?.get(axis).cloned())
                .unwrap_or(Dim::Unknown)
        };
        let element = self.input(0).or(self.input(1))?.element;
        Some(InferredValue::new(
            element,
            Some(vec![side(0, "transA", 0), side(1, "transB", 1)]),
        ))
    }

    pub(super) fn reduced(&self, axes: Option<Vec<i64>>) -> Option<Vec<Dim>> {
        let shape = self.input(0)?.shape.as_ref()?;
        let keep = self.node.int("keepdims").unwrap_or(1) != 0;
        let axes = positions(&axes?, shape.len())?;
        let mut dims = Vec::new();
        for (axis, dim) in shape.iter().enumerate() {
            match (axes.contains(&axis), keep) {
                (false, _) => dims.push(dim.clone()),
                (true, true) => dims.push(Dim::Known(1)),
                (true, false) => {}
            }
        }
        Some(dims)
    }

    pub(super) fn reduce(&self, operator: &str) -> Option<InferredValue> {
        let input = self.input(0)?;
        let rank = input.shape.as_ref().map(Vec::len);
        let present = self.is_present("axes", 1);
        let axes = self.list("axes", 1).filter(|a| !a.is_empty());
        if present && axes.is_none() || !present && self.node.int("noop_with_empty_axes") == Some(1)
        {
            return Some(InferredValue::new(input.element, None));
        }
        let axes = axes.or_else(|| rank.map(|r| (0..r as i64).collect()));
        let mut result = InferredValue::new(input.element, self.reduced(axes));
        let one = |sizes: Vec<usize>| count(&sizes) == 1;
        if result.sizes().is_some_and(one)
            && let Some(all) = input.all_integers()
        {
            let number = match operator {
                "ReduceProd" => all.iter().try_fold(1i64, |a, &v| a.checked_mul(v)),
                "ReduceSum" => all.iter().try_fold(0i64, |a, &v| a.checked_add(v)),
                "ReduceMax" => all.into_iter().max(),
                "ReduceMin" => all.into_iter().min(),
                _ => None,
            };
            result.integers = number.map(|n| vec![Some(n)]);
        }
        Some(result)
    }

    pub(super) fn recurrent(&self) -> Vec<Option<InferredValue>> {
        let Some(input) = self.input(0) else {
            return vec![];
        };
        let element = input.element;
        let hidden = self
            .node
            .int("hidden_size")
            .and_then(|h| usize::try_from(h).ok());
        let both = self.node.text("direction") == Some("bidirectional");
        let shape = input.shape.as_deref().filter(|s| s.len() == 3);
        let (Some(hidden), Some(shape), 0) = (hidden, shape, self.node.int("layout").unwrap_or(0))
        else {
            return vec![Some(InferredValue::new(element, None)); 3];
        };
        let (sides, hidden) = (Dim::Known(if both { 2 } else { 1 }), Dim::Known(hidden));
        let all = vec![
            shape[0].clone(),
            sides.clone(),
            shape[1].clone(),
            hidden.clone(),
        ];
        let last = vec![sides, shape[1].clone(), hidden];
        [all, last.clone(), last]
            .map(|s| Some(InferredValue::new(element, Some(s))))
            .into()
    }
}
