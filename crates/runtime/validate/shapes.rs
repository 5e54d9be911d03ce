//! Checks that shapes fit each other: in elementwise operators, products, joins and normalizations.

use super::{NodeValidator, Validation, ensure, refuse};
use octet_graph::Dim;
use octet_graph::prepare::{InferredValue, count, position};

/// Operators that broadcast their inputs.
const ELEMENTWISE: [&str; 26] = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "Swish",
    "Where",
    "Xor",
    "Expand",
];

const BROADCAST: &str = "equal from the last axis on, or 1 where they differ";

impl NodeValidator<'_> {
    pub(super) fn shapes(&self, operator: &str) -> Validation {
        match operator {
            "Expand" => {
                let requested = self.input(1).and_then(InferredValue::all_integers);
                let Some((own, requested)) = self.shape(0).zip(requested) else {
                    return Ok(());
                };
                let requested = requested
                    .iter()
                    .map(|&size| Dim::Known(size.max(0) as usize));
                broadcast(
                    "the shape of its input and the requested one",
                    &[own, &requested.collect::<Vec<_>>()],
                )
            }
            // Before opset 7, `axis` gives the position of the second input's first axis.
            _ if ELEMENTWISE.contains(&operator) && self.node.attribute("axis").is_none() => {
                let slots = 0..self.node.input.len();
                let shapes: Vec<&[Dim]> = slots.filter_map(|slot| self.shape(slot)).collect();
                let what = "the shape of its inputs";
                broadcast(what, &shapes)?;
                match (operator, self.shape(0), self.shape(1)) {
                    // PRelu broadcasts only the slope.
                    ("PRelu", Some(values), Some(slopes)) => {
                        let expected = "of no more axes in the second than in the first";
                        ensure(
                            slopes.len() <= values.len(),
                            what,
                            [values, slopes],
                            expected,
                        )
                    }
                    _ => Ok(()),
                }
            }
            "MatMul" | "MatMulInteger" => self.matmul(),
            "Gemm" => self.gemm(),
            "Concat" => self.concat(),
            "Reshape" => self.reshape(),
            "Conv" => self.per_channel(&[2], self.size(1, 0)),
            "BatchNormalization" => self.per_channel(&[1, 2, 3, 4], self.size(0, 1)),
            "InstanceNormalization" => self.per_channel(&[1, 2], self.size(0, 1)),
            "LayerNormalization" => self.layer_norm(),
            _ => Ok(()),
        }
    }

    fn matmul(&self) -> Validation {
        let (Some(left), Some(right)) = (self.shape(0), self.shape(1)) else {
            return Ok(());
        };
        let depth = [left.last(), right.get(right.len().saturating_sub(2))];
        if let [Some(Dim::Known(first)), Some(Dim::Known(second))] = depth {
            let expected = "as many columns in the first as rows in the second";
            ensure(
                first == second,
                "the shape of its inputs",
                [left, right],
                expected,
            )?;
        }
        let stacks = [left, right].map(|shape| &shape[..shape.len().saturating_sub(2)]);
        broadcast("the shape of its stacks of matrices", &stacks)
    }

    fn gemm(&self) -> Validation {
        let (Some(left), Some(right)) = (self.shape(0), self.shape(1)) else {
            return Ok(());
        };
        let expected = "two matrices";
        let two = left.len() == 2 && right.len() == 2;
        ensure(two, "the shape of its inputs", [left, right], expected)?;
        let turned = |key: &str| usize::from(self.node.int(key).unwrap_or(0) != 0);
        let (a, b) = (turned("transA"), turned("transB"));
        if let (Dim::Known(first), Dim::Known(second)) = (&left[1 - a], &right[b]) {
            let expected =
                "as many columns in the first as rows in the second, as transA and transB say";
            ensure(
                first == second,
                "the shape of its inputs",
                [left, right],
                expected,
            )?;
        }
        let Some(added) = self.shape(2) else {
            return Ok(());
        };
        let made = [left[a].clone(), right[1 - b].clone()];
        let fits = added.len() <= 2
            && added
                .iter()
                .rev()
                .zip(made.iter().rev())
                .all(|pair| match pair {
                    (Dim::Known(own), Dim::Known(size)) => own == size || *own == 1,
                    _ => true,
                });
        let expected = format!("one that is broadcast over {made:?}");
        ensure(fits, "the shape of its input 2", added, expected)
    }

    fn concat(&self) -> Validation {
        let slots = 0..self.node.input.len();
        let shapes: Vec<&[Dim]> = slots.filter_map(|slot| self.shape(slot)).collect();
        let Some(first) = shapes.first() else {
            return Ok(());
        };
        let axis = self.node.int("axis").unwrap_or(1);
        let axis = position(axis, first.len());
        for shape in &shapes[1..] {
            let alike = shape.len() == first.len()
                && (0..first.len()).all(|a| {
                    Some(a) == axis
                        || match (&first[a], &shape[a]) {
                            (Dim::Known(one), Dim::Known(other)) => one == other,
                            _ => true,
                        }
                });
            let expected = "equal except along the concatenated axis";
            ensure(alike, "the shape of its inputs", &shapes, expected)?;
        }
        Ok(())
    }

    fn reshape(&self) -> Validation {
        let requested = match self.node.ints("shape") {
            Some(shape) => Some(shape.to_vec()),
            None => self.input(1).and_then(InferredValue::all_integers),
        };
        let Some(requested) = requested else {
            return Ok(());
        };
        let sound = requested.iter().all(|&size| size >= -1)
            && requested.iter().filter(|&&size| size == -1).count() <= 1;
        let expected = "sizes of at least 0, with -1 at most once";
        ensure(sound, "its requested shape", &requested, expected)?;
        let Some(own) = self.shape(0) else {
            return Ok(());
        };
        let keeps = self.node.int("allowzero").unwrap_or(0) == 0;
        let zeros = requested.iter().enumerate().filter(|&(_, &size)| size == 0);
        if keeps && zeros.clone().any(|(axis, _)| axis >= own.len()) {
            let expected = format!("without a 0 beyond the {} axes of its input", own.len());
            return refuse("its requested shape", &requested, expected);
        }
        let Some(sizes) = self.input(0).and_then(InferredValue::sizes) else {
            return Ok(());
        };
        let resolved = |(axis, &size): (usize, &i64)| match size {
            0 if keeps => sizes[axis],
            _ => size.max(0) as usize,
        };
        let places = requested.iter().enumerate();
        let known_sizes: Vec<usize> = places
            .filter(|&(_, &size)| size != -1)
            .map(resolved)
            .collect();
        let (all, known_sizes) = (count(&sizes), count(&known_sizes));
        let fits = match requested.contains(&-1) {
            true => {
                known_sizes > 0 && all.is_multiple_of(known_sizes) || all == 0 && known_sizes == 0
            }
            false => all == known_sizes,
        };
        let expected = format!("a shape for the {all} elements of its input of shape {sizes:?}");
        ensure(fits, "its requested shape", &requested, expected)
    }

    /// Fails if an input doesn't have one element per channel.
    fn per_channel(&self, slots: &[usize], channels: Option<i64>) -> Validation {
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

    fn layer_norm(&self) -> Validation {
        let Some(shape) = self.shape(0) else {
            return Ok(());
        };
        for slot in [1, 2] {
            let Some(own) = self.shape(slot) else {
                continue;
            };
            let fits = own.len() <= shape.len()
                && own
                    .iter()
                    .rev()
                    .zip(shape.iter().rev())
                    .all(|pair| match pair {
                        (Dim::Known(own), Dim::Known(size)) => own == size || *own == 1,
                        _ => true,
                    });
            let what = format!("the shape of its input {slot}");
            let expected = format!("one that is broadcast over its input of shape {shape:?}");
            ensure(fits, &what, own, expected)?;
        }
        Ok(())
    }
}

/// Fails if shapes don't broadcast: from the last axis on, sizes must be equal or 1.
fn broadcast(what: &str, shapes: &[&[Dim]]) -> Validation {
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
            return refuse(what, shapes, BROADCAST);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::validate::tests::Beside::{Floats, Integers, Nothing};
    use crate::validate::tests::{PICTURE, int, ints, node, refused, taken};

    #[test]
    fn operands_that_do_not_broadcast_are_rejected() {
        let five = [0.0; 5];
        for operator in ["Add", "Max", "Where", "PRelu", "Equal"] {
            let twice = [Floats(&[5], &five), Floats(&[5], &five)];
            let error = refused(node(operator), PICTURE, &twice);
            let expected = "the shape of its inputs is [[1, 4, 6, 6], [5]";
            assert!(error.contains(expected), "{error}");
        }
        taken(node("Add"), PICTURE, &[Floats(&[4, 1, 6], &[0.0; 24])]);
        taken(node("Mul"), PICTURE, &[Floats(&[3, 1, 1, 1], &[0.0; 3])]);
        refused(node("Expand"), PICTURE, &[Integers(&[2, 3, 6, 6])]);
        taken(node("Expand"), PICTURE, &[Integers(&[2, 4, 1, 6])]);
    }

    #[test]
    fn matrices_have_the_same_depth() {
        let matrix = [0.0; 24];
        refused(node("MatMul"), PICTURE, &[Floats(&[4, 6], &matrix)]);
        taken(node("MatMul"), PICTURE, &[Floats(&[6, 4], &matrix)]);
        taken(node("MatMul"), PICTURE, &[Floats(&[6], &[0.0; 6])]);
        refused(node("Gemm"), &[2, 6], &[Floats(&[4, 6], &matrix)]);
        taken(
            int("Gemm", "transB", 1),
            &[2, 6],
            &[Floats(&[4, 6], &matrix)],
        );
        let added = |size| [Floats(&[6, 4], &matrix), Floats(size, &[0.0; 2])];
        refused(node("Gemm"), &[2, 6], &added(&[2]));
        taken(node("Gemm"), &[2, 6], &added(&[2, 1]));
    }

    #[test]
    fn concat_reshape_and_normalization_check_shapes() {
        let concat = || int("Concat", "axis", 1);
        refused(concat(), PICTURE, &[Floats(&[1, 2, 6, 5], &[0.0; 60])]);
        refused(concat(), PICTURE, &[Floats(&[6], &[0.0; 6])]);
        taken(concat(), PICTURE, &[Floats(&[1, 1, 6, 6], &[0.0; 36])]);
        for shape in [&[5, -1][..], &[-1, -1], &[-2], &[144, 2], &[1, 4, 6, 6, 0]] {
            refused(node("Reshape"), PICTURE, &[Integers(shape)]);
        }
        for shape in [&[-1][..], &[0, 0, 36], &[2, -1, 9]] {
            taken(node("Reshape"), PICTURE, &[Integers(shape)]);
        }
        let four = || Floats(&[4], &[1.0; 4]);
        let norm = |last| [four(), four(), four(), last];
        let odd = Floats(&[6], &[1.0; 6]);
        refused(node("BatchNormalization"), PICTURE, &norm(odd));
        taken(node("BatchNormalization"), PICTURE, &norm(four()));
        refused(node("LayerNormalization"), PICTURE, &[four()]);
        let weight = || Floats(&[4, 4, 1, 1], &[0.0; 16]);
        refused(node("Conv"), PICTURE, &[weight(), Floats(&[3], &[0.0; 3])]);
        taken(node("Conv"), PICTURE, &[weight(), Nothing]);
        refused(ints("Squeeze", &[]), PICTURE, &[Integers(&[1])]);
        taken(ints("Squeeze", &[]), PICTURE, &[Integers(&[0])]);
    }
}
