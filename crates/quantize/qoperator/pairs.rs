//! Finds QuantizeLinear and DequantizeLinear nodes, and relates float values to their integers.

use std::collections::HashMap;

use super::super::QuantizeError;
use octet_graph::{Graph, Node};
use octet_onnx::schema::DataType;

/// A float value and its integers, with the names of scale and zero point.
#[derive(Clone, Debug)]
pub(super) struct QuantizedValue {
    pub(super) real: String,
    pub(super) integers: String,
    pub(super) scale: String,
    pub(super) zero_point: String,
    pub(super) element: DataType,
    /// The channel axis where there are several scales.
    pub(super) axis: Option<i64>,
}

/// The QDQ pairs of a graph.
pub(super) struct QdqPairs<'a> {
    pub(super) graph: &'a Graph,
    /// The DequantizeLinear that makes each float value.
    dequantized: HashMap<&'a str, &'a Node>,
}

impl<'a> QdqPairs<'a> {
    pub(super) fn new(graph: &'a Graph) -> QdqPairs<'a> {
        let dequantized = graph.nodes().iter().filter(|n| n.is("DequantizeLinear"));
        QdqPairs {
            dequantized: dequantized
                .filter_map(|node| Some((node.output.first()?.as_str(), node)))
                .collect(),
            graph,
        }
    }

    /// The integers of a float value that a DequantizeLinear makes.
    pub(super) fn integers(&self, real: &str) -> Option<QuantizedValue> {
        let node = self.dequantized.get(real)?;
        self.linear(node, real, node.input_at(0)?)
    }

    /// The integers of a dequantized value, if they have 8 bits and one scale.
    pub(super) fn bytes(&self, real: &str) -> Option<QuantizedValue> {
        self.integers(real)
            .filter(|value| value.is_byte() && value.axis.is_none())
    }

    /// The operands of a QuantizeLinear; `None` for every other node.
    pub(super) fn quantize(&self, node: &Node) -> Option<QuantizedValue> {
        if !node.is("QuantizeLinear") {
            return None;
        }
        self.linear(node, node.input_at(0)?, node.output.first()?)
    }

    /// The 8-bit integers of one scale that a QuantizeLinear makes of a float value. Returns `None`
    /// if the value has other readers.
    pub(super) fn quantized(&self, real: &str) -> Option<QuantizedValue> {
        let reader = self.graph.only_consumer(real)?;
        let reader = Some(reader).filter(|reader| reader.is_input(0))?;
        let value = self.quantize(&self.graph.nodes()[reader.node])?;
        let fits = value.is_byte() && value.axis.is_none() && !self.graph.is_output(real);
        fits.then_some(value)
    }

    /// True if a value has no readers.
    pub(super) fn is_unread(&self, value: &str) -> bool {
        self.graph.is_unused(value)
    }

    fn linear(&self, node: &Node, real: &str, integers: &str) -> Option<QuantizedValue> {
        let (scale, zero_point) = (node.input_at(1)?, node.input_at(2)?);
        let scales = self.graph.initializers.get(scale)?;
        let element = self.graph.initializers.get(zero_point)?.element().ok()?;
        let blocks = node.int("block_size").unwrap_or(0) != 0;
        if blocks || scales.element().ok()? != DataType::Float {
            return None;
        }
        let one = scales.element_count().ok()? == 1 && scales.dims.len() <= 1;
        Some(QuantizedValue {
            real: real.to_owned(),
            integers: integers.to_owned(),
            scale: scale.to_owned(),
            zero_point: zero_point.to_owned(),
            element,
            axis: (!one).then(|| node.int("axis").unwrap_or(1)),
        })
    }

    /// True if equal integers represent equal reals in both.
    pub(super) fn is_same_grid(&self, a: &QuantizedValue, b: &QuantizedValue) -> bool {
        if a.element != b.element || a.axis != b.axis {
            return false;
        }
        let same_zero_point = a.zero_point == b.zero_point
            || self
                .zero_points(a)
                .is_some_and(|values| Some(values) == self.zero_points(b));
        let same_scale = a.scale == b.scale
            || self
                .scales(a)
                .is_some_and(|values| Some(values) == self.scales(b));
        same_zero_point && same_scale
    }

    /// The values of the scales.
    pub(super) fn scales(&self, linear: &QuantizedValue) -> Option<Vec<f32>> {
        self.graph
            .initializers
            .get(&linear.scale)?
            .to_f32()
            .ok()
            .filter(|scales| !scales.is_empty())
    }

    /// The values of the zero points.
    pub(super) fn zero_points(&self, linear: &QuantizedValue) -> Option<Vec<i64>> {
        self.graph
            .initializers
            .get(&linear.zero_point)?
            .to_i64()
            .ok()
            .filter(|zero_points| !zero_points.is_empty())
    }

    /// The shape of an integer constant; `None` for a value computed at run time.
    pub(super) fn constant_shape(&self, linear: &QuantizedValue) -> Option<&'a [i64]> {
        self.graph
            .initializers
            .get(&linear.integers)
            .map(|tensor| tensor.dims.as_slice())
    }

    /// The value of a one-element constant, float or dequantized.
    pub(super) fn real_constant(&self, real: &str) -> Option<f32> {
        let one = |values: Vec<f32>| match values[..] {
            [value] => Some(value),
            _ => None,
        };
        if let Some(tensor) = self.graph.initializers.get(real) {
            return one(tensor.to_f32().ok()?);
        }
        let linear = self.integers(real)?;
        let &[integer] = self.constant_integers(&linear).ok()?.as_slice() else {
            return None;
        };
        let scale = one(self.scales(&linear)?)?;
        let zero_point = *self.zero_points(&linear)?.first()?;
        Some((integer - zero_point) as f32 * scale)
    }

    /// The values of an integer constant.
    pub(super) fn constant_integers(
        &self,
        linear: &QuantizedValue,
    ) -> Result<Vec<i64>, QuantizeError> {
        match self.graph.initializers.get(&linear.integers) {
            Some(tensor) => Ok(tensor.to_i64()?),
            None => Ok(Vec::new()),
        }
    }
}

impl QuantizedValue {
    pub(super) fn is_byte(&self) -> bool {
        matches!(self.element, DataType::Int8 | DataType::Uint8)
    }

    /// Integers, scale and zero point, in the order of most integer operators' inputs.
    pub(super) fn inputs(&self) -> [String; 3] {
        [&self.integers, &self.scale, &self.zero_point].map(String::clone)
    }

    /// Scale and zero point, in the order in which most integer operators take those of their
    /// output.
    pub(super) fn parameters(&self) -> [String; 2] {
        [&self.scale, &self.zero_point].map(String::clone)
    }
}
