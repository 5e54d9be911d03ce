use crate::Engine;
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};

/// Integers small enough that all their sums are exact in floats, in any order.
fn whole(count: usize) -> Vec<f32> {
    (0..count).map(|at| (at * 37 % 11) as f32 - 5.0).collect()
}

fn model(node: NodeProto, weight: &[usize], input: &[usize], output: &[usize]) -> Model {
    let port = |name: &str, shape: &[usize]| {
        let shape = Some(shape.iter().map(|&size| Dim::Known(size)).collect());
        let element = DataType::Float;
        ValueInfoProto::new(name, &TensorType { element, shape })
    };
    let values = whole(weight.iter().product());
    let graph = GraphProto {
        node: vec![node],
        input: vec![port("x", input)],
        output: vec![port("y", output)],
        initializer: vec![TensorProto::from_f32("w", weight, &values)],
        ..Default::default()
    };
    Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
}

#[test]
fn shared_weights_give_what_their_values_give() {
    let node = |operator| NodeProto::new(operator, "n", &["x", "w"], &["y"]);
    let grouped = node("Conv").with(AttributeProto::int("group", 4));
    let turned = || node("Gemm").with(AttributeProto::int("transB", 1));
    // The weight is [columns, depth] read as [depth, columns], or the other way round.
    let product = |turned: bool, [rows, depth, columns]: [usize; 3]| {
        let (x, w) = (whole(rows * depth), whole(depth * columns));
        let weight = |k: usize, n: usize| {
            w[if turned {
                n * depth + k
            } else {
                k * columns + n
            }]
        };
        let sum = |at: usize| (0..depth).map(move |k| (k, at / columns, at % columns));
        let made = (0..rows * columns).map(|at| {
            sum(at)
                .map(|(k, row, n)| x[row * depth + k] * weight(k, n))
                .sum()
        });
        made.collect::<Vec<f32>>()
    };
    // A 1 × 1 convolution is a product; each group has its part of the channels.
    let pixel = |groups: usize, inputs: usize, outputs: usize| {
        let (x, w, each) = (
            whole(inputs),
            whole(outputs * inputs / groups),
            inputs / groups,
        );
        let made = (0..outputs).map(|n| {
            let group = n / (outputs / groups);
            (0..each)
                .map(|k| x[group * each + k] * w[n * each + k])
                .sum()
        });
        made.collect::<Vec<f32>>()
    };
    // A single row or pixel reads the weight in place.
    let [in_place, packed] = ["MatMulOfRow", "PackWeight"];
    type WeightCase<'a> = (
        NodeProto,
        &'a [usize],
        &'a [usize],
        &'a [usize],
        Vec<f32>,
        &'a str,
    );
    let cases: [WeightCase; 8] = [
        (
            node("MatMul"),
            &[300, 257],
            &[7, 300],
            &[7, 257],
            product(false, [7, 300, 257]),
            packed,
        ),
        (
            node("MatMul"),
            &[300, 257],
            &[1, 5, 300],
            &[1, 5, 257],
            product(false, [5, 300, 257]),
            packed,
        ),
        (
            turned(),
            &[257, 300],
            &[7, 300],
            &[7, 257],
            product(true, [7, 300, 257]),
            packed,
        ),
        (
            turned(),
            &[257, 300],
            &[1, 300],
            &[1, 257],
            product(true, [1, 300, 257]),
            in_place,
        ),
        (
            node("MatMul"),
            &[300, 257],
            &[1, 1, 300],
            &[1, 1, 257],
            product(false, [1, 300, 257]),
            in_place,
        ),
        (
            node("MatMul"),
            &[300, 257],
            &[300],
            &[257],
            product(false, [1, 300, 257]),
            in_place,
        ),
        (
            node("Conv"),
            &[300, 256, 1, 1],
            &[1, 256, 1, 1],
            &[1, 300, 1, 1],
            pixel(1, 256, 300),
            in_place,
        ),
        (
            grouped,
            &[640, 128, 1, 1],
            &[1, 512, 1, 1],
            &[1, 640, 1, 1],
            pixel(4, 512, 640),
            packed,
        ),
    ];
    for (node, weight, input, output, wanted, kernel) in cases {
        let title = format!("{} {weight:?}", node.operator());
        let values = Values::F32(whole(input.iter().product()));
        let sample = [Tensor::new(input.to_vec(), values).unwrap()];
        let engine = Engine::new(model(node, weight, input, output), vec![]).with_kernels(false);
        let made = engine.run(&sample, |_, _| {}, || false).unwrap();
        assert_eq!(made[0].as_f32().unwrap(), wanted, "{title}");
        let steps = engine.steps(&sample, &|| false).unwrap().steps;
        let kernels: Vec<&str> = steps.iter().map(|step| step.kernel.as_str()).collect();
        assert!(kernels.contains(&kernel), "{title}: {kernels:?}");
    }
}

#[test]
fn row_lookups_are_read_in_place() {
    let mut model = model(
        NodeProto::new("Gather", "n", &["w", "x"], &["y"]),
        &[300, 7, 11],
        &[1],
        &[1],
    );
    let shape = Some(vec![Dim::Known(2), Dim::Known(3)]);
    let element = DataType::Int64;
    model.graph.inputs = vec![ValueInfoProto::new("x", &TensorType { element, shape })];
    model
        .graph
        .edit_ports(|_, outputs| outputs[0].r#type = None);
    let places = [299, 0, -1, -300, 17, 17];
    let sample = [Tensor::new(vec![2, 3], Values::I64(places.to_vec())).unwrap()];
    let engine = Engine::new(model, vec![]);
    let made = engine.run(&sample, |_, _| {}, || false).unwrap();
    let table = whole(300 * 77);
    let row = |place: i64| &table[place.rem_euclid(300) as usize * 77..][..77];
    assert_eq!(made[0].shape(), [2, 3, 7, 11]);
    assert_eq!(made[0].as_f32().unwrap(), places.map(row).concat());
    let steps = engine.steps(&sample, &|| false).unwrap().steps;
    assert!(steps.iter().any(|step| step.kernel == "RowsOfWeight"));
    for outside in [300, -301] {
        let sample = [Tensor::new(vec![2, 3], Values::I64(vec![outside; 6])).unwrap()];
        let error = engine.run(&sample, |_, _| {}, || false).unwrap_err();
        let index = format!("index {outside} is outside an axis of size 300");
        assert!(error.to_string().contains(&index), "{error}");
    }
}

#[test]
fn addends_are_read_in_place() {
    // The weight has the size of the value; or repeats for each of three parts; or is larger than
    // the value, which isn't supported.
    let cases: [([&[usize]; 3], bool); 3] = [
        ([&[1, 60, 300], &[1, 60, 300], &[1, 60, 300]], true),
        ([&[1, 60, 300], &[3, 60, 300], &[3, 60, 300]], true),
        ([&[60, 300], &[60, 1], &[60, 300]], false),
    ];
    for ([weight, input, output], in_place) in cases {
        for order in [["x", "w"], ["w", "x"]] {
            let node = NodeProto::new("Add", "n", &order, &["y"]);
            let values: Vec<f32> = (0..input.iter().product()).map(|at| at as f32).collect();
            let sample = [Tensor::new(input.to_vec(), Values::F32(values.clone())).unwrap()];
            let engine = Engine::new(model(node, weight, input, output), vec![]);
            let made = engine.run(&sample, |_, _| {}, || false).unwrap();
            let added = whole(weight.iter().product());
            let wanted: Vec<f32> = (0..output.iter().product())
                .map(|at| {
                    let value = match values.len() {
                        60 => at / 300,
                        _ => at,
                    };
                    values[value] + added[at % added.len()]
                })
                .collect();
            assert_eq!(made[0].as_f32().unwrap(), wanted, "{input:?} {order:?}");
            let steps = engine.steps(&sample, &|| false).unwrap().steps;
            let kernels: Vec<&str> = steps.iter().map(|step| step.kernel.as_str()).collect();
            let found = kernels.contains(&"AddWeight");
            assert_eq!(found, in_place, "{input:?} {order:?}: {kernels:?}");
        }
    }
}
