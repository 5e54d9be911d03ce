//! A graph quantized in every form, each of them checked.

use std::collections::BTreeMap;

use octet::calibrate::Range;
use octet::graph::Model;
use octet::quantize::{
    Plan, Quantized, Ranges, Settings, quantize, to_integer_operators, with_float_weights,
};

use crate::graphs::check_valid;

/// Quantizes with the range [-1, 2] for everything, and checks that what comes out is a valid graph, in every
/// form.
pub fn done(model: &Model) -> Quantized {
    let plan = Plan::new(model, &Settings::default()).unwrap();
    let ranges: BTreeMap<String, Range> = Plan::observable(model)
        .unwrap()
        .into_iter()
        .map(|name| (name, Range::new(-1.0, 2.0)))
        .collect();
    let quantized = quantize(model, &plan, Ranges::Given(&ranges)).unwrap();
    check_valid(&quantized.model);
    check_valid(&to_integer_operators(&quantized.model).unwrap());
    check_valid(&with_float_weights(&quantized.model, model).unwrap());
    assert_eq!(quantized.nodes.len(), model.graph.nodes.len());
    quantized
}
