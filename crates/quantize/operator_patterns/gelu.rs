//! GELUs, by the error function or its approximation with tanh.

use super::{OperatorPattern, PatternFinder, PatternOperator, PatternRule, is_near};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

const GELU: PatternOperator = PatternOperator {
    name: "Gelu",
    reason: StaysFloat::InGelu,
};

pub(super) const RULES: &[PatternRule] = &[
    PatternRule {
        from: &["Erf"],
        chain: |finder, index, erf| finder.gelu(index, erf),
    },
    PatternRule {
        from: &["Tanh"],
        chain: |finder, index, tanh| finder.gelu_by_tanh(index, tanh),
    },
];

/// A product constant · x^times.
struct PowerProduct {
    times: i32,
    constant: f64,
}

/// The maximum nesting of products in a GELU.
const MAX_DEPTH: usize = 5;

impl<'a> PatternFinder<'a> {
    /// x · (1 + erf(x / √2)) / 2, with the factor one half anywhere. Matched from the Erf.
    fn gelu(&self, index: usize, erf: &'a Node) -> Option<OperatorPattern> {
        let scaled = erf.input_at(0)?;
        let (scale_index, x) = match (
            self.division_before(scaled),
            self.multiplication_before(scaled),
        ) {
            (Some((at, div)), _) if self.is_number(div.input_at(1)?, std::f64::consts::SQRT_2) => {
                (at, div.input_at(0)?)
            }
            (_, Some((at, mul))) => (
                at,
                self.operand_beside(mul, std::f64::consts::FRAC_1_SQRT_2)?,
            ),
            _ => return None,
        };
        let (add_index, add) = self.addition_behind(erf.output.first()?)?;
        self.operand_beside(add, 1.0)?;
        let sum = add.output.first()?;
        let (mul_index, mul) = self.multiplication_behind(sum)?;
        let (product, factor) = (mul.output.first()?, self.other_operand(mul, sum)?);
        let mut nodes = vec![scale_index, index, add_index];
        if factor == x {
            let (half_index, half) = self.multiplication_behind(product)?;
            self.operand_beside(half, 0.5)?;
            nodes.extend([mul_index, half_index]);
        } else if self.is_number(factor, 0.5) {
            let (last_index, last) = self.multiplication_behind(product)?;
            if self.other_operand(last, product) != Some(x) {
                return None;
            }
            nodes.extend([mul_index, last_index]);
        } else {
            let (half_index, half) = self.multiplication_before(factor)?;
            if self.operand_beside(half, 0.5) != Some(x) {
                return None;
            }
            nodes.extend([half_index, mul_index]);
        }
        Some(OperatorPattern {
            operator: GELU,
            input: x.to_string(),
            nodes,
        })
    }

    /// x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2, with constants and powers of x multiplied in
    /// any order. Matched from the Tanh.
    fn gelu_by_tanh(&self, index: usize, tanh: &'a Node) -> Option<OperatorPattern> {
        let (scale_index, scale) = self.multiplication_before(tanh.input_at(0)?)?;
        let sum = self.operand_beside(scale, (2.0 / std::f64::consts::PI).sqrt())?;
        let (sum_index, add) = self.addition_before(sum)?;
        let (one, two) = (add.input_at(0)?, add.input_at(1)?);
        let mut nodes = Vec::new();
        let x = [(one, two), (two, one)].into_iter().find_map(|(x, cube)| {
            nodes.clear();
            let product = self.product(cube, x, &mut nodes, MAX_DEPTH)?;
            (product.times == 3 && is_near(product.constant, 0.044715)).then_some(x)
        })?;
        let (add_index, add) = self.addition_behind(tanh.output.first()?)?;
        self.operand_beside(add, 1.0)?;
        nodes.extend([sum_index, scale_index, index, add_index]);
        // The factors x and one half, in one product or two.
        let (mut times, mut constant) = (0, 1.0);
        let mut output = add.output.first()?;
        while times < 1 || !is_near(constant, 0.5) {
            let (at, mul) = self.multiplication_behind(output)?;
            let product =
                self.product(self.other_operand(mul, output)?, x, &mut nodes, MAX_DEPTH)?;
            (times, constant) = (times + product.times, constant * product.constant);
            if times > 1 || constant < 0.4 {
                return None;
            }
            nodes.push(at);
            output = mul.output.first()?;
        }
        Some(OperatorPattern {
            operator: GELU,
            input: x.to_string(),
            nodes,
        })
    }

    /// A value as a product of powers of x and constants; `None` for anything else.
    fn product(
        &self,
        value: &str,
        x: &str,
        nodes: &mut Vec<usize>,
        depth: usize,
    ) -> Option<PowerProduct> {
        if value == x {
            let (times, constant) = (1, 1.0);
            return Some(PowerProduct { times, constant });
        }
        if let Some(constant) = self.number(value) {
            return Some(PowerProduct { times: 0, constant });
        }
        let depth = depth.checked_sub(1)?;
        if let Some((at, pow)) = self.producer(value, "Pow") {
            let exponent = self.number(pow.input_at(1)?)?;
            if exponent != 2.0 && exponent != 3.0 {
                return None;
            }
            let base = self.product(pow.input_at(0)?, x, nodes, depth)?;
            nodes.push(at);
            return Some(PowerProduct {
                times: base.times * exponent as i32,
                constant: base.constant.powf(exponent),
            });
        }
        let (at, mul) = self.multiplication_before(value)?;
        let one = self.product(mul.input_at(0)?, x, nodes, depth)?;
        let two = self.product(mul.input_at(1)?, x, nodes, depth)?;
        if !nodes.contains(&at) {
            nodes.push(at);
        }
        Some(PowerProduct {
            times: one.times + two.times,
            constant: one.constant * two.constant,
        })
    }
}
