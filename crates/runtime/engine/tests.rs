use std::cell::RefCell;
use std::collections::HashMap;

use super::slices::{slice, stacked};
use crate::{Engine, EngineError, Timing, Watched};
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::*;

fn port(name: &str, element: DataType, axes: usize) -> ValueInfoProto {
    let shape = Some(vec![Dim::Unknown; axes]);
    ValueInfoProto::new(name, &TensorType { element, shape })
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto::new(operator, output, inputs, &[output])
}

/// A Loop of `turns` iterations. Each appends `2 v + w` to the carried value `v`. Additions and
/// products surround it.
fn model(turns: i64) -> Model {
    let body = GraphProto {
        node: vec![
            node("Add", &["v", "v"], "double"),
            node("Add", &["double", "w"], "more"),
            node("Concat", &["v", "more"], "longer").with(AttributeProto::int("axis", 0)),
            node("Identity", &["going"], "on"),
        ],
        input: vec![
            port("turn", DataType::Int64, 0),
            port("going", DataType::Bool, 0),
            port("v", DataType::Float, 1),
        ],
        output: vec![
            port("on", DataType::Bool, 0),
            port("longer", DataType::Float, 1),
        ],
        ..Default::default()
    };
    let mut repeat = node("Loop", &["turns", "", "a"], "l");
    repeat.attribute.push(AttributeProto {
        name: Some("body".into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(body),
        ..Default::default()
    });
    let graph = GraphProto {
        node: vec![
            node("Add", &["x", "w"], "a"),
            repeat,
            node("Mul", &["x", "w"], "beside"),
            node("Relu", &["l"], "b"),
            node("Mul", &["b", "w"], "y"),
        ],
        input: vec![port("x", DataType::Float, 1)],
        output: vec![
            port("y", DataType::Float, 1),
            port("beside", DataType::Float, 1),
        ],
        initializer: vec![
            TensorProto::from_f32("w", &[1], &[0.5]),
            TensorProto::from_i64("turns", &[], &[turns]),
        ],
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::new(vec![values.len()], Values::F32(values.to_vec())).unwrap()
}

#[test]
fn loop_state_may_grow_in_each_iteration() {
    for (turns, expected) in [
        (0, &[0.75][..]),
        (1, &[0.75, 1.75]),
        (2, &[0.75, 1.75, 1.75, 3.75]),
    ] {
        let engine = Engine::new(model(turns), vec![]);
        // The second run uses the plans of the first.
        for _ in 0..2 {
            let made = engine.run(&[floats(&[1.0])], |_, _| {}, || false).unwrap();
            assert_eq!(made[0].as_f32().unwrap(), expected);
            assert_eq!(made[1].as_f32().unwrap(), [0.5]);
        }
    }
}

/// A value quantized to this element type is read before and behind the loop.
#[test]
fn integers_of_few_bits_stand_beside_a_loop() {
    for (element, most) in [(DataType::Uint4, 15.0), (DataType::Int4, 7.0)] {
        let mut proto = model(1).to_proto();
        proto.opset_import[0].version = Some(21);
        let graph = proto.graph.as_mut().unwrap();
        let pair = [
            node("QuantizeLinear", &["x", "scale", "zero"], "q"),
            node("DequantizeLinear", &["q", "scale", "zero"], "a"),
        ];
        graph.node.splice(..1, pair);
        let beside = graph.node.iter_mut().find(|node| node.title() == "beside");
        beside.unwrap().input[0] = "a".into();
        let zero = TensorProto::from_raw("zero", element, &[], vec![0].into());
        let scale = TensorProto::from_f32("scale", &[], &[0.5]);
        graph.initializer.extend([zero, scale]);
        let model = Model::from_proto(proto).unwrap();
        let float = Engine::new(model.clone(), vec![]);
        for engine in [float, Engine::new(model, vec![]).on_integers()] {
            // Far outside the range of these integers.
            let made = engine.run(&[floats(&[20.0])], |_, _| {}, || false).unwrap();
            let a = most * 0.5;
            assert_eq!(made[0].as_f32().unwrap(), [a * 0.5, (2.0 * a + 0.5) * 0.5]);
            assert_eq!(made[1].as_f32().unwrap(), [a * 0.5]);
        }
    }
}

#[test]
fn every_watched_value_is_seen_once_a_run_beside_others_of_any_part() {
    let watched = |value: &str, beside: &[&str]| Watched {
        value: value.into(),
        beside: beside.iter().map(ToString::to_string).collect(),
    };
    let watched = vec![
        watched("x", &[]),
        watched("a", &[]),
        watched("l", &["x", "a"]),
        watched("b", &["l"]),
        watched("y", &["a", "beside"]),
    ];
    let engine = Engine::watching(model(1), watched);
    let seen = RefCell::new(vec![Vec::new(); 5]);
    let see = |slot: usize, values: &[&[f32]]| {
        let values: Vec<Vec<f32>> = values.iter().map(|v| v.to_vec()).collect();
        seen.borrow_mut()[slot].push(values);
    };
    engine.run_beside(&[floats(&[1.0])], see, || false).unwrap();
    let (x, a, l) = (vec![1.0], vec![1.5], vec![1.5, 3.5]);
    let expected = [
        vec![x.clone()],
        vec![a.clone()],
        vec![l.clone(), x, a.clone()],
        vec![l.clone(), l],
        vec![vec![0.75, 1.75], a, vec![0.5]],
    ];
    assert_eq!(seen.into_inner(), expected.map(|values| vec![values]));
}

#[test]
fn every_step_begins_and_ends_in_its_order() {
    #[derive(Default)]
    struct Heard(Vec<(bool, usize)>);
    impl Timing for Heard {
        fn begin(&mut self, step: usize) {
            self.0.push((true, step));
        }
        fn end(&mut self, step: usize) {
            self.0.push((false, step));
        }
    }
    let engine = Engine::new(model(2), vec![]);
    let sample = [floats(&[1.0, 2.0])];
    let steps = engine.steps(&sample, &|| false).unwrap();
    let mut heard = Heard::default();
    engine
        .run_timed(&sample, &mut heard, |_| false, || false)
        .unwrap();
    let expected: Vec<_> = (0..steps.steps.len())
        .flat_map(|s| [(true, s), (false, s)])
        .collect();
    assert_eq!(heard.0, expected);
    let of_loop: Vec<_> = steps.steps.iter().filter(|s| s.node == Some(1)).collect();
    assert_eq!((of_loop.len(), of_loop[0].kernel.as_str()), (1, "Loop"));
    assert!(
        steps.layers.iter().all(Option::is_some),
        "{:?}",
        steps.layers
    );
    let work = engine
        .run_plan(&sample, &|| false)
        .unwrap()
        .cost_estimate(|_| 0)
        .work;
    assert!(work.iter().sum::<u64>() > 0);
}

#[test]
fn a_loop_can_be_stopped_between_its_turns() {
    let engine = Engine::new(model(1 << 40), vec![]);
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 30
    };
    let stopped = engine.run(&[floats(&[1.0])], |_, _| {}, stop);
    assert!(matches!(stopped, Err(EngineError::Stopped)), "{stopped:?}");
}

#[test]
fn a_look_at_what_a_loop_makes_can_be_stopped_too() {
    let engine = Engine::new(model(1 << 40), vec![]);
    let sample = [floats(&[1.0])];
    let after_some = || {
        let asked = std::cell::Cell::new(0);
        move || asked.replace(asked.get() + 1) > 30
    };
    let stopped = [
        engine.steps(&sample, &after_some()).map(|_| ()),
        engine.fused(&sample, &after_some()).map(|_| ()),
        engine.run_plan(&sample, &after_some()).map(|_| ()),
    ];
    for found in stopped {
        assert!(matches!(found, Err(EngineError::Stopped)), "{found:?}");
    }
}

#[test]
fn stacking_slices_restores_the_tensor() {
    let values: Vec<i32> = (0..24).collect();
    let whole = Tensor::new(vec![2, 3, 4], Values::I32(values)).unwrap();
    for axis in 0..3 {
        let size = whole.shape()[axis];
        let slices: Option<Vec<Tensor>> = (0..size).map(|at| slice(&whole, axis, at)).collect();
        assert_eq!(stacked(&slices.unwrap(), axis), Some(whole.clone()));
    }
    let third = slice(&whole, 1, 2).unwrap();
    assert_eq!(
        third.values(),
        &Values::I32(vec![8, 9, 10, 11, 20, 21, 22, 23])
    );
    assert_eq!(stacked(&[third.clone(), whole], 0), None);
    assert_eq!(slice(&third, 0, 2), None);
}

#[test]
fn parts_hand_over_what_others_read_and_nothing_else() {
    let mode = super::ExecutionMode {
        kernels: false,
        integers: false,
        processor: octet_int8::Processor::Exact,
        thread_clock: None,
        depth: 0,
    };
    let partition = super::partitioner::partition(&model(1), &[], mode)
        .unwrap()
        .unwrap();
    let interfaces: HashMap<usize, (Vec<String>, Vec<String>)> =
        partition.interfaces().enumerate().collect();
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(interfaces[&0], (names(&["x"]), names(&["a", "turns"])));
    assert_eq!(
        interfaces[&1],
        (names(&["l", "x"]), names(&["beside", "y"]))
    );
    assert_eq!(interfaces.len(), 2);
}
