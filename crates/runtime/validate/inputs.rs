//! Checks the inputs of a node: required ones, scalars, ranks, and constant indices.

use super::{NodeValidator, Validation, ensure, refuse};
use octet_graph::Dim;
use octet_graph::prepare::{InferredValue, count, position};
use octet_int8::REGION;
use octet_onnx::schema::DataType;

/// Operators that need no first input; a region of constants has none.
const NO_INPUTS: [&str; 8] = [
    REGION,
    "Constant",
    "Loop",
    "Optional",
    "RandomNormal",
    "RandomUniform",
    "Scan",
    "SequenceEmpty",
];

/// Maximum number of inputs, for operators of which tract would read more.
const MAX_INPUTS: [(&str, usize); 16] = [
    ("AveragePool", 1),
    ("BatchNormalization", 5),
    ("Conv", 3),
    ("ConvInteger", 4),
    ("ConvTranspose", 3),
    ("DepthToSpace", 1),
    ("Flatten", 1),
    ("Gather", 2),
    ("Gemm", 3),
    ("InstanceNormalization", 3),
    ("MatMul", 2),
    ("MaxPool", 1),
    ("QLinearConv", 9),
    ("Softmax", 1),
    ("SpaceToDepth", 1),
    ("Transpose", 1),
];

/// Attributes that became inputs, and the opset of the change. A wrong form belongs to another
/// opset.
const MOVED_ATTRIBUTES: &[(&str, &str, i64)] = &[
    ("Pad", "pads", 11),
    ("ReduceSum", "axes", 13),
    ("Reduce", "axes", 18),
    ("Slice", "axes", 10),
    ("Slice", "ends", 10),
    ("Slice", "starts", 10),
    ("Split", "split", 13),
    ("Squeeze", "axes", 13),
    ("TopK", "k", 10),
    ("Unsqueeze", "axes", 13),
];

impl NodeValidator<'_> {
    pub(super) fn inputs(&self, operator: &str) -> Validation {
        let least = match operator {
            "QLinearConv" => 8,
            "GRU" | "LSTM" | "RNN" => 3,
            "BatchNormalization" => 5,
            "GroupNormalization"
            | "InstanceNormalization"
            | "Range"
            | "ScatterElements"
            | "ScatterND"
            | "Where" => 3,
            "Add" | "And" | "BiasGelu" | "Conv" | "ConvInteger" | "ConvTranspose" | "Div"
            | "Equal" | "Expand" | "Gather" | "GatherElements" | "GatherND" | "Gemm"
            | "Greater" | "GreaterOrEqual" | "LayerNormalization" | "Less" | "LessOrEqual"
            | "MatMul" | "MatMulInteger" | "Mod" | "Mul" | "NonMaxSuppression" | "Or" | "PRelu"
            | "Pow" | "Sub" | "Xor" => 2,
            _ => usize::from(!NO_INPUTS.contains(&operator)),
        };
        for slot in 0..least {
            let there = self.node.input_at(slot).is_some();
            ensure(there, &format!("its input {slot}"), "missing", "given")?;
        }
        for &(of, attribute, since) in MOVED_ATTRIBUTES {
            let moved = self.opset >= since && operator.starts_with(of);
            if moved && self.node.attribute(attribute).is_some() {
                let expected = format!("an input, as in every opset since {since}");
                return refuse(attribute, "an attribute", expected);
            }
        }
        let (numbers, axes): (&[usize], &[(usize, usize)]) = match operator {
            "Clip" => (&[1, 2], &[]),
            "BatchNormalization" | "InstanceNormalization" => (&[], &[(0, 2)]),
            "DFT" => (&[1, 2], &[(0, 1)]),
            "CumSum" | "TopK" => (&[1], &[(0, 1)]),
            "Gather" | "GatherElements" => (&[], &[(0, 1)]),
            "GatherND" => (&[], &[(0, 1), (1, 1)]),
            "Hardmax" | "LayerNormalization" | "LogSoftmax" | "LpNormalization"
            | "RMSNormalization" | "Softmax" => (&[], &[(0, 1)]),
            "MatMul" => (&[], &[(0, 1), (1, 1)]),
            "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => (&[], &[(0, 3)]),
            "LRN" => (&[], &[(0, 2)]),
            "OneHot" => (&[1], &[]),
            "Pad" => (&[2], &[]),
            "Range" => (&[0, 1, 2], &[]),
            "ScatterElements" => (&[], &[(0, 1)]),
            "ScatterND" => (&[], &[(0, 1), (1, 1)]),
            "Trilu" => (&[1], &[(0, 2)]),
            _ => (&[], &[]),
        };
        for &slot in numbers {
            if let Some(sizes) = self.input(slot).and_then(InferredValue::sizes) {
                let what = format!("the shape of its input {slot}");
                ensure(count(&sizes) == 1, &what, &sizes, "that of a scalar")?;
            }
        }
        for &(slot, least) in axes {
            if let Some(shape) = self.shape(slot) {
                let what = format!("the shape of its input {slot}");
                let expected = format!("of at least {least} axes");
                ensure(shape.len() >= least, &what, shape, expected)?;
            }
        }
        if matches!(
            operator,
            "Expand" | "Reshape" | "Split" | "Squeeze" | "Tile" | "Unsqueeze"
        ) && let Some(list) = self.input(1)
        {
            let what = "the type of its input 1";
            let whole = matches!(list.element, DataType::Int64 | DataType::Int32);
            ensure(whole, what, list.element, "integers of 64 bits")?;
        }
        let divisors = self.input(1).and_then(|known| known.integers.as_ref());
        let by_zero = divisors.is_some_and(|divisors| divisors.contains(&Some(0)));
        if matches!(operator, "Div" | "Mod") && by_zero {
            return refuse("its divisor", 0, "not 0");
        }
        for (_, most) in MAX_INPUTS.into_iter().filter(|(of, _)| *of == operator) {
            let count_of_inputs = self.node.input.len();
            let expected = format!("{most} at most");
            ensure(
                count_of_inputs <= most,
                "the number of its inputs",
                count_of_inputs,
                expected,
            )?;
        }
        self.lookups(operator)
    }

    /// Fails if a constant index is out of range, or if indices don't have the required shape.
    fn lookups(&self, operator: &str) -> Validation {
        let (Some(rank), Some(indices)) = (self.shape(0).map(<[Dim]>::len), self.input(1)) else {
            return Ok(());
        };
        let axis = position(self.node.int("axis").unwrap_or(0), rank);
        let sizes = indices.sizes();
        let all = indices.all_integers().unwrap_or_default();
        match (operator, axis) {
            ("OneHot", _) => self.one(rank + 1, false),
            ("Gather", Some(axis)) => all.iter().try_for_each(|&i| self.inside(i, axis, true)),
            ("GatherElements" | "ScatterElements", Some(axis)) => {
                for (other, &size) in sizes.iter().flatten().enumerate() {
                    let most = self.size(0, other).filter(|_| other != axis);
                    let most = most.unwrap_or(i64::MAX);
                    let expected = format!("no more than {most} along axis {other}");
                    ensure(
                        size as i64 <= most,
                        "the shape of its indices",
                        &sizes,
                        expected,
                    )?;
                }
                all.iter().try_for_each(|&i| self.inside(i, axis, true))
            }
            ("GatherND", _) => {
                let batch = self.node.int("batch_dims").unwrap_or(0);
                let expected = format!("from 0 to {}", rank - 1);
                ensure(
                    (0..rank as i64).contains(&batch),
                    "batch_dims",
                    batch,
                    expected,
                )?;
                let axes = rank - batch as usize;
                let depth = sizes.and_then(|sizes| sizes.last().copied());
                let depth = depth.unwrap_or(axes);
                let expected = format!("from 1 to {axes}");
                let what = "the last axis of its indices";
                ensure((1..=axes).contains(&depth), what, depth, expected)?;
                let place = |(at, &index): (usize, &i64)| {
                    self.inside(index, batch as usize + at % depth, false)
                };
                all.iter().enumerate().try_for_each(place)
            }
            _ => Ok(()),
        }
    }

    /// Fails if an index is outside an axis.
    fn inside(&self, index: i64, axis: usize, from_the_end: bool) -> Validation {
        let Some(size) = self.size(0, axis) else {
            return Ok(());
        };
        let least = if from_the_end { -size } else { 0 };
        let expected = format!("from {least} to {}, the indices of axis {axis}", size - 1);
        ensure((least..size).contains(&index), "an index", index, expected)
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::tests::Beside::{Floats, Integers, Nothing};
    use crate::validate::tests::{PICTURE, int, ints, node, refused, taken};

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
        for (operator, beside) in [
            ("Clip", Floats(&[0], &[])),
            ("CumSum", Integers(&[])),
            ("TopK", Integers(&[1, 1])),
            ("Trilu", Integers(&[])),
            ("OneHot", Integers(&[])),
        ] {
            let error = refused(node(operator), PICTURE, &[beside]);
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
    fn constants_look_up_what_is_there() {
        for (node, places) in [
            (int("Gather", "axis", 1), &[0, 4][..]),
            (int("Gather", "axis", 1), &[-5]),
            (int("GatherND", "batch_dims", 4), &[0]),
            (node("GatherND"), &[1]),
            (node("GatherND"), &[0, 4]),
            (node("GatherND"), &[0, 0, 0, 0, 0]),
            (node("GatherND"), &[]),
        ] {
            refused(node, PICTURE, &[Integers(places)]);
        }
        refused(node("GatherElements"), &[3], &[Integers(&[3])]);
        refused(node("ScatterElements"), &[3], &[Integers(&[-4])]);
        for axis in [5, -6, i64::MAX, i64::MIN] {
            refused(int("OneHot", "axis", axis), PICTURE, &[Integers(&[3])]);
        }
        taken(int("Gather", "axis", 1), PICTURE, &[Integers(&[3, -4])]);
        taken(node("GatherND"), PICTURE, &[Integers(&[0, 3, 5])]);
        taken(node("GatherElements"), &[3], &[Integers(&[2, 0, -3, 1])]);
        taken(int("OneHot", "axis", 4), PICTURE, &[Integers(&[3])]);
        let marks = [Integers(&[1 << 40]), Floats(&[2], &[0.0, 1.0])];
        let error = refused(node("OneHot"), PICTURE, &marks);
        assert!(error.contains("the shape of its output"), "{error}");
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
