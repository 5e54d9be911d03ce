//! Text and vision transformers, with shapes computed as PyTorch's exporter writes them.

use octet_onnx::schema::*;

use super::{Network, network};
use crate::constant;

const WIDTH: usize = 8;
const HEADS: i64 = 2;

/// A text encoder: token and position embeddings, one block.
pub fn encoder(sizes: &[&str]) -> ModelProto {
    let mut net = Network::default();
    net.input("ids", DataType::Int64, sizes);
    net.weight("words", &[20, WIDTH]);
    net.plain("Gather", &["words", "ids"], "embedded");
    net.size("ids", 1, "length");
    net.list("zero", &[0]);
    net.weight("places", &[16, WIDTH]);
    net.plain("Slice", &["places", "zero", "length", "zero"], "some");
    net.plain("Add", &["embedded", "some"], "tokens");
    block(&mut net, "tokens", "y");
    net.output("y");
    net.model()
}

/// A vision transformer: patches, a class token expanded over the batch, one block, logits.
pub fn patches(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.weight("patch.w", &[WIDTH, 3, 4, 4]);
    net.weight("patch.b", &[WIDTH]);
    net.node(
        "Conv",
        &["x", "patch.w", "patch.b"],
        &["patch"],
        vec![AttributeProto::ints("strides", &[4, 4])],
    );
    // flatten(2).transpose(1, 2): the first two dimensions, then the product of the rest.
    net.list("zero", &[0]);
    net.list("two", &[2]);
    net.list("rest", &[-1]);
    net.plain("Shape", &["patch"], "patch.shape");
    net.plain("Slice", &["patch.shape", "zero", "two", "zero"], "front");
    net.concat(&["front", "rest"], "flat.shape", 0);
    net.plain("Reshape", &["patch", "flat.shape"], "flat");
    net.node(
        "Transpose",
        &["flat"],
        &["rows"],
        vec![AttributeProto::ints("perm", &[0, 2, 1])],
    );
    // expand(batch, -1, -1), whose -1 is exported as a Where over ones.
    net.size("x", 0, "batch");
    net.constant(constant("class", &[1, 1, WIDTH]));
    net.list("as.it.is", &[-1, -1]);
    net.concat(&["batch", "as.it.is"], "spread", 0);
    net.list("three", &[3]);
    net.node("ConstantOfShape", &["three"], &["ones"], vec![one()]);
    net.list("minus.ones", &[-1, -1, -1]);
    net.plain("Equal", &["spread", "minus.ones"], "open");
    net.plain("Where", &["open", "ones", "spread"], "class.shape");
    net.plain("Expand", &["class", "class.shape"], "classes");
    net.concat(&["classes", "rows"], "all", 1);
    // Position embeddings are resized to the image's grid; its rows are the square root of their
    // count, a float.
    net.weight("learned", &[1, 16, WIDTH]);
    net.number("number", 16.0);
    net.number("root", 0.5);
    net.list("front.axis", &[0]);
    net.list("single", &[1]);
    net.list("wide", &[WIDTH as i64]);
    net.list("row", &[1, -1, WIDTH as i64]);
    net.plain("Pow", &["number", "root"], "side.real");
    let attributes = vec![AttributeProto::int("to", DataType::Int64 as i64)];
    net.node("Cast", &["side.real"], &["side.number"], attributes);
    net.plain("Unsqueeze", &["side.number", "front.axis"], "side");
    net.concat(&["single", "side", "side", "wide"], "square.shape", 0);
    net.plain("Reshape", &["learned", "square.shape"], "square");
    net.plain("Reshape", &["square", "row"], "spread.out");
    net.constant(constant("class.place", &[1, 1, WIDTH]));
    net.concat(&["class.place", "spread.out"], "places", 1);
    net.plain("Add", &["all", "places"], "tokens");
    block(&mut net, "tokens", "encoded");
    net.place("first", 0);
    net.node(
        "Gather",
        &["encoded", "first"],
        &["answer"],
        vec![AttributeProto::int("axis", 1)],
    );
    net.weight("head.w", &[WIDTH, 5]);
    net.weight("head.b", &[5]);
    net.plain("Gemm", &["answer", "head.w", "head.b"], "y");
    net.output("y");
    net.model()
}

fn one() -> AttributeProto {
    AttributeProto::tensor("value", TensorProto::from_i64("value", &[1], &[1]))
}

/// Attention with two heads and a two-layer MLP, each after a layer norm.
fn block(net: &mut Network, input: &str, output: &str) {
    norm(net, input, "n1");
    net.size(input, 0, "blocks.batch");
    net.size(input, 1, "blocks.length");
    net.list("heads", &[HEADS, WIDTH as i64 / HEADS]);
    net.list("width", &[WIDTH as i64]);
    net.concat(&["blocks.batch", "blocks.length", "heads"], "apart", 0);
    net.concat(&["blocks.batch", "blocks.length", "width"], "joint", 0);
    for (name, order) in [
        ("q", [0, 2, 1, 3]),
        ("k", [0, 2, 3, 1]),
        ("v", [0, 2, 1, 3]),
    ] {
        let [linear, biased, four] =
            ["linear", "biased", "four"].map(|word| format!("{name}.{word}"));
        let bias = format!("{name}.bias");
        net.linear("n1", &linear, WIDTH, WIDTH);
        net.weight(&bias, &[WIDTH]);
        net.plain("Add", &[&bias, &linear], &biased);
        net.plain("Reshape", &[&biased, "apart"], &four);
        let attributes = vec![AttributeProto::ints("perm", &order)];
        net.node("Transpose", &[&four], &[name], attributes);
    }
    net.plain("MatMul", &["q", "k"], "scores");
    net.number("scale", 2.0);
    net.plain("Div", &["scores", "scale"], "scaled");
    let attributes = vec![AttributeProto::int("axis", -1)];
    net.node("Softmax", &["scaled"], &["shares"], attributes);
    net.plain("MatMul", &["shares", "v"], "mixed");
    let attributes = vec![AttributeProto::ints("perm", &[0, 2, 1, 3])];
    net.node("Transpose", &["mixed"], &["turned"], attributes);
    net.plain("Reshape", &["turned", "joint"], "together");
    net.linear("together", "out", WIDTH, WIDTH);
    net.plain("Add", &[input, "out"], "mid");
    norm(net, "mid", "n2");
    net.linear("n2", "up", WIDTH, 2 * WIDTH);
    // x · (1 + erf(x / √2)) / 2
    net.number("sqrt.two", std::f32::consts::SQRT_2);
    net.number("whole", 1.0);
    net.number("half", 0.5);
    net.plain("Div", &["up", "sqrt.two"], "g1");
    net.plain("Erf", &["g1"], "g2");
    net.plain("Add", &["g2", "whole"], "g3");
    net.plain("Mul", &["up", "g3"], "g4");
    net.plain("Mul", &["g4", "half"], "gelu");
    net.linear("gelu", "down", 2 * WIDTH, WIDTH);
    net.plain("Add", &["mid", "down"], output);
}

fn norm(net: &mut Network, input: &str, output: &str) {
    let [scale, shift] = ["scale", "shift"].map(|word| format!("{output}.{word}"));
    net.weight(&scale, &[WIDTH]);
    net.weight(&shift, &[WIDTH]);
    let attributes = vec![AttributeProto::int("axis", -1)];
    net.node(
        "LayerNormalization",
        &[input, &scale, &shift],
        &[output],
        attributes,
    );
}
