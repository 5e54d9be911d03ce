//! Fits settings to a target: defaults take its values, and others must be allowed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use octet_targets::RunTarget;

use super::target_rules::{Biases, TargetSettings, of};
use super::{ElementType, LayerSettings, Settings, TensorSettings};

/// A setting that contradicts the target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "settings, {place}: {found} contradicts the target {target}, which takes {allowed} ({source_document}): {advice}, or choose the target any"
)]
pub struct TargetConflict {
    place: String,
    found: String,
    target: RunTarget,
    allowed: String,
    source_document: &'static str,
    advice: String,
}

/// The settings with the target's values where they have their defaults.
pub(crate) fn fit(mut settings: Settings) -> Result<Settings, TargetConflict> {
    let target = settings.target;
    if target == RunTarget::Any {
        return Ok(settings);
    }
    let fitting = Fitting {
        target,
        rules: of(target),
    };
    let defaults = Settings::default();
    fitting.choose(
        "scheme",
        &mut settings.scheme,
        defaults.scheme,
        fitting.rules.schemes,
    )?;
    fitting.choose(
        "format",
        &mut settings.format,
        defaults.format,
        fitting.rules.formats,
    )?;
    fitting.tensor("activations", &mut settings.activations, true, true)?;
    fitting.tensor("weights", &mut settings.weights, false, true)?;
    if fitting.rules.biases == Biases::Float {
        settings.quantize_bias = false;
        settings.fit_bias = false;
    }
    if !fitting.rules.mixes_bits {
        settings.guard.finer = false;
        settings.guard.outputs = false;
        settings.guard.weights = false;
        match settings.fine_first {
            None | Some(0) => settings.fine_first = Some(0),
            Some(count) => {
                return Err(fitting.conflict("fine_first", &count, "0", "leave it out"));
            }
        }
    }
    let whole = (settings.activations.element, settings.weights.element);
    for (group, layers) in [
        ("by_operator", &mut settings.by_operator),
        ("by_name", &mut settings.by_name),
        ("by_node", &mut settings.by_node),
    ] {
        fitting.layers(group, layers, whole)?;
    }
    for (name, tensor) in &mut settings.tensors {
        let place = format!("tensor `{name}`");
        // A tensor may be a weight or an activation.
        fitting.either(&place, tensor.element)?;
    }
    Ok(settings)
}

struct Fitting {
    target: RunTarget,
    rules: &'static TargetSettings,
}

impl Fitting {
    fn conflict(
        &self,
        place: &str,
        found: &dyn Debug,
        allowed: &str,
        advice: &str,
    ) -> TargetConflict {
        TargetConflict {
            place: place.to_owned(),
            found: format!("{found:?}").to_lowercase(),
            target: self.target,
            allowed: allowed.to_owned(),
            source_document: self.rules.source,
            advice: advice.to_owned(),
        }
    }

    /// A value at its default becomes the target's; another must be among those allowed.
    fn choose<T: Copy + PartialEq + Debug>(
        &self,
        place: &str,
        value: &mut T,
        default: T,
        allowed: &[T],
    ) -> Result<(), TargetConflict> {
        if allowed.contains(value) {
            return Ok(());
        }
        if *value == default {
            *value = allowed[0];
            return Ok(());
        }
        Err(self.conflict(place, value, &names(allowed), "choose one of these"))
    }

    /// Fits the representation of activations or weights.
    fn tensor(
        &self,
        place: &str,
        tensor: &mut TensorSettings,
        activation: bool,
        top: bool,
    ) -> Result<(), TargetConflict> {
        let (types, symmetric) = match activation {
            true => (self.rules.activations, self.rules.symmetric_activations),
            false => (self.rules.weights, self.rules.symmetric_weights),
        };
        match tensor.element {
            Some(element) if !types.contains(&element) => {
                let place = format!("{place}, type");
                return Err(self.conflict(&place, &element, &names(types), "choose one of these"));
            }
            None if top => {
                let default = if activation {
                    ElementType::U8
                } else {
                    ElementType::I8
                };
                tensor.element = Some(types[0]).filter(|&first| first != default);
            }
            _ => {}
        }
        match tensor.symmetric {
            Some(false) if symmetric => {
                let place = format!("{place}, symmetric");
                return Err(self.conflict(&place, &false, "true", "leave it out"));
            }
            None if top && symmetric && activation => tensor.symmetric = Some(true),
            _ => {}
        }
        let least = self.rules.least_range;
        if activation && least > 0.0 && (top || tensor.minimum_range.is_some()) {
            match tensor.minimum_range {
                Some(range) if range < least => {
                    let place = format!("{place}, minimum_range");
                    let allowed = format!("{least} and more");
                    return Err(self.conflict(&place, &range, &allowed, "choose a larger one"));
                }
                Some(_) => {}
                None => tensor.minimum_range = Some(least),
            }
        }
        Ok(())
    }

    fn layers(
        &self,
        group: &str,
        layers: &mut BTreeMap<String, LayerSettings>,
        (activations, weights): (Option<ElementType>, Option<ElementType>),
    ) -> Result<(), TargetConflict> {
        for (name, layer) in layers {
            for (part, tensor, whole) in [
                ("activations", &mut layer.activations, activations),
                ("weights", &mut layer.weights, weights),
            ] {
                let place = format!("{group} `{name}`, {part}");
                let is_activation = part == "activations";
                self.tensor(&place, tensor, is_activation, false)?;
                let usual = if is_activation {
                    ElementType::U8
                } else {
                    ElementType::I8
                };
                let whole = whole.unwrap_or(usual);
                match tensor.element {
                    Some(element) if !self.rules.mixes_bits && element.bits() != whole.bits() => {
                        let place = format!("{place}, type");
                        let allowed = format!("{} bits, as elsewhere", whole.bits());
                        let advice = "choose one number of bits for all";
                        return Err(self.conflict(&place, &element, &allowed, advice));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn either(&self, place: &str, element: Option<ElementType>) -> Result<(), TargetConflict> {
        let all: Vec<ElementType> = self
            .rules
            .activations
            .iter()
            .chain(self.rules.weights)
            .copied()
            .collect();
        match element {
            Some(element) if !all.contains(&element) => {
                Err(self.conflict(place, &element, &names(&all), "choose one of these"))
            }
            _ => Ok(()),
        }
    }
}

/// The names of the values, as settings spell them.
fn names<T: Debug + PartialEq>(values: &[T]) -> String {
    let mut names: Vec<String> = Vec::new();
    for value in values {
        let name = format!("{value:?}").to_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
