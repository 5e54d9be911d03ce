//! Rules for channel factors, by operator: constants that absorb factors, values that share them,
//! and values that can have none.

use super::channel_axes::{ChannelAxes, ChannelAxis};
use crate::operators::{ChannelPosition, ChannelRole, Operator, Property};
use crate::{LayerWeightLayout, Node};
use octet_onnx::schema::TensorProto;

/// The rule of one node.
#[derive(Default)]
pub(super) struct NodeRule<'a> {
    /// Pairs of values that share factors. The number is the position of the first one's channels
    /// within the second's.
    pub(super) tied: Vec<(&'a str, &'a str, usize)>,
    /// Values whose factors the node's constants absorb. A value that is neither tied nor free can
    /// have no factors.
    pub(super) free: Vec<&'a str>,
    /// Constants of the node that absorb factors.
    pub(super) constants: Vec<AbsorbingConstant<'a>>,
}

/// A constant that is multiplied by the factors of one value and divided by those of another.
pub(super) struct AbsorbingConstant<'a> {
    pub(super) slot: usize,
    pub(super) times: Option<&'a str>,
    pub(super) over: Option<&'a str>,
    /// Layout of a weight's input and output channels; `None` for one number for each channel.
    pub(super) joins: Option<LayerWeightLayout>,
}

impl<'a> ChannelAxes<'a> {
    /// The rule of a node. An unknown node allows no factors on the values it touches.
    pub(super) fn rule(&self, node: &'a Node) -> NodeRule<'a> {
        let twice = |name: &&String| node.input.iter().filter(|other| other == name).count() > 1;
        if node.input.iter().any(|name| twice(&name)) {
            return NodeRule::default();
        }
        let rule = self.layer(node).or_else(|| self.norm(node));
        let rule = rule.or_else(|| self.by_constant(node));
        rule.or_else(|| self.pass_through(node)).unwrap_or_default()
    }

    fn layer(&self, node: &'a Node) -> Option<NodeRule<'a>> {
        let (value, result) = (node.input_at(0)?, node.output.first()?);
        let joins = LayerWeightLayout::from_node(node, &self.own(node, 1)?.shape().ok()?)?;
        let axis = match Operator::of(node).channels {
            ChannelRole::Layer(ChannelPosition::Last) => {
                self.shapes.get(value)?.len().checked_sub(1)?
            }
            _ => 1,
        };
        let axis_of = |channels| Some(ChannelAxis { axis, channels });
        // An output with unknown channels can have no factors.
        let out = self.channel_axis(result);
        let fits = self.channel_axis(value) == axis_of(joins.inputs)
            && (out.is_none() || out == axis_of(joins.outputs));
        if !fits || node.int("transA").unwrap_or(0) != 0 {
            return None;
        }
        let bias = self.per_channel_input(node, 2, result, joins.outputs)?;
        let weight = AbsorbingConstant {
            slot: 1,
            times: Some(result),
            over: Some(value),
            joins: Some(joins),
        };
        Some(NodeRule {
            free: vec![value, result],
            constants: std::iter::once(weight).chain(bias).collect(),
            tied: Vec::new(),
        })
    }

    /// A constant input with one number for each channel: `Some(None)` if absent, `None` if it has
    /// another shape.
    fn per_channel_input(
        &self,
        node: &'a Node,
        slot: usize,
        result: &'a str,
        channels: usize,
    ) -> Option<Option<AbsorbingConstant<'a>>> {
        if node.input_at(slot).is_none() {
            return Some(None);
        }
        let shape = self.own(node, slot)?.shape().ok()?;
        let (&last, before) = shape.split_last()?;
        let by_channel = last == channels && before.iter().all(|&extent| extent == 1);
        by_channel.then_some(Some(AbsorbingConstant {
            slot,
            times: Some(result),
            over: None,
            joins: None,
        }))
    }

    fn norm(&self, node: &'a Node) -> Option<NodeRule<'a>> {
        let result = node.output.first()?;
        let ChannelAxis { axis, channels } = self.channel_axis(result)?;
        let fits = match Operator::of(node).channels {
            ChannelRole::Norm(ChannelPosition::Last) => {
                let last = self.shapes.get(result.as_str())?.len() - 1;
                let along = node.int("axis").unwrap_or(-1);
                axis == last && (along == -1 || along == last as i64)
            }
            ChannelRole::Norm(ChannelPosition::Second) => {
                axis == 1 && node.int("training_mode").unwrap_or(0) == 0
            }
            _ => false,
        };
        let scale = self
            .per_channel_input(node, 1, result, channels)
            .filter(|_| fits)??;
        let shift = self.per_channel_input(node, 2, result, channels)?;
        Some(NodeRule {
            free: vec![result],
            constants: std::iter::once(scale).chain(shift).collect(),
            tied: Vec::new(),
        })
    }

    /// Arithmetic on a value and a constant.
    fn by_constant(&self, node: &'a Node) -> Option<NodeRule<'a>> {
        let result = node.output.first()?.as_str();
        let slot = (0..2).find(|&slot| self.constant(node, slot).is_some())?;
        let value = node.input_at(1 - slot).filter(|_| node.input.len() == 2)?;
        let channel_axis = self
            .channel_axis(result)
            .filter(|&channel_axis| self.channel_axis(value) == Some(channel_axis))?;
        let shape = self.own(node, slot)?.shape().ok()?;
        let role = Operator::of(node).channels;
        let scales = match role {
            ChannelRole::Multiplies => true,
            ChannelRole::Divides => slot == 1,
            _ => false,
        };
        // Broadcasting aligns shapes at their ends.
        let rank = self.shapes.get(result)?.len();
        let at = channel_axis
            .axis
            .checked_sub(rank.checked_sub(shape.len())?)?;
        let extent = |(axis, &extent): (usize, &usize)| match axis == at {
            true => extent == channel_axis.channels,
            false => extent == 1,
        };
        if !shape.iter().enumerate().all(extent) {
            return None;
        }
        let constant = |times, over| AbsorbingConstant {
            slot,
            times: Some(times),
            over,
            joins: None,
        };
        if scales {
            let (times, over) = if role == ChannelRole::Multiplies {
                (result, value)
            } else {
                (value, result)
            };
            return Some(NodeRule {
                free: vec![value, result],
                constants: vec![constant(times, Some(over))],
                tied: Vec::new(),
            });
        }
        (node.is("Add") || node.is("Sub")).then(|| NodeRule {
            tied: vec![(value, result, 0)],
            constants: vec![constant(result, None)],
            free: Vec::new(),
        })
    }

    fn pass_through(&self, node: &'a Node) -> Option<NodeRule<'a>> {
        let (value, result) = (node.input_at(0)?, node.output.first()?.as_str());
        let channel_axis = self.channel_axis(result)?;
        let alike = |value: &&str| self.channel_axis(value) == Some(channel_axis);
        let values = || node.input.iter().map(String::as_str);
        let mut offset = 0;
        let role = Operator::of(node).channels;
        let tied: Vec<(&str, usize)> = match role {
            ChannelRole::Commutes => {
                let one = node.output.iter().filter(|name| !name.is_empty()).count() == 1;
                let sound = one && alike(&value) && !self.is_of_other_values(node, channel_axis);
                vec![(Some(value).filter(|_| sound)?, 0)]
            }
            ChannelRole::Reshapes if self.is_reshaped(value, result) => {
                vec![(Some(value).filter(alike)?, 0)]
            }
            ChannelRole::Adds => {
                let all = values().all(|value| alike(&value));
                values().filter(|_| all).map(|value| (value, 0)).collect()
            }
            ChannelRole::Multiplies | ChannelRole::Divides => {
                let operands = if role == ChannelRole::Multiplies {
                    2
                } else {
                    1
                };
                let carrying = values().take(operands).filter(alike);
                let carrying = carrying.min_by_key(|value| self.is_gate(value))?;
                vec![(carrying, 0)]
            }
            ChannelRole::Joins => {
                let rank = self.shapes.get(result)?.len() as i64;
                let along = node.int("axis")?.rem_euclid(rank.max(1)) as usize == channel_axis.axis;
                let place = |value| {
                    let one = self.channel_axis(value)?;
                    let at = offset;
                    offset += if along { one.channels } else { 0 };
                    (one.axis == channel_axis.axis && (along || one == channel_axis))
                        .then_some((value, at))
                };
                values().map(place).collect::<Option<_>>()?
            }
            _ => return None,
        };
        let tied = tied
            .into_iter()
            .map(|(value, offset)| (value, result, offset));
        Some(NodeRule {
            tied: tied.collect(),
            ..NodeRule::default()
        })
    }

    /// True if other numbers enter the channels, such as padding other than zero, or if channels
    /// move.
    fn is_of_other_values(&self, node: &Node, channel_axis: ChannelAxis) -> bool {
        if !node.is("Pad") {
            return node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
        }
        let constant = |slot| self.graph.initializers.get(node.input_at(slot)?);
        let pads = constant(1).and_then(|pads| pads.to_i64().ok());
        let pads = pads.filter(|_| node.input_at(3).is_none());
        let along = |pads: Vec<i64>| {
            [channel_axis.axis, channel_axis.axis + pads.len() / 2]
                .map(|at| pads.get(at) == Some(&0))
        };
        let zero = |value: &TensorProto| value.to_f32().is_ok_and(|numbers| numbers == [0.0]);
        let zeros = node.input_at(2).is_none() || constant(2).is_some_and(zero);
        let filled = node.text("mode").is_none_or(|mode| mode == "constant") && !zeros;
        filled || pads.map(along) != Some([true, true])
    }

    /// True if a value gates another one: a gate operator produces it, or it has one number for
    /// each channel.
    fn is_gate(&self, value: &str) -> bool {
        let maker = self.graph.producer(value);
        let produces_gates =
            |maker: usize| Operator::of(&self.graph.nodes()[maker]).has(Property::Gates);
        let shape = self.shapes.get(value).map_or(&[][..], Vec::as_slice);
        let ones = shape
            .iter()
            .skip(2)
            .filter(|&&extent| extent == Some(1))
            .count();
        maker.is_some_and(produces_gates) || (shape.len() > 2 && ones == shape.len() - 2)
    }
}
