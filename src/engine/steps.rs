//! What a plan is made of, told without naming tract: its steps in order, the node of the model that
//! each was made from, and who hears when each begins and ends.

use std::collections::HashMap;

use tract_onnx::prelude::{TypedFact, TypedNode, TypedSimplePlan};
use tract_onnx::tract_core::ops::source::TypedSource;

use super::attribution;
use super::observe::Observe;
use super::types::element_type;
use crate::graph::Graph;

/// A tensor that a step reads or makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepValue {
    /// Its element type, as ONNX names it; the engine's own word for its packed forms.
    pub element: String,
    /// Its shape; unknown sizes are 0.
    pub shape: Vec<usize>,
    /// Bytes of its elements; 0 where the shape is not known.
    pub bytes: u64,
}

/// One operator of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// The place in the model's graph of the node whose layer it belongs to; `None` where its name tells of none.
    pub node: Option<usize>,
    /// Which code runs.
    pub kernel: String,
    /// Whether it multiplies matrices: the main work of a convolution or fully connected layer.
    pub product: bool,
    /// What it reads, without constants.
    pub inputs: Vec<StepValue>,
    /// What it makes.
    pub outputs: Vec<StepValue>,
}

/// Hears when steps run. Steps are named by their place in [`super::Engine::steps`].
pub trait Timing {
    /// A step begins.
    fn begin(&mut self, step: usize);

    /// The step ended; what it read for the last time is freed.
    fn end(&mut self, step: usize);
}

/// Hears nothing, at no cost.
pub(super) struct Untimed;

impl Timing for Untimed {
    #[inline(always)]
    fn begin(&mut self, _step: usize) {}

    #[inline(always)]
    fn end(&mut self, _step: usize) {}
}

/// The names under which tract is given the nodes of a graph: each once, so that what it makes of a
/// node can be told from its name.
pub(super) fn unique_names(graph: &Graph) -> Vec<String> {
    let mut taken = HashMap::<&str, usize>::new();
    let titles = graph.nodes.iter().map(|node| {
        let count = taken.entry(node.title()).or_default();
        *count += 1;
        (node.title(), *count)
    });
    let titles: Vec<_> = titles.collect();
    let again = |(title, count): (&str, usize)| match count {
        1 => title.to_string(),
        _ => format!("{title}#{count}"),
    };
    titles.into_iter().map(again).collect()
}

/// The steps of a plan in the order they run.
pub struct Steps {
    /// The steps.
    pub steps: Vec<Step>,
    /// For each node of the graph the node whose layer it belongs to; `None` where it was computed before the run.
    pub layers: Vec<Option<usize>>,
}

/// The place among the steps of each of tract's nodes; sources only hand on what is fed, and observers belong to
/// a calibration.
pub(super) fn places(plan: &TypedSimplePlan) -> HashMap<usize, usize> {
    let model = plan.model();
    let order = plan.order_without_consts().iter().copied();
    order
        .filter(|&id| {
            !model.nodes[id].op_is::<TypedSource>() && !model.nodes[id].op_is::<Observe>()
        })
        .zip(0..)
        .collect()
}

/// What the steps of a plan are, and which nodes of the graph each stands for.
pub(super) fn of_plan(plan: &TypedSimplePlan, graph: &Graph) -> Steps {
    let names = unique_names(graph);
    let known: HashMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(i, n)| (n.as_str(), i))
        .collect();
    let model = plan.model();
    let mut order: Vec<(usize, usize)> = places(plan).into_iter().collect();
    order.sort_by_key(|&(_, place)| place);
    let mut steps = Vec::new();
    for (id, _) in order {
        let node = &model.nodes[id];
        let inputs = node.inputs.iter().filter_map(|&outlet| {
            let fact = model.outlet_fact(outlet).ok()?;
            fact.konst.is_none().then(|| value(fact))
        });
        steps.push(Step {
            node: node_of(&node.name, &known),
            kernel: kernel(node),
            product: is_product(node),
            inputs: inputs.collect(),
            outputs: node.outputs.iter().map(|o| value(&o.fact)).collect(),
        });
    }
    let layers = attribution::layers_of(graph, &steps);
    attribution::in_layers(&layers, &mut steps);
    Steps { steps, layers }
}

/// tract names what it makes of a node `NAME.something`, any number of times.
fn node_of(name: &str, known: &HashMap<&str, usize>) -> Option<usize> {
    let mut name = name;
    loop {
        if let Some(&found) = known.get(name) {
            return Some(found);
        }
        name = &name[..name.rfind('.')?];
    }
}

/// Packing for a product is no product.
fn is_product(node: &TypedNode) -> bool {
    let name = node.op.name();
    name.contains("MatMul") && !name.contains("Pack")
}

fn kernel(node: &TypedNode) -> String {
    let name = node.op.name().to_string();
    // Only matrix products have several kernels to choose from; its description tells which.
    match node.op.info() {
        Ok(lines) if is_product(node) => {
            let told = lines.iter().find_map(|line| kernel_name(line));
            told.map_or(name.clone(), |kernel| format!("{name} {kernel}"))
        }
        _ => name,
    }
}

/// The kernel's name in a line such as `… mmm_f32_16x6 …`.
fn kernel_name(line: &str) -> Option<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find(|word| word.contains("mmm_") || word.contains("mmv_"))
}

fn value(fact: &TypedFact) -> StepValue {
    let shape: Vec<usize> = fact
        .shape
        .iter()
        .map(|d| {
            d.to_i64()
                .ok()
                .and_then(|d| usize::try_from(d).ok())
                .unwrap_or(0)
        })
        .collect();
    let elements = shape
        .iter()
        .try_fold(1u64, |a, &d| a.checked_mul(d as u64))
        .unwrap_or(0);
    StepValue {
        element: element_type(fact.datum_type).map_or_else(
            || format!("{:?}", fact.datum_type),
            |e| e.name().to_string(),
        ),
        bytes: elements.saturating_mul(fact.datum_type.size_of() as u64),
        shape,
    }
}
