//! Chooses the factors that make the ranges of channels alike.

use std::collections::BTreeMap;

use super::channel_classes::{ChannelClasses, FIXED};
use super::{ChannelFactors, EqualizeError, STEPS};
use crate::{LayerWeightLayout, Model};
use octet_onnx::schema::TensorProto;
use octet_onnx::tensor::TensorError;

/// Factors lie between 2^-8 and 2^8.
const MAX_EXPONENT: f64 = 8.0;

impl ChannelFactors {
    /// Computes the factors from the largest magnitude of each channel, looked up by value name.
    ///
    /// At strength 1 the channels of activations become alike and the weights absorb all of it. At
    /// strength 0 only the ranges of the weights count.
    pub fn from_magnitudes<'r>(
        model: &Model,
        magnitudes: impl Fn(&str) -> Option<&'r [f32]>,
        strength: f32,
    ) -> Result<ChannelFactors, EqualizeError> {
        if !ChannelFactors::from_metadata(model)?.is_empty() {
            return Err(EqualizeError::Already);
        }
        let channel_classes = ChannelClasses::new(&model.graph);
        let (mut range, mut weight) = (
            vec![None; channel_classes.count()],
            vec![None; channel_classes.count()],
        );
        for (value, _) in channel_classes.movable() {
            raise_logs(
                &mut range,
                channel_classes.classes(value),
                magnitudes(value).unwrap_or_default(),
            );
        }
        for (constant, tensor) in channel_classes.constants(model) {
            if let (Some(joins), Some(value)) = (&constant.joins, constant.over) {
                raise_logs(
                    &mut weight,
                    channel_classes.classes(value),
                    &input_maxima(tensor, joins)?,
                );
            }
        }
        let strength = f64::from(strength);
        let power = |&class: &usize| match (class, range[class], weight[class]) {
            (FIXED, _, _) | (_, None, _) => 0,
            (_, Some(range), weight) => {
                let power: f64 = (1.0 - strength) * weight.unwrap_or(0.0) - strength * range;
                (power.clamp(-MAX_EXPONENT, MAX_EXPONENT) * STEPS).round() as i8
            }
        };
        let mut factors = BTreeMap::new();
        let nodes = channel_classes.rules.iter().zip(model.graph.nodes());
        let makers = nodes.filter(|(rule, _)| !rule.constants.is_empty());
        for value in makers.flat_map(|(_, node)| &node.output) {
            let powers: Vec<i8> = channel_classes.classes(value).iter().map(power).collect();
            if powers.iter().any(|&power| power != 0) {
                factors.insert(value.clone(), powers);
            }
        }
        Ok(ChannelFactors(factors))
    }
}

/// The largest weight magnitude of each input channel.
fn input_maxima(tensor: &TensorProto, joins: &LayerWeightLayout) -> Result<Vec<f32>, TensorError> {
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
fn raise_logs(known: &mut [Option<f64>], classes: &[usize], magnitudes: &[f32]) {
    let greatest = f64::from(magnitudes.iter().copied().fold(0.0, f32::max));
    for (&class, &magnitude) in classes.iter().zip(magnitudes) {
        if magnitude > 0.0 && magnitude.is_finite() && classes.len() == magnitudes.len() {
            let log = (f64::from(magnitude) / greatest).log2();
            known[class] = Some(known[class].map_or(log, |before| before.max(log)));
        }
    }
}
