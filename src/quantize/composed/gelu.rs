//! GELUs, by the error function or its approximation with tanh.

use super::{Composed, Finder, is_near};
use crate::onnx::schema::NodeProto;

/// A product constant · x^times.
struct Product {
    times: i32,
    constant: f64,
}

/// The maximum nesting of products in a GELU.
const DEEPEST: usize = 5;

impl<'a> Finder<'a> {
    /// x · (1 + erf(x / √2)) / 2, with the factor one half anywhere. Matched from the Erf.
    pub(super) fn gelu(&self, index: usize, erf: &'a NodeProto) -> Option<Composed> {
        let scaled = erf.input_at(0)?;
        let (scale_index, x) = match (self.made(scaled, "Div"), self.made(scaled, "Mul")) {
            (Some((at, div)), _) if self.is_number(div.input_at(1)?, std::f64::consts::SQRT_2) => {
                (at, div.input_at(0)?)
            }
            (_, Some((at, mul))) => (at, self.beside(mul, std::f64::consts::FRAC_1_SQRT_2)?),
            _ => return None,
        };
        let (add_index, add) = self.taken(erf.output.first()?, "Add")?;
        self.beside(add, 1.0)?;
        let sum = add.output.first()?;
        let (mul_index, mul) = self.taken(sum, "Mul")?;
        let (product, factor) = (mul.output.first()?, self.other(mul, sum)?);
        let mut nodes = vec![scale_index, index, add_index];
        if factor == x {
            let (half_index, half) = self.taken(product, "Mul")?;
            self.beside(half, 0.5)?;
            nodes.extend([mul_index, half_index]);
        } else if self.is_number(factor, 0.5) {
            let (last_index, last) = self.taken(product, "Mul")?;
            if self.other(last, product) != Some(x) {
                return None;
            }
            nodes.extend([mul_index, last_index]);
        } else {
            let (half_index, half) = self.made(factor, "Mul")?;
            if self.beside(half, 0.5) != Some(x) {
                return None;
            }
            nodes.extend([half_index, mul_index]);
        }
        Some(Composed {
            operator: "Gelu",
            input: x.to_string(),
            nodes,
        })
    }

    /// x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2, with constants and powers of x multiplied in
    /// any order. Matched from the Tanh.
    pub(super) fn gelu_by_tanh(&self, index: usize, tanh: &'a NodeProto) -> Option<Composed> {
        let (scale_index, scale) = self.made(tanh.input_at(0)?, "Mul")?;
        let sum = self.beside(scale, (2.0 / std::f64::consts::PI).sqrt())?;
        let (sum_index, add) = self.made(sum, "Add")?;
        let (one, two) = (add.input_at(0)?, add.input_at(1)?);
        let mut nodes = Vec::new();
        let x = [(one, two), (two, one)].into_iter().find_map(|(x, cube)| {
            nodes.clear();
            let found = self.product(cube, x, &mut nodes, DEEPEST)?;
            (found.times == 3 && is_near(found.constant, 0.044715)).then_some(x)
        })?;
        let (add_index, add) = self.taken(tanh.output.first()?, "Add")?;
        self.beside(add, 1.0)?;
        nodes.extend([sum_index, scale_index, index, add_index]);
        // The factors x and one half, in one product or two.
        let (mut times, mut constant) = (0, 1.0);
        let mut output = add.output.first()?;
        while times < 1 || !is_near(constant, 0.5) {
            let (at, mul) = self.taken(output, "Mul")?;
            let found = self.product(self.other(mul, output)?, x, &mut nodes, DEEPEST)?;
            (times, constant) = (times + found.times, constant * found.constant);
            if times > 1 || constant < 0.4 {
                return None;
            }
            nodes.push(at);
            output = mul.output.first()?;
        }
        Some(Composed {
            operator: "Gelu",
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
        deepest: usize,
    ) -> Option<Product> {
        if value == x {
            let (times, constant) = (1, 1.0);
            return Some(Product { times, constant });
        }
        if let Some(constant) = self.number(value) {
            return Some(Product { times: 0, constant });
        }
        let deepest = deepest.checked_sub(1)?;
        if let Some((at, pow)) = self.made(value, "Pow") {
            let exponent = self.number(pow.input_at(1)?)?;
            if exponent != 2.0 && exponent != 3.0 {
                return None;
            }
            let base = self.product(pow.input_at(0)?, x, nodes, deepest)?;
            nodes.push(at);
            return Some(Product {
                times: base.times * exponent as i32,
                constant: base.constant.powf(exponent),
            });
        }
        let (at, mul) = self.made(value, "Mul")?;
        let one = self.product(mul.input_at(0)?, x, nodes, deepest)?;
        let two = self.product(mul.input_at(1)?, x, nodes, deepest)?;
        if !nodes.contains(&at) {
            nodes.push(at);
        }
        Some(Product {
            times: one.times + two.times,
            constant: one.constant * two.constant,
        })
    }
}
