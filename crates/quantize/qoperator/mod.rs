//! Converts QDQ pairs to integer operators (the QOperator form).
//!
//! An operator between DequantizeLinear and one QuantizeLinear becomes an operator on integers.
//! These are ONNX's (QLinearConv, QLinearMatMul), ONNX Runtime's (`com.microsoft`: QGemm,
//! QLinearAdd …), or the operator itself if it only moves or compares values. Scales, zero points
//! and integers don't change. Results differ by at most one integer step, where an integer kernel
//! rounds differently from the float one. Operators without an integer kernel for their types,
//! shapes or attributes keep their pairs, so the model stays valid at every stage.

mod data_movement;
mod pairs;
#[cfg(test)]
mod tests;
mod unweighted;
mod weighted;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::pairs::QdqPairs;
use super::{MICROSOFT, QuantizeError};
use octet_graph::operators::{Operator, QLinearForm, QLinearInputs};
use octet_graph::{Graph, Model, Names, Node};
use octet_onnx::schema::TensorProto;

/// The integer form of a node.
struct IntegerNode {
    /// The integer node; its outputs still have the names of the float values.
    node: Node,
    /// The outputs that are integers and take the name that their QuantizeLinear made.
    outputs: IntegerOutputs,
    /// New constants that the node reads.
    constants: Vec<TensorProto>,
}

impl IntegerNode {
    /// Copies a node with another operator and other inputs; its first output is integers.
    fn new(node: &Node, form: QLinearForm, inputs: Vec<String>) -> IntegerNode {
        let mut new = node.clone();
        new.op_type = form.operator.to_owned();
        new.domain = form.domain.map(str::to_owned);
        new.input = inputs;
        new.name = node
            .name
            .as_ref()
            .filter(|name| !name.is_empty())
            .map(|name| format!("{name}_quant"));
        IntegerNode {
            node: new,
            outputs: IntegerOutputs::First,
            constants: Vec::new(),
        }
    }
}

/// The outputs of an integer node that are integers.
#[derive(Clone, Copy, PartialEq)]
enum IntegerOutputs {
    /// The first; any others are indices.
    First,
    /// All.
    All,
    /// None: they are indices or floats.
    None,
}

/// Replaces QDQ pairs of a quantized model by integer operators where possible.
pub fn to_integer_operators(model: &Model) -> Result<Model, QuantizeError> {
    let mut out = model.clone();
    skip_redundant_pairs(&mut out);
    let mut names = out.graph.names();
    let opset = out.opset();
    let conversions = {
        let pairs = QdqPairs::new(&out.graph);
        let mut conversions = BTreeMap::new();
        for (index, node) in out.graph.nodes().iter().enumerate() {
            if let Some(converted) = convert(node, opset, &pairs, &mut names)? {
                conversions.insert(index, converted);
            }
        }
        conversions
    };
    if conversions
        .values()
        .any(|converted| converted.node.domain.is_some())
    {
        out.import(MICROSOFT, 1);
    }
    apply(&mut out.graph, conversions, &mut names);
    drop_unused(&mut out.graph, &model.graph);
    Ok(out)
}

fn convert(
    node: &Node,
    opset: i64,
    pairs: &QdqPairs,
    names: &mut Names,
) -> Result<Option<IntegerNode>, QuantizeError> {
    let Some(form) = Operator::of(node).qlinear else {
        return Ok(match node.operator().as_str() {
            "Pad" => data_movement::pad(node, pairs, names),
            "ArgMax" => data_movement::arg_max(node, pairs),
            _ => data_movement::in_place_operator(node, opset, pairs),
        });
    };
    Ok(match form.inputs {
        QLinearInputs::Convolution => weighted::convolution(node, form, pairs),
        QLinearInputs::Product => weighted::product(node, form, pairs),
        QLinearInputs::Gemm => weighted::gemm(node, form, pairs, names)?,
        QLinearInputs::Binary => unweighted::binary(node, form, pairs),
        QLinearInputs::Unary => unweighted::unary(node, form, opset, pairs),
        QLinearInputs::Concat => unweighted::concat(node, form, pairs),
        QLinearInputs::Where => unweighted::select(node, form, pairs),
        QLinearInputs::Embedding => unweighted::embedding(node, form, pairs),
    })
}

/// Replaces `Q(DQ(q))` with equal scale and zero point by `q`.
///
/// This is exact: n·s divided by s and rounded is n for every n of at most 16 bits. The two
/// roundings together change n by less than 2⁻²² · n.
fn skip_redundant_pairs(model: &mut Model) {
    let renamed = {
        let pairs = QdqPairs::new(&model.graph);
        let mut renamed = HashMap::new();
        for node in model.graph.nodes() {
            let Some(quantized) = pairs.quantize(node) else {
                continue;
            };
            let before = pairs.integers(&quantized.real);
            if let Some(before) = before
                && pairs.is_same_grid(&before, &quantized)
                && !pairs.graph.is_output(&quantized.integers)
            {
                renamed.insert(quantized.integers, before.integers);
            }
        }
        renamed
    };
    model.graph.replace_all_uses(&renamed);
}

/// Replaces the nodes by their integer forms and removes the QuantizeLinear behind them.
fn apply(graph: &mut Graph, conversions: BTreeMap<usize, IntegerNode>, names: &mut Names) {
    // By float value: the QuantizeLinear that reads it, and its output.
    let mut quantized: HashMap<String, (usize, String)> = HashMap::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        if node.is("QuantizeLinear")
            && let (Some(real), Some(integers)) = (node.input_at(0), node.output.first())
        {
            quantized.insert(real.to_owned(), (index, integers.clone()));
        }
    }
    let mut gone = HashSet::new();
    for (index, converted) in conversions {
        let mut node = converted.node;
        let count = match converted.outputs {
            IntegerOutputs::First => 1,
            IntegerOutputs::All => node.output.len(),
            IntegerOutputs::None => 0,
        };
        for output in node.output.iter_mut().take(count) {
            match quantized.get(output) {
                Some((quantize, integers)) => {
                    gone.insert(*quantize);
                    output.clone_from(integers);
                }
                // The output is unread, but `value_info` may still describe the float value of that
                // name.
                None if !output.is_empty() => *output = names.fresh(&format!("{output}_quantized")),
                None => {}
            }
        }
        for constant in converted.constants {
            graph.initializers.insert(constant);
        }
        if let Some(new) = &mut node.name
            && graph.nodes()[index].name.as_ref() != Some(new)
        {
            *new = names.fresh(new);
        }
        graph.edit(index, |old| *old = node);
    }
    graph.remove_nodes(&gone);
}

/// Removes unread pairs, the constants that only they read, and `value_info` of removed values.
/// Constants that were unread before stay.
fn drop_unused(graph: &mut Graph, before: &Graph) {
    loop {
        let unread = |node: &Node| {
            let linear = node.is("DequantizeLinear") || node.is("QuantizeLinear");
            linear && node.output.iter().all(|value| graph.is_unused(value))
        };
        let unread: HashSet<usize> = (0..graph.nodes().len())
            .filter(|&index| unread(&graph.nodes()[index]))
            .collect();
        if unread.is_empty() {
            break;
        }
        graph.remove_nodes(&unread);
    }
    graph.retain_initializers(|graph, name| {
        !graph.is_unused(name) || before.consumers(name).is_empty()
    });
    let inputs = graph
        .inputs
        .iter()
        .filter_map(|input| input.name.as_deref());
    let inputs: HashSet<&str> = inputs.collect();
    let mut infos = std::mem::take(&mut graph.value_info);
    infos.retain(|value| {
        let name = value.name.as_deref().unwrap_or_default();
        graph.producer(name).is_some() || graph.initializers.contains(name) || inputs.contains(name)
    });
    drop(inputs);
    graph.value_info = infos;
}
