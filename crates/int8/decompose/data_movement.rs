//! Decomposition of QLinearConcat, QLinearWhere, QLinearSoftmax, and of ONNX operators that move
//! integers with known parameters.

use super::{Decomposer, Decomposition};
use octet_onnx::schema::{AttributeProto, NodeProto};

pub(super) const DECOMPOSITIONS: &[Decomposition] = &[
    Decomposition {
        operators: &["com.microsoft::QLinearConcat"],
        rewrite: |to, node, _| to.concat(node),
    },
    Decomposition {
        operators: &["com.microsoft::QLinearWhere"],
        rewrite: |to, node, _| to.conditional(node),
    },
    Decomposition {
        operators: &["com.microsoft::QLinearSoftmax"],
        rewrite: |to, node, _| to.softmax(node),
    },
    // Operators that return their input's integers unchanged at other positions.
    Decomposition {
        operators: &[
            "MaxPool",
            "ReduceMax",
            "ReduceMin",
            "Reshape",
            "Transpose",
            "Squeeze",
            "Unsqueeze",
            "Flatten",
            "Slice",
            "Split",
            "Resize",
            "Pad",
            "DepthToSpace",
            "SpaceToDepth",
            "Identity",
            "Gather",
            "GatherElements",
            "Concat",
        ],
        rewrite: |to, node, _| to.data_movement(node),
    },
];

impl Decomposer {
    fn concat(&mut self, node: &NodeProto) -> Option<()> {
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

    fn conditional(&mut self, node: &NodeProto) -> Option<()> {
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

    /// QLinearSoftmax. Before opset 13 it normalizes over all axes from `axis` on, which is a
    /// softmax of matrix rows.
    fn softmax(&mut self, node: &NodeProto) -> Option<()> {
        if node.int("opset").unwrap_or(13) >= 13 {
            return self.quantized_operator(node, "Softmax", &[0], 3, None);
        }
        let (integers, output) = (node.input_at(0)?, node.output.first()?);
        let (scale, zero_point) = (node.input_at(3)?, node.input_at(4).unwrap_or_default());
        let input_zero_point = node.input_at(2).unwrap_or_default();
        let real = self.dequantized(integers, node.input_at(1)?, input_zero_point, 1);
        let [shape, flat, rows] = ["shape", "flat", "rows"]
            .map(|word| self.steps.names.fresh(&format!("{output}_{word}")));
        let axis = |axis| AttributeProto::int("axis", axis);
        let from = node.int("axis").unwrap_or(1);
        self.steps.nodes.extend([
            NodeProto::new("Shape", &shape, &[integers], &[&shape]),
            NodeProto::new("Flatten", &flat, &[&real], &[&flat]).with(axis(from)),
            // For two axes, all opsets agree on the second.
            NodeProto::new("Softmax", node.title(), &[&flat], &[&rows]).with(axis(1)),
        ]);
        let name = self.steps.names.fresh(&format!("{output}_Reshape"));
        let back = NodeProto::new("Reshape", &name, &[], &[output]);
        self.push_quantized(&back, "Reshape", vec![rows, shape], (scale, zero_point))
    }

    fn data_movement(&mut self, node: &NodeProto) -> Option<()> {
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
