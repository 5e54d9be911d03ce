//! GPTQ in the settings, and on models without layers for it. `tests/gptq` runs its models.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use octet_quantize::{
    ActivationRanges, ElementType, Plan, Rounding, Scheme, Settings, SettingsError, apply,
    gram_views,
};
use octet_stats::{Method, TensorStatistics};
use octet_test_models::{constant, model, node};

fn settings(text: &str) -> Settings {
    Settings::from_value(serde_json::from_str(text).unwrap()).unwrap()
}

#[test]
fn settings_tell_if_they_need_samples_and_gram_matrices() {
    for (text, samples, moments) in [
        ("{}", true, false),
        (r#"{"rounding": "gptq"}"#, true, true),
        (r#"{"scheme": "dynamic", "rounding": "gptq"}"#, false, false),
        (r#"{"scheme": "blocks", "rounding": "gptq"}"#, false, false),
        (
            r#"{"scheme": "blocks", "blocks": {"method": "gptq"}}"#,
            true,
            true,
        ),
    ] {
        let settings = settings(text);
        assert_eq!(
            (settings.needs_samples(), settings.needs_gram_matrices()),
            (samples, moments),
            "{text}"
        );
    }
    let wrong: Result<Settings, SettingsError> =
        Settings::from_value(serde_json::json!({ "rounding": "stochastic" }));
    assert!(wrong.unwrap_err().to_string().contains("gptq"));
    let default = Settings::default();
    assert_eq!(
        (default.rounding, default.scheme),
        (Rounding::Nearest, Scheme::Static)
    );
    assert_eq!(
        default.weights.element.unwrap_or(ElementType::I8),
        ElementType::I8
    );
}

#[test]
fn a_model_without_layers_for_gptq_is_quantized_with_a_note() {
    // ConvTranspose has another weight layout, which GPTQ does not support.
    let weight = constant("w", &[3, 3, 2, 2]);
    let nodes = vec![node("ConvTranspose", &["x", "w"], "y")];
    let model = model(nodes, vec![weight], &["y"]);
    assert!(gram_views(&model).is_empty());
    let watched = Plan::observed_values(&model).unwrap().into_iter();
    let statistics: BTreeMap<_, _> = watched
        .map(|name| {
            let mut observed = TensorStatistics::new();
            observed.observe(&[-1.0, 2.0]);
            (name, observed)
        })
        .collect();
    let notes = |text: &str| {
        let ranges = ActivationRanges::Observed(&statistics, Method::MinMax);
        apply(&model, &settings(text), Some(ranges)).unwrap().notes
    };
    let gptq = notes(r#"{"rounding": "gptq"}"#);
    assert!(
        gptq.iter().any(|note| note.contains("gptq had no effect")),
        "{gptq:?}"
    );
    assert_eq!(notes("{}"), [""; 0]);
}
