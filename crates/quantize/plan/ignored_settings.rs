//! Notes about settings of a tensor that have no effect, with the reason.

use super::{Plan, RangeOrigin, TensorRole};
use crate::settings::{Settings, TensorSettings};
use octet_graph::Model;
use octet_stats::Method;

impl Plan {
    /// Returns a note for each tensor with settings that have no effect. These are no errors,
    /// because the same settings serve many models.
    pub(crate) fn ignored_settings(&self, model: &Model, settings: &Settings) -> Vec<String> {
        let tensors = settings.tensors.iter();
        tensors
            .filter_map(|(name, wanted)| self.no_effect(model, name, wanted))
            .collect()
    }

    fn no_effect(&self, model: &Model, name: &str, wanted: &TensorSettings) -> Option<String> {
        if *wanted == TensorSettings::default() || wanted.float == Some(true) {
            return None;
        }
        let nothing = |reason: String| {
            Some(format!(
                "the settings of the tensor `{name}` had no effect: {reason}"
            ))
        };
        if let Some(output) = self.folded_name(name) {
            return nothing(format!(
                "the Relu or Clip behind it is folded into its layer; set it for `{output}`"
            ));
        }
        let Some((_, form)) = self.forms.iter().find(|(known, _)| known == name) else {
            let bias = self.biases.iter().any(|bias| bias.name == name);
            return nothing(match bias {
                true => {
                    "it is a bias, which has 32 bits and the scales of its layer's input and weight"
                        .into()
                }
                false => "it stays float".into(),
            });
        };
        let constant = model.graph.initializers.contains(name);
        let of_method = || match (form, self.ranges.get(name)) {
            (TensorRole::Weight(_), _) if wanted.method == Some(Method::Mse) => None,
            _ if constant => Some(
                "a constant takes the range of its values, except a weight with `mse`".to_string(),
            ),
            (TensorRole::Shared(_), _) => {
                let source = self.scale_owners.get(name).map_or(name, String::as_str);
                Some(format!("it shares the scale of `{source}`"))
            }
            _ if wanted.range.is_some() || wanted.scale.is_some() => {
                Some("its range or scale is set too".into())
            }
            (_, Some(RangeOrigin::Fixed(min, max))) => Some(format!(
                "the output of a Softmax has the range from {min} to {max}"
            )),
            _ => None,
        };
        let method = wanted.method.and_then(|_| Some(("method", of_method()?)));
        let weight = matches!(form, TensorRole::Weight(_));
        let one_scale = wanted.per_channel.filter(|_| !weight).map(|_| {
            (
                "per_channel",
                "only a weight has a scale for each channel".into(),
            )
        });
        let idle = method.into_iter().chain(one_scale);
        let idle: Vec<String> = idle
            .map(|(key, reason): (&str, String)| format!("`{key}` ({reason})"))
            .collect();
        (!idle.is_empty()).then(|| {
            format!(
                "of the settings of the tensor `{name}`, these had no effect: {}",
                idle.join("; ")
            )
        })
    }
}
