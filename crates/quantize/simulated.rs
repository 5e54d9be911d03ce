//! The simulated form: float weights, with QuantizeLinear/DequantizeLinear pairs that round them at
//! run time.
//!
//! The stored floats are those of the float model where they round to exactly the integers of the
//! quantized model. Otherwise, as for an optimized weight, they are the dequantized integers.
//! QuantizeLinear makes no int32, so a bias is stored as its dequantized reals, without a pair. The
//! results equal those of the model with integer weights, bit for bit.

use std::collections::HashSet;

use super::QuantizeError;
use super::scale::{integer_bounds, quantize_value};
use octet_graph::prepare::position;
use octet_graph::{Model, Names, Node};
use octet_onnx::schema::{DataType, TensorProto};

/// Replaces the integer constants of a quantized model by floats; `float` is its float model.
pub fn with_float_weights(quantized: &Model, float: &Model) -> Result<Model, QuantizeError> {
    let mut out = quantized.clone();
    let mut names = out.graph.names();
    let mut nodes = Vec::with_capacity(out.graph.nodes().len());
    let mut restored: HashSet<String> = HashSet::new();
    for node in out.graph.take_nodes() {
        let readable = QuantizedConstant::dequantized_by(&node, quantized)?
            .filter(|readable| readable.has_float_form(&node));
        let Some(constant) = readable else {
            nodes.push(node);
            continue;
        };
        if constant.element == DataType::Int32 {
            let name = &node.output[0];
            let reals = TensorProto::from_f32(name, &constant.shape, &constant.reals());
            out.graph.initializers.insert(reals);
            continue;
        }
        if restored.insert(constant.name.clone()) {
            let title = tensor_title(&node);
            let values = constant.original(title, float)?;
            let values = values.unwrap_or_else(|| constant.reals());
            let tensor = TensorProto::from_f32(title, &constant.shape, &values);
            let source = insert_constant(&mut out, &mut names, tensor);
            nodes.push(quantize_linear(&mut names, &node, &source));
        }
        nodes.push(node);
    }
    out.graph.replace_nodes(nodes);
    out.graph.retain_initializers(|graph, name| {
        let read = !graph.is_unused(name);
        !restored.contains(name) && (read || quantized.graph.consumers(name).is_empty())
    });
    Ok(out)
}

/// Dequantizes the constant that a DequantizeLinear reads. Returns `None` if it reads no constant,
/// or one of an unsupported form.
pub fn dequantized(node: &Node, model: &Model) -> Option<TensorProto> {
    let constant = QuantizedConstant::dequantized_by(node, model).ok()??;
    Some(TensorProto::from_f32(
        &node.output[0],
        &constant.shape,
        &constant.reals(),
    ))
}

/// A constant that a DequantizeLinear reads.
struct QuantizedConstant {
    name: String,
    element: DataType,
    shape: Vec<usize>,
    integers: Vec<i64>,
    scales: Vec<f32>,
    zero_points: Vec<i64>,
    axis: Option<usize>,
}

impl QuantizedConstant {
    /// The constant that this node dequantizes; `None` for other nodes and unsupported types.
    fn dequantized_by(
        node: &Node,
        model: &Model,
    ) -> Result<Option<QuantizedConstant>, QuantizeError> {
        if node.op_type != "DequantizeLinear" || node.output.len() != 1 {
            return Ok(None);
        }
        let blocks = node.int("block_size").unwrap_or(0) != 0;
        let constant = |slot| model.graph.initializers.get(node.input_at(slot)?);
        let (Some(tensor), Some(scale), Some(zero_point)) = (constant(0), constant(1), constant(2))
        else {
            return Ok(None);
        };
        let element = tensor.element()?;
        let known = matches!(
            element,
            DataType::Int8
                | DataType::Uint8
                | DataType::Int16
                | DataType::Uint16
                | DataType::Int4
                | DataType::Uint4
                | DataType::Int32
        );
        let float = scale.element()? == DataType::Float;
        if blocks || !known || !float {
            return Ok(None);
        }
        let parsed = QuantizedConstant {
            name: tensor.title().to_owned(),
            element,
            shape: tensor.shape()?,
            integers: tensor.to_i64()?,
            scales: scale.to_f32()?,
            zero_points: zero_point.to_i64()?,
            axis: None,
        };
        Ok(match (parsed.scales.len(), parsed.zero_points.len()) {
            (1, 1) => Some(parsed),
            (scales, zero_points) if scales == zero_points => {
                let axis = position(node.int("axis").unwrap_or(1), parsed.shape.len());
                let fits = axis.and_then(|axis| parsed.shape.get(axis)) == Some(&scales);
                fits.then_some(QuantizedConstant { axis, ..parsed })
            }
            _ => None,
        })
    }

    /// True if ONNX's QuantizeLinear can make these integers, or they are an int32 bias.
    fn has_float_form(&self, node: &Node) -> bool {
        let known = matches!(
            self.element,
            DataType::Int8 | DataType::Uint8 | DataType::Int32
        );
        known && node.is("DequantizeLinear")
    }

    /// Scale and zero point of the element at a flat index.
    fn parameters(&self, place: usize) -> (f32, i64) {
        let channel = self.axis.map_or(0, |axis| {
            let inner: usize = self.shape[axis + 1..].iter().product();
            place / inner % self.shape[axis]
        });
        (self.scales[channel], self.zero_points[channel])
    }

    /// The dequantized values, computed as DequantizeLinear computes them.
    fn reals(&self) -> Vec<f32> {
        let real = |(place, &integer): (usize, &i64)| {
            let (scale, zero_point) = self.parameters(place);
            (integer - zero_point) as f32 * scale
        };
        self.integers.iter().enumerate().map(real).collect()
    }

    /// The values in the float model, if they round to exactly these integers.
    fn original(&self, title: &str, float: &Model) -> Result<Option<Vec<f32>>, QuantizeError> {
        let Some(tensor) = float.graph.initializers.get(title) else {
            return Ok(None);
        };
        if tensor.element()? != DataType::Float || tensor.shape()? != self.shape {
            return Ok(None);
        }
        let values = tensor.to_f32()?;
        let whole = integer_bounds(self.element, false, false);
        let rounds = |(place, (&value, &integer)): (usize, (&f32, &i64))| {
            let (scale, zero_point) = self.parameters(place);
            let rounded = quantize_value(value, scale, zero_point as i32, whole);
            // Runtimes round infinities and NaN differently.
            value.is_finite() && i64::from(rounded) == integer
        };
        let mut pairs = values.iter().zip(&self.integers).enumerate();
        Ok(pairs.all(rounds).then_some(values))
    }
}

/// The float model's name of the tensor of a pair. The writer names pairs after their tensor, with a
/// number where the name was taken.
pub fn tensor_title(node: &Node) -> &str {
    let name = node.title();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once(&format!("_{}", node.op_type.as_str())) {
        Some((tensor, "")) => tensor,
        Some((tensor, end)) if end.strip_prefix('_').is_some_and(is_number) => tensor,
        _ => name,
    }
}

/// Adds a float constant; its name changes only if another constant has it.
fn insert_constant(model: &mut Model, names: &mut Names, mut tensor: TensorProto) -> String {
    let name = tensor.title().to_owned();
    let there = model.graph.initializers.get(&name);
    let same = there.is_some_and(|there| {
        there.dims == tensor.dims && there.to_f32().ok() == tensor.to_f32().ok()
    });
    if same {
        return name;
    }
    let name = names.fresh(&name);
    tensor.name = Some(name.clone());
    model.graph.initializers.insert(tensor);
    name
}

/// Makes the QuantizeLinear whose output a DequantizeLinear reads.
fn quantize_linear(names: &mut Names, node: &Node, source: &str) -> Node {
    let mut new = node.clone();
    new.op_type = "QuantizeLinear".to_owned();
    new.name = Some(names.fresh(&format!("{}_QuantizeLinear", tensor_title(node))));
    new.output = vec![node.input[0].clone()];
    new.input[0] = source.to_owned();
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use octet_onnx::schema::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

    fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Model {
        let value = |name: &str| ValueInfoProto {
            name: Some(name.into()),
            ..Default::default()
        };
        let graph = GraphProto {
            node: nodes,
            initializer: constants,
            input: vec![value("x")],
            output: vec![value("y")],
            ..Default::default()
        };
        let header = ModelProto {
            graph: Some(graph),
            ..Default::default()
        };
        Model::from_proto(header).unwrap()
    }

    /// A MatMul with a weight of these integers, with a scale for each of its two columns.
    fn quantized(integers: [i8; 2], more: Vec<TensorProto>) -> Model {
        let inputs = ["w_quantized", "w_scale", "w_zero_point"];
        let dequantize =
            NodeProto::new("DequantizeLinear", "w_DequantizeLinear", &inputs, &["w_d"]);
        let mut constants = vec![
            TensorProto::from_i8("w_quantized", &[1, 2], &integers),
            TensorProto::from_f32("w_scale", &[2], &[0.5, 0.1]),
            TensorProto::from_i8("w_zero_point", &[2], &[0, 0]),
        ];
        constants.extend(more);
        let product = NodeProto::new("MatMul", "m", &["x", "w_d"], &["y"]);
        model(vec![dequantize, product], constants)
    }

    fn float() -> Model {
        let weight = TensorProto::from_f32("w", &[1, 2], &[1.1, -0.33]);
        model(
            vec![NodeProto::new("MatMul", "m", &["x", "w"], &["y"])],
            vec![weight],
        )
    }

    fn weight(restored: &Model) -> (String, Vec<f32>) {
        let node = restored
            .graph
            .nodes()
            .iter()
            .find(|n| n.is("QuantizeLinear"))
            .unwrap();
        assert_eq!(node.output, ["w_quantized"]);
        assert_eq!(node.input[1..], ["w_scale", "w_zero_point"]);
        let name = node.input[0].clone();
        let values = restored
            .graph
            .initializers
            .get(&name)
            .unwrap()
            .to_f32()
            .unwrap();
        (name, values)
    }

    #[test]
    fn float_weights_that_round_to_the_integers_are_kept() {
        let restored = with_float_weights(&quantized([2, -3], vec![]), &float()).unwrap();
        assert_eq!(weight(&restored), ("w".into(), vec![1.1, -0.33]));
        assert!(!restored.graph.initializers.contains("w_quantized"));
    }

    #[test]
    fn other_integers_are_dequantized() {
        let restored = with_float_weights(&quantized([3, -3], vec![]), &float()).unwrap();
        assert_eq!(weight(&restored), ("w".into(), vec![1.5, -3.0 * 0.1f32]));
    }

    #[test]
    fn an_existing_float_constant_is_used_or_left_alone() {
        let same = TensorProto::from_f32("w", &[1, 2], &[1.1, -0.33]);
        let restored = with_float_weights(&quantized([2, -3], vec![same]), &float()).unwrap();
        assert_eq!(weight(&restored).0, "w");
        let other = TensorProto::from_f32("w", &[1, 2], &[7.0, 8.0]);
        let restored = with_float_weights(&quantized([2, -3], vec![other]), &float()).unwrap();
        // An unread constant stays, here under the name that the weight had.
        assert_eq!(weight(&restored), ("w_1".into(), vec![1.1, -0.33]));
        let left = restored.graph.initializers.get("w").unwrap();
        assert_eq!(left.to_f32().unwrap(), [7.0, 8.0]);
    }

    #[test]
    fn a_bias_is_dequantized() {
        let inputs = ["b_quantized", "b_scale", "b_zero_point"];
        let dequantize = NodeProto::new("DequantizeLinear", "b_DequantizeLinear", &inputs, &["b"]);
        let add = NodeProto::new("Add", "a", &["x", "b"], &["y"]);
        let constants = vec![
            TensorProto::from_i32("b_quantized", &[2], &[123_456_789, -3]),
            TensorProto::from_f32("b_scale", &[1], &[0.1]),
            TensorProto::from_i32("b_zero_point", &[], &[0]),
        ];
        let quantized = model(vec![dequantize, add], constants);
        let restored = with_float_weights(&quantized, &float()).unwrap();
        assert_eq!(restored.graph.nodes().len(), 1);
        let bias = restored
            .graph
            .initializers
            .get("b")
            .unwrap()
            .to_f32()
            .unwrap();
        assert_eq!(bias, [123_456_789i64 as f32 * 0.1, -3.0 * 0.1]);
        assert_eq!(restored.graph.initializers.len(), 1);
    }
}
