use super::test_models::Beside::{self, Floats, Integers, Nothing};
use super::test_models::{ints, model, node, text};
use crate::Engine;
use octet_graph::Node;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{AttributeProto, AttributeType, NodeProto};

/// Runs a node on these values and returns the result with its shape.
fn run_node(
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

/// Four ones and a kernel of ones; expected values from ONNX Runtime 1.31.
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
        let (_, found) = run_node(node, &[1, 1, 4], &[1.0; 4], &[weight]);
        let expected: Vec<f32> = expected.iter().map(|&v| v as f32).collect();
        assert_eq!(found, expected, "{taps} {attributes:?} {pad:?}");
    }
}

#[test]
fn groups_of_a_transposed_convolution_have_weights_of_their_own() {
    // Two groups with one input channel and two output channels each: 10 · 1, 10 · 2, 100 · 3, 100
    // · 4, and a bias.
    let weight = Floats(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
    let bias = Floats(&[4], &[0.5, 0.0, 0.0, 0.25]);
    let node = node("ConvTranspose").with(AttributeProto::int("group", 2));
    let (shape, found) = run_node(node, &[1, 2, 1], &[10.0, 100.0], &[weight, bias]);
    assert_eq!(shape, [1, 4, 1]);
    assert_eq!(found, [10.5, 20.0, 300.0, 400.25]);
}

#[test]
fn a_pad_of_another_mode_than_constant_takes_no_constant() {
    let given = [1.0, 2.0, 3.0, 4.0];
    for (mode, pads, expected) in [
        ("constant", [2, 1], &[9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 9.0][..]),
        ("reflect", [2, 1], &[3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0]),
        ("edge", [2, 1], &[1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0]),
        ("wrap", [2, 1], &[3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0]),
        // Negative pads crop first.
        ("constant", [-1, 2], &[2.0, 3.0, 4.0, 9.0, 9.0]),
        ("reflect", [1, -2], &[2.0, 1.0, 2.0]),
        ("edge", [-2, 2], &[3.0, 4.0, 4.0, 4.0]),
        ("wrap", [-1, 2], &[2.0, 3.0, 4.0, 2.0, 3.0]),
        ("constant", [-1, -2], &[2.0]),
    ] {
        let value = Floats(&[], &[9.0]);
        let beside = [Integers(&pads), value, Integers(&[-1])];
        let (_, found) = run_node(text("Pad", "mode", mode), &[1, 4], &given, &beside);
        assert_eq!(found, expected, "{mode} {pads:?}");
    }
    let (shape, found) = run_node(node("Pad"), &[2], &[5.0, 6.0], &[Integers(&[0, 1])]);
    assert_eq!((shape, found), (vec![3], vec![5.0, 6.0, 0.0]));
    let (_, found) = run_node(node("Pad"), &[1], &[5.0], &[Integers(&[1, 0]), Nothing]);
    assert_eq!(found, [0.0, 5.0]);
}

#[test]
fn celu_bends_below_zero_by_its_alpha() {
    for alpha in [0.25, 1.0, 3.0] {
        let given = [-1000.0, -2.0, -0.5, 0.0, 0.5, 1000.0];
        let node = node("Celu").with(AttributeProto::float("alpha", alpha));
        let (_, found) = run_node(node, &[6], &given, &[]);
        for (x, found) in given.into_iter().zip(found) {
            let expected = x.max(0.0) + (alpha * ((x / alpha).exp() - 1.0)).min(0.0);
            assert!((found - expected).abs() < 1e-6, "{alpha} {x}: {found}");
        }
    }
}

#[test]
fn a_slice_takes_what_there_is_of_what_it_asks_for() {
    let given = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    for (start, end, step, expected) in [
        (1, 4, 1, &[1.0, 2.0, 3.0][..]),
        (-2, i64::MAX, 1, &[4.0, 5.0]),
        (-99, 99, 4, &[0.0, 4.0]),
        (5, i64::MIN, -2, &[5.0, 3.0, 1.0]),
        (4, 1, -1, &[4.0, 3.0, 2.0]),
        // ONNX Runtime clamps a start before the front to the front.
        (-8, -999, -3, &[0.0]),
        (5, i64::MIN, i64::MIN, &[5.0]),
        (0, 6, i64::MAX, &[0.0]),
        (4, 2, 1, &[]),
        (6, 9, 1, &[]),
        (2, 4, -1, &[]),
    ] {
        let lists = [[start], [end], [0], [step]];
        let beside = lists.each_ref().map(|list| Integers(list));
        let (_, found) = run_node(node("Slice"), &[6], &given, &beside);
        assert_eq!(found, expected, "{start} {end} {step}");
    }
    let (shape, _) = run_node(
        node("Slice"),
        &[0, 3],
        &[],
        &[Integers(&[-1]), Integers(&[-99])],
    );
    assert_eq!(shape, [0, 3]);
}

/// Expected values from ONNX Runtime 1.31; tract takes 7 instead of 8.
#[test]
fn a_nearest_resize_takes_onnx_runtimes_pixels() {
    let resize = [
        ("coordinate_transformation_mode", "align_corners"),
        ("nearest_mode", "floor"),
    ];
    let resize = resize
        .into_iter()
        .fold(node("Resize"), |node, (name, value)| {
            node.with(AttributeProto::text(name, value))
        });
    let values: Vec<f32> = (0..28u8).map(f32::from).collect();
    let beside = [Nothing, Floats(&[2], &[1.0, 0.4])];
    let (shape, found) = run_node(resize, &[1, 28], &values, &beside);
    assert_eq!(shape, [1, 11]);
    let expected = [0, 2, 5, 8, 10, 13, 16, 18, 21, 24, 27u8];
    assert_eq!(found, expected.map(f32::from));
}

/// The image has the values 10 · row + column, so interpolated values show the position.
#[test]
fn regions_are_seen_between_the_pixels() {
    let values: Vec<f32> = (0..16u8).map(|i| f32::from(i / 4 * 10 + i % 4)).collect();
    let region = Floats(&[1, 4], &[1.0, 0.5, 3.0, 2.5]);
    let of = Integers(&[0]);
    let one = |mode: &str| {
        let node = text("RoiAlign", "coordinate_transformation_mode", mode);
        node.with(AttributeProto::int("sampling_ratio", 1))
    };
    let (shape, found) = run_node(
        one("output_half_pixel"),
        &[1, 1, 4, 4],
        &values,
        &[region, of],
    );
    assert_eq!((shape, found), (vec![1, 1, 1, 1], vec![17.0]));
    let region = Floats(&[1, 4], &[1.0, 0.5, 3.0, 2.5]);
    let (_, found) = run_node(
        one("half_pixel"),
        &[1, 1, 4, 4],
        &values,
        &[region, Integers(&[0])],
    );
    assert_eq!(found, [11.5]);
    let whole = Floats(&[1, 5], &[0.0, 0.0, 0.0, 3.0, 3.0]);
    let pool = ints("MaxRoiPool", &[("pooled_shape", &[2, 1])]);
    let (shape, found) = run_node(pool, &[1, 1, 4, 4], &values, &[whole]);
    assert_eq!((shape, found), (vec![1, 1, 2, 1], vec![13.0, 33.0]));
}

#[test]
fn sequences_are_reversed_as_far_as_they_are_long() {
    let given = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let by_rows = node("ReverseSequence")
        .with(AttributeProto::int("batch_axis", 0))
        .with(AttributeProto::int("time_axis", 1));
    let (_, found) = run_node(by_rows, &[2, 3], &given, &[Integers(&[2, 3])]);
    assert_eq!(found, [2.0, 1.0, 3.0, 6.0, 5.0, 4.0]);
    let (_, found) = run_node(
        node("ReverseSequence"),
        &[2, 3],
        &given,
        &[Integers(&[1, 2, 0])],
    );
    assert_eq!(found, [1.0, 5.0, 3.0, 4.0, 2.0, 6.0]);
}

#[test]
fn a_convolution_whose_taps_are_moved_sees_what_they_are_moved_to() {
    let given = [1.0, 2.0, 3.0, 4.0];
    let weight = || Floats(&[1, 1, 1, 1], &[10.0]);
    // All offsets are half a column to the right; positions outside the image read 0.
    let moved = [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5];
    let moves = || Floats(&[1, 2, 2, 2], &moved);
    let (_, found) = run_node(
        node("DeformConv"),
        &[1, 1, 2, 2],
        &given,
        &[weight(), moves()],
    );
    assert_eq!(found, [15.0, 10.0, 35.0, 20.0]);
    let mask = Floats(&[1, 1, 2, 2], &[1.0, 0.0, 0.5, 1.0]);
    let beside = [weight(), moves(), Nothing, mask];
    let (_, found) = run_node(node("DeformConv"), &[1, 1, 2, 2], &given, &beside);
    assert_eq!(found, [15.0, 0.0, 17.5, 20.0]);
}

#[test]
fn windows_give_norms_and_columns_go_back_where_windows_took_them_from() {
    let norm = ints("LpPool", &[("kernel_shape", &[2]), ("pads", &[1, 0])]);
    let (_, found) = run_node(norm, &[1, 1, 3], &[3.0, -4.0, 0.0], &[]);
    assert_eq!(found, [3.0, 5.0, 4.0]);
    let columns = [1.0, 2.0, 3.0, 4.0];
    let sizes = [Integers(&[1, 3]), Integers(&[1, 2])];
    let (shape, found) = run_node(node("Col2Im"), &[1, 2, 2], &columns, &sizes);
    assert_eq!((shape, found), (vec![1, 1, 1, 3], vec![1.0, 5.0, 4.0]));
}

#[test]
fn a_determinant_has_the_sign_of_its_rows() {
    let given = [0.0, 2.0, 3.0, 1.0, 1.0, 2.0, 2.0, 4.0];
    let (shape, found) = run_node(node("Det"), &[2, 2, 2], &given, &[]);
    assert_eq!((shape, found), (vec![2], vec![-6.0, 0.0]));
}

#[test]
fn an_affine_grid_tells_where_each_pixel_comes_from() {
    let turned = [0.0, -1.0, 0.5, 1.0, 0.0, 0.0];
    let grid = node("AffineGrid").with(AttributeProto::int("align_corners", 1));
    let (shape, found) = run_node(grid, &[1, 2, 3], &turned, &[Integers(&[1, 1, 2, 2])]);
    assert_eq!(shape, [1, 2, 2, 2]);
    assert_eq!(found, [1.5, -1.0, 1.5, 1.0, -0.5, -1.0, -0.5, 1.0]);
}

#[test]
fn reverse_recurrence_starts_at_the_end() {
    // From the end to the front: tanh of the input plus half the previous state.
    let weights = [Floats(&[1, 1, 1], &[1.0]), Floats(&[1, 1, 1], &[0.5])];
    let node = text("RNN", "direction", "reverse").with(AttributeProto::int("hidden_size", 1));
    let (_, found) = run_node(node, &[3, 1, 1], &[1.0, 2.0, 4.0], &weights);
    let last = 4f32.tanh();
    let middle = (2.0 + 0.5 * last).tanh();
    let first = (1.0 + 0.5 * middle).tanh();
    for (found, expected) in found.into_iter().zip([first, middle, last]) {
        assert!((found - expected).abs() < 1e-5, "{found} for {expected}");
    }
}

#[test]
fn recurrences_with_unknown_activations_are_rejected_by_name() {
    let activations = |told: &str| AttributeProto {
        name: Some("activations".into()),
        r#type: Some(AttributeType::Strings as i32),
        strings: vec![told.to_owned().into()],
        ..Default::default()
    };
    let clip = AttributeProto::float("clip", 1.0);
    for (attribute, what) in [
        (activations("tanh"), None),
        (activations("Relu"), None),
        (activations("Step"), Some("RNN with other activations")),
        (clip, None),
    ] {
        let node = node("RNN").with(AttributeProto::int("hidden_size", 1));
        let one = [1.0];
        let weights = [Floats(&[1, 1, 1], &one), Floats(&[1, 1, 1], &one)];
        let engine = Engine::new(model(node.with(attribute), &[1, 1, 1], &weights), vec![]);
        let fed = Tensor::new(vec![1, 1, 1], Values::F32(vec![1.0])).unwrap();
        let run = engine.run(&[fed], |_, _| {}, || false);
        let error = run.err().map(|error| error.to_string());
        match (what, &error) {
            (None, None) => {}
            (Some(what), Some(error)) if error.contains(what) => {}
            _ => panic!("{what:?}: {error:?}"),
        }
    }
}

#[test]
fn an_operator_of_another_domain_is_not_taken_for_onnxs() {
    for (domain, operator) in [("my.own", "Relu"), ("com.microsoft", "Attention")] {
        let mut node = node(operator);
        node.domain = Some(domain.to_owned());
        let engine = Engine::new(model(node, &[2], &[]), vec![]);
        let fed = Tensor::new(vec![2], Values::F32(vec![1.0, 2.0])).unwrap();
        let error = engine.run(&[fed], |_, _| {}, || false).unwrap_err();
        let named = format!("has no operator {domain}::{operator}");
        assert!(error.to_string().contains(&named), "{error}");
    }
}

/// An index outside the depth is valid and marks nothing.
#[test]
fn one_hot_ignores_indices_out_of_range() {
    let beside = [Integers(&[3]), Floats(&[2], &[5.0, 7.0])];
    let rows = [7., 5., 5., 5., 5., 7., 5., 5., 5., 5., 5., 5.];
    let (shape, values) = run_node(node("OneHot"), &[4], &[0., -1., 3., -4.], &beside);
    assert_eq!((&shape[..], &values[..]), (&[4, 3][..], &rows[..]));
    let (_, values) = run_node(node("OneHot"), &[1], &[0.5], &beside);
    assert_eq!(values, [5.0; 3]);
    let first = node("OneHot").with(AttributeProto::int("axis", 0));
    let (shape, values) = run_node(first, &[4], &[0., -1., 3., -4.], &beside);
    let columns: Vec<f32> = (0..12).map(|at| rows[at % 4 * 3 + at / 4]).collect();
    assert_eq!((&shape[..], &values[..]), (&[3, 4][..], &columns[..]));
}

#[test]
fn softplus_of_a_large_number_is_that_number() {
    let given = [-200.0, -1.0, 0.0, 1.0, 30.0, 100.0, 1e30];
    let (_, values) = run_node(node("Softplus"), &[7], &given, &[]);
    let expected = [
        0.0,
        0.313_261_7,
        std::f32::consts::LN_2,
        1.313_261_7,
        30.0,
        100.0,
        1e30,
    ];
    for (value, expected) in values.iter().zip(expected) {
        assert!(
            (value - expected).abs() <= 1e-6 * expected.max(1.0),
            "{values:?}"
        );
    }
}

#[test]
fn constant_of_shape_defaults_to_float32() {
    let mut model = model(node("Shape"), &[2, 2], &[]);
    let filled = Node::new("ConstantOfShape", "zeros", &["y"], &["zeros"]);
    let product = Node::new("MatMul", "product", &["x", "zeros"], &["product"]);
    model.graph.extend([filled, product]);
    let mut output = model.graph.outputs()[0].clone();
    output.name = Some("product".to_owned());
    model.graph.set_outputs(vec![output]);
    let fed = Tensor::new(vec![2, 2], Values::F32(vec![1.0; 4])).unwrap();
    let outputs = Engine::new(model, vec![]).run(&[fed], |_, _| {}, || false);
    assert_eq!(outputs.unwrap()[0].as_f32().unwrap(), [0.0; 4]);
}
