//! Nodes and weights of the warm-up model.

use crate::onnx::schema::{AttributeProto, NodeProto, TensorProto};

/// A network that is being built.
#[derive(Default)]
pub(super) struct WarmUpNetwork {
    pub(super) nodes: Vec<NodeProto>,
    pub(super) weights: Vec<TensorProto>,
}

impl WarmUpNetwork {
    /// Adds a constant.
    pub(super) fn weight(&mut self, name: &str, shape: &[usize]) {
        let values = varied_weights(shape.iter().product());
        self.weights
            .push(TensorProto::from_f32(name, shape, &values));
    }

    /// Adds a node and returns the name of its output, which is also the node's.
    pub(super) fn node(&mut self, operator: &str, inputs: &[&str], name: &str) -> String {
        self.nodes
            .push(NodeProto::new(operator, name, inputs, &[name]));
        name.to_owned()
    }

    /// Adds a convolution with batch normalization. A weight with one input channel makes it
    /// depthwise.
    pub(super) fn convolution(
        &mut self,
        input: &str,
        name: &str,
        [outputs, depth, size, stride]: [usize; 4],
    ) -> String {
        let weight = format!("{name}.weight");
        self.weight(&weight, &[outputs, depth, size, size]);
        let group = if depth == 1 { outputs } else { 1 };
        let conv = NodeProto::new("Conv", name, &[input, &weight], &[name]);
        self.nodes.push(
            conv.with(AttributeProto::int("group", group as i64))
                .with(AttributeProto::ints("strides", &[stride as i64; 2]))
                .with(AttributeProto::ints("pads", &[size as i64 / 2; 4])),
        );
        let norm = ["scale", "shift", "mean", "variance"].map(|part| format!("{name}.{part}"));
        for part in &norm {
            let values = vec![1.0; outputs];
            self.weights
                .push(TensorProto::from_f32(part, &[outputs], &values));
        }
        let [scale, shift, mean, variance] = &norm;
        let inputs = [name, scale, shift, mean, variance];
        self.node("BatchNormalization", &inputs, &format!("{name}.norm"))
    }

    /// Adds a Clip to 0..6.
    pub(super) fn clip(&mut self, input: &str) -> String {
        for (name, value) in [("low", 0.0), ("high", 6.0)] {
            if !self.weights.iter().any(|w| w.name.as_deref() == Some(name)) {
                self.weights
                    .push(TensorProto::from_f32(name, &[], &[value]));
            }
        }
        self.node("Clip", &[input, "low", "high"], &format!("{input}.cut"))
    }
}

/// Weights with both signs.
fn varied_weights(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| (at * 37 % 101) as f32 / 101.0 - 0.5)
        .collect()
}
