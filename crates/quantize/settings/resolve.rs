//! Merging the scopes of the settings document for each node and tensor.

use std::collections::HashSet;

use super::names::{hint, matches};
use super::operators::refuse_unknown;
use super::{ElementType, LayerSettings, Settings, TensorSettings};
use crate::scale::{
    IntegerBounds, anchored_scale_and_zero_point, integer_bounds, nearest_power_of_two,
    power_of_two, scale_and_zero_point,
};
use crate::{BlockSettings, QuantizeError};
use octet_graph::{Model, Node};
use octet_stats::{IntegerRange, Method, PowerOfTwo, Range};

/// The integer representation of a tensor, with all scopes merged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Representation {
    pub element: ElementType,
    /// True where the type is set by tensor, node, scope or operator.
    pub typed: bool,
    /// `None`: weights of a signed type are symmetric, all else is not.
    pub symmetric: Option<bool>,
    pub reduce_range: bool,
    pub power_of_two: PowerOfTwo,
    pub per_channel: bool,
    pub minimum_range: f32,
    pub snap_zero: bool,
    pub method: Option<Method>,
    pub range: Option<Range>,
    pub scale: Option<(f32, i32)>,
}

/// The merged settings of one node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedLayer {
    pub float: bool,
    pub float_output: bool,
    pub constant_only: bool,
    pub always: bool,
    pub activations: Representation,
    pub weights: Representation,
    pub blocks: BlockSettings,
}

/// The settings of each node and tensor of a model.
#[derive(Clone, Debug)]
pub(crate) struct LayerResolver<'a> {
    settings: &'a Settings,
}

impl<'a> LayerResolver<'a> {
    /// Refuses names of nodes, tensors and operators that match nothing in the model.
    pub(crate) fn new(
        settings: &'a Settings,
        model: &Model,
    ) -> Result<LayerResolver<'a>, QuantizeError> {
        let titles: HashSet<&str> = model.graph.nodes().iter().map(Node::title).collect();
        let patterns = settings.float.iter().chain(settings.by_name.keys());
        let unmatched = |name: &&String| !titles.iter().any(|title| matches(name, title));
        let absent = |name: &&String| !titles.contains(name.as_str());
        let unknown = patterns.clone().find(unmatched);
        if let Some(name) = unknown.or_else(|| settings.by_node.keys().find(absent)) {
            return Err(unknown_node(name, &titles));
        }
        let graph = &model.graph;
        let values: HashSet<&str> = graph
            .nodes()
            .iter()
            .flat_map(|node| node.input.iter().chain(&node.output))
            .map(String::as_str)
            .collect();
        for name in settings.tensors.keys() {
            if !values.contains(name.as_str()) {
                return Err(QuantizeError::UnknownTensor {
                    name: name.clone(),
                    hint: hint(name, values),
                });
            }
        }
        refuse_unknown(settings, model)?;
        Ok(LayerResolver { settings })
    }

    /// The settings of a node.
    pub(crate) fn resolve(&self, node: &Node) -> ResolvedLayer {
        self.resolve_operator(node, &node.operator())
    }

    /// The settings of a node that belongs to this operator, perhaps as part of an operator pattern.
    pub(crate) fn resolve_operator(&self, node: &Node, operator: &str) -> ResolvedLayer {
        self.resolve_all(&[(node, operator)])
    }

    /// The settings of nodes that are fused into the first one. Narrower scopes override wider ones; in
    /// one scope, later nodes override earlier ones.
    pub(crate) fn resolve_all(&self, nodes: &[(&Node, &str)]) -> ResolvedLayer {
        let settings = self.settings;
        let is_matched =
            |pattern: &str| nodes.iter().any(|(node, _)| matches(pattern, node.title()));
        let float = settings.float.iter().any(|pattern| is_matched(pattern));
        let mut merged = ResolvedLayer {
            float,
            float_output: false,
            constant_only: false,
            always: false,
            activations: self.activations(),
            weights: self.weights(),
            blocks: settings.blocks.clone(),
        };
        let mut merge = |layer: &LayerSettings| {
            merged = ResolvedLayer {
                float: layer.float.unwrap_or(merged.float),
                float_output: layer.float_output.unwrap_or(merged.float_output),
                constant_only: layer.constant_only.unwrap_or(merged.constant_only),
                always: layer.always.unwrap_or(merged.always),
                activations: merged.activations.with(&layer.activations),
                weights: merged.weights.with(&layer.weights),
                blocks: merged.blocks.with(&layer.blocks),
            };
        };
        let operators = nodes.iter().map(|(_, operator)| *operator);
        let by_operator = operators.filter_map(|operator| settings.by_operator.get(operator));
        by_operator.for_each(&mut merge);
        let mut scopes: Vec<_> = settings
            .by_name
            .iter()
            .filter(|(scope, _)| is_matched(scope))
            .collect();
        scopes.sort_by_key(|(scope, _)| scope.len());
        scopes.into_iter().for_each(|(_, layer)| merge(layer));
        let titles = nodes.iter().map(|(node, _)| node.title());
        let by_node = titles.filter_map(|title| settings.by_node.get(title));
        by_node.for_each(&mut merge);
        merged
    }

    /// The representation of an activation without settings of its own.
    pub(crate) fn activations(&self) -> Representation {
        let method = self.settings.method;
        self.at_top_level(ElementType::U8, method, &self.settings.activations)
    }

    /// The representation of a weight without settings of its own.
    fn weights(&self) -> Representation {
        self.at_top_level(ElementType::I8, None, &self.settings.weights)
    }

    fn at_top_level(
        &self,
        element: ElementType,
        method: Option<Method>,
        settings: &TensorSettings,
    ) -> Representation {
        Representation {
            typed: false,
            ..Representation::new(element, method).with(settings)
        }
    }

    /// The representation of a tensor: its own settings over those of its layer.
    pub(crate) fn tensor(&self, name: &str, layer: &Representation) -> Representation {
        match self.settings.tensors.get(name) {
            Some(own) => layer.with(own),
            None => layer.clone(),
        }
    }
}

/// The error for an unknown node name, with a suggestion.
pub(crate) fn unknown_node(name: &str, titles: &HashSet<&str>) -> QuantizeError {
    QuantizeError::UnknownNode {
        name: name.to_string(),
        hint: hint(name, titles.iter().copied()),
    }
}

/// The quantization grid of an activation of this type.
pub fn target_of(element: ElementType, symmetric: Option<bool>) -> IntegerRange {
    let default = Representation::new(element, None);
    Representation {
        symmetric,
        ..default
    }
    .target()
}

impl Representation {
    /// The default representation.
    pub(crate) fn new(element: ElementType, method: Option<Method>) -> Representation {
        Representation {
            element,
            typed: false,
            symmetric: None,
            reduce_range: false,
            power_of_two: PowerOfTwo::No,
            per_channel: true,
            minimum_range: 0.0,
            snap_zero: false,
            method,
            range: None,
            scale: None,
        }
    }

    /// True where the settings contain its range or scale.
    pub(crate) fn is_chosen(&self) -> bool {
        self.range.is_some() || self.scale.is_some()
    }

    /// Refuses a zero point outside the type's integers.
    pub(crate) fn check(&self, tensor: &str) -> Result<(), QuantizeError> {
        let whole = integer_bounds(self.element.data_type(), false, false);
        match self.scale {
            Some((_, zero_point)) if !(whole.low..=whole.high).contains(&zero_point) => {
                Err(QuantizeError::ZeroPoint {
                    tensor: tensor.to_string(),
                    zero_point,
                    element: self.element.data_type(),
                    low: whole.low,
                    high: whole.high,
                })
            }
            _ => Ok(()),
        }
    }

    /// Scale and zero point of the range from `min` to `max`.
    pub(crate) fn scale_and_zero_point(
        &self,
        min: f32,
        max: f32,
        used: IntegerBounds,
        symmetric: bool,
    ) -> (f32, i32) {
        let snaps = self.snap_zero && !symmetric && !self.element.is_signed();
        let (scale, zero_point) = if snaps {
            anchored_scale_and_zero_point(min, max, used, self.minimum_range)
        } else {
            let max = max.max(0.0).max(min.min(0.0) + self.minimum_range);
            scale_and_zero_point(min, max, used, symmetric)
        };
        let scale = match self.power_of_two {
            PowerOfTwo::No => return (scale, zero_point),
            // The zero point stays, as in AMD Quark.
            PowerOfTwo::Nearest => return (nearest_power_of_two(scale), zero_point),
            PowerOfTwo::Covering => power_of_two(scale),
        };
        // The zero point moves with the scale, so that the range stays where it was.
        if symmetric || snaps {
            return (scale, zero_point);
        }
        let from = f64::from(used.low) - f64::from(min.min(0.0)) / f64::from(scale);
        (
            scale,
            (from.round_ties_even() as i32).clamp(used.low, used.high),
        )
    }

    /// True where zero maps to the middle of the integer range.
    pub(crate) fn is_symmetric(&self, weight: bool) -> bool {
        self.symmetric.unwrap_or(weight && self.element.is_signed())
    }

    /// The quantization grid of an activation.
    pub(crate) fn target(&self) -> IntegerRange {
        let symmetric = self.is_symmetric(false);
        let used = integer_bounds(self.element.data_type(), symmetric, self.reduce_range);
        IntegerRange {
            power_of_two: self.power_of_two,
            ..IntegerRange::new(used.low, used.high, symmetric)
        }
    }

    /// True where one range has the same scale and zero point in both.
    pub(crate) fn is_like(&self, other: &Representation) -> bool {
        self.element == other.element
            && self.is_symmetric(false) == other.is_symmetric(false)
            && self.reduce_range == other.reduce_range
            && self.power_of_two == other.power_of_two
            && self.minimum_range == other.minimum_range
            && self.snap_zero == other.snap_zero
    }

    /// This representation with the keys that `over` sets.
    fn with(&self, over: &TensorSettings) -> Representation {
        Representation {
            element: over.element.unwrap_or(self.element),
            typed: self.typed || over.element.is_some(),
            symmetric: over.symmetric.or(self.symmetric),
            reduce_range: over.reduce_range.unwrap_or(self.reduce_range),
            power_of_two: over.power_of_two.unwrap_or(self.power_of_two),
            per_channel: over.per_channel.unwrap_or(self.per_channel),
            minimum_range: over.minimum_range.unwrap_or(self.minimum_range),
            snap_zero: over.snap_zero.unwrap_or(self.snap_zero),
            method: over.method.or(self.method),
            range: over.range.or(self.range),
            scale: over
                .scale
                .map(|scale| (scale, over.zero_point.unwrap_or(0)))
                .or(self.scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::schema::{GraphProto, ModelProto, NodeProto, TensorProto};

    fn model(titles: &[&str]) -> Model {
        let node =
            |title: &&str| NodeProto::new("Conv", title, &["x", "w"], &[&format!("{title} out")]);
        let graph = GraphProto {
            node: titles.iter().map(node).collect(),
            initializer: ["x", "w"]
                .map(|name| TensorProto::from_f32(name, &[1, 1, 1, 1], &[1.0]))
                .to_vec(),
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn zero_snaps_with_any_scale() {
        let mut represented = Representation::new(ElementType::U8, None);
        represented.snap_zero = true;
        let used = integer_bounds(ElementType::U8.data_type(), false, false);
        for (power_of_two, below, above) in [
            (PowerOfTwo::No, 1.0 / 127.0, 1.0 / 255.0),
            (PowerOfTwo::Covering, 1.0 / 64.0, 1.0 / 128.0),
            (PowerOfTwo::Nearest, 1.0 / 128.0, 1.0 / 256.0),
        ] {
            represented.power_of_two = power_of_two;
            let found = |min, max| represented.scale_and_zero_point(min, max, used, false);
            assert_eq!(found(-0.5, 1.0), (below, 128));
            assert_eq!(found(0.0, 1.0), (above, 0));
        }
    }

    #[test]
    fn narrower_scopes_override_wider_ones_key_by_key() {
        let text = r#"{
            "activations": { "type": "i8", "symmetric": true },
            "by_operator": { "Conv": { "activations": { "type": "u16" } } },
            "by_name": {
                "": { "activations": { "method": "mse" }, "float": true },
                "backbone": { "activations": { "type": "i16" }, "float": false },
                "backbone.conv1": { "activations": { "type": "u4" } }
            },
            "by_node": { "/backbone/conv2/Conv": { "activations": { "type": "i4" } } },
            "tensors": { "w": { "type": "u8" } }
        }"#;
        let settings = Settings::from_value(serde_json::from_str(text).unwrap()).unwrap();
        let titles = [
            "/backbone/conv1/Conv",
            "/backbone/conv2/Conv",
            "/backbone/conv3/Conv",
            "/head/Conv",
        ];
        let model = model(&titles);
        let layers = LayerResolver::new(&settings, &model).unwrap();
        let found: Vec<ResolvedLayer> = model
            .graph
            .nodes()
            .iter()
            .map(|node| layers.resolve(node))
            .collect();
        use ElementType::{I4, I16, U4, U8, U16};
        assert_eq!(
            [0, 1, 2, 3].map(|i| found[i].activations.element),
            [U4, I4, I16, U16]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|i| found[i].float),
            [false, false, false, true]
        );
        assert!(
            found
                .iter()
                .all(|layer| layer.activations.symmetric == Some(true) && layer.activations.typed)
        );
        assert!(
            found
                .iter()
                .all(|layer| layer.activations.method == Some(Method::Mse))
        );
        assert!(!found[0].weights.typed);
        let weight = layers.tensor("w", &found[0].weights);
        assert_eq!((weight.element, weight.typed), (U8, true));
    }
}
