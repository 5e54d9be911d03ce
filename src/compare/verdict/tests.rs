use super::*;
use crate::compare::{DifferenceMetrics, OutputKind, TokenErrors};
use crate::quantize::Settings;

fn output(name: &str, kind: OutputKind) -> OutputError {
    OutputError {
        name: name.into(),
        kind,
        apart: DifferenceMetrics::default(),
        top1: None,
        top5: None,
        tokens: None,
        accuracy: None,
        boxes: None,
        parts: None,
        weights_only: None,
        activations_only: None,
    }
}

/// A classifier that agrees on `same` of `all` samples.
fn classes(same: usize, all: usize) -> (OutputError, Evidence) {
    let mut evidence = Evidence::default();
    for sample in 0..all {
        evidence.add_share(u64::from(sample < same), 1);
        evidence.add_values(&[1.0, 2.0], &[1.0, 2.1]);
    }
    (output("scores", OutputKind::Classes), evidence)
}

/// Values with these errors, relative to a signal of 1.
fn values(name: &str, errors: &[f32]) -> (OutputError, Evidence) {
    let mut evidence = Evidence::default();
    for error in errors {
        evidence.add_values(&[1.0], &[1.0 + error]);
    }
    (output(name, OutputKind::Values), evidence)
}

fn layer(name: &str, harm: f64, weights: f64, activations: f64) -> LayerError {
    LayerError {
        layer: name.into(),
        operator: "Conv".into(),
        value: name.into(),
        rounded: true,
        accumulated: DifferenceMetrics::default(),
        added: Some(DifferenceMetrics::default()),
        weights_only: Some(weights),
        activations_only: Some(activations),
        clipped: 0.0,
        min: 0.0,
        max: 1.0,
        range: None,
        harm,
    }
}

fn verdict(outputs: &[(OutputError, Evidence)]) -> Verdict {
    judge(outputs, &[]).unwrap()
}

#[test]
fn many_equal_answers_ship_and_few_are_too_few() {
    let sure = verdict(&[classes(199, 200)]);
    assert_eq!(
        (sure.decision, sure.measure),
        (Decision::Ship, QualityMeasure::Agreement)
    );
    assert!(sure.next.is_empty());
    assert!(sure.reason.contains("99.5 %") && sure.reason.contains("at least 95.0 % is required"));

    let few = verdict(&[classes(20, 20)]);
    assert_eq!(few.decision, Decision::Look);
    assert!(
        few.reason
            .contains("20 samples are too few to show at least 95.0 %"),
        "{}",
        few.reason
    );
    // So many equal answers decide, and one in twenty less don't.
    let Some(&NextStep::AddSamples { samples }) = few.next.first() else {
        panic!("{:?}", few.next)
    };
    assert_eq!(
        verdict(&[classes(samples, samples)]).decision,
        Decision::Ship
    );
    let fewer = samples * 9 / 10;
    assert_eq!(verdict(&[classes(fewer, fewer)]).decision, Decision::Look);
}

#[test]
fn answers_that_differ_too_often_do_not_ship_and_more_samples_are_no_remedy() {
    let bad = verdict(&[classes(60, 100)]);
    assert_eq!(bad.decision, Decision::Dont);
    assert_eq!(bad.next, [NextStep::AutoRanges, NextStep::WiderModel]);
    let between = verdict(&[classes(930, 1000)]);
    assert_eq!(between.decision, Decision::Look);
    assert!(!matches!(between.next[0], NextStep::AddSamples { .. }));
}

#[test]
fn labels_count_more_than_agreement() {
    let (error, mut evidence) = classes(150, 200);
    for sample in 0..200 {
        // Half of the answers that changed were wrong before.
        evidence.add_label(sample % 2 == 0, sample % 2 == 0);
    }
    let judged = verdict(&[(error.clone(), evidence)]);
    assert_eq!(
        (judged.measure, judged.decision),
        (QualityMeasure::AccuracyChange, Decision::Ship)
    );
    let (_, mut evidence) = classes(200, 200);
    for sample in 0..200 {
        evidence.add_label(true, sample % 4 != 0);
    }
    let judged = verdict(&[(error, evidence)]);
    assert_eq!(judged.decision, Decision::Dont);
    assert!(judged.reason.contains("-25.0 points"), "{}", judged.reason);
}

#[test]
fn a_lower_perplexity_is_better() {
    let text = |change: f64| {
        let mut error = output("logits", OutputKind::Tokens);
        error.tokens = Some(TokenErrors {
            kl: 0.01,
            perplexity: Some((20.0, 20.0 * change)),
            positions: 100,
        });
        let mut evidence = Evidence::default();
        for text in 0..40 {
            // The texts differ a little.
            let spread = 0.001 * f64::from(text % 3 - 1);
            evidence.add_loss(100.0 * (change.ln() + spread), 100);
        }
        verdict(&[(error, evidence)])
    };
    assert_eq!(text(1.004).decision, Decision::Ship);
    assert_eq!(text(0.98).decision, Decision::Ship);
    assert_eq!(text(1.05).decision, Decision::Look);
    assert_eq!(text(1.4).decision, Decision::Dont);
    assert!((text(1.4).value - 1.4).abs() < 1e-3);
}

#[test]
fn values_beside_answers_are_no_answers_but_deserve_a_look() {
    let good = [0.01; 30];
    let bad = [0.9; 30];
    let both = |errors| verdict(&[classes(200, 200), values("features", errors)]);
    assert_eq!(both(&good).decision, Decision::Ship);
    let looked = both(&bad);
    assert_eq!(looked.decision, Decision::Look);
    assert!(
        looked.reason.contains("`features` has a SQNR of 0.9 dB"),
        "{}",
        looked.reason
    );
    // Without answers the values decide.
    let alone = verdict(&[values("features", &bad)]);
    assert_eq!(
        (alone.decision, alone.measure),
        (Decision::Dont, QualityMeasure::Sqnr)
    );
}

#[test]
fn the_worst_of_several_outputs_decides() {
    let (mut other, evidence) = classes(120, 200);
    other.name = "other".into();
    let judged = verdict(&[classes(200, 200), (other, evidence)]);
    assert_eq!(
        (judged.output.as_str(), judged.decision),
        ("other", Decision::Dont)
    );
}

#[test]
fn one_sample_decides_nothing() {
    let one = verdict(&[values("y", &[0.001])]);
    assert_eq!((one.decision, one.interval), (Decision::Look, None));
    assert_eq!(one.next[0], NextStep::AddSamples { samples: 2 });
    assert!(
        judge(
            &[(output("ids", OutputKind::Integers), Evidence::default())],
            &[]
        )
        .is_none()
    );
}

#[test]
fn a_few_layers_with_most_of_the_error_are_the_remedy() {
    let outputs = [classes(60, 100)];
    let by = |layers: &[LayerError]| judge(&outputs, layers).unwrap().next;
    let activations = [
        layer("a", 0.4, 40.0, 20.0),
        layer("b", 0.3, 35.0, 22.0),
        layer("c", 0.3, 30.0, 30.0),
    ];
    let layers = vec!["a".to_string(), "b".to_string()];
    let share = 0.4 + 0.3;
    assert_eq!(
        by(&activations)[..2],
        [
            NextStep::WiderActivations {
                layers: layers.clone(),
                share
            },
            NextStep::KeepFloat { layers, share },
        ]
    );
    let weights = [layer("a", 0.9, 10.0, 40.0), layer("b", 0.1, 10.0, 40.0)];
    assert!(matches!(by(&weights)[0], NextStep::KeepFloat { .. }));
    let spread: Vec<LayerError> = (0..20)
        .map(|i| layer(&i.to_string(), 0.05, 30.0, 30.0))
        .collect();
    assert_eq!(by(&spread), [NextStep::AutoRanges, NextStep::WiderModel]);
}

#[test]
fn each_step_is_a_valid_change_of_the_settings() {
    let layers = vec!["/conv".to_string()];
    let steps = [
        NextStep::WiderActivations {
            layers: layers.clone(),
            share: 0.6,
        },
        NextStep::KeepFloat { layers, share: 0.6 },
        NextStep::AutoRanges,
        NextStep::WiderModel,
    ];
    for step in steps {
        let change = step.settings().unwrap();
        assert!(Settings::from_value(change).is_ok(), "{step}");
    }
    assert_eq!(NextStep::AddSamples { samples: 9 }.settings(), None);
}
