//! Half precision with samples.

use std::collections::BTreeMap;

use octet_onnx::schema::DataType;
use octet_quantize::{ActivationRanges, Settings};
use octet_stats::Range;
use octet_test_models::{constant, model, node};

#[test]
fn activations_beyond_float16_on_the_samples_stay_float32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "far"),
        node("Relu", &["far"], "near"),
        node("MatMul", &["near", "v"], "mask"),
        node("Relu", &["mask"], "y"),
    ];
    let source = model(
        nodes,
        vec![constant("w", &[64, 64]), constant("v", &[64, 64])],
        &["y"],
    );
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
