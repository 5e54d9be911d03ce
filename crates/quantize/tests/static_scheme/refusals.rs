//! Errors of models and settings that can't be quantized.

use std::collections::BTreeMap;

use octet_quantize::{
    ActivationRanges, ElementType, LayerSettings, Operators, Plan, QuantizeError, Settings,
    TensorSettings, apply, quantize,
};
use octet_stats::Range;

use crate::all_formats::quantize_all_formats;
use octet_test_models::{choice, constant, model, node};

#[test]
fn models_that_cannot_be_quantized_are_errors() {
    let conv = || vec![node("Conv", &["x", "w"], "y")];
    let weight = || vec![constant("w", &[3, 3, 1, 1])];
    let settings = Settings::default();

    let quantized = quantize_all_formats(&model(conv(), weight(), &["y"])).model;
    assert!(matches!(
        Plan::new(&quantized, &settings),
        Err(QuantizeError::AlreadyQuantized { .. })
    ));

    let mut old = model(conv(), weight(), &["y"]);
    old.header_mut().opset_import[0].version = Some(9);
    assert!(matches!(
        Plan::new(&old, &settings),
        Err(QuantizeError::Opset { opset: 9 })
    ));

    let kept = Settings {
        float: vec!["z".into()],
        ..Settings::default()
    };
    let error = Plan::new(&model(conv(), weight(), &["y"]), &kept).unwrap_err();
    assert!(error.to_string().contains("`z`"), "{error}");

    let whole = model(conv(), weight(), &["y"]);
    let plan = Plan::new(&whole, &settings).unwrap();
    let error = quantize(&whole, &plan, ActivationRanges::Provided(&BTreeMap::new())).unwrap_err();
    assert!(
        error.to_string().contains("no range for the value `x`"),
        "{error}"
    );
}

#[test]
fn a_model_whose_weights_are_in_graphs_is_refused_with_the_schemes_that_take_them() {
    let (choice, yes) = choice("Add", "y");
    let nodes = vec![
        node("Sin", &["x"], "inner"),
        node("Sin", &["inner"], "z"),
        choice,
    ];
    let error = Plan::new(
        &model(nodes, vec![yes, constant("w", &[3])], &["y"]),
        &Settings::default(),
    );
    let said = error.unwrap_err().to_string();
    assert!(said.contains("graphs of `"), "{said}");
    assert!(
        said.contains("(If)") && said.contains("dynamic or weights"),
        "{said}"
    );
}

#[test]
fn a_zero_point_outside_the_integer_type_is_an_error() {
    let whole = model(
        vec![node("Conv", &["x", "w"], "y")],
        vec![constant("w", &[3, 3, 1, 1])],
        &["y"],
    );
    let planned = |tensor: &str, element: ElementType, zero_point: i32| {
        let own = TensorSettings {
            element: Some(element),
            scale: Some(0.5),
            zero_point: Some(zero_point),
            ..TensorSettings::default()
        };
        let settings = Settings {
            tensors: [(tensor.to_string(), own)].into(),
            ..Settings::default()
        };
        Plan::new(&whole, &settings)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    for (tensor, element, inside, outside) in [
        ("x", ElementType::U8, [0, 255], [-1, 256]),
        ("y", ElementType::I8, [-128, 127], [-129, 128]),
        ("w", ElementType::I4, [-8, 7], [-9, 8]),
        ("x", ElementType::U16, [0, 65_535], [-1, 65_536]),
    ] {
        for zero_point in inside {
            assert_eq!(planned(tensor, element, zero_point), Ok(()));
        }
        for zero_point in outside {
            let error = planned(tensor, element, zero_point).unwrap_err();
            assert!(
                error.contains(&format!("`{tensor}` the zero point {zero_point}")),
                "{error}"
            );
        }
    }
}

#[test]
fn unknown_operators_are_errors_and_absent_ones_are_noted() {
    let whole = model(
        vec![node("Conv", &["x", "w"], "y")],
        vec![constant("w", &[3, 3, 1, 1])],
        &["y"],
    );
    let ranges: BTreeMap<String, Range> = ["x", "y"]
        .map(|name| (name.into(), Range::new(-1.0, 2.0)))
        .into();
    let applied =
        |settings: Settings| apply(&whole, &settings, Some(ActivationRanges::Provided(&ranges)));
    let by_operator = |name: &str| Settings {
        by_operator: [(name.to_string(), LayerSettings::default())].into(),
        ..Settings::default()
    };
    let listed = |name: &str| Settings {
        operators: Operators::Only(vec!["Conv".into(), name.into()]),
        ..Settings::default()
    };
    for settings in [by_operator("Matmul"), listed("MatMull")] {
        let error = applied(settings).unwrap_err().to_string();
        assert!(error.contains("did you mean `MatMul`?"), "{error}");
    }
    for settings in [
        by_operator("BatchNormalization"),
        listed("com.microsoft::Unheard"),
    ] {
        let notes = applied(settings).unwrap().notes;
        assert!(
            notes.iter().any(|note| note.contains("had no effect")),
            "{notes:?}"
        );
    }
    let notes = applied(by_operator("Conv")).unwrap().notes;
    assert!(
        !notes.iter().any(|note| note.contains("had no effect")),
        "{notes:?}"
    );
}
