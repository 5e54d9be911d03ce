//! The layers of a quantized model whose constants can be learned.

use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_quantize::{WeightRows, clamp_bounds};
use octet_training::QuantizationGrid;

use crate::TuneError;
use crate::activation::LayerFunction;
use crate::segments::resting;
use crate::solution::Solution;

/// The names of a constant's integers and scale in the quantized model.
pub(crate) struct ConstantNames {
    pub(crate) integers: String,
    pub(crate) scale: String,
}

/// A layer of both models.
pub(crate) struct TunedLayer {
    pub(crate) title: String,
    pub(crate) operator: String,
    /// The node in the quantized and in the float model.
    pub(crate) node: usize,
    pub(crate) float_node: usize,
    pub(crate) rows: WeightRows,
    pub(crate) shape: Vec<usize>,
    pub(crate) element: DataType,
    pub(crate) weight: ConstantNames,
    /// True if each output has a scale.
    pub(crate) per_output: bool,
    pub(crate) bias: Option<ConstantNames>,
    /// The scale of the layer's input, and its name.
    pub(crate) input_scale: f32,
    pub(crate) input_scale_name: String,
    /// The input in the float model, and its integers in the quantized one.
    pub(crate) float_input: String,
    pub(crate) input: String,
    pub(crate) input_zero_point: i32,
    /// Bytes of an integer of the input.
    pub(crate) input_bytes: usize,
    /// The function behind the layer, which its loss includes.
    pub(crate) activation: LayerFunction,
    /// The grid of the output, if it is quantized.
    pub(crate) output: Option<QuantizationGrid>,
    /// Zero points of the weights, by output if there are several.
    pub(crate) zero_points: Vec<i32>,
    /// The lowest and highest integer that the weights use.
    pub(crate) ends: [i32; 2],
}

fn constant<'a>(graph: &'a Graph, node: &Node, slot: usize) -> Option<&'a TensorProto> {
    graph.initializers.get(node.input_at(slot)?)
}

fn whole(tensor: Option<&TensorProto>, count: usize) -> Option<Vec<i32>> {
    match tensor {
        Some(tensor) => Some(
            tensor
                .to_i64()
                .ok()?
                .into_iter()
                .map(|value| value as i32)
                .collect(),
        ),
        None => Some(vec![0; count]),
    }
}

/// The DequantizeLinear of a constant that only this node reads, and the names of the constant.
fn dequantized_constant<'a>(
    graph: &'a Graph,
    node: &Node,
    slot: usize,
) -> Option<(&'a Node, ConstantNames)> {
    let value = node.input_at(slot)?;
    graph.only_consumer(value)?;
    let linear = &graph.nodes()[graph.producer(value)?];
    let by_value =
        linear.op_type == "DequantizeLinear" && linear.int("block_size").unwrap_or(0) == 0;
    let (integers, scale) = (linear.input_at(0)?, linear.input_at(1)?);
    graph.only_consumer(integers)?;
    let constants = graph.initializers.contains(integers) && graph.initializers.contains(scale);
    (by_value && constants).then(|| {
        let (integers, scale) = (integers.to_string(), scale.to_string());
        (linear, ConstantNames { integers, scale })
    })
}

/// The layers in the order of the quantized model.
pub(crate) fn layers(float: &Model, quantized: &Model, operators: &[String]) -> Vec<TunedLayer> {
    let nodes = quantized.graph.nodes().iter().enumerate();
    let wanted = nodes.filter(|(_, node)| operators.iter().any(|name| node.is(name)));
    wanted
        .filter_map(|(index, node)| layer(&float.graph, &quantized.graph, index, node))
        .collect()
}

fn layer(float: &Graph, quantized: &Graph, index: usize, node: &Node) -> Option<TunedLayer> {
    let plain = |node: &Node| {
        ["alpha", "beta"]
            .iter()
            .all(|name| node.float(name).is_none_or(|value| value == 1.0))
    };
    let same = |other: &&Node| other.title() == node.title() && other.op_type == node.op_type;
    let float_node = float.nodes().iter().position(|other| same(&other))?;
    let original = &float.nodes()[float_node];
    if !(plain(node) && plain(original)) {
        return None;
    }
    let (linear, weight) = dequantized_constant(quantized, node, 1)?;
    let integers = quantized.initializers.get(&weight.integers)?;
    let (shape, element) = (integers.shape().ok()?, integers.element().ok()?);
    let rows = WeightRows::from_node(node, &shape)?;
    if constant(float, original, 1)?.shape().ok()? != shape {
        return None;
    }
    let scales = quantized.initializers.get(&weight.scale)?.to_f32().ok()?;
    let per_output = scales.len() > 1;
    let axis = linear.int("axis").unwrap_or(1);
    let axis = if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    };
    if per_output && (scales.len() != rows.outputs() || axis != rows.axis() as i64) {
        return None;
    }
    let zero_points = whole(constant(quantized, linear, 2), scales.len())?;
    let used = integers.to_i64().ok()?;
    let (bias, bias_float) = match (node.input_at(2), original.input_at(2)) {
        (None, None) => (None, None),
        (Some(_), Some(_)) => {
            let (_, names) = dequantized_constant(quantized, node, 2)?;
            (Some(names), Some(constant(float, original, 2)?))
        }
        _ => return None,
    };
    if bias_float.is_some_and(|bias| bias.element_count().ok() != Some(rows.outputs())) {
        return None;
    }
    let value = node.input_at(0)?;
    let input_linear = &quantized.nodes()[quantized.producer(value)?];
    if input_linear.op_type != "DequantizeLinear" {
        return None;
    }
    let input_scale = constant(quantized, input_linear, 1)?.to_f32().ok()?;
    let zero_point = constant(quantized, input_linear, 2);
    let input_bytes = match zero_point.and_then(|tensor| tensor.element().ok()) {
        Some(DataType::Uint16 | DataType::Int16) => 2,
        _ => 1,
    };
    let input_zero_point = whole(zero_point, 1)?;
    let (&[input_scale], &[input_zero_point]) =
        (input_scale.as_slice(), input_zero_point.as_slice())
    else {
        return None;
    };
    Some(TunedLayer {
        title: node.title().to_string(),
        operator: node.operator(),
        node: index,
        float_node,
        ends: used_ends(element, &zero_points, &used)?,
        rows,
        shape,
        element,
        weight,
        per_output,
        bias,
        input_scale,
        input_scale_name: input_linear.input_at(1)?.to_string(),
        float_input: original.input_at(0)?.to_string(),
        input: resting(quantized, value).to_string(),
        input_zero_point,
        input_bytes,
        activation: activation(float, original),
        output: output_grid(quantized, node),
        zero_points,
    })
}

/// The integers that a weight may use. Half of them if all of its integers lie there, because the
/// settings may ask for that.
fn used_ends(element: DataType, zero_points: &[i32], integers: &[i64]) -> Option<[i32; 2]> {
    let symmetric = zero_points.iter().all(|&zero_point| zero_point == 0);
    let [low, high] = match element {
        DataType::Int8 if symmetric => [-127, 127],
        DataType::Int8 => [-128, 127],
        DataType::Uint8 => [0, 255],
        DataType::Int4 => [-8, 7],
        DataType::Uint4 => [0, 15],
        DataType::Int16 if symmetric => [-32767, 32767],
        DataType::Int16 => [-32768, 32767],
        DataType::Uint16 => [0, 65535],
        _ => return None,
    };
    let (least, most) = (integers.iter().min()?, integers.iter().max()?);
    let half = [low / 2, (high + 1) / 2];
    let inside = *least >= i64::from(half[0]) && *most <= i64::from(half[1]);
    Some(if inside { half } else { [low, high] })
}

/// The function that alone reads a float layer's output.
fn activation(float: &Graph, node: &Node) -> LayerFunction {
    let reader = node.output.first().filter(|value| !float.is_output(value));
    let reader = reader
        .and_then(|value| float.only_consumer(value))
        .filter(|reader| reader.is_input(0));
    let Some(reader) = reader.map(|reader| &float.nodes()[reader.node]) else {
        return LayerFunction::Identity;
    };
    match clamp_bounds(float, reader) {
        Some((low, high)) => LayerFunction::Clamp(low, high),
        None if reader.is("Sigmoid") => LayerFunction::Sigmoid,
        None if reader.is("Tanh") => LayerFunction::Tanh,
        None if reader.is("LeakyRelu") => {
            LayerFunction::Leaky(reader.float("alpha").unwrap_or(0.01))
        }
        None => LayerFunction::Identity,
    }
}

/// The lowest and highest integer of the type of an activation.
pub(crate) fn integer_ends(element: DataType) -> Option<[i32; 2]> {
    Some(match element {
        DataType::Uint8 => [0, 255],
        DataType::Int8 => [-128, 127],
        DataType::Uint16 => [0, 65535],
        DataType::Int16 => [-32768, 32767],
        _ => return None,
    })
}

/// The grid of the QuantizeLinear that reads a layer's output.
fn output_grid(quantized: &Graph, node: &Node) -> Option<QuantizationGrid> {
    let reader = quantized.only_consumer(node.output.first()?)?;
    let linear = &quantized.nodes()[reader.node];
    if linear.op_type != "QuantizeLinear" {
        return None;
    }
    let scale = constant(quantized, linear, 1)?.to_f32().ok()?;
    let zero_point = constant(quantized, linear, 2)?;
    let [low, high] = integer_ends(zero_point.element().ok()?)?;
    let zero_point = *whole(Some(zero_point), 1)?.first()?;
    QuantizationGrid::new(*scale.first()?, low - zero_point, high - zero_point)
}

impl TunedLayer {
    /// The float weights, a row for each output, and the biases.
    pub(crate) fn floats(&self, float: &Graph) -> Result<(Vec<f32>, Option<Vec<f32>>), TuneError> {
        let node = &float.nodes()[self.float_node];
        let values = |slot| {
            constant(float, node, slot)
                .map(TensorProto::to_f32)
                .transpose()
        };
        let weights = values(1)?.ok_or(TuneError::Broken("a layer's weights"))?;
        Ok((self.by_output(&weights), values(2)?))
    }

    /// The lowest and highest integer of each output, less its zero point.
    pub(crate) fn ranges(&self) -> Vec<[i32; 2]> {
        let zero_points = spread(self.zero_points.clone(), self.rows.outputs());
        let range = |zero_point: &i32| self.ends.map(|end| end - zero_point);
        zero_points.iter().map(range).collect()
    }

    /// The constants in the quantized model.
    pub(crate) fn solution(&self, quantized: &Graph) -> Result<Solution, TuneError> {
        let tensor = |name: &str| {
            let found = quantized.initializers.get(name);
            found.ok_or(TuneError::Broken("a quantized constant"))
        };
        let integers = tensor(&self.weight.integers)?.to_i64()?;
        let integers: Vec<i32> = integers.into_iter().map(|integer| integer as i32).collect();
        let outputs = self.rows.outputs();
        let scales = spread(tensor(&self.weight.scale)?.to_f32()?, outputs);
        let bias = match &self.bias {
            None => None,
            Some(names) => {
                let scales = spread(tensor(&names.scale)?.to_f32()?, outputs);
                let integers = tensor(&names.integers)?.to_i64()?;
                let real =
                    |(integer, scale): (i64, f32)| (integer as f64 * f64::from(scale)) as f32;
                Some(integers.into_iter().zip(scales).map(real).collect())
            }
        };
        let zero_points = spread(self.zero_points.clone(), outputs);
        let integers = self.by_output(&integers);
        let relative = integers.chunks(self.rows.inputs().max(1)).zip(&zero_points);
        Ok(Solution {
            integers: relative
                .flat_map(|(row, zero_point)| row.iter().map(move |integer| integer - zero_point))
                .collect(),
            scales,
            bias,
        })
    }

    /// The constants that the quantized model has with a solution and this scale of the input.
    pub(crate) fn constants(&self, solution: &Solution, input_scale: f32) -> Vec<TensorProto> {
        let (outputs, inputs) = (self.rows.outputs(), self.rows.inputs());
        let mut integers = vec![0; solution.integers.len()];
        let zero_points = spread(self.zero_points.clone(), outputs);
        for (place, &integer) in solution.integers.iter().enumerate() {
            let (output, input) = (place / inputs, place % inputs);
            integers[self.rows.place(output, input)] = integer + zero_points[output];
        }
        let raw = octet_quantize::encoded(self.element, integers);
        let mut constants = vec![TensorProto::from_raw(
            &self.weight.integers,
            self.element,
            &self.shape,
            raw.into(),
        )];
        if self.per_output {
            constants.push(TensorProto::from_f32(
                &self.weight.scale,
                &[outputs],
                &solution.scales,
            ));
        }
        if let (Some(names), Some(bias)) = (&self.bias, &solution.bias) {
            let count = if self.per_output { outputs } else { 1 };
            let scales: Vec<f32> = solution.scales[..count]
                .iter()
                .map(|scale| scale * input_scale)
                .collect();
            let real = |(output, &bias): (usize, &f32)| {
                let scale = f64::from(scales[if self.per_output { output } else { 0 }]);
                (f64::from(bias) / scale).round_ties_even() as i32
            };
            let integers: Vec<i32> = bias.iter().enumerate().map(real).collect();
            constants.push(TensorProto::from_i32(
                &names.integers,
                &[outputs],
                &integers,
            ));
            if self.per_output {
                constants.push(TensorProto::from_f32(&names.scale, &[outputs], &scales));
            }
        }
        constants
    }

    /// Values of a weight, a row for each output.
    fn by_output<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let places = (0..self.rows.outputs())
            .flat_map(|output| (0..self.rows.inputs()).map(move |input| (output, input)));
        places
            .map(|(output, input)| values[self.rows.place(output, input)])
            .collect()
    }
}

/// A value for each output, from one or from as many.
fn spread<T: Copy>(values: Vec<T>, outputs: usize) -> Vec<T> {
    match values.as_slice() {
        &[one] => vec![one; outputs],
        _ => values,
    }
}
