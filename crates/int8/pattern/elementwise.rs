//! Functions of one integer as lookup tables, and arithmetic of two values.
//!
//! A table holds the results of the float nodes between a DequantizeLinear and a QuantizeLinear,
//! for all 256 or 65,536 integers. A [`FloatEvaluator`](crate::FloatEvaluator) computes it. Any elementwise operator can therefore be
//! part of it, and a chain costs as much as one operator.

use std::collections::HashSet;

use super::destination::Destination;
use super::ir::{Binary, Operand, Operation};
use super::reader::{Reader, Reason};
use super::table_merging::{self, TableValues};
use super::weighted_products::{Matched, slot};
use octet_kernels::int8::Arithmetic;

use crate::quantization::Int8Quantization;
use octet_graph::{Dim, Model, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};

/// Chains of more nodes stay float.
const LONGEST: usize = 32;

/// Operators that read one element of each input at a time.
pub(super) fn is_elementwise(node: &NodeProto) -> bool {
    const NAMES: [&str; 45] = [
        "Abs",
        "Acos",
        "Acosh",
        "Add",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Celu",
        "Clip",
        "Cos",
        "Cosh",
        "Div",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Log",
        "Max",
        "Min",
        "Mish",
        "Mul",
        "Neg",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Sub",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ];
    matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"))
        && NAMES.contains(&node.op_type.as_deref().unwrap_or_default())
}

/// The nodes of a function of one integer that ends in `real`, in reverse order, and the operand.
pub(super) fn chain(real: &str, reader: &Reader) -> Result<(Vec<usize>, Operand), Reason> {
    let mut nodes = Vec::new();
    let mut seen = HashSet::new();
    let mut root: Option<(Operand, Vec<usize>)> = None;
    let mut open = vec![real.to_owned()];
    while let Some(value) = open.pop() {
        if !seen.insert(value.clone()) || reader.number(&value).is_some() {
            continue;
        }
        if reader.dequantizer(&value).is_some() {
            let operand = reader.operand_or_int16(&value)?;
            let shape = reader.shape(&value)?;
            match &root {
                None => root = Some((operand, shape)),
                Some((known, _)) if same(known, &operand) => {}
                Some(_) => return Err("it depends on two different quantized values".into()),
            }
            continue;
        }
        let index = reader
            .uses
            .producer(&value)
            .ok_or_else(|| format!("its input {value} is not quantized"))?;
        let node = &reader.graph.nodes[index];
        if !is_elementwise(node) {
            let what = node.operator();
            return Err(format!(
                "its input is float, from {} ({what})",
                node.title()
            ));
        }
        let inside = value == real
            || !reader.is_observed(&value)
                && reader
                    .uses
                    .consumers(&value)
                    .iter()
                    .all(|(i, _)| nodes.contains(i));
        if !inside {
            return Err(format!("{value} is also read as float by another node"));
        }
        if nodes.len() == LONGEST {
            return Err(format!("the chain has more than {LONGEST} float operators"));
        }
        nodes.push(index);
        open.splice(
            0..0,
            node.input.iter().filter(|name| !name.is_empty()).cloned(),
        );
    }
    let (operand, shape) = root.ok_or("it depends on constants only")?;
    if operand.value().is_none() || reader.shape(real)? != shape {
        return Err("it is not a function of one quantized value of its own shape".into());
    }
    Ok((nodes, operand))
}

fn same(a: &Operand, b: &Operand) -> bool {
    a.value().is_some() && a.value() == b.value() && a.quantization() == b.quantization()
}

/// The lookup table of a chain of nodes, in the form that its destination needs.
pub(super) fn table(
    real: &str,
    nodes: &[usize],
    operand: &Operand,
    end: &Destination,
    reader: &Reader,
) -> Result<Operation, Reason> {
    let operand_reals: Vec<f32> = match operand {
        Operand::Int16(_, int16) => (0..=u16::MAX).map(|q| int16.grid.real(q)).collect(),
        _ => {
            let from = operand.quantization().ok_or("its input is float")?;
            (0..=u8::MAX).map(|q| from.real(q)).collect()
        }
    };
    let reals = reals(real, nodes, operand_reals, reader)?.into_iter();
    let answers = match end {
        Destination::Int8 {
            quantization,
            bounds,
            ..
        } => TableValues::bytes(reals, *quantization, *bounds),
        Destination::Int16 { int16, .. } => TableValues::reals(reals, *int16),
        Destination::Floats(reason) => return Err(reason.clone()),
    };
    table_merging::operation(operand, &answers).ok_or_else(|| "its table has the wrong size".into())
}

/// Evaluates a chain of nodes on reals.
fn reals(
    real: &str,
    nodes: &[usize],
    operand_reals: Vec<f32>,
    reader: &Reader,
) -> Result<Vec<f32>, Reason> {
    let count = operand_reals.len();
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    let chain: Vec<NodeProto> = sorted
        .iter()
        .map(|&i| reader.graph.nodes[i].clone())
        .collect();
    let result: HashSet<&String> = chain.iter().flat_map(|node| &node.output).collect();
    let read: Vec<&String> = chain.iter().flat_map(|node| &node.input).collect();
    let mut constants: Vec<TensorProto> = Vec::new();
    let mut inputs: Vec<ValueInfoProto> = Vec::new();
    let one = |name: &str| {
        let of = TensorType {
            element: DataType::Float,
            shape: Some(vec![Dim::Known(count)]),
        };
        ValueInfoProto::new(name, &of)
    };
    let mut known = HashSet::new();
    for &name in read.iter().filter(|name| !name.is_empty()) {
        if result.contains(name) || !known.insert(name) {
            continue;
        }
        match reader.number(name) {
            // A constant may have any rank; here all values have rank 0.
            Some(number) => constants.push(TensorProto::from_f32(name, &[], &[number])),
            None => inputs.push(one(name)),
        }
    }
    let fed = inputs.len();
    let graph = GraphProto {
        name: Some("table".into()),
        node: chain,
        initializer: constants,
        input: inputs,
        output: vec![one(real)],
        ..GraphProto::default()
    };
    let model = Model::from_proto(ModelProto::from_graph(graph, reader.opset))
        .map_err(|error| error.to_string())?;
    let sample = Tensor::new(vec![count], Values::F32(operand_reals))
        .ok_or("its table has the wrong size")?;
    let outputs = reader.floats.evaluate(model, vec![sample; fed])?;
    let values = outputs.first().and_then(Tensor::as_f32);
    let values = values.filter(|values| values.len() == count);
    values
        .map(<[f32]>::to_vec)
        .ok_or_else(|| "its result is not float32".into())
}

/// Arithmetic of two quantized values, or of one and a constant. A side may also be the float
/// output of a product, as `floats` tells.
///
/// The arithmetic uses reals if a side has 16 bits or is float, if the output is not eight-bit
/// (`to` is `None`), and for quotients.
pub(super) fn binary(
    node: &NodeProto,
    to: Option<Int8Quantization>,
    floats: impl Fn(&str) -> bool,
    reader: &Reader,
) -> Matched {
    let operator = match node.op_type.as_deref() {
        Some("Add") => Some(Binary::Add),
        Some("Sub") => Some(Binary::Subtract),
        Some("Mul") => Some(Binary::Multiply),
        Some("Div") => None,
        Some("Max") => Some(Binary::Greatest),
        Some("Min") => Some(Binary::Least),
        _ => return Err("it has no integer implementation for two values".into()),
    };
    let extreme = matches!(operator, Some(Binary::Greatest | Binary::Least));
    if node.input.len() != 2 && !(extreme && node.input.len() > 2) {
        return Err(format!("it has {} inputs", node.input.len()));
    }
    let mut operands = Vec::new();
    let output = reader.shape(super::weighted_products::slot_out(node)?)?;
    for name in &node.input {
        let shape = reader.shape(name)?;
        check_broadcast(name, &shape, &output)?;
        // Maximum and rounding commute.
        let rounded = to.filter(|_| extreme);
        operands.push(match rounded.and_then(|to| reader.rounded(name, to)) {
            Some(constant) => constant,
            None => match reader.operand_or_reals(name) {
                Err(_) if floats(name) => Operand::Floats(name.clone()),
                found => found?,
            },
        });
    }
    if operands.iter().all(|operand| operand.value().is_none()) {
        return Err("it depends on constants only".into());
    }
    let bytes = operands
        .iter()
        .all(|operand| operand.quantization().is_some());
    let operation = match operator {
        Some(operator) if bytes && to.is_some() => Operation::Binary(operator),
        _ => Operation::Reals(operator.map_or(Arithmetic::Divide, Binary::arithmetic)),
    };
    Ok((operation, operands))
}

/// Checks that an input broadcasts to the output.
pub(super) fn check_broadcast(name: &str, shape: &[usize], output: &[usize]) -> Result<(), Reason> {
    let mut along = shape.iter().rev().zip(output.iter().rev());
    match shape.len() <= output.len() && along.all(|(a, b)| *a == 1 || a == b) {
        true => Ok(()),
        false => Err(format!(
            "its input {name} of shape {shape:?} does not broadcast to {output:?}"
        )),
    }
}

/// PRelu with one slope per channel: a table per channel.
pub(super) fn slopes(
    node: &NodeProto,
    to: Int8Quantization,
    [low, high]: [u8; 2],
    reader: &Reader,
) -> Matched {
    let (input, name) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand(input)?;
    let from = operand.quantization().ok_or("its input is float")?;
    let shape = reader.shape(input)?;
    let slopes = reader.per_channel(name, &shape, 1);
    let slopes = slopes.filter(|slopes| Some(&slopes.len()) == shape.get(1));
    let slopes = slopes.ok_or("it does not have one slope per channel")?;
    let table = |&slope: &f32| {
        let mut table = [0; 256];
        for (integer, entry) in (0..=255u8).zip(&mut table) {
            let real = from.real(integer);
            let real = if real < 0.0 { real * slope } else { real };
            *entry = to.integer(real).clamp(low, high.max(low));
        }
        table
    };
    let table_merging = slopes.iter().map(table).collect();
    Ok((Operation::ChannelTables(table_merging), vec![operand]))
}
