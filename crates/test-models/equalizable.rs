//! Layers around the nodes under test, whose channels can be equalized.

use octet_onnx::schema::{NodeProto, TensorProto};

use crate::{node, numbers};

/// The shape of the input of these layers.
pub const SHAPE: [usize; 4] = [1, 4, 6, 6];

/// A constant with varied numbers; a weight has a different magnitude for each of its outputs.
pub fn weight(name: &str, dims: &[usize]) -> TensorProto {
    let count: usize = dims.iter().product();
    let seed = name
        .bytes()
        .fold(7u64, |seed, byte| seed * 31 + u64::from(byte));
    let run = count / dims[0];
    let sizes = numbers(seed + 1, dims[0]);
    let values = numbers(seed, count).into_iter().enumerate();
    let sized: Vec<f32> = values
        .map(|(at, value)| value * (3.0 * sizes[at / run]).exp2())
        .collect();
    TensorProto::from_f32(name, dims, &sized)
}

/// A convolution with the weight `name` and the bias of [`conv_constants`].
pub fn conv(input: &str, name: &str, output: &str) -> NodeProto {
    node("Conv", &[input, name, &format!("{name}_bias")], output)
}

/// Weight and bias of a convolution.
pub fn conv_constants(name: &str, dims: &[usize]) -> Vec<TensorProto> {
    vec![
        weight(name, dims),
        weight(&format!("{name}_bias"), &[dims[0]]),
    ]
}

/// A layer, these nodes from `a` to `z`, and another layer.
pub fn between(
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    width: usize,
) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let all = [
        vec![conv("x", "first", "a")],
        nodes,
        vec![conv("z", "last", "y")],
    ]
    .concat();
    let layers = [
        conv_constants("first", &[6, 4, 1, 1]),
        conv_constants("last", &[3, width, 1, 1]),
    ];
    (all, [constants, layers.concat()].concat())
}
