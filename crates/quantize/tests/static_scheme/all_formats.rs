//! Quantizes a graph in every format and checks each result.

use std::collections::BTreeMap;

use octet_graph::Model;
use octet_quantize::{
    ActivationRanges, Plan, Quantized, Settings, quantize, to_integer_operators, with_float_weights,
};
use octet_stats::Range;

use octet_test_models::assert_valid;

/// Quantizes with the range [-1, 2] for every value, and checks that the result is a valid graph in
/// every format.
pub fn quantize_all_formats(model: &Model) -> Quantized {
    let plan = Plan::new(model, &Settings::default()).unwrap();
    let ranges: BTreeMap<String, Range> = Plan::observed_values(model)
        .unwrap()
        .into_iter()
        .map(|name| (name, Range::new(-1.0, 2.0)))
        .collect();
    let quantized = quantize(model, &plan, ActivationRanges::Provided(&ranges)).unwrap();
    assert_valid(&quantized.model);
    assert_valid(&to_integer_operators(&quantized.model).unwrap());
    assert_valid(&with_float_weights(&quantized.model, model).unwrap());
    assert_eq!(quantized.nodes.len(), model.graph.nodes().len());
    quantized
}
