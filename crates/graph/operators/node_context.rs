//! Validation of a node: its inputs, attributes and shapes.

use std::fmt::{Debug, Display};

use super::Treatment::{MatMul, Weighted};
use super::{Operator, Property};
use crate::inferred_value::{InferredValue, Types, count, position};
use crate::{Dim, Node};

/// Maximum number of elements of a tensor, within the address space of the machine.
pub(crate) const MAX_ELEMENTS: usize = 1 << if usize::BITS < 64 { 29 } else { 32 };

/// Maximum number of elements that an image operator makes of one element of its input. A larger
/// image takes minutes from a few pixels, and tract can't be stopped while it computes one.
const MAX_ENLARGEMENT: usize = 1 << 24;

/// Limit for sizes, strides and pads, so that sums and products of two of them fit.
pub(super) const MAX_SIZE: i64 = 1 << 31;

/// The reason why a node is invalid.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The attribute or input.
    pub(crate) what: String,
    pub(crate) actual: String,
    pub(crate) expected: String,
    /// The problem of the shapes, where they are the reason.
    pub(super) problem: ShapeProblem,
}

/// Result of a check.
pub(crate) type Validation = Result<(), Refusal>;

/// A check of a node.
pub(super) type Check = fn(&NodeContext) -> Validation;

pub(super) fn refuse(what: &str, actual: impl Debug, expected: impl Display) -> Validation {
    Err(Refusal {
        what: what.to_owned(),
        actual: format!("{actual:?}"),
        expected: expected.to_string(),
        problem: ShapeProblem::Apart,
    })
}

/// Fails unless `holds` is true.
pub(super) fn ensure(
    holds: bool,
    what: &str,
    actual: impl Debug,
    expected: impl Display,
) -> Validation {
    match holds {
        true => Ok(()),
        false => refuse(what, actual, expected),
    }
}

/// A node, the inferred values of its inputs, and the opset of its model.
pub(crate) struct NodeContext<'a> {
    pub(crate) node: &'a Node,
    pub(crate) types: &'a Types,
    pub(crate) opset: i64,
}

impl Operator {
    /// Validates a node. Operators of other domains than ONNX's and ONNX Runtime's are not checked.
    pub(crate) fn validate(ctx: &NodeContext) -> Validation {
        let (Some(operator), own) = Operator::as_executed(ctx.node) else {
            return Ok(());
        };
        operator.inputs.check(ctx)?;
        if matches!(operator.treatment, Some(Weighted(_) | MatMul)) {
            let outputs = ctx.node.output.len();
            ensure(outputs <= 1, "the number of outputs", outputs, "1")?;
        }
        if let Some(check) = operator.check {
            check(ctx)?;
        }
        match operator.check_shapes.filter(|_| own) {
            Some(check) => check(ctx),
            None => Ok(()),
        }
    }
}

impl Operator {
    /// The reason why the node can't take inputs of these shapes, if it can't.
    pub fn shape_problem(&self, node: &Node, types: &Types) -> Option<ShapeProblem> {
        // Checks of shapes read no opset.
        let opset = 0;
        let ctx = NodeContext { node, types, opset };
        let refusal = self.check_shapes.and_then(|check| check(&ctx).err())?;
        Some(refusal.problem)
    }
}

/// The reason why a node can't take inputs of some shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeProblem {
    /// The shapes contradict one another.
    Apart,
    /// The padded input is smaller than the kernel.
    SmallerThanKernel,
}

impl<'a> NodeContext<'a> {
    /// Fails if an output has more than [`MAX_ELEMENTS`] elements, or an enlarged image more than
    /// [`MAX_ENLARGEMENT`] for each of its input.
    pub(crate) fn outputs(&self) -> Validation {
        let enlarged = Operator::of(self.node).has(Property::ResizesImages);
        let input = self.input(0).and_then(InferredValue::sizes);
        let most = match input.filter(|_| enlarged) {
            // A declared size of 0 means any size.
            Some(sizes) => MAX_ELEMENTS.min(MAX_ENLARGEMENT.saturating_mul(count(&sizes).max(1))),
            None => MAX_ELEMENTS,
        };
        for name in &self.node.output {
            let sizes = self.types.get(name).and_then(InferredValue::sizes);
            if let Some(sizes) = sizes.filter(|sizes| count(sizes) > most) {
                let expected = format!("of at most {most} elements");
                return refuse(
                    &format!("the shape of its output `{name}`"),
                    sizes,
                    expected,
                );
            }
        }
        Ok(())
    }

    pub(super) fn input(&self, slot: usize) -> Option<&'a InferredValue> {
        self.types.get(self.node.input_at(slot)?)
    }

    pub(super) fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.input(slot)?.shape.as_deref()
    }

    /// The size of an input along an axis, if known.
    pub(super) fn size(&self, slot: usize, axis: usize) -> Option<i64> {
        match self.shape(slot)?.get(axis)? {
            Dim::Known(size) => i64::try_from(*size).ok(),
            _ => None,
        }
    }

    /// An integer list that is an attribute in older opsets and an input in newer ones.
    pub(super) fn list(&self, key: &str, slot: usize) -> Option<Vec<i64>> {
        match self.node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.input(slot)?.all_integers(),
        }
    }

    /// An integer attribute, or its default, of at least 1.
    pub(super) fn positive(&self, key: &str, usual: Option<i64>) -> Result<i64, Refusal> {
        match self.node.int(key).or(usual) {
            Some(value) if (1..MAX_SIZE).contains(&value) => Ok(value),
            actual => {
                let actual = actual.map_or("missing".to_owned(), |actual| actual.to_string());
                Err(Refusal {
                    what: key.to_owned(),
                    actual,
                    expected: "at least 1 and of at most 31 bits".to_owned(),
                    problem: ShapeProblem::Apart,
                })
            }
        }
    }

    /// Checks that the inputs broadcast. Before opset 7, `axis` gives the position of the second
    /// input's first axis.
    pub(super) fn inputs_broadcast(&self) -> Validation {
        if self.node.attribute("axis").is_some() {
            return Ok(());
        }
        let slots = 0..self.node.input.len();
        let shapes: Vec<&[Dim]> = slots.filter_map(|slot| self.shape(slot)).collect();
        broadcasts("the shape of its inputs", &shapes)
    }

    /// Checks the attribute `axis`, if it is present.
    pub(super) fn axis_in_range(&self) -> Validation {
        match self.shape(0) {
            Some(shape) => self.axis_attribute(shape.len(), false),
            None => Ok(()),
        }
    }

    /// Checks the attribute `axis` against a rank, if it is present; `behind` allows the end.
    pub(super) fn axis_attribute(&self, rank: usize, behind: bool) -> Validation {
        match self.node.int("axis") {
            Some(axis) => self.axis(axis, rank, behind),
            None => Ok(()),
        }
    }

    pub(super) fn axis(&self, axis: i64, rank: usize, behind: bool) -> Validation {
        let rank = rank as i64;
        let least = -rank;
        let most = if behind { rank } else { rank - 1 };
        // Some models give axis 0 of a scalar; it is accepted.
        let inside = (least..=most).contains(&axis) || rank == 0 && matches!(axis, -1 | 0);
        ensure(inside, "axis", axis, format!("from {least} to {most}"))
    }

    /// Checks the axes in the attribute or input `axes`; `lenient` accepts axis 0 of a scalar.
    pub(super) fn axes_among(&self, rank: usize, lenient: bool) -> Validation {
        let Some(axes) = self.list("axes", 1) else {
            return Ok(());
        };
        let own = rank as i64;
        let expected = format!("from {} to {}", -own, own - 1);
        let inside = axes.iter().all(|axis| (-own..own).contains(axis))
            || rank == 0 && lenient && axes.iter().all(|axis| matches!(axis, -1 | 0));
        ensure(inside, "axes", &axes, expected)
    }

    /// Fails if an index is outside an axis.
    pub(super) fn inside(&self, index: i64, axis: usize, from_the_end: bool) -> Validation {
        let Some(size) = self.size(0, axis) else {
            return Ok(());
        };
        let least = if from_the_end { -size } else { 0 };
        let expected = format!("from {least} to {}, the indices of axis {axis}", size - 1);
        ensure((least..size).contains(&index), "an index", index, expected)
    }

    /// Fails if an input doesn't have one element per channel.
    pub(super) fn per_channel(&self, slots: &[usize], channels: Option<i64>) -> Validation {
        for &slot in slots {
            let (Some(shape), Some(channels)) = (self.shape(slot), channels) else {
                continue;
            };
            let fits = match shape {
                [Dim::Known(size)] => *size as i64 == channels,
                [_] => true,
                _ => false,
            };
            let what = format!("the shape of its input {slot}");
            let expected = format!("one element for each of {channels} channels");
            ensure(fits, &what, shape, expected)?;
        }
        Ok(())
    }

    /// Checks an input that holds sizes.
    pub(super) fn output_sizes(&self, slot: usize) -> Validation {
        let sizes = self.input(slot).and_then(InferredValue::all_integers);
        let sizes = sizes.unwrap_or_default();
        let sound = sizes.iter().all(|size| (0..MAX_SIZE).contains(size));
        ensure(
            sound,
            "its sizes",
            &sizes,
            "at least 0 and of at most 31 bits",
        )
    }

    /// The axes that a list input refers to: the given ones, or all.
    pub(super) fn axes_or_all(&self, slot: usize) -> Option<Vec<usize>> {
        let rank = self.shape(0)?.len();
        if self.node.input_at(slot).is_none() && self.node.ints("axes").is_none() {
            return Some((0..rank).collect());
        }
        let axes = self.list("axes", slot)?;
        axes.iter().map(|&axis| position(axis, rank)).collect()
    }

    pub(super) fn axes_in_range(&self, slot: usize) -> Validation {
        let (Some(shape), Some(axes)) = (self.shape(0), self.list("axes", slot)) else {
            return Ok(());
        };
        let expected = format!("among the {} axes of its input", shape.len());
        ensure(self.axes_or_all(slot).is_some(), "axes", axes, expected)
    }
}

/// Fails if shapes don't broadcast: from the last axis on, sizes must be equal or 1.
pub(super) fn broadcasts(what: &str, shapes: &[&[Dim]]) -> Validation {
    const EXPECTED: &str = "equal from the last axis on, or 1 where they differ";
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    for back in 1..=rank {
        let sizes = shapes.iter().filter_map(|shape| {
            let axis = shape.len().checked_sub(back)?;
            match shape[axis] {
                Dim::Known(size) if size != 1 => Some(size),
                _ => None,
            }
        });
        let mut sizes = sizes;
        if let Some(first) = sizes.next()
            && sizes.any(|size| size != first)
        {
            return refuse(what, shapes, EXPECTED);
        }
    }
    Ok(())
}
