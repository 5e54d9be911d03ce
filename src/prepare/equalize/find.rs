//! Chooses the factors that make the ranges of channels alike.

use std::collections::BTreeMap;

use super::ties::{FIXED, Ties};
use super::{EqualizeError, Factors, STEPS};
use crate::graph::{Joins, Model};
use crate::onnx::schema::TensorProto;
use crate::onnx::tensor::TensorError;

/// Factors lie between 2^-8 and 2^8.
const REACH: f64 = 8.0;

impl Factors {
    /// Computes the factors from the largest magnitude of each channel, looked up by value name.
    ///
    /// At strength 1 the channels of activations become alike and the weights absorb all of it. At
    /// strength 0 only the ranges of the weights count.
    pub fn find<'r>(
        model: &Model,
        reaches: impl Fn(&str) -> Option<&'r [f32]>,
        strength: f32,
    ) -> Result<Factors, EqualizeError> {
        if !Factors::remembered(model)?.is_empty() {
            return Err(EqualizeError::Already);
        }
        let uses = model.graph.uses();
        let ties = Ties::of(&model.graph, &uses);
        let (mut reach, mut weight) = (vec![None; ties.count()], vec![None; ties.count()]);
        for (value, _) in ties.movable() {
            raise(
                &mut reach,
                ties.classes(value),
                reaches(value).unwrap_or_default(),
            );
        }
        for (constant, tensor) in ties.constants(model) {
            if let (Some(joins), Some(value)) = (&constant.joins, constant.over) {
                raise(&mut weight, ties.classes(value), &met(tensor, joins)?);
            }
        }
        let strength = f64::from(strength);
        let power = |&class: &usize| match (class, reach[class], weight[class]) {
            (FIXED, _, _) | (_, None, _) => 0,
            (_, Some(reach), weight) => {
                let power: f64 = (1.0 - strength) * weight.unwrap_or(0.0) - strength * reach;
                (power.clamp(-REACH, REACH) * STEPS).round() as i8
            }
        };
        let mut factors = BTreeMap::new();
        let nodes = ties.roles.iter().zip(&model.graph.nodes);
        let makers = nodes.filter(|(role, _)| !role.constants.is_empty());
        for value in makers.flat_map(|(_, node)| &node.output) {
            let powers: Vec<i8> = ties.classes(value).iter().map(power).collect();
            if powers.iter().any(|&power| power != 0) {
                factors.insert(value.clone(), powers);
            }
        }
        Ok(Factors(factors))
    }
}

/// The largest weight magnitude of each input channel.
fn met(tensor: &TensorProto, joins: &Joins) -> Result<Vec<f32>, TensorError> {
    let mut greatest = vec![0.0f32; joins.inputs];
    let mut first = 0;
    tensor.each_f32_block(|block| {
        for (index, weight) in (first..).zip(block) {
            let (input, _) = joins.of_window(index / joins.taps);
            greatest[input] = greatest[input].max(weight.abs());
        }
        first += block.len();
    })?;
    Ok(greatest)
}

/// Raises the logarithm of each class to that of its channels' magnitudes, relative to the largest
/// of them. Magnitudes that are zero or not finite are ignored.
fn raise(known: &mut [Option<f64>], classes: &[usize], magnitudes: &[f32]) {
    let greatest = f64::from(magnitudes.iter().copied().fold(0.0, f32::max));
    for (&class, &magnitude) in classes.iter().zip(magnitudes) {
        if magnitude > 0.0 && magnitude.is_finite() && classes.len() == magnitudes.len() {
            let found = (f64::from(magnitude) / greatest).log2();
            known[class] = Some(known[class].map_or(found, |before| before.max(found)));
        }
    }
}
