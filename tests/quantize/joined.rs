//! Parts that only a Concat reads have the scale of what it joins, so that they are rounded once.

use octet::calibrate::Method;
use octet::onnx::schema::*;
use serde_json::{Value, json};

use crate::graphs::{constant, model, node};
use crate::ranges::{ends, quantized};

const OWN: [i32; 2] = [-100, 200];
const WHOLE: [i32; 2] = [-800, 800];

/// The ends of a part, `a`, of which `between` makes what is joined with `b`, both -1 to 2, to `c`, which reaches from -8 to 8.
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
    let made = quantized(
        &model(nodes, constants, outputs),
        settings,
        &[("c", [-8.0, 8.0]), ("d", [-4.0, 4.0])],
        Method::MinMax,
    );
    let near = ends(&made, "a");
    // To a step of the scale.
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
fn a_part_that_only_a_concat_reads_has_the_scale_of_what_it_joins() {
    let unguarded = || json!({ "guard": false });
    assert_eq!(part(vec![], "a", &["y"], unguarded()), WHOLE);
    for (between, wanted) in [
        (vec![node("Transpose", &["a"], "m")], WHOLE),
        (vec![node("Resize", &["a", "", "scales"], "m")], WHOLE),
        // These make new numbers, which the finer scale of the part is good for.
        (vec![node("AveragePool", &["a"], "m")], OWN),
        (vec![node("Sigmoid", &["a"], "m")], OWN),
        // Somebody else reads the part, or what becomes of it.
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
        let found = part(between.clone(), "m", outputs, unguarded());
        assert_eq!(found, wanted, "{between:?}");
    }
    assert_eq!(part(vec![], "a", &["y", "a"], unguarded()), OWN);
}

#[test]
fn what_is_joined_again_is_rounded_once() {
    let mut inner = node("Concat", &["a", "b"], "d");
    inner.attribute.push(AttributeProto::int("axis", 1));
    let unguarded = json!({ "guard": false });
    assert_eq!(part(vec![inner], "d", &["y"], unguarded), WHOLE);
}

#[test]
fn a_part_of_which_something_is_said_has_a_scale_of_its_own() {
    for said in [
        json!({ "range": [-1, 2] }),
        json!({ "type": "u16" }),
        json!({ "method": "percentile:99.9" }),
    ] {
        let settings = json!({ "guard": false, "tensors": { "a": said } });
        assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    }
    let settings = json!({ "guard": false, "tensors": { "c": { "type": "u16" } } });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    let settings = json!({ "guard": false, "by_node": { "c": { "float_output": true }, "y": { "float": true } } });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
    let settings = json!({ "guard": false, "operators": "onnxruntime" });
    assert_eq!(part(vec![], "a", &["y"], settings), OWN);
}
