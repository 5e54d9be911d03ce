use super::*;
use octet_graph::TensorType;
use octet_onnx::schema::*;

/// An input of the node besides the model input `x`.
pub(crate) enum Beside<'a> {
    Floats(&'a [usize], &'a [f32]),
    Integers(&'a [i64]),
    Nothing,
}
use Beside::{Floats, Integers, Nothing};

/// A model of one node whose input `x` has this shape.
pub(crate) fn model(node: NodeProto, fed: &[usize], beside: &[Beside]) -> Model {
    let mut node = node;
    let mut constants = Vec::new();
    for (place, input) in beside.iter().enumerate() {
        let name = format!("c{place}");
        let constant = match input {
            Floats(shape, values) => TensorProto::from_f32(&name, shape, values),
            Integers(values) => TensorProto::from_i64(&name, &[values.len()], values),
            Nothing => {
                node.input.push(String::new());
                continue;
            }
        };
        constants.push(constant);
        node.input.push(name);
    }
    let shape = fed.iter().map(|&size| Dim::Known(size)).collect();
    let fed = TensorType {
        element: DataType::Float,
        shape: Some(shape),
    };
    let mut output = ValueInfoProto::new("y", &fed);
    output.r#type = None;
    let graph = GraphProto {
        node: vec![node],
        input: vec![ValueInfoProto::new("x", &fed)],
        output: vec![output],
        initializer: constants,
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 19)).unwrap()
}

pub(crate) fn node(operator: &str) -> NodeProto {
    NodeProto::new(operator, "the node", &["x"], &["y"])
}

pub(crate) fn ints(operator: &str, attributes: &[(&str, &[i64])]) -> NodeProto {
    let with = |node: NodeProto, (name, values): &(&str, &[i64])| {
        node.with(AttributeProto::ints(name, values))
    };
    attributes.iter().fold(node(operator), with)
}

pub(super) fn int(operator: &str, name: &str, value: i64) -> NodeProto {
    node(operator).with(AttributeProto::int(name, value))
}

pub(crate) fn text(operator: &str, name: &str, value: &str) -> NodeProto {
    node(operator).with(AttributeProto::text(name, value))
}

pub(super) fn refused(node: NodeProto, fed: &[usize], beside: &[Beside]) -> String {
    let operator = node.operator();
    let error = validate(&model(node, fed, beside), None);
    let error = error.expect_err(&operator).to_string();
    assert!(
        error.starts_with(&operator) && error.contains("(node `the node`)"),
        "{error}"
    );
    error
}

pub(super) fn taken(node: NodeProto, fed: &[usize], beside: &[Beside]) {
    let said = format!("{node:?}");
    if let Err(error) = validate(&model(node, fed, beside), None) {
        panic!("{error}: {said}");
    }
}

pub(super) const PICTURE: &[usize] = &[1, 4, 6, 6];

#[test]
fn a_window_that_makes_no_sense_is_refused_by_what_is_wrong_with_it() {
    let values = [0.0; 4 * 4 * 9];
    let weight = || [Floats(&[4, 4, 3, 3], &values)];
    for (operator, name, actual) in [
        ("Conv", "pads", &[1 << 40, 0, 0, 0][..]),
        ("Conv", "pads", &[-1, 0, 0, 0]),
        ("Conv", "pads", &[1, 1, 1]),
        ("Conv", "strides", &[1]),
        ("Conv", "strides", &[0, 1]),
        ("Conv", "dilations", &[1, -1]),
        ("Conv", "kernel_shape", &[5, 5]),
        ("ConvTranspose", "pads", &[100, 100, 100, 100]),
        ("ConvTranspose", "output_padding", &[1 << 30, 1]),
        ("ConvTranspose", "output_padding", &[1, 1]),
        ("ConvTranspose", "output_shape", &[0, 8]),
        ("ConvTranspose", "output_shape", &[8]),
        ("ConvTranspose", "output_shape", &[1 << 20, 1 << 20]),
    ] {
        let error = refused(ints(operator, &[(name, actual)]), PICTURE, &weight());
        assert!(
            error.contains(name),
            "{operator} {name} {actual:?}: {error}"
        );
    }
    for (operator, group) in [("Conv", 0), ("Conv", 2), ("Conv", 3), ("ConvTranspose", 3)] {
        let error = refused(int(operator, "group", group), PICTURE, &weight());
        assert!(error.contains("group"), "{error}");
    }
    assert!(refused(text("Conv", "auto_pad", "FOO"), PICTURE, &weight()).contains("FOO"));
    let both = |operator| {
        ints(operator, &[("kernel_shape", &[3, 3]), ("pads", &[0; 4])])
            .with(AttributeProto::text("auto_pad", "VALID"))
    };
    for operator in ["Conv", "ConvTranspose", "ConvInteger"] {
        let error = refused(both(operator), PICTURE, &weight());
        assert!(error.contains("pads"), "{operator}: {error}");
    }
    taken(both("MaxPool"), PICTURE, &[]);
    let small = refused(node("Conv"), &[1, 4, 2, 6], &weight());
    assert!(small.contains("3 wide"), "{small}");
    // The padded input would take 57 GB.
    let padded = ints("Conv", &[("pads", &[60_000; 4])]);
    assert!(refused(padded, PICTURE, &weight()).contains("elements"));
    taken(
        ints("Conv", &[("pads", &[1; 4]), ("strides", &[2, 1])]),
        PICTURE,
        &weight(),
    );
    taken(ints("Conv", &[("pads", &[0; 4])]), &[0, 4, 6, 6], &weight());
    taken(
        ints(
            "ConvTranspose",
            &[("strides", &[2, 2]), ("output_shape", &[12, 12])],
        ),
        PICTURE,
        &weight(),
    );
}

#[test]
fn poolings_have_a_kernel_larger_than_their_pads() {
    for attributes in [
        &[("kernel_shape", &[2, 2][..]), ("pads", &[2, 0, 0, 0][..])][..],
        &[("kernel_shape", &[2, 2]), ("pads", &[1 << 30; 4])],
        &[("kernel_shape", &[0, 2])],
        &[("kernel_shape", &[9, 9])],
        &[
            ("kernel_shape", &[1 << 15, 1 << 15]),
            ("pads", &[(1 << 15) - 1; 4]),
        ],
        &[("kernel_shape", &[2, 2]), ("dilations", &[1 << 30, 1])],
    ] {
        refused(ints("MaxPool", attributes), PICTURE, &[]);
    }
    taken(
        ints("MaxPool", &[("kernel_shape", &[3, 3]), ("pads", &[1; 4])]),
        PICTURE,
        &[],
    );
    taken(
        ints("AveragePool", &[("kernel_shape", &[6, 6])]),
        PICTURE,
        &[],
    );
}

#[test]
fn axes_are_those_of_the_input() {
    for node in [
        ints("Transpose", &[("perm", &[0, 0, 1, 2])]),
        ints("Transpose", &[("perm", &[0, 1, 2, 9])]),
        ints("Transpose", &[("perm", &[1, 0])]),
        int("Flatten", "axis", 5),
        int("Softmax", "axis", 4),
        int("LogSoftmax", "axis", -5),
        int("ArgMax", "axis", 9),
        int("Concat", "axis", 9),
    ] {
        let error = refused(node, PICTURE, &[]);
        assert!(error.contains("axis") || error.contains("perm"), "{error}");
    }
    for operator in ["Squeeze", "ReduceMean", "ReduceL2"] {
        refused(node(operator), PICTURE, &[Integers(&[9])]);
    }
    refused(node("Unsqueeze"), PICTURE, &[Integers(&[19])]);
    refused(node("Unsqueeze"), PICTURE, &[Integers(&[0, -6])]);
    refused(int("Gather", "axis", 7), PICTURE, &[Integers(&[0])]);
    taken(int("Flatten", "axis", 4), PICTURE, &[]);
    taken(int("Softmax", "axis", -4), PICTURE, &[]);
    taken(node("Unsqueeze"), PICTURE, &[Integers(&[0, 5])]);
    taken(ints("Transpose", &[("perm", &[3, 1, 2, 0])]), PICTURE, &[]);
}

#[test]
fn sizes_that_are_given_are_sizes() {
    for (operator, sizes) in [("Expand", [1, -4, 1, 1]), ("Tile", [1, 1, 1 << 40, 1])] {
        let error = refused(node(operator), PICTURE, &[Integers(&sizes)]);
        assert!(error.contains("its sizes"), "{error}");
    }
    let split = int("Split", "axis", 1);
    let error = refused(split, PICTURE, &[Integers(&[1, 3])]);
    assert!(
        error.contains("one size for each of its 1 outputs"),
        "{error}"
    );
    // A declared size of 0 means any size; an actual size of 0 is invalid.
    let sizes = [Nothing, Nothing, Integers(&[1, 4, 6, 6])];
    let resize = model(node("Resize"), &[1, 4, 0, 6], &sizes);
    assert!(validate(&resize, None).is_ok());
    let fed = Tensor::new(vec![1, 4, 0, 6], octet_onnx::in_memory::Values::F32(vec![])).unwrap();
    let error = validate(&resize, Some(&[fed])).unwrap_err().to_string();
    assert!(error.contains("the shape of its input"), "{error}");
}

#[test]
fn slices_pads_and_splits_fit_their_input() {
    for (mode, pads) in [
        ("constant", &[0, 0, -4, 0, 0, 0, -4, 0][..]),
        ("constant", &[0, 0, 1 << 62, 0, 0, 0, 1 << 62, 0]),
        ("constant", &[0, 0, 1 << 30, 0, 0, 0, 1 << 30, 0]),
        ("constant", &[0, 0, 1]),
        ("reflect", &[0, 0, 6, 0, 0, 0, 0, 0]),
        ("edge", &[0, 0, -6, 0, 0, 0, 3, 0]),
        ("foo", &[0; 8]),
    ] {
        refused(text("Pad", "mode", mode), PICTURE, &[Integers(pads)]);
    }
    taken(
        text("Pad", "mode", "reflect"),
        PICTURE,
        &[Integers(&[0, 0, 3, 0, 0, 0, -2, 5])],
    );
    taken(
        node("Pad"),
        PICTURE,
        &[Integers(&[0, 0, -3, 0, 0, 0, -3, 0])],
    );
    let slice = |axes: &'static [i64], steps: &'static [i64]| {
        [
            Integers(&[0]),
            Integers(&[2]),
            Integers(axes),
            Integers(steps),
        ]
    };
    refused(node("Slice"), PICTURE, &slice(&[1], &[0]));
    refused(node("Slice"), PICTURE, &slice(&[4], &[1]));
    taken(node("Slice"), PICTURE, &slice(&[-1], &[-1]));
    for (operator, block) in [
        ("DepthToSpace", 0),
        ("DepthToSpace", 3),
        ("DepthToSpace", 1 << 32),
        ("DepthToSpace", -2),
        ("SpaceToDepth", 0),
        ("SpaceToDepth", 4),
    ] {
        let error = refused(int(operator, "blocksize", block), PICTURE, &[]);
        assert!(error.contains("blocksize"), "{error}");
    }
    taken(int("DepthToSpace", "blocksize", 2), PICTURE, &[]);
    refused(int("Split", "axis", 1), PICTURE, &[Integers(&[1, 9])]);
    refused(int("Split", "axis", 1), PICTURE, &[Integers(&[-1, 5])]);
}

#[test]
fn a_picture_is_brought_to_a_size_that_is_one() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e30, 1e9] {
        let scales = [1.0, 1.0, scale, 1.0];
        refused(node("Resize"), PICTURE, &[Nothing, Floats(&[4], &scales)]);
    }
    for size in [0, -3, 1 << 50] {
        let sizes = [1, 4, size, 6];
        refused(
            node("Resize"),
            PICTURE,
            &[Nothing, Nothing, Integers(&sizes)],
        );
    }
    refused(
        node("Resize"),
        PICTURE,
        &[Nothing, Nothing, Integers(&[4, 4])],
    );
    taken(
        node("Resize"),
        PICTURE,
        &[Nothing, Floats(&[4], &[1.0, 1.0, 2.0, 0.5])],
    );
    taken(
        node("Resize"),
        PICTURE,
        &[Nothing, Nothing, Integers(&[1, 4, 9, 3])],
    );
}

#[test]
fn pooling_an_empty_input_is_rejected() {
    let pool = ints("MaxPool", &[("kernel_shape", &[3, 3]), ("pads", &[1; 4])]);
    for (shape, fits) in [([1, 4, 0, 6], false), ([0, 4, 6, 6], true)] {
        let pool = model(pool.clone(), &shape, &[]);
        let fed = Tensor::new(shape.to_vec(), octet_onnx::in_memory::Values::F32(vec![])).unwrap();
        let checked = validate(&pool, Some(&[fed]));
        assert_eq!(checked.is_ok(), fits, "{checked:?}");
    }
}

#[test]
fn a_whole_axis_is_transformed() {
    let transform = || int("DFT", "axis", 1);
    taken(transform(), &[1, 8, 1], &[Integers(&[8])]);
    for length in [0, -3, 4, 1 << 40] {
        let error = refused(transform(), &[1, 8, 1], &[Integers(&[length])]);
        assert!(error.contains("dft_length"), "{error}");
    }
}

/// A MatMulNBits of 32 rows and 8 columns.
fn blocks(attributes: &[(&str, i64)], matrix: usize, scales: usize) -> Result<(), EngineError> {
    let all = [("K", 32), ("N", 8), ("bits", 4), ("block_size", 16)];
    let mut product = NodeProto::new("MatMulNBits", "the node", &["x"], &["y"]);
    product.domain = Some(MICROSOFT.into());
    for (name, usual) in all {
        let given = attributes.iter().find(|(given, _)| *given == name);
        let value = given.map_or(usual, |&(_, value)| value);
        product = product.with(AttributeProto::int(name, value));
    }
    let (matrix, scales) = ([matrix], [scales]);
    let numbers = vec![0.0; matrix[0].max(scales[0])];
    let beside = [
        Floats(&matrix, &numbers[..matrix[0]]),
        Floats(&scales, &numbers[..scales[0]]),
    ];
    validate(&model(product, &[2, 32], &beside), None).map(drop)
}

#[test]
fn a_matrix_in_blocks_has_all_of_its_numbers() {
    assert!(blocks(&[], 128, 16).is_ok());
    assert!(blocks(&[], 112, 16).is_err());
    assert!(blocks(&[], 128, 8).is_err());
    for (name, value) in [
        ("block_size", 0),
        ("block_size", 24),
        ("block_size", 1 << 40),
        ("K", 1 << 40),
        ("K", 31),
        ("N", 1 << 40),
        ("N", 0),
        ("bits", 3),
    ] {
        assert!(blocks(&[(name, value)], 128, 16).is_err(), "{name} {value}");
    }
}
