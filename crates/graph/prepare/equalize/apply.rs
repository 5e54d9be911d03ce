//! Applies channel factors to the constants of a model.

use super::channel_classes::{ChannelClasses, FIXED};
use super::{ChannelFactors, EqualizeError, factor_of};
use crate::Model;

impl ChannelFactors {
    /// A copy of the model with the factors applied to its constants and stored in its metadata.
    pub fn applied(&self, model: &Model) -> Result<Model, EqualizeError> {
        if self.is_empty() {
            return Ok(model.clone());
        }
        let channel_classes = ChannelClasses::new(&model.graph);
        let powers = self.by_class(&channel_classes)?;
        let of = |value: Option<&str>| -> Vec<i32> {
            let classes = value.map_or(&[][..], |value| channel_classes.classes(value));
            classes.iter().map(|&class| powers[class]).collect()
        };
        // One factor for every possible difference of two powers.
        let factors: Vec<f64> = (-256..=256).map(factor_of).collect();
        let mut changed = model.clone();
        for (constant, tensor) in channel_classes.constants(model) {
            let (times, over) = (of(constant.times), of(constant.over));
            if times.iter().chain(&over).all(|&power| power == 0) {
                continue;
            }
            let power = |powers: &[i32], channel: usize| powers.get(channel).copied().unwrap_or(0);
            let factor = |index: usize| {
                let (input, output) = match &constant.joins {
                    Some(joins) => joins.of_window(index / joins.taps),
                    None => (index, index),
                };
                factors[(power(&times, output) - power(&over, input) + 256) as usize]
            };
            let scaled = tensor.changed_f32(tensor.title(), |first, values| {
                for (index, value) in (first..).zip(values) {
                    *value = (f64::from(*value) * factor(index)) as f32;
                }
            })?;
            changed.graph.initializers.insert(scaled);
        }
        self.write_metadata(&mut changed);
        Ok(changed)
    }

    /// The power of each class; 0 for classes without a factor. Fails if the factors don't fit this
    /// model.
    fn by_class(&self, channel_classes: &ChannelClasses<'_>) -> Result<Vec<i32>, EqualizeError> {
        let mut powers: Vec<Option<i8>> = vec![None; channel_classes.count()];
        powers[FIXED] = Some(0);
        for (value, stored) in &self.0 {
            let classes = channel_classes.classes(value);
            let mut pairs = classes.iter().zip(stored);
            let fits = classes.len() == stored.len()
                && pairs.all(|(&class, &power)| *powers[class].get_or_insert(power) == power);
            if !fits {
                let value = value.clone();
                return Err(EqualizeError::Other { value });
            }
        }
        Ok(powers
            .into_iter()
            .map(|power| power.unwrap_or(0).into())
            .collect())
    }
}
