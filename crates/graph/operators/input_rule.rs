//! Requirements on the inputs of an operator.

use super::node_context::{NodeContext, Validation, ensure, refuse};
use crate::inferred_value::{InferredValue, count};
use octet_onnx::schema::DataType;

/// Requirements on the inputs of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputRule {
    /// The number of first inputs that must be present.
    pub(super) least: usize,
    /// Maximum number of inputs, where tract would read more.
    pub(super) most: usize,
    /// Inputs with one element.
    pub(super) scalars: &'static [usize],
    /// The least number of axes of an input.
    pub(super) ranks: &'static [(usize, usize)],
    /// True if the second input is a list of integers.
    pub(super) integers: bool,
    /// Attributes that became inputs, and the opset of the change. A wrong form belongs to another
    /// opset.
    pub(super) moved: &'static [(&'static str, i64)],
}

impl InputRule {
    /// One input is required, and nothing else.
    pub(super) const DEFAULT: InputRule = InputRule {
        least: 1,
        most: usize::MAX,
        scalars: &[],
        ranks: &[],
        integers: false,
        moved: &[],
    };

    /// Checks required inputs, scalars, ranks, and attributes that became inputs.
    pub(super) fn check(&self, ctx: &NodeContext) -> Validation {
        for slot in 0..self.least {
            let there = ctx.node.input_at(slot).is_some();
            ensure(there, &format!("its input {slot}"), "missing", "given")?;
        }
        for &(attribute, since) in self.moved {
            if ctx.opset >= since && ctx.node.attribute(attribute).is_some() {
                let expected = format!("an input, as in every opset since {since}");
                return refuse(attribute, "an attribute", expected);
            }
        }
        for &slot in self.scalars {
            if let Some(sizes) = ctx.input(slot).and_then(InferredValue::sizes) {
                let what = format!("the shape of its input {slot}");
                ensure(count(&sizes) == 1, &what, &sizes, "that of a scalar")?;
            }
        }
        for &(slot, least) in self.ranks {
            if let Some(shape) = ctx.shape(slot) {
                let what = format!("the shape of its input {slot}");
                let expected = format!("of at least {least} axes");
                ensure(shape.len() >= least, &what, shape, expected)?;
            }
        }
        if let Some(list) = ctx.input(1).filter(|_| self.integers) {
            let what = "the type of its input 1";
            let whole = matches!(list.element, DataType::Int64 | DataType::Int32);
            ensure(whole, what, list.element, "integers of 64 bits")?;
        }
        let inputs = ctx.node.input.len();
        let expected = format!("{} at most", self.most);
        ensure(
            inputs <= self.most,
            "the number of its inputs",
            inputs,
            expected,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::{Floats, Integers, Nothing};
    use super::super::test_models::{PICTURE, ints, node, refused, taken};

    #[test]
    fn inputs_are_there_and_are_what_an_operator_needs() {
        for operator in ["Flatten", "MaxPool", "Transpose", "Conv"] {
            let mut node = node(operator);
            node.input = vec![String::new()];
            let error = refused(node, PICTURE, &[]);
            assert!(error.contains("its input 0"), "{error}");
        }
        let error = refused(node("Conv"), PICTURE, &[Nothing, Floats(&[4], &[0.0; 4])]);
        assert!(error.contains("its input 1"), "{error}");
        for (operator, extra) in [
            ("Clip", Floats(&[0], &[])),
            ("CumSum", Integers(&[])),
            ("TopK", Integers(&[1, 1])),
            ("Trilu", Integers(&[])),
            ("OneHot", Integers(&[])),
        ] {
            let error = refused(node(operator), PICTURE, &[extra]);
            assert!(error.contains("the shape of its input 1"), "{error}");
        }
        for operator in [
            "MatMul",
            "Softmax",
            "LayerNormalization",
            "Trilu",
            "TopK",
            "GatherND",
        ] {
            let error = refused(node(operator), &[], &[Integers(&[0])]);
            assert!(error.contains("the shape of its input"), "{error}");
        }
        refused(node("MatMul"), PICTURE, &[Floats(&[], &[1.0])]);
        for operator in ["Trilu", "BatchNormalization"] {
            refused(node(operator), &[4], &[]);
        }
        taken(node("Clip"), PICTURE, &[Nothing, Floats(&[1], &[1.0])]);
        taken(node("TopK"), PICTURE, &[Integers(&[1])]);
    }

    #[test]
    fn an_operator_has_no_more_inputs_than_it_reads() {
        for operator in ["Transpose", "MaxPool", "Softmax"] {
            let error = refused(node(operator), PICTURE, &[Floats(&[1], &[1.0])]);
            assert!(error.contains("the number of its inputs"), "{error}");
        }
        taken(node("Transpose"), PICTURE, &[]);
    }

    #[test]
    fn attributes_that_became_inputs_are_rejected() {
        for (operator, name) in [
            ("ReduceMean", "axes"),
            ("Squeeze", "axes"),
            ("Split", "split"),
            ("Slice", "starts"),
        ] {
            let error = refused(ints(operator, &[(name, &[0])]), PICTURE, &[]);
            assert!(
                error.contains(name) && error.contains("an input"),
                "{error}"
            );
        }
    }
}
