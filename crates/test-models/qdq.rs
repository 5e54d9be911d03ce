//! Models of QuantizeLinear and DequantizeLinear pairs.

use octet_graph::Model;
use octet_onnx::schema::{AttributeProto, NodeProto, TensorProto};

/// A QDQ model under construction.
#[derive(Default)]
pub struct QdqModel {
    /// The nodes so far.
    pub nodes: Vec<NodeProto>,
    /// The constants so far.
    pub constants: Vec<TensorProto>,
}

impl QdqModel {
    /// Adds a node `the_{output}`.
    pub fn node(&mut self, operator: &str, inputs: &[&str], output: &str) -> &mut NodeProto {
        let name = format!("the_{output}");
        self.nodes
            .push(NodeProto::new(operator, &name, inputs, &[output]));
        self.nodes.last_mut().unwrap()
    }

    /// Adds a pair: `value` becomes `value_real`, which is returned.
    pub fn pair(&mut self, value: &str, scale: f32) -> String {
        let [s, z] = ["scale", "zero"].map(|what| format!("{value}_{what}"));
        self.constants
            .push(TensorProto::from_f32(&s, &[], &[scale]));
        self.constants.push(TensorProto::from_u8(&z, &[], &[120]));
        let (integers, real) = (format!("{value}_integers"), format!("{value}_real"));
        self.node("QuantizeLinear", &[value, &s, &z], &integers);
        self.node("DequantizeLinear", &[&integers, &s, &z], &real);
        real
    }

    /// Adds a dequantized constant with a scale for each channel.
    pub fn weight(&mut self, name: &str, shape: &[usize]) -> String {
        let count: usize = shape.iter().product();
        let integers: Vec<i8> = (0..count).map(|i| (i * 89 % 251) as u8 as i8).collect();
        let scales: Vec<f32> = (0..shape[0]).map(|c| 0.001 + 0.0002 * c as f32).collect();
        let [q, s, z] = ["q", "s", "z"].map(|what| format!("{name}_{what}"));
        self.constants
            .push(TensorProto::from_i8(&q, shape, &integers));
        self.constants
            .push(TensorProto::from_f32(&s, &[shape[0]], &scales));
        self.constants
            .push(TensorProto::from_i8(&z, &[shape[0]], &vec![0; shape[0]]));
        self.node("DequantizeLinear", &[&q, &s, &z], name)
            .set(AttributeProto::int("axis", 0));
        name.to_owned()
    }

    /// Adds a convolution and a pair behind it; returns the name of the pair's value.
    pub fn convolution(
        &mut self,
        input: &str,
        output: &str,
        shape: &[usize],
        groups: i64,
    ) -> String {
        let weight = self.weight(&format!("{output}_w"), shape);
        let node = self.node("Conv", &[input, &weight], output);
        let pad = (shape[2] / 2) as i64;
        node.set(AttributeProto::ints("pads", &[pad; 4]));
        node.set(AttributeProto::int("group", groups));
        self.pair(output, 0.05)
    }

    /// The model with these outputs.
    pub fn model(self, outputs: &[&str]) -> Model {
        crate::model(self.nodes, self.constants, outputs)
    }
}

/// A small network: a dense, a depthwise and a pointwise convolution, an addition, a Concat, a
/// pooling.
pub fn network() -> Model {
    let mut p = QdqModel::default();
    let x = p.pair("x", 0.02);
    let a = p.convolution(&x, "a", &[24, 5, 3, 3], 1);
    let b = p.convolution(&a, "b", &[24, 1, 5, 5], 24);
    let c = p.convolution(&b, "c", &[24, 24, 1, 1], 1);
    p.node("Add", &[&a, &c], "d");
    let d = p.pair("d", 0.07);
    p.node("Concat", &[&d, &b], "e")
        .set(AttributeProto::int("axis", 1));
    let e = p.pair("e", 0.07);
    p.node("MaxPool", &[&e], "f")
        .set(AttributeProto::ints("kernel_shape", &[2, 2]));
    let f = p.pair("f", 0.07);
    p.model(&[&f])
}
