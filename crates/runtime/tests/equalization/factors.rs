//! Sizes of factors, and their storage in a file.

use octet_graph::prepare::equalize::{ChannelFactors, EqualizeError};

use octet_test_models::equalizable::{SHAPE, between};
use octet_test_models::{model, node};

use super::layers::{run, spread, typed};

#[test]
fn the_strength_says_how_much_is_left_to_the_weights() {
    let (nodes, constants) = between(vec![node("Relu", &["a"], "z")], vec![], 6);
    let before = typed(model(nodes, constants, &["y"]), &SHAPE);
    let (_, reaches) = run(&before, &SHAPE);
    let reach = |value: &str| reaches.get(value).map(Vec::as_slice);
    let scaled = |strength| {
        let after = ChannelFactors::from_magnitudes(&before, reach, strength)
            .unwrap()
            .applied(&before)
            .unwrap();
        let weights = after
            .graph
            .initializers
            .get("last")
            .unwrap()
            .to_f32()
            .unwrap();
        let mut met = vec![0.0f32; 6];
        weights
            .iter()
            .enumerate()
            .for_each(|(at, weight)| met[at % 6] = met[at % 6].max(weight.abs()));
        (run(&after, &SHAPE).1.remove("a").unwrap(), met)
    };
    // Strength 1: the channels are alike up to the steps of factors. Strength 0: the weights are.
    let ((reach_of_all, _), (_, weights_of_none)) = (scaled(1.0), scaled(0.0));
    for alike in [reach_of_all, weights_of_none] {
        assert!(spread(&alike) < 0.002, "{alike:?}");
    }
}

#[test]
fn factors_are_remembered_and_fit_the_model_they_are_of_only() {
    let (nodes, constants) = between(vec![node("Relu", &["a"], "z")], vec![], 6);
    let before = typed(model(nodes, constants, &["y"]), &SHAPE);
    let reach = [1.0, 0.5, 4.0, 0.0, f32::INFINITY, 1e-30];
    let factors = ChannelFactors::from_magnitudes(&before, |_| Some(&reach), 0.5).unwrap();
    let after = factors.applied(&before).unwrap();
    assert_eq!(ChannelFactors::from_metadata(&after), Ok(factors.clone()));
    assert_eq!(
        ChannelFactors::from_metadata(&before),
        Ok(ChannelFactors::default())
    );
    assert_eq!(
        ChannelFactors::default().applied(&before),
        Ok(before.clone())
    );
    let again = ChannelFactors::from_magnitudes(&after, |_| Some(&reach), 0.5);
    assert_eq!(again, Err(EqualizeError::Already));
    let (nodes, constants) = between(vec![node("Sigmoid", &["a"], "z")], vec![], 6);
    let other = typed(model(nodes, constants, &["y"]), &SHAPE);
    let value = "a".to_string();
    assert_eq!(factors.applied(&other), Err(EqualizeError::Other { value }));
    for damaged in [
        "",
        "{",
        "[1]",
        r#"{"a":"0"}"#,
        r#"{"a":"0g"}"#,
        r#"{"a":"+1"}"#,
        r#"{"a":"é"}"#,
        r#"{"a":5}"#,
    ] {
        let mut model = after.clone();
        let entries = &mut model.header_mut().metadata_props;
        entries.last_mut().unwrap().value = Some(damaged.into());
        let found = ChannelFactors::from_metadata(&model);
        assert!(
            matches!(found, Err(EqualizeError::Damaged { .. })),
            "{damaged}: {found:?}"
        );
    }
    for strange in [
        r#"{"nothing":"01"}"#,
        r#"{"a":"01"}"#,
        r#"{"x":"01010101"}"#,
    ] {
        let mut model = after.clone();
        model.header_mut().metadata_props.last_mut().unwrap().value = Some(strange.into());
        let found = ChannelFactors::from_metadata(&model)
            .unwrap()
            .applied(&before);
        assert!(
            matches!(found, Err(EqualizeError::Other { .. })),
            "{strange}"
        );
    }
}
