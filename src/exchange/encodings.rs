//! The scales of a quantized model, tensor by tensor, read from its file.

use std::collections::{BTreeMap, HashMap};

use crate::onnx::schema::{DataType, ModelProto, NodeProto, TensorProto};

/// Endings that Octet adds to the names of values that it quantizes.
const INPUT_ENDING: &str = "_QuantizeLinear_Input";
const INTEGERS_ENDING: &str = "_quantized";

/// The scales of one tensor. `real = scale * (integer - zero point)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoding {
    /// The name in the float model.
    pub tensor: String,
    /// True for a constant: a weight or a bias.
    pub is_constant: bool,
    /// Bits of an integer.
    pub bits: u32,
    /// True for a signed type.
    pub is_signed: bool,
    /// Consecutive elements that share a scale, in a block-wise form.
    pub block: Option<i64>,
    /// One scale, or one for each channel.
    pub scales: Vec<f32>,
    /// As many zero points.
    pub zero_points: Vec<i64>,
}

impl Encoding {
    /// The difference between an unsigned integer and this tensor's, in AIMET's sense: `real = scale *
    /// (unsigned + offset)`.
    pub(super) fn offsets(&self) -> Vec<i64> {
        let middle = if self.is_signed {
            1 << (self.bits - 1)
        } else {
            0
        };
        let offset = |zero_point: &i64| -(zero_point + middle);
        self.zero_points.iter().map(offset).collect()
    }

    /// True if zero is in the middle of the integers.
    pub(super) fn is_symmetric(&self) -> bool {
        let middle = -(1_i64 << (self.bits - 1));
        self.offsets().iter().all(|offset| *offset == middle)
    }

    /// The reals that the integers of each scale represent.
    pub(super) fn ends(&self) -> Vec<[f64; 2]> {
        let largest = (1_i64 << self.bits) - 1;
        let pairs = self.scales.iter().zip(self.offsets());
        let ends = |(scale, offset): (&f32, i64)| {
            [offset, offset + largest].map(|integer| f64::from(*scale) * integer as f64)
        };
        pairs.map(ends).collect()
    }
}

/// The scales of all QuantizeLinear and DequantizeLinear of the model's main graph, sorted by name.
/// Nodes without constant integer scales are left out.
pub fn encodings_of(model: &ModelProto) -> Vec<Encoding> {
    let Some(graph) = &model.graph else {
        return Vec::new();
    };
    let named = |tensor| {
        let tensor: &TensorProto = tensor;
        Some((tensor.name.as_deref()?, tensor))
    };
    let mut constants: HashMap<&str, &TensorProto> =
        graph.initializer.iter().filter_map(named).collect();
    for node in graph.node.iter().filter(|node| node.is("Constant")) {
        if let (Some(name), Some(tensor)) = (node.output.first(), node.tensor("value")) {
            constants.insert(name, tensor);
        }
    }
    let mut all = BTreeMap::new();
    for one in graph
        .node
        .iter()
        .filter_map(|node| encoding(node, &constants))
    {
        all.entry(one.tensor.clone()).or_insert(one);
    }
    all.into_values().collect()
}

fn encoding(node: &NodeProto, constants: &HashMap<&str, &TensorProto>) -> Option<Encoding> {
    let operator = node.op_type.as_deref().unwrap_or_default();
    let constant = |slot: usize| constants.get(node.input_at(slot)?).copied();
    let input = node.input_at(0)?;
    let integers = constant(0);
    let (tensor, is_constant) = match (operator, integers) {
        ("QuantizeLinear", None) => (input.strip_suffix(INPUT_ENDING), false),
        ("DequantizeLinear", Some(_)) => (input.strip_suffix(INTEGERS_ENDING), true),
        _ => return None,
    };
    let scales = constant(1)?.to_f32().ok()?;
    let zero_point = constant(2);
    let typed = match is_constant {
        true => integers,
        false => zero_point,
    };
    let element = match typed {
        Some(tensor) => tensor.element().ok()?,
        None => DataType::Uint8,
    };
    let is_signed = match element {
        DataType::Int4 | DataType::Int8 | DataType::Int16 | DataType::Int32 => true,
        DataType::Uint4 | DataType::Uint8 | DataType::Uint16 => false,
        _ => return None,
    };
    let zero_points = match zero_point {
        Some(tensor) => tensor.to_i64().ok()?,
        None => vec![0; scales.len()],
    };
    (zero_points.len() == scales.len()).then(|| Encoding {
        tensor: tensor.unwrap_or(input).to_string(),
        is_constant,
        bits: element.bits().unwrap_or(8) as u32,
        is_signed,
        block: node.int("block_size").filter(|size| *size > 0),
        scales,
        zero_points,
    })
}
