//! Half precision with samples.

use std::collections::BTreeMap;

use octet_graph::Model;
use octet_onnx::schema::{DataType, TensorProto};
use octet_quantize::{ActivationRanges, Quantized, Settings};
use octet_stats::Range;
use octet_test_models::{constant, model, node};

#[test]
fn activations_beyond_float16_on_the_samples_stay_float32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "far"),
        node("Relu", &["far"], "near"),
        node("MatMul", &["near", "v"], "part"),
        node("Mul", &["part", "infinite"], "mask"),
        node("Relu", &["mask"], "y"),
    ];
    let constants = vec![
        constant("w", &[64, 64]),
        constant("v", &[64, 64]),
        TensorProto::from_f32("infinite", &[1], &[1e30]),
    ];
    let source = model(nodes, constants, &["y"]);
    let range = |max: f32| Range { min: -1.0, max };
    let ranges: BTreeMap<String, Range> = [("far", 1e5), ("near", 60_000.0), ("mask", 1e30)]
        .map(|(name, max)| (name.to_owned(), range(max)))
        .into();
    let text = [
        r#"{ "scheme": "float16" }"#,
        r#"{ "scheme": "blocks", "blocks": { "activations": "float16" } }"#,
    ];
    for text in text {
        let settings = Settings::from_value(serde_json::from_str(text).unwrap()).unwrap();
        let seen = Some(ActivationRanges::Provided(&ranges));
        let done = octet_quantize::apply(&source, &settings, seen).unwrap();
        let types = done.model.graph.element_types();
        assert_eq!(types["far"], DataType::Float, "{text}");
        assert_eq!(types["mask"], DataType::Float16, "{text}");
        let listed = done
            .notes
            .iter()
            .filter(|note| note.contains("on the samples"));
        let expected = if text.contains("blocks") { 1 } else { 2 };
        assert!(listed.count() >= expected, "{:?}", done.notes);
        let without = octet_quantize::apply(&source, &settings, None).unwrap();
        assert_eq!(
            without.model.graph.element_types()["far"],
            DataType::Float16
        );
    }
}

/// The quantized model and its notes, by settings, with these ranges.
fn halved(source: &Model, overflow: &str, far: &[(&str, f32)]) -> Quantized {
    let ranges: BTreeMap<String, Range> = far
        .iter()
        .map(|&(name, max)| (name.to_owned(), Range { min: -1.0, max }))
        .collect();
    let text = format!(r#"{{ "scheme": "float16", "overflow": "{overflow}" }}"#);
    let settings = Settings::from_value(serde_json::from_str(&text).unwrap()).unwrap();
    let seen = Some(ActivationRanges::Provided(&ranges));
    let done = octet_quantize::apply(source, &settings, seen).unwrap();
    octet_test_models::assert_valid(&done.model);
    done
}

fn float_nodes(done: &Quantized) -> Vec<&str> {
    let floats = done.nodes.iter().filter(|choice| !choice.quantized);
    floats.map(|choice| choice.node.as_str()).collect()
}

/// Two layers with a sum between them, which is normalized, and a square root that undoes a square.
fn far_sum() -> Model {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("MatMul", &["a", "v"], "b"),
        node("Add", &["a", "b"], "sum"),
        node("LayerNormalization", &["sum", "scale"], "norm"),
        node("Mul", &["norm", "norm"], "square"),
        node("ReduceMean", &["square"], "mean"),
        node("Sqrt", &["mean"], "root"),
        node("Div", &["norm", "root"], "y"),
    ];
    let constants = vec![
        constant("w", &[64, 64]),
        constant("v", &[64, 64]),
        constant("scale", &[64]),
    ];
    model(nodes, constants, &["y"])
}

#[test]
fn far_activations_are_clipped_and_listed() {
    let done = halved(&far_sum(), "clip", &[("sum", 1e5), ("square", 7e4)]);
    assert_eq!(float_nodes(&done), [""; 0]);
    let clipped = done.notes.iter().filter(|note| note.contains("clipped"));
    assert_eq!(clipped.count(), 2, "{:?}", done.notes);
    let graph = &done.model.graph;
    for name in ["sum", "square"] {
        let producer = &graph.nodes()[graph.producer(name).unwrap()];
        assert!(producer.is("Clip"), "{name}");
        assert_eq!(graph.element_types()[name], DataType::Float16);
    }
}

#[test]
fn far_inputs_of_the_model_are_clipped_and_listed() {
    let done = halved(&far_sum(), "clip", &[("x", 1e5)]);
    assert_eq!(float_nodes(&done), [""; 0]);
    let listed = done.notes.iter().filter(|note| note.contains("`x`"));
    assert_eq!(listed.count(), 1, "{:?}", done.notes);
    let graph = &done.model.graph;
    let clip = &graph.nodes()[graph.producer("x_clipped").unwrap()];
    assert!(clip.is("Clip"));
    assert_eq!(graph.element_types()["x_clipped"], DataType::Float16);
    let product = graph.nodes().iter().find(|node| node.is("MatMul"));
    assert_eq!(product.unwrap().input[0], "x_clipped");
    assert_eq!(graph.inputs[0].name.as_deref(), Some("x"));
}

#[test]
fn layers_norms_and_roots_take_up_the_powers_of_rescaled_activations() {
    let done = halved(&far_sum(), "rescale", &[("sum", 2e5), ("square", 9e4)]);
    assert_eq!(float_nodes(&done), [""; 0]);
    let graph = &done.model.graph;
    let types = graph.element_types();
    for name in [
        "a_rescaled",
        "b_rescaled",
        "sum_rescaled",
        "square_rescaled",
    ] {
        assert_eq!(types.get(name), Some(&DataType::Float16), "{name}");
    }
    // The values themselves are gone; the output keeps its name.
    assert!(!types.contains_key("sum") && !types.contains_key("square"));
    assert_eq!(types["y"], DataType::Float);
    let norm = graph
        .nodes()
        .iter()
        .find(|node| node.is("LayerNormalization"));
    let epsilon = norm.and_then(|node| node.float("epsilon")).unwrap();
    assert_eq!(epsilon, 1e-5 / 64.0);
    let listed = done.notes.iter().filter(|note| note.contains("divided by"));
    assert_eq!(listed.count(), 2, "{:?}", done.notes);
}

#[test]
fn what_no_neighbour_takes_up_stays_float32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Exp", &["a"], "b"),
        node("MatMul", &["b", "w"], "c"),
        node("Sigmoid", &["c"], "y"),
    ];
    let source = model(nodes, vec![constant("w", &[64, 64])], &["y"]);
    let far = [("b", 2e5), ("c", 3e5)];
    let done = halved(&source, "rescale", &far);
    // Exp makes the value and Sigmoid needs it, so both compute in float32.
    let floats = float_nodes(&done);
    assert!(floats.contains(&"b") && floats.contains(&"y"), "{floats:?}");
    let refused = done
        .notes
        .iter()
        .filter(|note| note.contains("can't be rescaled"));
    assert_eq!(refused.count(), 1, "{:?}", done.notes);
}

#[test]
fn without_samples_a_note_says_what_is_not_known() {
    let settings = Settings::from_value(serde_json::json!({ "scheme": "float16" })).unwrap();
    let done = octet_quantize::apply(&far_sum(), &settings, None).unwrap();
    let unknown = |note: &&String| note.contains("only the constants were checked");
    assert_eq!(done.notes.iter().filter(unknown).count(), 1);
    let seen = halved(&far_sum(), "float32", &[("sum", 1.0)]);
    assert_eq!(seen.notes.iter().filter(unknown).count(), 0);
}
