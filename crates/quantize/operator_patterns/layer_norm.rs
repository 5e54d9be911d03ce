//! Layer normalizations, by squared differences or by the means of x and x²; and RMS
//! normalizations, which subtract no mean.

use super::{OperatorPattern, PatternFinder, PatternOperator, PatternRule};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

const LAYER_NORM: PatternOperator = PatternOperator {
    name: "LayerNormalization",
    reason: StaysFloat::InLayerNormalization,
};

const RMS_NORM: PatternOperator = PatternOperator {
    name: "RMSNormalization",
    reason: StaysFloat::InRmsNormalization,
};

pub(super) const RULES: &[PatternRule] = &[PatternRule {
    from: &["Sqrt", "Pow"],
    chain: |finder, index, root| finder.layer_norm(index, root),
}];

/// The input of a normalization, and its mean if that is subtracted.
#[derive(Clone, Copy)]
struct NormInput<'a> {
    x: &'a str,
    mean: Option<&'a str>,
}

impl<'a> PatternFinder<'a> {
    /// (x - mean) / sqrt(variance + ε), optionally times a constant and plus another. Without a
    /// mean it is an RMS normalization. Matched from the root, a Sqrt or a Pow.
    fn layer_norm(&self, index: usize, root: &'a Node) -> Option<OperatorPattern> {
        let inverse = match root.is("Pow") {
            false => false,
            true => match root.input_at(1)? {
                exponent if self.is_number(exponent, -0.5) => true,
                exponent if self.is_number(exponent, 0.5) => false,
                _ => return None,
            },
        };
        let (add_index, add) = self.producer(root.input_at(0)?, "Add")?;
        let (one, two) = (add.input_at(0)?, add.input_at(1)?);
        let (variance, epsilon) = if self.is_constant(one) {
            (two, one)
        } else {
            (one, two)
        };
        if !self.is_constant(epsilon) {
            return None;
        }
        let rules = [
            PatternFinder::by_differences,
            PatternFinder::by_moments,
            PatternFinder::by_squares,
        ];
        let (base, mut nodes) = rules.iter().find_map(|rule| {
            let mut nodes = Vec::new();
            Some((rule(self, variance, &mut nodes)?, nodes))
        })?;
        nodes.extend([add_index, index]);
        self.normalized(root.output.first()?, inverse, base, &mut nodes)?;
        let operator = match base.mean {
            Some(_) => LAYER_NORM,
            None => RMS_NORM,
        };
        Some(OperatorPattern {
            operator,
            input: base.x.to_string(),
            nodes,
        })
    }

    /// Matches a variance as the mean of (x - mean)².
    fn by_differences(&self, variance: &'a str, nodes: &mut Vec<usize>) -> Option<NormInput<'a>> {
        let (variance_index, variance_node) = self.producer(variance, "ReduceMean")?;
        let apart = self.square(variance_node.input_at(0)?, nodes)?;
        let (sub_index, sub) = self.producer(apart, "Sub")?;
        let (x, mean) = (sub.input_at(0)?, sub.input_at(1)?);
        let (mean_index, mean_node) = self.producer(mean, "ReduceMean")?;
        nodes.extend([variance_index, sub_index, mean_index]);
        let is_mean = mean_node.input_at(0) == Some(x) && self.are_alike(mean_node, variance_node);
        is_mean.then_some(NormInput {
            x,
            mean: Some(mean),
        })
    }

    /// Matches a variance as mean(x²) - mean(x)², as Flax writes it, with reshapes between.
    fn by_moments(&self, variance: &'a str, nodes: &mut Vec<usize>) -> Option<NormInput<'a>> {
        let mut variance = self.in_shape(variance, nodes);
        // A Max with 0 guards against a negative rounding error.
        if let Some((at, max)) = self.producer(variance, "Max") {
            let (one, two) = (max.input_at(0)?, max.input_at(1)?);
            variance = match (self.number(one), self.number(two)) {
                (Some(0.0), _) => two,
                (_, Some(0.0)) => one,
                _ => return None,
            };
            nodes.push(at);
        }
        let (sub_index, sub) = self.producer(variance, "Sub")?;
        let (mean_of_squares, square_of_mean) = (sub.input_at(0)?, sub.input_at(1)?);
        let (squares, one) = self.mean(mean_of_squares, nodes)?;
        let x = self.square(squares, nodes)?;
        let mean = self.square(square_of_mean, nodes)?;
        let (of, two) = self.mean(mean, nodes)?;
        nodes.push(sub_index);
        (of == x && self.are_alike(one, two)).then_some(NormInput {
            x,
            mean: Some(mean),
        })
    }

    /// Matches the mean of squares of an RMS normalization.
    fn by_squares(&self, variance: &'a str, nodes: &mut Vec<usize>) -> Option<NormInput<'a>> {
        let (at, node) = self.producer(variance, "ReduceMean")?;
        nodes.push(at);
        let x = self.square(node.input_at(0)?, nodes)?;
        Some(NormInput { x, mean: None })
    }

    /// Adds the nodes from a deviation (or its inverse) to the normalized values, with scale and
    /// shift.
    fn normalized(
        &self,
        deviation: &'a str,
        inverse: bool,
        base: NormInput<'a>,
        nodes: &mut Vec<usize>,
    ) -> Option<()> {
        let mut divisor = deviation;
        if !inverse {
            let (at, node) = self
                .only_consumer(divisor, "Div")
                .filter(|(_, div)| div.input_at(1) == Some(divisor))
                .or_else(|| self.only_consumer(divisor, "Reciprocal"))?;
            let is_inverse = node.is("Reciprocal") || self.is_number(node.input_at(0)?, 1.0);
            if !is_inverse {
                self.differences(node.input_at(0)?, base, nodes)?;
                nodes.push(at);
                self.scaled_and_shifted(node.output.first()?, nodes);
                return Some(());
            }
            nodes.push(at);
            divisor = node.output.first()?;
        }
        // The scale may be multiplied first.
        if let Some((at, mul)) = self.only_consumer(divisor, "Mul")
            && self.is_constant(self.other_operand(mul, divisor)?)
        {
            nodes.push(at);
            divisor = mul.output.first()?;
        }
        if let Some((at, mul)) = self.only_consumer(divisor, "Mul") {
            self.differences(self.other_operand(mul, divisor)?, base, nodes)?;
            nodes.push(at);
            self.scaled_and_shifted(mul.output.first()?, nodes);
            return Some(());
        }
        self.shifted_by_mean(divisor, base, nodes)
    }

    /// Adds the subtraction of the mean, if there is one. Some exporters write it twice.
    fn differences(
        &self,
        value: &'a str,
        base: NormInput<'a>,
        nodes: &mut Vec<usize>,
    ) -> Option<()> {
        let Some(mean) = base.mean else {
            return (value == base.x).then_some(());
        };
        let (at, sub) = self.producer(value, "Sub")?;
        if sub.input_at(0) != Some(base.x) || self.in_shape(sub.input_at(1)?, nodes) != mean {
            return None;
        }
        if !nodes.contains(&at) {
            nodes.push(at);
        }
        Some(())
    }

    /// Adds x·factor + (shift - mean·factor), as TensorFlow writes it.
    fn shifted_by_mean(
        &self,
        factor: &'a str,
        base: NormInput<'a>,
        nodes: &mut Vec<usize>,
    ) -> Option<()> {
        let product = |wanted: &str| {
            let mut users = self.graph.consumers(factor).iter();
            users.find_map(|user| {
                let node = &self.graph.nodes()[user.node];
                let is_wanted = node.is("Mul") && self.other_operand(node, factor) == Some(wanted);
                is_wanted.then_some((user.node, node.output.first()?.as_str()))
            })
        };
        let (scaled_at, scaled) = product(base.x)?;
        let (mean_at, scaled_mean) = product(base.mean?)?;
        let (sub_at, sub) = self.only_consumer(scaled_mean, "Sub")?;
        let is_shift = sub.input_at(1) == Some(scaled_mean) && self.is_constant(sub.input_at(0)?);
        let (add_at, add) = self.only_consumer(scaled, "Add")?;
        if !is_shift || self.other_operand(add, scaled) != sub.output.first().map(String::as_str) {
            return None;
        }
        nodes.extend([scaled_at, mean_at, sub_at, add_at]);
        Some(())
    }

    /// Adds the following product with a constant and sum with a constant, if there are any.
    fn scaled_and_shifted(&self, mut output: &'a str, nodes: &mut Vec<usize>) {
        for operator in ["Mul", "Add"] {
            let next = self.only_consumer(output, operator);
            let of_constant = next.filter(|(_, node)| {
                self.other_operand(node, output)
                    .is_some_and(|name| self.is_constant(name))
            });
            let inside = of_constant.filter(|_| !self.graph.is_output(output));
            if let Some((at, next_output)) =
                inside.and_then(|(at, node)| Some((at, node.output.first()?)))
            {
                nodes.push(at);
                output = next_output;
            }
        }
    }

    /// The source of a value before shape operators.
    fn in_shape(&self, value: &'a str, nodes: &mut Vec<usize>) -> &'a str {
        let mut value = value;
        loop {
            let shaped = ["Reshape", "Expand", "Unsqueeze", "Squeeze"]
                .iter()
                .find_map(|operator| self.producer(value, operator));
            match shaped.and_then(|(at, node)| Some((at, node.input_at(0)?))) {
                Some((at, before)) => {
                    nodes.push(at);
                    value = before;
                }
                None => return value,
            }
        }
    }

    /// The operand of a mean and the node that reduces it: a ReduceMean, or a ReduceSum times a
    /// constant.
    fn mean(&self, value: &'a str, nodes: &mut Vec<usize>) -> Option<(&'a str, &'a Node)> {
        if let Some((at, node)) = self.producer(value, "ReduceMean") {
            nodes.push(at);
            return Some((node.input_at(0)?, node));
        }
        let (at, mul) = self.producer(value, "Mul")?;
        let (one, two) = (mul.input_at(0)?, mul.input_at(1)?);
        let sum = match (self.number(one), self.number(two)) {
            (None, Some(_)) => one,
            (Some(_), None) => two,
            _ => return None,
        };
        let (sum_at, node) = self.producer(sum, "ReduceSum")?;
        nodes.extend([sum_at, at]);
        Some((node.input_at(0)?, node))
    }

    /// The base of a square.
    fn square(&self, value: &'a str, nodes: &mut Vec<usize>) -> Option<&'a str> {
        let (at, base) = match (self.producer(value, "Pow"), self.producer(value, "Mul")) {
            (Some((at, pow)), _) if self.is_number(pow.input_at(1)?, 2.0) => (at, pow.input_at(0)?),
            (_, Some((at, mul))) if mul.input_at(0) == mul.input_at(1) => (at, mul.input_at(0)?),
            _ => return None,
        };
        nodes.push(at);
        Some(base)
    }
}
