//! Decomposition of QLinearConcat, QLinearWhere, and of ONNX operators that move integers with known
//! parameters.

use super::{Decomposer, Decomposition};
use octet_graph::Node;

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["com.microsoft::QLinearConcat"],
        rewrite: |to, node, _| to.concat(node),
    },
    Decomposition {
        operators: &["com.microsoft::QLinearWhere"],
        rewrite: |to, node, _| to.conditional(node),
    },
];

impl Decomposer {
    fn concat(&mut self, node: &Node) -> Option<()> {
        let (scale, zero_point) = (node.input_at(0)?, node.input_at(1)?);
        let parts = node.input.get(2..)?;
        if parts.len() % 3 != 0 || parts.iter().any(String::is_empty) {
            return None;
        }
        let inputs = parts
            .chunks_exact(3)
            .map(|part| self.dequantized(&part[0], &part[1], &part[2], 1))
            .collect();
        self.push_quantized(node, "Concat", inputs, (scale, zero_point))
    }

    fn conditional(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (scale, zero_point) = (slot(7)?, slot(8)?);
        let (x, y) = (
            [slot(1)?, slot(2)?, slot(3)?],
            [slot(4)?, slot(5)?, slot(6)?],
        );
        let mut inputs = vec![slot(0)?.to_owned()];
        for [integers, scale, zero_point] in [x, y] {
            inputs.push(self.dequantized(integers, scale, zero_point, 1));
        }
        self.push_quantized(node, "Where", inputs, (scale, zero_point))
    }

    /// An operator with the property `CarriesIntegers`, if the parameters of its integers are known.
    pub(super) fn data_movement(&mut self, node: &Node) -> Option<()> {
        let (scale, zero_point) = self.known.get(node.input_at(0)?)?.clone();
        let all = node.is("Concat");
        let many = node.input.iter().filter(|_| all).skip(1);
        if many
            .clone()
            .any(|name| self.known.get(name) != Some(&(scale.clone(), zero_point.clone())))
        {
            return None;
        }
        // Only the first output holds moved integers.
        if node.is("MaxPool") && node.output.len() > 1 {
            return None;
        }
        // A fill value would be an integer.
        if node.is("Pad") && node.input_at(2).is_some() {
            return None;
        }
        let mut float = node.clone();
        let slots = if all { node.input.len() } else { 1 };
        for slot in 0..slots {
            float.input[slot] = self.dequantized(&node.input[slot], &scale, &zero_point, 1);
        }
        let integers: Vec<String> = node.output.clone();
        for output in float.output.iter_mut().filter(|name| !name.is_empty()) {
            *output = self
                .steps
                .names
                .fresh(&format!("{output}_QuantizeLinear_Input"));
        }
        let reals = float.output.clone();
        self.steps.nodes.push(float);
        for (real, integers) in reals
            .iter()
            .zip(&integers)
            .filter(|(real, _)| !real.is_empty())
        {
            self.quantized(real, integers, &scale, &zero_point);
        }
        Some(())
    }
}
