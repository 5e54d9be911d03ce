//! Quantizes a graph in every format and checks each result.

use std::collections::BTreeMap;

use octet::graph::Model;
use octet::quantize::{
    ActivationRanges, Plan, Quantized, Settings, quantize, to_integer_operators, with_float_weights,
};
use octet::stats::Range;

use crate::graphs::check_valid;

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
    check_valid(&quantized.model);
    check_valid(&to_integer_operators(&quantized.model).unwrap());
    check_valid(&with_float_weights(&quantized.model, model).unwrap());
    assert_eq!(quantized.nodes.len(), model.graph.nodes.len());
    quantized
}
