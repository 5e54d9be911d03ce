//! The form with integer operators, made from the form with QuantizeLinear/DequantizeLinear pairs.
//!
//! An operator that reads DequantizeLinear and is read by one QuantizeLinear becomes the operator that
//! does the same on the integers: those of ONNX (QLinearConv, QLinearMatMul), those of ONNX Runtime
//! (`com.microsoft`: QGemm, QLinearAdd …), or the operator itself where it only moves or compares values.
//! Scales, zero points and integers stay what they are; the results differ by at most one integer step,
//! where an integer kernel rounds otherwise than the float one. What has no integer operator, or not for
//! its types, shapes or attributes, keeps its pairs: the model is valid at every stage between.

mod moving;
mod pairs;
#[cfg(test)]
mod tests;
mod unweighted;
mod weighted;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::pairs::Pairs;
use super::operators::EMBEDDING;
use super::{MICROSOFT, QuantizeError};
use crate::graph::{Graph, Model, Names};
use crate::onnx::schema::{NodeProto, TensorProto};

/// What a node becomes.
struct Folded {
    /// The node on integers, its outputs still under the names of the float values.
    node: NodeProto,
    /// For each output, whether it is integers now and so takes the name its QuantizeLinear gave it.
    outputs: Outputs,
    /// Constants the node needs that the model does not have yet.
    constants: Vec<TensorProto>,
}

impl Folded {
    /// A node of another operator with other inputs, and else the same; its first output is integers.
    fn of(node: &NodeProto, operator: &str, domain: Option<&str>, inputs: Vec<String>) -> Folded {
        let mut new = node.clone();
        new.op_type = Some(operator.to_owned());
        new.domain = domain.map(str::to_owned);
        new.input = inputs;
        new.name = node
            .name
            .as_ref()
            .filter(|name| !name.is_empty())
            .map(|name| format!("{name}_quant"));
        Folded {
            node: new,
            outputs: Outputs::First,
            constants: Vec::new(),
        }
    }
}

/// Which outputs of a folded node are integers.
#[derive(Clone, Copy, PartialEq)]
enum Outputs {
    /// The first; the others, if any, are indices.
    First,
    /// All.
    All,
    /// None: they are indices, or reals.
    None,
}

/// A quantized model with integer operators in place of QuantizeLinear/DequantizeLinear pairs.
pub fn to_integer_operators(model: &Model) -> Result<Model, QuantizeError> {
    let mut out = model.clone();
    skip_idle_pairs(&mut out);
    let mut names = out.graph.names();
    let opset = out.opset();
    let folds = {
        let pairs = Pairs::of(&out.graph);
        let mut folds = BTreeMap::new();
        for (index, node) in out.graph.nodes.iter().enumerate() {
            if let Some(folded) = fold(node, opset, &pairs, &mut names)? {
                folds.insert(index, folded);
            }
        }
        folds
    };
    if folds.values().any(|folded| folded.node.domain.is_some()) {
        out.import(MICROSOFT, 1);
    }
    apply(&mut out.graph, folds, &mut names);
    drop_unused(&mut out.graph, &model.graph);
    Ok(out)
}

fn fold(
    node: &NodeProto,
    opset: i64,
    pairs: &Pairs,
    names: &mut Names,
) -> Result<Option<Folded>, QuantizeError> {
    Ok(match node.operator().as_str() {
        "Conv" => weighted::convolution(node, pairs),
        "MatMul" => weighted::product(node, pairs),
        "Gemm" => weighted::gemm(node, pairs, names)?,
        "Add" | "Mul" => unweighted::binary(node, pairs),
        "Sigmoid" | "LeakyRelu" | "GlobalAveragePool" | "AveragePool" => {
            unweighted::unary(node, pairs)
        }
        "Softmax" => unweighted::softmax(node, opset, pairs),
        "Concat" => unweighted::concat(node, pairs),
        "Where" => unweighted::choice(node, pairs),
        EMBEDDING => unweighted::embedding(node, pairs),
        "Pad" => moving::pad(node, pairs, names),
        "ArgMax" => moving::largest(node, pairs),
        _ => moving::direct(node, opset, pairs),
    })
}

/// Lets what reads `Q(DQ(q))` with the same scale and zero point read `q`: n·s, divided by s and rounded,
/// is n for every n of 16 bits or less, as the two roundings together are off by less than 2⁻²² of n.
fn skip_idle_pairs(model: &mut Model) {
    let renamed = {
        let pairs = Pairs::of(&model.graph);
        let mut renamed = HashMap::new();
        for node in &model.graph.nodes {
            let Some(quantized) = pairs.quantize(node) else {
                continue;
            };
            let before = pairs.integers(&quantized.real);
            if let Some(before) = before
                && pairs.is_same(&before, &quantized)
                && !pairs.uses.is_output(&quantized.integers)
            {
                renamed.insert(quantized.integers, before.integers);
            }
        }
        renamed
    };
    model.graph.replace_all_uses(&renamed);
}

/// Puts the folded nodes in the places of those they were, and takes out the QuantizeLinear after them.
fn apply(graph: &mut Graph, folds: BTreeMap<usize, Folded>, names: &mut Names) {
    // By the float value: the QuantizeLinear that reads it, and the integers it makes.
    let mut quantized: HashMap<String, (usize, String)> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.is("QuantizeLinear")
            && let (Some(real), Some(integers)) = (node.input_at(0), node.output.first())
        {
            quantized.insert(real.to_owned(), (index, integers.clone()));
        }
    }
    let mut gone = HashSet::new();
    for (index, folded) in folds {
        let mut node = folded.node;
        let count = match folded.outputs {
            Outputs::First => 1,
            Outputs::All => node.output.len(),
            Outputs::None => 0,
        };
        for output in node.output.iter_mut().take(count) {
            match quantized.get(output) {
                Some((quantize, integers)) => {
                    gone.insert(*quantize);
                    output.clone_from(integers);
                }
                // Nobody reads it, but a note on the float value may go by its name.
                None if !output.is_empty() => *output = names.fresh(&format!("{output}_quantized")),
                None => {}
            }
        }
        for constant in folded.constants {
            graph.initializers.insert(constant);
        }
        if let Some(new) = &mut node.name
            && graph.nodes[index].name.as_ref() != Some(new)
        {
            *new = names.fresh(new);
        }
        graph.nodes[index] = node;
    }
    graph.remove_nodes(&gone);
}

/// Takes out the DequantizeLinear and QuantizeLinear that nothing reads any more, the constants that only
/// they read, and the notes on values that are gone. What nothing read in the first place stays.
fn drop_unused(graph: &mut Graph, before: &Graph) {
    loop {
        let uses = graph.uses();
        let unread = |node: &NodeProto| {
            let linear = node.is("DequantizeLinear") || node.is("QuantizeLinear");
            let free = |value: &String| uses.consumers(value).is_empty() && !uses.is_output(value);
            linear && node.output.iter().all(free)
        };
        let unread: HashSet<usize> = (0..graph.nodes.len())
            .filter(|&index| unread(&graph.nodes[index]))
            .collect();
        if unread.is_empty() {
            break;
        }
        graph.remove_nodes(&unread);
    }
    let (uses, read_before) = (graph.uses(), before.uses());
    graph.initializers.retain(|tensor| {
        let name = tensor.name.as_deref().unwrap_or_default();
        !uses.consumers(name).is_empty()
            || uses.is_output(name)
            || read_before.consumers(name).is_empty()
    });
    let initializers = &graph.initializers;
    let inputs: HashSet<&str> = graph
        .inputs
        .iter()
        .filter_map(|input| input.name.as_deref())
        .collect();
    graph.value_info.retain(|value| {
        let name = value.name.as_deref().unwrap_or_default();
        uses.producer(name).is_some() || initializers.contains(name) || inputs.contains(name)
    });
}
