//! Tensors read only by a Concat take the scale of its output, so they are rounded once.

use octet_onnx::schema::*;
use octet_stats::Method;
use serde_json::{Value, json};

use crate::ranges::{ends, quantized};
use octet_test_models::{constant, model, node};

const OWN: [i32; 2] = [-100, 200];
const WHOLE: [i32; 2] = [-800, 800];

/// The represented range of `a`, which `between` turns into an input of a Concat with `b`. The
/// ranges are -1 to 2 for both, and -8 to 8 for the output `c`.
fn part(between: Vec<NodeProto>, joined: &str, outputs: &[&str], settings: Value) -> [i32; 2] {
    let mut nodes = vec![
        node("Conv", &["x", "w"], "a"),
        node("Conv", &["x", "w"], "b"),
    ];
    nodes.extend(between);
    let mut join = node("Concat", &[joined, "b"], "c");
    join.attribute.push(AttributeProto::int("axis", 1));
    nodes.extend([join, node("Conv", &["c", "v"], "y")]);
    let constants = vec![
        constant("w", &[3, 3, 1, 1]),
        constant("v", &[3, 6, 1, 1]),
        TensorProto::from_f32("scales", &[4], &[1.0, 1.0, 2.0, 2.0]),
    ];
    let result = quantized(
        &model(nodes, constants, outputs),
        settings,
        &[("c", [-8.0, 8.0]), ("d", [-4.0, 4.0])],
        Method::MinMax,
    );
    let near = ends(&result, "a");
    // Exact to a step of the scale.
    [OWN, WHOLE]
        .into_iter()
        .find(|ends| {
            ends.iter()
                .zip(near)
                .all(|(end, near)| (end - near).abs() < 8)
        })
        .unwrap_or(near)
}

#[test]
fn a_value_read_only_by_a_concat_takes_its_output_scale() {
    let unguarded = || json!({ "guard": false });
    assert_eq!(part(vec![], "a", &["y"], unguarded()), WHOLE);
    for (between, wanted) in [
        (vec![node("Transpose", &["a"], "m")], WHOLE),
        (vec![node("Resize", &["a", "", "scales"], "m")], WHOLE),
        // These compute new values, which gain from a finer scale.
        (vec![node("AveragePool", &["a"], "m")], OWN),
        (vec![node("Sigmoid", &["a"], "m")], OWN),
        // Another node reads `a`, or a value result from it.
        (
            vec![
                node("Transpose", &["a"], "m"),
                node("Conv", &["a", "w"], "z"),
            ],
            OWN,
        ),
        (
            vec![
                node("Transpose", &["a"], "m"),
                node("Conv", &["m", "w"], "z"),
            ],
            OWN,
        ),
        (
            vec![node("Transpose", &["a"], "m"), node("Exp", &["a"], "z")],
            OWN,
        ),
    ] {
        let outputs = match between.len() {
            1 => &["y"][..],
            _ => &["y", "z"],
        };
        let result = part(between.clone(), "m", outputs, unguarded());
        assert_eq!(result, wanted, "{between:?}");
    }
    assert_eq!(part(vec![], "a", &["y", "a"], unguarded()), OWN);
}

#[test]
fn nested_concats_share_one_scale() {
    let mut inner = node("Concat", &["a", "b"], "d");
    inner.attribute.push(AttributeProto::int("axis", 1));
    let unguarded = json!({ "guard": false });
    assert_eq!(part(vec![inner], "d", &["y"], unguarded), WHOLE);
}

#[test]
fn a_value_with_settings_of_its_own_keeps_its_scale() {
    for wanted in [
        json!({ "range": [-1, 2] }),
        json!({ "type": "u16" }),
        json!({ "method": "percentile:99.9" }),
    ] {
        let settings = json!({ "guard": false, "tensors": { "a": wanted } });
        assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    }
    let settings = json!({ "guard": false, "tensors": { "c": { "type": "u16" } } });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    let settings = json!({ "guard": false, "by_node": { "c": { "float_output": true }, "y": { "float": true } } });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    let settings = json!({ "guard": false, "operators": "onnxruntime" });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
}
