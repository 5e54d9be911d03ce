//! Reads QuantizeLinear and DequantizeLinear nodes: the integers and parameters behind a real
//! value.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use octet_graph::{Dim, Graph, Model, Node, TensorType};
use octet_onnx::schema::{DataType, TensorProto};

use crate::float_evaluator::FloatEvaluator;
use crate::float_reason::FloatReason;
use crate::quantization::{Int8Quantization, Int16Quantization, SIGN};
use crate::values::{Constant, IrOperand};

/// A graph with types, and access to its quantization parameters.
pub(crate) struct Reader<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) opset: i64,
    types: &'a BTreeMap<String, TensorType>,
    /// Values that are watched from outside.
    watched: HashSet<&'a str>,
    /// Nodes that must stay float because their step failed to compile.
    pub(crate) refused: HashSet<usize>,
    dequantized: HashMap<&'a str, usize>,
    /// Constants that were read as weights.
    pub(super) signed_weights: RefCell<HashMap<String, Arc<[i8]>>>,
    /// Evaluates float nodes.
    pub(crate) floats: &'a dyn FloatEvaluator,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        model: &'a Model,
        types: &'a BTreeMap<String, TensorType>,
        watched: &'a [String],
        refused: HashSet<usize>,
        floats: &'a dyn FloatEvaluator,
    ) -> Reader<'a> {
        let graph = &model.graph;
        let nodes = graph.nodes().iter().enumerate();
        Reader {
            graph,
            opset: model.opset(),
            types,
            watched: watched.iter().map(String::as_str).collect(),
            refused,
            dequantized: nodes
                .filter(|(_, node)| node.is("DequantizeLinear"))
                .filter_map(|(index, node)| Some((node.output.first()?.as_str(), index)))
                .collect(),
            signed_weights: RefCell::default(),
            floats,
        }
    }

    /// Shape of a value if all dimensions are known.
    pub(crate) fn shape(&self, value: &str) -> Result<Vec<usize>, FloatReason> {
        let shape = match self.graph.initializers.get(value) {
            Some(tensor) => tensor.shape().ok(),
            None => self.types.get(value).and_then(known_shape),
        };
        shape.ok_or_else(|| FloatReason::UnknownShape(value.to_owned()))
    }

    pub(crate) fn element(&self, value: &str) -> Option<DataType> {
        match self.graph.initializers.get(value) {
            Some(tensor) => tensor.element().ok(),
            None => self.types.get(value).map(|known| known.element),
        }
    }

    /// The initializer of that name.
    pub(crate) fn constant(&self, value: &str) -> Option<&'a TensorProto> {
        self.graph.initializers.get(value)
    }

    /// True for model outputs and watched values.
    pub(crate) fn is_observed(&self, value: &str) -> bool {
        self.graph.is_output(value) || self.watched.contains(value)
    }

    /// The only reader of a value, if the value is its first input.
    pub(crate) fn only_reader(&self, value: &str) -> Option<usize> {
        let reader = self.graph.only_consumer(value)?;
        let only = reader.is_input(0) && !self.is_observed(value);
        only.then_some(reader.node)
    }

    /// Parameters of a Q or DQ node with one scale and eight bits; `integers` is its integer side.
    pub(crate) fn quantization(
        &self,
        node: &Node,
        integers: &str,
    ) -> Result<Int8Quantization, FloatReason> {
        let (scale, element, zero_point) = self.linear(node, integers)?;
        let signed = match element {
            DataType::Uint8 => false,
            DataType::Int8 => true,
            other => {
                let title = node.title().to_owned();
                return Err(FloatReason::IntegerType(title, other.name()));
            }
        };
        Ok(Int8Quantization {
            scale,
            zero_point: zero_point as u8 ^ if signed { SIGN } else { 0 },
            signed,
        })
    }

    /// Parameters of a Q or DQ node with one scale and 16 bits.
    pub(crate) fn int16_parameters(&self, node: &Node) -> Result<Int16Quantization, FloatReason> {
        let integers = match node.is("QuantizeLinear") {
            true => node.output.first().map_or("", String::as_str),
            false => node.input_at(0).unwrap_or_default(),
        };
        let (scale, element, zero_point) = self.linear(node, integers)?;
        match element {
            DataType::Uint16 => Ok(Int16Quantization::new(scale, zero_point, false)),
            DataType::Int16 => Ok(Int16Quantization::new(scale, zero_point, true)),
            other => {
                let title = node.title().to_owned();
                Err(FloatReason::IntegerType(title, other.name()))
            }
        }
    }

    /// The single scale of a Q or DQ node, its integer type and its zero point.
    fn linear(&self, node: &Node, integers: &str) -> Result<(f32, DataType, i64), FloatReason> {
        let title = || node.title().to_owned();
        let [scale] = self.numbers(node, 1)?[..] else {
            return Err(FloatReason::ScalePerChannel(title()));
        };
        if !(scale.is_normal() && scale > 0.0) {
            return Err(FloatReason::ScaleNotPositive(title(), scale));
        }
        let element = self
            .zero_point_type(node)
            .or_else(|| self.element(integers))
            .unwrap_or(DataType::Uint8);
        let zero_point = match node.input_at(2) {
            None => 0,
            Some(name) => match self.constant(name).map(TensorProto::to_i64) {
                Some(Ok(values)) if values.len() == 1 => values[0],
                Some(Ok(values)) => {
                    return Err(FloatReason::SeveralZeroPoints(title(), values.len()));
                }
                _ => return Err(FloatReason::ZeroPointNotConstant(title())),
            },
        };
        Ok((scale, element, zero_point))
    }

    fn zero_point_type(&self, node: &Node) -> Option<DataType> {
        self.element(node.input_at(2)?)
    }

    pub(crate) fn numbers(&self, node: &Node, slot: usize) -> Result<Vec<f32>, FloatReason> {
        let name = node.input_at(slot).unwrap_or_default();
        self.constant(name)
            .and_then(|tensor| tensor.to_f32().ok())
            .ok_or_else(|| FloatReason::ScaleNotConstant(node.title().to_owned()))
    }

    /// The DequantizeLinear that produces a real value.
    pub(crate) fn dequantizer(&self, real: &str) -> Option<&'a Node> {
        self.dequantized
            .get(real)
            .map(|&index| &self.graph.nodes()[index])
    }

    /// The integers behind a real value: eight bits, one scale.
    pub(crate) fn operand(&self, real: &str) -> Result<IrOperand, FloatReason> {
        let node = self
            .dequantizer(real)
            .ok_or_else(|| FloatReason::NotQuantized(real.to_owned()))?;
        let integers = node.input_at(0).unwrap_or_default();
        let quantization = self.quantization(node, integers)?;
        let Some(tensor) = self.constant(integers) else {
            if self.element(integers).is_none() {
                return Err(FloatReason::UnknownType(integers.to_owned()));
            }
            return Ok(IrOperand::Int8(integers.to_owned(), quantization));
        };
        Ok(IrOperand::Constant(self.quantized(
            integers,
            tensor,
            quantization,
        )?))
    }

    /// A byte constant with this quantization.
    pub(crate) fn quantized(
        &self,
        name: &str,
        tensor: &TensorProto,
        quantization: Int8Quantization,
    ) -> Result<Constant, FloatReason> {
        let flip = if quantization.signed { SIGN } else { 0 };
        let values = tensor.to_i64()?;
        Ok(Constant {
            name: name.to_owned(),
            shape: tensor.shape()?,
            integers: values.into_iter().map(|v| v as u8 ^ flip).collect(),
            quantization,
        })
    }

    /// A constant quantized to `to`, for operations that commute with rounding. Rounding is
    /// monotonic; a constant with NaN is rejected.
    pub(crate) fn rounded(&self, real: &str, to: Int8Quantization) -> Option<IrOperand> {
        let (shape, values) = self.reals(real)?;
        let sound = !values.iter().any(|value| value.is_nan());
        sound.then(|| {
            IrOperand::Constant(Constant {
                name: real.to_owned(),
                shape,
                integers: values.iter().map(|&value| to.integer(value)).collect(),
                quantization: to,
            })
        })
    }

    /// Reals of a constant: an initializer, or a dequantized one.
    pub(crate) fn reals(&self, real: &str) -> Option<(Vec<usize>, Vec<f32>)> {
        let tensor = match (self.constant(real), self.dequantizer(real)) {
            (Some(tensor), _) => tensor.clone(),
            (None, Some(node)) => crate::constants::dequantized(self.graph, node)?,
            _ => return None,
        };
        Some((tensor.shape().ok()?, tensor.to_f32().ok()?))
    }

    /// A scalar constant of floats or integers, such as the exponent of a Pow.
    pub(crate) fn number(&self, real: &str) -> Option<f32> {
        let reals = self.reals(real).map(|(_, values)| values);
        let whole = || {
            let integers = self.constant(real)?.to_i64().ok()?;
            Some(integers.iter().map(|&integer| integer as f32).collect())
        };
        match reals.or_else(whole)?[..] {
            [number] => Some(number),
            _ => None,
        }
    }

    /// A list of integers: an attribute in old opsets, an input in new ones.
    pub(crate) fn list(&self, node: &Node, key: &str, slot: usize) -> Option<Vec<i64>> {
        match node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.constant(node.input_at(slot)?)?.to_i64().ok(),
        }
    }

    /// A constant that broadcasts along the channel axis only: one number, or one per channel.
    pub(crate) fn per_channel(
        &self,
        name: &str,
        shape: &[usize],
        axis: impl Into<Option<usize>>,
    ) -> Option<Vec<f32>> {
        let axis = axis.into();
        let (sizes, values) = self.reals(name)?;
        let missing = shape.len().checked_sub(sizes.len())?;
        let mut along = vec![1; missing];
        along.extend(&sizes);
        let alone = along
            .iter()
            .enumerate()
            .all(|(at, &size)| size == 1 || Some(at) == axis);
        let channels = axis.and_then(|axis| shape.get(axis));
        let fits = alone && (values.len() == 1 || Some(&values.len()) == channels);
        let sound = values.iter().all(|value| value.is_finite());
        (fits && sound).then_some(values)
    }

    /// A bias in units of the operand's scale times the weight scale.
    pub(crate) fn product_bias(
        &self,
        real: &str,
        operand: &IrOperand,
        scales: &[f32],
        channels: usize,
        factor: f64,
    ) -> Result<Vec<i32>, FloatReason> {
        let scales: Vec<f32> = scales.iter().map(|s| s * operand.scale()).collect();
        self.bias(real, &scales, channels, factor)
    }

    /// Quantizes a bias to the accumulator: `scales[channel]` is the real value of one unit. The
    /// rounding error, half a unit, is far below one step of the output.
    pub(crate) fn bias(
        &self,
        real: &str,
        scales: &[f32],
        channels: usize,
        factor: f64,
    ) -> Result<Vec<i32>, FloatReason> {
        let (shape, values) = self
            .reals(real)
            .ok_or_else(|| FloatReason::BiasNotConstant(real.to_owned()))?;
        // An equal count of values could also belong to the row axis.
        if !(values.len() == 1 || is_row(&shape, channels)) {
            return Err(FloatReason::BiasShape(shape, channels));
        }
        // If the model's bias already has the accumulator's scale, this reproduces its integers.
        let at = |list: &[f32], channel: usize| f64::from(list[channel.min(list.len() - 1)]);
        (0..channels)
            .map(|channel| {
                let scale = at(scales, channel);
                let real = at(&values, channel) * factor;
                let steps = if real == 0.0 {
                    0.0
                } else {
                    (real / scale).round_ties_even()
                };
                let fits = steps.abs() <= f64::from(i32::MAX);
                fits.then_some(steps as i32)
                    .ok_or(FloatReason::BiasTooLarge)
            })
            .collect()
    }
}

/// True for the shape of a single row: all axes but the last have size 1.
pub(crate) fn is_row(shape: &[usize], values: usize) -> bool {
    matches!(shape, [before @ .., last] if *last == values && before.iter().all(|&size| size == 1))
}

fn known_shape(known: &TensorType) -> Option<Vec<usize>> {
    let size = |dim: &Dim| match dim {
        Dim::Known(size) => Some(*size),
        _ => None,
    };
    known.shape.as_ref()?.iter().map(size).collect()
}
