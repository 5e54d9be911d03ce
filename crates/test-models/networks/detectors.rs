//! Detectors: one with YOLOv8's head and anchors computed from the image size, one with
//! NonMaxSuppression.

use octet_onnx::schema::*;

use super::{Network, network};

/// The number of bins of the distribution for each side of a box.
const BINS: usize = 4;
const CLASSES: usize = 3;

/// Feature maps of two sizes with box sides as distributions and class scores at each position.
pub fn anchors(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "stem", [8, 3, 3, 3], 2, 1);
    swish(&mut net, "stem", "f1");
    net.conv("f1", "next", [8, 8, 3, 3], 2, 1);
    swish(&mut net, "next", "f2");
    let channels = 4 * BINS + CLASSES;
    net.list("rows", &[channels as i64, -1]);
    for (feature, stride) in [("f1", 2.0), ("f2", 4.0)] {
        let [head, shape, flat] =
            ["head", "head.shape", "flat"].map(|word| format!("{feature}.{word}"));
        net.conv(feature, &head, [channels, 8, 1, 1], 1, 1);
        let batch = format!("{feature}.batch");
        net.size("x", 0, &batch);
        net.concat(&[&batch, "rows"], &shape, 0);
        net.plain("Reshape", &[&head, &shape], &flat);
        places(&mut net, feature, stride);
    }
    net.concat(&["f1.flat", "f2.flat"], "flat", 2);
    net.concat(&["f1.anchors", "f2.anchors"], "anchors", 1);
    net.concat(&["f1.strides", "f2.strides"], "strides", 1);
    net.list("sides", &[4 * BINS as i64, CLASSES as i64]);
    let attributes = vec![AttributeProto::int("axis", 1)];
    net.node(
        "Split",
        &["flat", "sides"],
        &["boxes", "classes"],
        attributes,
    );
    // The mean of each distribution: a Softmax and a convolution with 0, 1, 2 …
    net.list("four", &[0, 4, BINS as i64, -1]);
    net.plain("Reshape", &["boxes", "four"], "bins");
    let attributes = vec![AttributeProto::ints("perm", &[0, 2, 1, 3])];
    net.node("Transpose", &["bins"], &["bins.first"], attributes);
    let attributes = vec![AttributeProto::int("axis", 1)];
    net.node("Softmax", &["bins.first"], &["shares"], attributes);
    let numbers: Vec<f32> = (0..BINS).map(|i| i as f32).collect();
    net.constant(TensorProto::from_f32("numbers", &[1, BINS, 1, 1], &numbers));
    net.plain("Conv", &["shares", "numbers"], "means");
    net.list("distances.shape", &[0, 4, -1]);
    net.plain("Reshape", &["means", "distances.shape"], "distances");
    net.list("halves", &[2, 2]);
    let attributes = vec![AttributeProto::int("axis", 1)];
    net.node(
        "Split",
        &["distances", "halves"],
        &["near", "far"],
        attributes,
    );
    net.plain("Sub", &["anchors", "near"], "first");
    net.plain("Add", &["anchors", "far"], "second");
    net.plain("Add", &["first", "second"], "twice");
    net.number("two", 2.0);
    net.plain("Div", &["twice", "two"], "centre");
    net.plain("Sub", &["second", "first"], "size");
    net.concat(&["centre", "size"], "relative", 1);
    net.plain("Mul", &["relative", "strides"], "pixels");
    net.plain("Sigmoid", &["classes"], "scores");
    net.concat(&["pixels", "scores"], "y", 1);
    net.output("y");
    net.model()
}

fn swish(net: &mut Network, input: &str, output: &str) {
    let gate = format!("{output}.gate");
    net.plain("Sigmoid", &[input], &gate);
    net.plain("Mul", &[input, &gate], output);
}

/// The centre and stride of each position of a feature map, from Range and Expand over its size.
fn places(net: &mut Network, feature: &str, stride: f32) {
    let name = |word: &str| format!("{feature}.{word}");
    for (axis, side) in [(2, "height"), (3, "width")] {
        let [list, number, range, real, middle] = ["list", "number", "range", "real", "middle"]
            .map(|word| name(&format!("{side}.{word}")));
        net.size(feature, axis, &list);
        let [zero, one, front, half] =
            ["zero", "one", "front", "half"].map(|word| name(&format!("{side}.{word}")));
        net.number(&zero, 0.0);
        net.number(&one, 1.0);
        net.list(&front, &[0]);
        net.number(&half, 0.5);
        net.plain("Squeeze", &[&list, &front], &number);
        let attributes = vec![AttributeProto::int("to", DataType::Float as i64)];
        net.node("Cast", &[&number], &[&real], attributes);
        net.plain("Range", &[&zero, &real, &one], &range);
        net.plain("Add", &[&range, &half], &middle);
    }
    let [sizes, one, column, row] = ["sizes", "one", "column", "row"].map(name);
    net.concat(&[&name("height.list"), &name("width.list")], &sizes, 0);
    net.list(&one, &[-1, 1]);
    net.plain("Reshape", &[&name("height.middle"), &one], &column);
    net.plain("Expand", &[&column, &sizes], &name("ys"));
    net.plain("Expand", &[&name("width.middle"), &sizes], &name("xs"));
    net.list(&row, &[1, -1]);
    for side in ["xs", "ys"] {
        net.plain(
            "Reshape",
            &[&name(side), &row],
            &name(&format!("{side}.row")),
        );
    }
    net.concat(&[&name("xs.row"), &name("ys.row")], &name("anchors"), 0);
    // One stride for each position.
    net.plain(
        "Mul",
        &[&name("height.list"), &name("width.list")],
        &name("count"),
    );
    net.list(&name("front"), &[1]);
    net.concat(&[&name("front"), &name("count")], &name("strides.shape"), 0);
    let value = TensorProto::from_f32("value", &[1], &[stride]);
    net.node(
        "ConstantOfShape",
        &[&name("strides.shape")],
        &[&name("strides")],
        vec![AttributeProto::tensor("value", value)],
    );
}

/// A convolution whose boxes are selected by NonMaxSuppression and gathered.
pub fn selection(sizes: &[&str]) -> ModelProto {
    let mut net = network(sizes);
    net.conv("x", "f", [6, 3, 3, 3], 2, 1);
    net.plain("Sigmoid", &["f"], "s");
    net.list("flat", &[0, 6, -1]);
    net.plain("Reshape", &["s", "flat"], "rows");
    net.list("four", &[4, 2]);
    let attributes = vec![AttributeProto::int("axis", 1)];
    net.node("Split", &["rows", "four"], &["sides", "scores"], attributes);
    let attributes = vec![AttributeProto::ints("perm", &[0, 2, 1])];
    net.node("Transpose", &["sides"], &["boxes"], attributes);
    net.list("most", &[5]);
    net.constant(TensorProto::from_f32("overlap", &[1], &[0.5]));
    net.constant(TensorProto::from_f32("least", &[1], &[0.1]));
    net.plain(
        "NonMaxSuppression",
        &["boxes", "scores", "most", "overlap", "least"],
        "selected",
    );
    net.place("third", 2);
    let attributes = vec![AttributeProto::int("axis", 1)];
    net.node("Gather", &["selected", "third"], &["places"], attributes);
    net.list("batch", &[0]);
    net.plain("Squeeze", &["boxes", "batch"], "one");
    net.plain("Gather", &["one", "places"], "found");
    net.linear("found", "y", 4, 4);
    net.output("y");
    net.output("selected");
    net.model()
}
