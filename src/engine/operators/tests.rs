use crate::engine::Engine;
use crate::engine::checks::tests::Beside::{self, Floats, Integers, Nothing};
use crate::engine::checks::tests::{ints, model, node, text};
use crate::onnx::schema::{AttributeProto, NodeProto};
use crate::tensor::{Tensor, Values};

/// What a node makes of these values, with its shape.
fn made(
    node: NodeProto,
    shape: &[usize],
    values: &[f32],
    beside: &[Beside],
) -> (Vec<usize>, Vec<f32>) {
    let engine = Engine::new(model(node, shape, beside), vec![]);
    let fed = Tensor::new(shape.to_vec(), Values::F32(values.to_vec())).unwrap();
    let outputs = engine.run(&[fed], |_, _| {}, || false).unwrap();
    let values = outputs[0].as_f32().unwrap();
    (outputs[0].shape().to_vec(), values.to_vec())
}

#[test]
fn a_transposed_convolution_pads_as_onnx_runtime_does() {
    for (taps, attributes, pad, expected) in [
        (3, &[][..], None, &[1, 1, 2, 1, 2, 1, 2, 1, 1][..]),
        (3, &[], Some("SAME_UPPER"), &[1, 1, 2, 1, 2, 1, 2, 1]),
        (3, &[], Some("SAME_LOWER"), &[1, 2, 1, 2, 1, 2, 1, 1]),
        (2, &[], Some("SAME_UPPER"), &[1; 8]),
        (1, &[], Some("SAME_UPPER"), &[1, 0, 1, 0, 1, 0, 1]),
        (
            3,
            &[("output_padding", 1)],
            Some("SAME_UPPER"),
            &[1, 2, 1, 2, 1, 2, 1, 1],
        ),
        (
            3,
            &[("output_padding", 1)],
            Some("SAME_LOWER"),
            &[1, 2, 1, 2, 1, 2, 1, 1],
        ),
        (3, &[("output_shape", 8)], None, &[1, 2, 1, 2, 1, 2, 1, 1]),
        (
            3,
            &[("output_shape", 8)],
            Some("VALID"),
            &[1, 2, 1, 2, 1, 2, 1, 1],
        ),
        (
            3,
            &[("output_shape", 8)],
            Some("SAME_UPPER"),
            &[1, 1, 2, 1, 2, 1, 2, 1],
        ),
        (3, &[("output_shape", 6)], None, &[2, 1, 2, 1, 2, 1]),
        (
            1,
            &[("output_shape", 8)],
            Some("SAME_UPPER"),
            &[1, 0, 1, 0, 1, 0, 1, 0],
        ),
    ] {
        let mut node = ints("ConvTranspose", &[("strides", &[2])]);
        for &(name, value) in attributes {
            node = node.with(AttributeProto::ints(name, &[value]));
        }
        if let Some(pad) = pad {
            node = node.with(AttributeProto::text("auto_pad", pad));
        }
        let kernel = [1.0; 3];
        let weight = Floats(&[1, 1, taps], &kernel[..taps]);
        let (_, found) = made(node, &[1, 1, 4], &[1.0; 4], &[weight]);
        let expected: Vec<f32> = expected.iter().map(|&v| v as f32).collect();
        assert_eq!(found, expected, "{taps} {attributes:?} {pad:?}");
    }
}

#[test]
fn groups_of_a_transposed_convolution_have_weights_of_their_own() {
    // Two groups of one channel, each of which makes two of its own: 10 · 1, 10 · 2, 100 · 3, 100 · 4, and a bias.
    let weight = Floats(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
    let bias = Floats(&[4], &[0.5, 0.0, 0.0, 0.25]);
    let node = node("ConvTranspose").with(AttributeProto::int("group", 2));
    let (shape, found) = made(node, &[1, 2, 1], &[10.0, 100.0], &[weight, bias]);
    assert_eq!(shape, [1, 4, 1]);
    assert_eq!(found, [10.5, 20.0, 300.0, 400.25]);
}
