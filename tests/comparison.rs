//! Comparing where sizes are dynamic: layers and outputs, or the outputs alone.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bytes::Bytes;
use octet::compare::Comparison;
use octet::graph::Dim;
use octet::onnx;
use octet::onnx::schema::ModelProto;
use octet::quantize::Settings;
use octet::samples;
use octet::session::{ModelFile, Session, compare_sample};
use octet_test_models::networks;

/// Quantizes a model with samples of these sizes, and compares on them.
fn compared(model: &ModelProto, sizes: &[&[usize]]) -> Comparison {
    let file = Bytes::from(onnx::write(model).unwrap());
    let open = |file: Bytes| Session::open(ModelFile::new("model.onnx", file)).unwrap();
    let mut session = open(file);
    let demo = samples::SampleSettings {
        demo: true,
        ..Default::default()
    };
    let each = sizes.iter().enumerate().map(|(index, sizes)| {
        let mut specs = session.input_specs();
        specs[0].shape = sizes.iter().map(|&size| Dim::Known(size)).collect();
        samples::demo(&specs, &BTreeMap::new(), 1, index as u64).unwrap()
    });
    let each: Vec<_> = each.collect();
    session.begin_calibration(demo.clone()).unwrap();
    session.feed(each.clone(), &()).unwrap();
    session.finish_calibration(Default::default()).unwrap();
    let made = session.quantize(&Settings::default()).unwrap();
    let runner = open(made.model.as_slice().concat().into())
        .runner()
        .unwrap();
    let mut comparing = session.begin_comparison(&runner).unwrap();
    for sample in &each {
        let inputs = session.decode(sample, &demo).unwrap();
        compare_sample(&mut comparing, &inputs, None, &()).unwrap();
    }
    let found = comparing.finish();
    session.finish_comparison(&found);
    assert!(session.report().contains("comparison:"));
    found
}

fn layers_of(found: &Comparison, wanted: &[&str]) {
    assert_eq!(found.layers_failed, None);
    for name in wanted {
        let layer = found.layers.iter().find(|layer| layer.value == *name);
        let layer = layer.unwrap_or_else(|| panic!("{name} is not among the layers"));
        assert!(layer.accumulated.sqnr > 10.0, "{layer:?}");
    }
}

#[test]
fn a_detector_whose_anchors_follow_from_the_picture_is_compared_layer_by_layer() {
    let model = networks::anchors(&["batch", "3", "height", "width"]);
    let found = compared(&model, &[&[1, 3, 16, 24], &[1, 3, 32, 16]]);
    layers_of(&found, &["f1", "f2.head", "means", "pixels"]);
    assert!(found.outputs[0].apart.sqnr > 10.0, "{:?}", found.outputs);
}

#[test]
fn a_transformer_of_pictures_is_compared_layer_by_layer_for_any_batch() {
    let model = networks::patches(&["batch", "3", "16", "16"]);
    let found = compared(&model, &[&[1, 3, 16, 16], &[2, 3, 16, 16]]);
    layers_of(&found, &["patch", "scores", "gelu", "encoded"]);
    assert_eq!(found.outputs[0].name, "y");
}

#[test]
fn what_is_selected_by_values_is_compared_as_far_as_it_is_alike() {
    let model = networks::selection(&["batch", "3", "height", "width"]);
    let found = compared(&model, &[&[1, 3, 16, 16], &[1, 3, 12, 12]]);
    layers_of(&found, &["f", "boxes"]);
    assert_eq!(found.outputs.len(), 2);
}
