//! Layer normalizations: by the squares of differences from the mean, or by the means of numbers and of their squares.

use super::{Composed, Finder};
use crate::onnx::schema::NodeProto;

impl<'a> Finder<'a> {
    /// (x - mean) / sqrt(mean((x - mean)²) + ε), times a constant, plus another, where these are there. Found from its
    /// division.
    pub(super) fn layer_norm(&self, index: usize, div: &'a NodeProto) -> Option<Composed> {
        let (apart, deviation) = (div.input_at(0)?, div.input_at(1)?);
        let (sub_index, sub) = self.made(apart, "Sub")?;
        let (x, mean) = (sub.input_at(0)?, sub.input_at(1)?);
        let (mean_index, mean_node) = self.made(mean, "ReduceMean")?;
        let (root_index, root) = self.made(deviation, "Sqrt")?;
        let (add_index, add) = self.made(root.input_at(0)?, "Add")?;
        let (variance, epsilon) = match self.is_constant(add.input_at(0)?) {
            true => (add.input_at(1)?, add.input_at(0)?),
            false => (add.input_at(0)?, add.input_at(1)?),
        };
        let (variance_index, variance_node) = self.made(variance, "ReduceMean")?;
        let mut nodes = vec![mean_index, sub_index];
        let base = self.square(variance_node.input_at(0)?, &mut nodes)?;
        let is_norm = mean_node.input_at(0) == Some(x)
            && self.is_constant(epsilon)
            && self.are_alike(mean_node, variance_node);
        if !is_norm {
            return None;
        }
        if base != apart {
            // Some exporters write the difference twice.
            let (again, twin) = self.made(base, "Sub")?;
            if (twin.input_at(0)?, twin.input_at(1)?) != (x, mean) {
                return None;
            }
            nodes.push(again);
        }
        nodes.extend([variance_index, add_index, root_index, index]);
        self.scaled_and_shifted(div.output.first()?, &mut nodes);
        Some(Composed {
            operator: "LayerNormalization",
            input: x.to_string(),
            nodes,
        })
    }

    /// (x - mean(x)) / sqrt(mean(x²) - mean(x)² + ε), as Flax writes it: the root taken before or after one is divided
    /// by it, the scale multiplied before the differences are, the moments brought into shape. Found from its root.
    pub(super) fn layer_norm_of_moments(
        &self,
        index: usize,
        root: &'a NodeProto,
    ) -> Option<Composed> {
        let mut nodes = Vec::new();
        let (add_index, add) = self.made(root.input_at(0)?, "Add")?;
        let (one, two) = (add.input_at(0)?, add.input_at(1)?);
        let variance = if self.number(two).is_some() { one } else { two };
        self.number(if variance == one { two } else { one })?;
        let mut variance = self.in_shape(variance, &mut nodes);
        // Rounding may have left a little less than nothing.
        if let Some((at, max)) = self.made(variance, "Max") {
            let (one, two) = (max.input_at(0)?, max.input_at(1)?);
            variance = match (self.number(one), self.number(two)) {
                (Some(0.0), _) => two,
                (_, Some(0.0)) => one,
                _ => return None,
            };
            nodes.push(at);
        }
        let (sub_index, sub) = self.made(variance, "Sub")?;
        let (mean_of_squares, square_of_mean) = (sub.input_at(0)?, sub.input_at(1)?);
        let (squares, one) = self.mean(mean_of_squares, &mut nodes)?;
        let x = self.square(squares, &mut nodes)?;
        let mean = self.square(square_of_mean, &mut nodes)?;
        let (of, two) = self.mean(mean, &mut nodes)?;
        if of != x || !self.are_alike(one, two) {
            return None;
        }
        nodes.extend([sub_index, add_index, index]);
        let mut divisor = root.output.first()?.as_str();
        let is_difference = |value: &str, nodes: &mut Vec<usize>| {
            let found = self.made(value, "Sub").filter(|(_, sub)| {
                sub.input_at(0) == Some(x)
                    && sub
                        .input_at(1)
                        .is_some_and(|value| self.in_shape(value, nodes) == mean)
            });
            nodes.extend(found.map(|(at, _)| at));
            found.is_some()
        };
        let output = if let Some((at, div)) = self.taken(divisor, "Div") {
            if !is_difference(div.input_at(0)?, &mut nodes) {
                return None;
            }
            nodes.push(at);
            div.output.first()?
        } else {
            let (at, inverse) = self.taken(divisor, "Reciprocal")?;
            nodes.push(at);
            divisor = inverse.output.first()?;
            let (at, mul) = self.taken(divisor, "Mul")?;
            let other = self.other(mul, divisor)?;
            let (at, mul) = if self.is_constant(other) {
                nodes.push(at);
                divisor = mul.output.first()?;
                self.taken(divisor, "Mul")?
            } else {
                (at, mul)
            };
            if !is_difference(self.other(mul, divisor)?, &mut nodes) {
                return None;
            }
            nodes.push(at);
            mul.output.first()?
        };
        self.scaled_and_shifted(output, &mut nodes);
        Some(Composed {
            operator: "LayerNormalization",
            input: x.to_string(),
            nodes,
        })
    }

    /// Adds the product with a constant and the sum with another that follow, where they do.
    fn scaled_and_shifted(&self, mut output: &'a str, nodes: &mut Vec<usize>) {
        for operator in ["Mul", "Add"] {
            let next = self.taken(output, operator);
            let of_constant = next.filter(|(_, node)| {
                self.other(node, output)
                    .is_some_and(|name| self.is_constant(name))
            });
            let inside = of_constant.filter(|_| !self.uses.is_output(output));
            if let Some((at, made)) = inside.and_then(|(at, node)| Some((at, node.output.first()?)))
            {
                nodes.push(at);
                output = made;
            }
        }
    }

    /// The value that another is, but for its shape.
    fn in_shape(&self, value: &'a str, nodes: &mut Vec<usize>) -> &'a str {
        let mut value = value;
        loop {
            let shaped = ["Reshape", "Expand", "Unsqueeze", "Squeeze"]
                .iter()
                .find_map(|operator| self.made(value, operator));
            match shaped.and_then(|(at, node)| Some((at, node.input_at(0)?))) {
                Some((at, before)) => {
                    nodes.push(at);
                    value = before;
                }
                None => return value,
            }
        }
    }

    /// What a value is the mean of, and the node that sums it up: a ReduceMean, or a ReduceSum times a constant.
    fn mean(&self, value: &'a str, nodes: &mut Vec<usize>) -> Option<(&'a str, &'a NodeProto)> {
        if let Some((at, node)) = self.made(value, "ReduceMean") {
            nodes.push(at);
            return Some((node.input_at(0)?, node));
        }
        let (at, mul) = self.made(value, "Mul")?;
        let (one, two) = (mul.input_at(0)?, mul.input_at(1)?);
        let sum = match (self.number(one), self.number(two)) {
            (None, Some(_)) => one,
            (Some(_), None) => two,
            _ => return None,
        };
        let (sum_at, node) = self.made(sum, "ReduceSum")?;
        nodes.extend([sum_at, at]);
        Some((node.input_at(0)?, node))
    }

    /// What a value is the square of.
    fn square(&self, value: &'a str, nodes: &mut Vec<usize>) -> Option<&'a str> {
        let (at, base) = match (self.made(value, "Pow"), self.made(value, "Mul")) {
            (Some((at, pow)), _) if self.is_number(pow.input_at(1)?, 2.0) => (at, pow.input_at(0)?),
            (_, Some((at, mul))) if mul.input_at(0) == mul.input_at(1) => (at, mul.input_at(0)?),
            _ => return None,
        };
        nodes.push(at);
        Some(base)
    }
}
