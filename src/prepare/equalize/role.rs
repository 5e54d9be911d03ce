//! What a node means for factors of channels: which it takes up, which it hands on, and which it can bear none of.

use std::collections::HashMap;

use crate::graph::{Dim, Graph, Joins, TensorType, Uses, tensor_type_of};
use crate::onnx::schema::{DataType, NodeProto, TensorProto};

/// The channels of a value: along which axis they lie, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) axis: usize,
    pub(super) channels: usize,
}

/// What a node means for factors.
#[derive(Default)]
pub(super) struct Role<'a> {
    /// Two values and how far the channels of the first lie behind those of the second with the same factors.
    pub(super) tied: Vec<(&'a str, &'a str, usize)>,
    /// Values whose factors its constants take up. All that are neither tied nor here can have none.
    pub(super) free: Vec<&'a str>,
    /// Its constants that take factors up.
    pub(super) constants: Vec<Constant<'a>>,
}

/// A constant that is multiplied with the factors of one value and divided by those of another.
pub(super) struct Constant<'a> {
    pub(super) slot: usize,
    pub(super) times: Option<&'a str>,
    pub(super) over: Option<&'a str>,
    /// Which channels its numbers join; where none, each belongs to one.
    pub(super) joins: Option<Joins>,
}

/// Operators that make the same multiple of a channel of a multiple of it, and leave it in its place.
const HANDING_ON: [&str; 11] = [
    "Relu",
    "LeakyRelu",
    "PRelu",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Resize",
    "Pad",
    "Abs",
    "Neg",
];

/// Operators whose operands are added, or of which the greatest or least is taken.
const ADDING: [&str; 6] = ["Add", "Sub", "Sum", "Mean", "Max", "Min"];

/// Operators that drop or add axes of one.
const RESHAPING: [&str; 4] = ["Flatten", "Squeeze", "Unsqueeze", "Reshape"];

/// Operators that make gates: what they are multiplied with has the factors, if any has.
const GATES: [&str; 4] = ["Sigmoid", "HardSigmoid", "Softmax", "Tanh"];

/// A graph, with what is known of its values.
pub(super) struct Known<'a> {
    graph: &'a Graph,
    uses: &'a Uses,
    /// Of each float value whose rank is known its extents, as far as these are.
    shapes: HashMap<&'a str, Vec<Option<usize>>>,
    spans: HashMap<&'a str, Span>,
}

impl<'a> Known<'a> {
    /// Channels lie where weights meet them, and from there on along what leaves them in their place.
    pub(super) fn of(graph: &'a Graph, uses: &'a Uses) -> Known<'a> {
        let values = graph.inputs.iter().chain(&graph.outputs);
        let size = |dim: Dim| match dim {
            Dim::Known(size) => Some(size),
            _ => None,
        };
        let shape = |found: TensorType| {
            let float = found.element == DataType::Float;
            let shape = found.shape.filter(|_| float)?;
            Some(shape.into_iter().map(size).collect())
        };
        let shapes = values
            .chain(&graph.value_info)
            .filter_map(|value| Some((value.name.as_deref()?, shape(tensor_type_of(value)?)?)))
            .collect();
        let mut known = Known {
            graph,
            uses,
            shapes,
            spans: HashMap::new(),
        };
        loop {
            let before = known.spans.len();
            for node in graph.nodes.iter().chain(graph.nodes.iter().rev()) {
                known.spread(node);
            }
            if known.spans.len() == before {
                return known;
            }
        }
    }

    /// Where the channels of a value lie.
    pub(super) fn span(&self, value: &str) -> Option<Span> {
        self.spans.get(value).copied()
    }

    fn spread(&mut self, node: &'a NodeProto) {
        let (Some(value), Some(result)) = (node.input_at(0), node.output.first()) else {
            return;
        };
        let last = |value: &str| self.shapes.get(value)?.len().checked_sub(1);
        if self.constant(node, 1).is_some() {
            let axes = match node.operator().as_str() {
                "Conv" | "ConvTranspose" | "Gemm" => [Some(1), Some(1)],
                "InstanceNormalization" | "BatchNormalization" => [None, Some(1)],
                "MatMul" => [last(value), last(result)],
                "LayerNormalization" => [None, last(result)],
                _ => [None, None],
            };
            self.found(value, axes[0]);
            self.found(result, axes[1]);
        }
        let kept: Vec<&str> = self.kept(node, value, result);
        let axis = kept.iter().find_map(|value| Some(self.span(value)?.axis));
        kept.into_iter().for_each(|value| self.found(value, axis));
    }

    fn found(&mut self, value: &'a str, axis: Option<usize>) {
        let shape = self.shapes.get(value);
        let extent = axis.and_then(|axis| Some((axis, (*shape?.get(axis)?)?)));
        if let Some((axis, channels)) = extent {
            self.spans.entry(value).or_insert(Span { axis, channels });
        }
    }

    /// The values of a node whose channels lie along the same axis.
    fn kept(&self, node: &'a NodeProto, value: &'a str, result: &'a str) -> Vec<&'a str> {
        let operator = node.operator();
        let operator = operator.as_str();
        if HANDING_ON.contains(&operator) || self.reshaped(operator, value, result) {
            return vec![value, result];
        }
        if ADDING.contains(&operator) || ["Mul", "Div", "Concat"].contains(&operator) {
            let rank = |value: &str| self.shapes.get(value).map(Vec::len);
            let alike = |value: &&str| rank(value) == rank(result);
            let values = node.input.iter().map(String::as_str).filter(alike);
            return values.chain([result]).collect();
        }
        Vec::new()
    }

    /// Whether one of the two has the channels of the other, and axes of one behind them.
    fn reshaped(&self, operator: &str, value: &str, result: &str) -> bool {
        let shape = |value| self.shapes.get(value).map(Vec::as_slice);
        let (Some(one), Some(other)) = (shape(value), shape(result)) else {
            return false;
        };
        let (long, short) = if one.len() > 2 {
            (one, other)
        } else {
            (other, one)
        };
        RESHAPING.contains(&operator)
            && matches!((long, short), ([_, Some(a), rest @ ..], [_, Some(b)])
                if a == b && rest.iter().all(|&extent| extent == Some(1)))
    }

    /// A float constant.
    fn constant(&self, node: &NodeProto, slot: usize) -> Option<&'a TensorProto> {
        let constant = self.graph.initializers.get(node.input_at(slot)?)?;
        (constant.element() == Ok(DataType::Float)).then_some(constant)
    }

    /// A float constant that nobody else reads.
    fn own(&self, node: &NodeProto, slot: usize) -> Option<&'a TensorProto> {
        let name = node.input_at(slot)?;
        let own = self.uses.consumers(name).len() == 1 && !self.uses.is_output(name);
        self.constant(node, slot).filter(|_| own)
    }

    /// What a node means for factors; of one that isn't known, that nothing it touches can have any.
    pub(super) fn role(&self, node: &'a NodeProto) -> Role<'a> {
        let twice = |name: &&String| node.input.iter().filter(|other| other == name).count() > 1;
        if node.input.iter().any(|name| twice(&name)) {
            return Role::default();
        }
        let found = self.layer(node).or_else(|| self.norm(node));
        let found = found.or_else(|| self.by_constant(node));
        found.or_else(|| self.hands_on(node)).unwrap_or_default()
    }

    fn layer(&self, node: &'a NodeProto) -> Option<Role<'a>> {
        let (value, result) = (node.input_at(0)?, node.output.first()?);
        let joins = Joins::of(node, &self.own(node, 1)?.shape().ok()?)?;
        let axis = match node.is("MatMul") {
            true => self.shapes.get(value)?.len().checked_sub(1)?,
            false => 1,
        };
        let met = |channels| Some(Span { axis, channels });
        // Of what goes out less may be known: it can have no factors.
        let out = self.span(result);
        let fits =
            self.span(value) == met(joins.inputs) && (out.is_none() || out == met(joins.outputs));
        if !fits || node.int("transA").unwrap_or(0) != 0 {
            return None;
        }
        let bias = self.each(node, 2, result, joins.outputs)?;
        let weight = Constant {
            slot: 1,
            times: Some(result),
            over: Some(value),
            joins: Some(joins),
        };
        Some(Role {
            free: vec![value, result],
            constants: std::iter::once(weight).chain(bias).collect(),
            tied: Vec::new(),
        })
    }

    /// The constant that is added at the end, if there is any; `None` where it isn't one number for each channel.
    fn each(
        &self,
        node: &'a NodeProto,
        slot: usize,
        result: &'a str,
        channels: usize,
    ) -> Option<Option<Constant<'a>>> {
        if node.input_at(slot).is_none() {
            return Some(None);
        }
        let shape = self.own(node, slot)?.shape().ok()?;
        let (&last, before) = shape.split_last()?;
        let by_channel = last == channels && before.iter().all(|&extent| extent == 1);
        by_channel.then_some(Some(Constant {
            slot,
            times: Some(result),
            over: None,
            joins: None,
        }))
    }

    fn norm(&self, node: &'a NodeProto) -> Option<Role<'a>> {
        let result = node.output.first()?;
        let Span { axis, channels } = self.span(result)?;
        let fits = match node.operator().as_str() {
            "LayerNormalization" => {
                let last = self.shapes.get(result.as_str())?.len() - 1;
                let along = node.int("axis").unwrap_or(-1);
                axis == last && (along == -1 || along == last as i64)
            }
            "InstanceNormalization" => axis == 1,
            "BatchNormalization" => axis == 1 && node.int("training_mode").unwrap_or(0) == 0,
            _ => false,
        };
        let scale = self.each(node, 1, result, channels).filter(|_| fits)??;
        let shift = self.each(node, 2, result, channels)?;
        Some(Role {
            free: vec![result],
            constants: std::iter::once(scale).chain(shift).collect(),
            tied: Vec::new(),
        })
    }

    /// A value and a constant.
    fn by_constant(&self, node: &'a NodeProto) -> Option<Role<'a>> {
        let result = node.output.first()?.as_str();
        let slot = (0..2).find(|&slot| self.constant(node, slot).is_some())?;
        let value = node.input_at(1 - slot).filter(|_| node.input.len() == 2)?;
        let span = self
            .span(result)
            .filter(|&span| self.span(value) == Some(span))?;
        let shape = self.own(node, slot)?.shape().ok()?;
        let scales = node.is("Mul") || (node.is("Div") && slot == 1);
        // Lined up at the end, as broadcasting does.
        let rank = self.shapes.get(result)?.len();
        let at = span.axis.checked_sub(rank.checked_sub(shape.len())?)?;
        let extent = |(axis, &extent): (usize, &usize)| match axis == at {
            true => extent == span.channels,
            false => extent == 1,
        };
        if !shape.iter().enumerate().all(extent) {
            return None;
        }
        let constant = |times, over| Constant {
            slot,
            times: Some(times),
            over,
            joins: None,
        };
        if scales {
            let (times, over) = if node.is("Mul") {
                (result, value)
            } else {
                (value, result)
            };
            return Some(Role {
                free: vec![value, result],
                constants: vec![constant(times, Some(over))],
                tied: Vec::new(),
            });
        }
        (node.is("Add") || node.is("Sub")).then(|| Role {
            tied: vec![(value, result, 0)],
            constants: vec![constant(result, None)],
            free: Vec::new(),
        })
    }

    fn hands_on(&self, node: &'a NodeProto) -> Option<Role<'a>> {
        let (value, result) = (node.input_at(0)?, node.output.first()?.as_str());
        let span = self.span(result)?;
        let operator = node.operator();
        let operator = operator.as_str();
        let alike = |value: &&str| self.span(value) == Some(span);
        let values = || node.input.iter().map(String::as_str);
        let mut behind = 0;
        let tied: Vec<(&str, usize)> = if HANDING_ON.contains(&operator) {
            let one = node.output.iter().filter(|name| !name.is_empty()).count() == 1;
            let sound = one && alike(&value) && !self.is_of_other_values(node);
            vec![(Some(value).filter(|_| sound)?, 0)]
        } else if self.reshaped(operator, value, result) {
            vec![(Some(value).filter(alike)?, 0)]
        } else if ADDING.contains(&operator) {
            let all = values().all(|value| alike(&value));
            values().filter(|_| all).map(|value| (value, 0)).collect()
        } else if operator == "Mul" || operator == "Div" {
            let carrying = values().take(if operator == "Mul" { 2 } else { 1 });
            let carrying = carrying
                .filter(alike)
                .min_by_key(|value| self.is_gate(value))?;
            vec![(carrying, 0)]
        } else if operator == "Concat" {
            let rank = self.shapes.get(result)?.len() as i64;
            let along = node.int("axis")?.rem_euclid(rank.max(1)) as usize == span.axis;
            let place = |value| {
                let one = self.span(value)?;
                let at = behind;
                behind += if along { one.channels } else { 0 };
                (one.axis == span.axis && (along || one == span)).then_some((value, at))
            };
            values().map(place).collect::<Option<_>>()?
        } else {
            return None;
        };
        let tied = tied
            .into_iter()
            .map(|(value, behind)| (value, result, behind));
        Some(Role {
            tied: tied.collect(),
            ..Role::default()
        })
    }

    /// Whether values come in that are none of the value's own.
    fn is_of_other_values(&self, node: &NodeProto) -> bool {
        if node.is("Pad") && node.text("mode").is_none_or(|mode| mode == "constant") {
            let zero = |value: &TensorProto| value.to_f32().is_ok_and(|numbers| numbers == [0.0]);
            return node.input_at(2).is_some() && !self.constant(node, 2).is_some_and(zero);
        }
        node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
    }

    /// Whether a value is a gate for another, rather than gated by it: by its maker, or by having one number for a channel.
    fn is_gate(&self, value: &str) -> bool {
        let maker = self
            .uses
            .producer(value)
            .map(|maker| self.graph.nodes[maker].operator());
        let shape = self.shapes.get(value).map_or(&[][..], Vec::as_slice);
        let ones = shape
            .iter()
            .skip(2)
            .filter(|&&extent| extent == Some(1))
            .count();
        maker.is_some_and(|maker| GATES.contains(&maker.as_str()))
            || (shape.len() > 2 && ones == shape.len() - 2)
    }
}
