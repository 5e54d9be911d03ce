//! Functions of one integer as lookup tables, and arithmetic of two values.
//!
//! A table holds the results of the float nodes between a DequantizeLinear and a QuantizeLinear,
//! for all 256 or 65,536 integers. A [`FloatEvaluator`](crate::FloatEvaluator) computes it. Any
//! elementwise operator can therefore be part of it, and a chain costs as much as one operator.

use std::collections::HashSet;
use std::sync::Arc;

use octet_graph::{Dim, Model, Node, TensorType};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, GraphProto, ModelProto, TensorProto, ValueInfoProto};

use super::arithmetic;
use super::channel_tables;
use super::tables::LookupTable;
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::slot_out;
use crate::pattern::destination::Destination;
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::table_functions::TableValues;
use crate::values::IrOperand;

/// Operators that read one element of each input at a time.
pub(super) const ELEMENTWISE: OperatorMatcher = OperatorMatcher {
    names: &[
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
    ],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(elementwise),
};

/// Chains of more nodes stay float.
const LONGEST: usize = 32;

/// An operation, its inputs, and true if its output is within the bounds of the destination.
type Elementwise = (Arc<dyn Operation>, Vec<IrOperand>, bool);

/// A table replaces a chain at its last node, which precedes the QuantizeLinear.
fn elementwise(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let real = slot_out(node)?;
    // Nodes inside a chain have no destination yet and are skipped; the table replaces them at
    // the end of the chain.
    let end = matcher.quantized_destination(real)?;
    let ((operation, inputs, clamped), nodes) = match chain(real, &matcher.reader) {
        Ok((nodes, operand)) => {
            // Computing a single sum or product is faster than a lookup among 65,536 entries.
            let single = nodes.len() == 1 && operand.is_int16();
            match single.then(|| of_values(matcher, node, &end)) {
                Some(Ok(computed)) => (computed, Vec::new()),
                _ => {
                    let table = table(real, &nodes, &operand, &end, &matcher.reader)?;
                    let clamped = matches!(table, LookupTable::BytesToBytes(_));
                    ((Arc::new(table) as _, vec![operand], clamped), nodes)
                }
            }
        }
        Err(reason) => {
            let computed = of_values(matcher, node, &end)
                .map_err(|other| if node.input.len() == 2 { other } else { reason })?;
            (computed, Vec::new())
        }
    };
    let step = matcher.push(index, operation, inputs, real, end)?;
    if clamped {
        step.values.bounds = [0, 255];
    }
    let others: Vec<usize> = nodes.into_iter().filter(|&i| i != index).collect();
    matcher.extend_step(&others);
    Ok(())
}

/// Arithmetic of several values, or a function per channel.
fn of_values(
    matcher: &Matcher,
    node: &Node,
    end: &Destination,
) -> Result<Elementwise, FloatReason> {
    match end {
        Destination::Int8 {
            quantization,
            bounds,
            ..
        } if node.is("PRelu") => {
            let output = (*quantization, *bounds);
            let (tables, operand) = channel_tables::slopes(node, output, &matcher.reader)?;
            Ok((Arc::new(tables), vec![operand], true))
        }
        _ => {
            let (operation, inputs) = arithmetic::binary(matcher, node, end.quantization())?;
            Ok((operation, inputs, false))
        }
    }
}

/// True for an operator of [`ELEMENTWISE`].
fn is_elementwise(node: &Node) -> bool {
    ELEMENTWISE.names.contains(&node.operator().as_str())
}

/// The nodes of a function of one integer that ends in `real`, in reverse order, and the operand.
fn chain(real: &str, reader: &Reader) -> Result<(Vec<usize>, IrOperand), FloatReason> {
    let mut nodes = Vec::new();
    let mut seen = HashSet::new();
    let mut root: Option<(IrOperand, Vec<usize>)> = None;
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
                Some(_) => return Err(FloatReason::TwoOperands),
            }
            continue;
        }
        let index = reader
            .graph
            .producer(&value)
            .ok_or_else(|| FloatReason::NotQuantized(value.clone()))?;
        let node = &reader.graph.nodes()[index];
        if !is_elementwise(node) {
            let title = node.title().to_owned();
            return Err(FloatReason::FloatFrom(title, node.operator()));
        }
        let inside = value == real
            || !reader.is_observed(&value)
                && reader
                    .graph
                    .consumers(&value)
                    .iter()
                    .all(|reader| nodes.contains(&reader.node));
        if !inside {
            return Err(FloatReason::AlsoReadAsFloat(value));
        }
        if nodes.len() == LONGEST {
            return Err(FloatReason::ChainTooLong(LONGEST));
        }
        nodes.push(index);
        open.splice(
            0..0,
            node.input.iter().filter(|name| !name.is_empty()).cloned(),
        );
    }
    let (operand, shape) = root.ok_or(FloatReason::ConstantsOnly)?;
    if operand.value().is_none() || reader.shape(real)? != shape {
        return Err(FloatReason::OtherShape);
    }
    Ok((nodes, operand))
}

fn same(a: &IrOperand, b: &IrOperand) -> bool {
    a.value().is_some() && a.value() == b.value() && a.quantization() == b.quantization()
}

/// The lookup table of a chain of nodes, in the form that its destination needs.
fn table(
    real: &str,
    nodes: &[usize],
    operand: &IrOperand,
    end: &Destination,
    reader: &Reader,
) -> Result<LookupTable, FloatReason> {
    let operand_reals: Vec<f32> = match operand {
        IrOperand::Int16(_, int16) => (0..=u16::MAX).map(|q| int16.grid.real(q)).collect(),
        _ => {
            let from = operand.quantization().ok_or(FloatReason::FloatInput)?;
            (0..=u8::MAX).map(|q| from.real(q)).collect()
        }
    };
    let reals = reals(real, nodes, operand_reals, reader)?.into_iter();
    let values = match end {
        Destination::Int8 {
            quantization,
            bounds,
            ..
        } => Some(TableValues::bytes(reals, *quantization, *bounds)),
        Destination::Int16 { int16, .. } => Some(TableValues::reals(reals, *int16)),
        Destination::Floats(_) => None,
    };
    let table = values.and_then(|values| LookupTable::new(operand, &values));
    table.ok_or(FloatReason::TableSize)
}

/// Evaluates a chain of nodes on reals.
fn reals(
    real: &str,
    nodes: &[usize],
    operand_reals: Vec<f32>,
    reader: &Reader,
) -> Result<Vec<f32>, FloatReason> {
    let count = operand_reals.len();
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    let chain: Vec<Node> = sorted
        .iter()
        .map(|&i| reader.graph.nodes()[i].clone())
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
        node: chain.iter().map(Node::to_proto).collect(),
        initializer: constants,
        input: inputs,
        output: vec![one(real)],
        ..GraphProto::default()
    };
    let model = Model::from_proto(ModelProto::from_graph(graph, reader.opset))?;
    let sample =
        Tensor::new(vec![count], Values::F32(operand_reals)).ok_or(FloatReason::TableSize)?;
    let outputs = reader
        .floats
        .evaluate(model, vec![sample; fed])
        .map_err(FloatReason::TableEvaluation)?;
    let values = outputs.first().and_then(Tensor::as_f32);
    let values = values.filter(|values| values.len() == count);
    values
        .map(<[f32]>::to_vec)
        .ok_or(FloatReason::ResultNotFloat32)
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;
    use octet_onnx::schema::DataType;

    use crate::test_graph::{TestGraph, rounded};

    fn sigmoid(real: f32) -> f32 {
        1.0 / (1.0 + (-real).exp())
    }

    #[test]
    fn a_chain_is_one_table() {
        for (wide, name) in [(false, "table"), (true, "table of 16 bits")] {
            let mut graph = TestGraph::new(wide);
            let x = graph.input("x", &[2, 9]);
            let inner = Node::new("Sigmoid", "inner", &["x"], &["s"]);
            graph.node(inner, DataType::Float, &[&[2, 9]]);
            let outer = Node::new("Mul", "n", &["x", "s"], &["y"]);
            graph.tested(outer, &[&[2, 9]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), name);
            let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
            assert!(node.fused.iter().any(|title| title == "inner"), "{node:?}");
            let exact = x.iter().map(|&real| real * sigmoid(real));
            match wide {
                false => run.assert_near(&rounded(exact), 0.0),
                true => run.assert_near(&exact.collect::<Vec<f32>>(), 0.01),
            }
        }
    }

    #[test]
    fn tables_behind_each_other_are_merged() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[12]);
        let first = Node::new("Sigmoid", "first", &["x"], &["s"]);
        graph.node(first, DataType::Float, &[&[12]]);
        graph.pair("s", "t", &[12]);
        let second = Node::new("Mul", "n", &["x", "t"], &["y"]);
        graph.tested(second, &[&[12]]);
        let run = graph.run();
        assert_eq!(run.operation("n"), "table");
        let inner = rounded(x.iter().map(|&real| sigmoid(real)));
        let product = x.iter().zip(inner).map(|(x, inner)| x * inner);
        run.assert_near(&rounded(product), 0.0);
    }

    #[test]
    fn failures_are_reasons() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[4]);
        graph.tested(Node::new("Erf", "n", &["x"], &["y"]), &[&[4]]);
        assert_eq!(graph.reason("n"), "the test has no Erf");

        let mut graph = TestGraph::new(false);
        graph.floats("x", &[4], &[0.0; 4]);
        graph.tested(Node::new("Relu", "n", &["x"], &["y"]), &[&[4]]);
        assert_eq!(graph.reason("n"), "its input x is not quantized");
    }
}
