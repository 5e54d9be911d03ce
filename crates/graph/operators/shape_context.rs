//! Shape rules: a node's outputs, inferred from its inputs and attributes.

use super::Operator;
use super::elements::elementwise;
use crate::inferred_value::{InferredValue, Types, positions};
use crate::{Dim, Node};
use octet_onnx::schema::DataType;

/// The shape rule of an operator. It returns nothing when it can't know.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShapeRule {
    /// The outputs are unknown.
    Unknown,
    /// Infers the first output.
    First(fn(&ShapeContext) -> Option<InferredValue>),
    /// Infers all outputs, in order.
    All(fn(&ShapeContext) -> Vec<Option<InferredValue>>),
}

/// A node and the inferred values of its inputs.
pub(crate) struct ShapeContext<'a> {
    pub(super) operator: &'static Operator,
    pub(super) node: &'a Node,
    pub(super) types: &'a Types,
}

impl Operator {
    /// The outputs of a node, inferred, in order.
    pub(crate) fn infer(node: &Node, types: &Types) -> Vec<Option<InferredValue>> {
        let operator = Operator::of(node);
        let ctx = ShapeContext {
            operator,
            node,
            types,
        };
        match operator.shape {
            ShapeRule::Unknown => Vec::new(),
            ShapeRule::First(rule) => vec![rule(&ctx)],
            ShapeRule::All(rule) => rule(&ctx),
        }
    }
}

/// The first output has type and shape of the first input.
pub(super) const SAME: ShapeRule = ShapeRule::First(|ctx| ctx.same(0));

impl ShapeContext<'_> {
    pub(super) fn input(&self, slot: usize) -> Option<&InferredValue> {
        self.types.get(self.node.input_at(slot)?)
    }

    /// The inputs in order; `None` if nothing is known of one of them.
    pub(super) fn inputs(&self) -> Option<Vec<&InferredValue>> {
        (0..self.node.input.len()).map(|i| self.input(i)).collect()
    }

    /// A list of integers: an attribute in old opsets, an input in new ones.
    pub(super) fn list(&self, key: &str, slot: usize) -> Option<Vec<i64>> {
        match self.node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.input(slot)?.all_integers(),
        }
    }

    pub(super) fn is_present(&self, key: &str, slot: usize) -> bool {
        self.node.attribute(key).is_some() || self.node.input_at(slot).is_some()
    }

    /// Type and shape of an input.
    pub(super) fn same(&self, slot: usize) -> Option<InferredValue> {
        let input = self.input(slot)?;
        Some(InferredValue::new(input.element, input.shape.clone()))
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

    /// The first input's shape without these axes, or with size 1 there.
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

    /// The result of an elementwise operator on all inputs, which are broadcast.
    pub(super) fn broadcast(&self, element: DataType) -> InferredValue {
        // Before opset 7 an axis attribute aligned the shapes differently.
        let aligned = self.node.attribute("axis").is_none();
        let Some(inputs) = self.inputs().filter(|_| aligned) else {
            return InferredValue::new(element, None);
        };
        let shapes: Option<Vec<&[Dim]>> = inputs.iter().map(|k| k.shape.as_deref()).collect();
        let shape = shapes.map(|s| broadcast(&s));
        elementwise(self, &inputs, InferredValue::new(element, shape))
    }
}

/// The result of broadcasting these shapes.
pub(super) fn broadcast(shapes: &[&[Dim]]) -> Vec<Dim> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let at = |axis: usize| {
        let mut result = Dim::Known(1);
        for shape in shapes {
            let Some(own) = (axis + shape.len()).checked_sub(rank) else {
                continue;
            };
            result = match (&result, &shape[own]) {
                (Dim::Known(1), dim) => dim.clone(),
                (dim, Dim::Known(1)) => dim.clone(),
                // The other size is 1 or equal, so this is the result either way.
                (Dim::Known(size), _) | (_, Dim::Known(size)) => Dim::Known(*size),
                (Dim::Named(a), Dim::Named(b)) if a == b => Dim::Named(a.clone()),
                _ => Dim::Unknown,
            };
        }
        result
    };
    (0..rank).map(at).collect()
}
