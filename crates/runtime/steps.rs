//! Describes a plan without tract's types: its steps in order, the node behind each, and callbacks
//! at the begin and end of each.

use std::collections::HashMap;

use tract_onnx::prelude::{TypedFact, TypedNode, TypedSimplePlan};
use tract_onnx::tract_core::ops::source::TypedSource;

use super::attribution;
use super::datum::element_type;
use super::float::FloatConvolution;
use super::int8::region::RegionOperator;
use super::observe::Observe;
use super::plan_step::{PlanStep, StepValue};
use super::weights::SharedWeight;
use octet_graph::Graph;
use octet_int8::FusedNode;
use octet_onnx::schema::TensorProto;

/// Receives the begin and end of steps, by their index in [`super::Engine::steps`].
pub trait Timing {
    /// A step begins. Inside an integer region, the index is exact only at the end.
    fn begin(&mut self, step: usize);

    /// A step ended, and inputs without further readers are freed.
    fn end(&mut self, step: usize);

    /// A run, or a part of it, begins on this number of threads. A trial compares numbers of
    /// threads, so its time is not that of a usual run.
    fn threads(&mut self, threads: usize, trial: bool) {
        let _ = (threads, trial);
    }
}

/// Forwards the steps of one part, with the steps of earlier parts added to the index.
pub(super) struct Offset<'a> {
    pub(super) timing: &'a mut dyn Timing,
    pub(super) steps: usize,
}

impl Timing for Offset<'_> {
    fn begin(&mut self, step: usize) {
        self.timing.begin(self.steps + step);
    }

    fn end(&mut self, step: usize) {
        self.timing.end(self.steps + step);
    }

    fn threads(&mut self, threads: usize, trial: bool) {
        self.timing.threads(threads, trial);
    }
}

/// Names for tract's nodes, each used once, so that an operator's name identifies its node. Inputs
/// and constants, which are nodes in tract, keep their names.
pub(super) fn unique_names(graph: &Graph) -> Vec<String> {
    let inputs = graph
        .inputs
        .iter()
        .filter_map(|input| input.name.as_deref());
    let constants = graph.initializers.iter().map(TensorProto::title);
    let mut taken: HashMap<&str, usize> = inputs.chain(constants).map(|name| (name, 1)).collect();
    let titles = graph.nodes().iter().map(|node| {
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

/// The steps of a plan in execution order.
#[derive(Default)]
pub struct PlanSteps {
    /// The steps.
    pub steps: Vec<PlanStep>,
    /// For each node of the graph, the node of its layer; `None` if it was computed before the run.
    pub layers: Vec<Option<usize>>,
    /// For each node of a quantized model, the reason why it runs in float; `None` if it runs on
    /// integers, or if the model is not quantized.
    pub reasons: Vec<Option<String>>,
}

/// The integer regions of a plan.
#[derive(Clone, Copy)]
pub(super) struct RegionSteps<'a> {
    pub(super) fused: &'a [FusedNode],
    /// For each region, the indices of its steps in `fused`.
    pub(super) steps: &'a [Vec<usize>],
}

impl RegionSteps<'_> {
    /// The steps of a region, if the node is one.
    pub(super) fn steps_of(&self, node: &TypedNode) -> Option<&[usize]> {
        let region = node.op_as::<RegionOperator>()?;
        self.steps.get(region.place).map(Vec::as_slice)
    }
}

/// The index of the first step of each tract node. A region has several steps, any other node one.
/// Sources only pass inputs on, and observers belong to calibration, so both have none.
pub(super) fn places(plan: &TypedSimplePlan, regions: RegionSteps<'_>) -> HashMap<usize, usize> {
    let model = plan.model();
    let mut places = HashMap::new();
    let mut next = 0;
    for &id in plan.order_without_consts() {
        let node = &model.nodes[id];
        if node.op_is::<TypedSource>() || node.op_is::<Observe>() || node.op_is::<SharedWeight>() {
            continue;
        }
        places.insert(id, next);
        next += regions.steps_of(node).map_or(1, <[usize]>::len);
    }
    places
}

/// Describes the steps of a plan and assigns the nodes of the graph to them.
pub(super) fn from_plan(
    plan: &TypedSimplePlan,
    graph: &Graph,
    regions: RegionSteps<'_>,
) -> PlanSteps {
    let names = unique_names(graph);
    let known: HashMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(i, n)| (n.as_str(), i))
        .collect();
    let model = plan.model();
    let mut order: Vec<(usize, usize)> = places(plan, regions).into_iter().collect();
    order.sort_by_key(|&(_, place)| place);
    let mut steps = Vec::new();
    for (id, _) in order {
        let node = &model.nodes[id];
        if let Some(inside) = regions.steps_of(node) {
            let fused = inside.iter().map(|&at| &regions.fused[at]);
            steps.extend(fused.map(|fused| PlanStep::from_fused(fused, &known)));
            continue;
        }
        let inputs = node.inputs.iter().filter_map(|&outlet| {
            let fact = model.outlet_fact(outlet).ok()?;
            fact.konst.is_none().then(|| value(fact))
        });
        steps.push(PlanStep {
            node: node_of(&node.name, &known),
            kernel: kernel(node),
            product: is_product(node),
            on_integers: false,
            inputs: inputs.collect(),
            outputs: node.outputs.iter().map(|o| value(&o.fact)).collect(),
        });
    }
    let mut layers = attribution::layers_of(graph, &steps);
    for fused in regions.fused.iter().filter(|f| f.region.is_some()) {
        let layer = known.get(fused.node.as_str()).copied();
        for name in &fused.fused {
            if let (Some(&node), Some(layer)) = (known.get(name.as_str()), layer) {
                layers[node] = Some(layer);
            }
        }
    }
    attribution::in_layers(&layers, &mut steps);
    let mut reasons = vec![None; graph.nodes().len()];
    for fused in regions.fused {
        if let (Some(&node), Some(reason)) = (known.get(fused.node.as_str()), &fused.reason) {
            reasons[node] = Some(reason.clone());
        }
    }
    PlanSteps {
        steps,
        layers,
        reasons,
    }
}

/// Finds the node behind a tract name, which is `NAME` with any number of `.something` behind it.
fn node_of(name: &str, known: &HashMap<&str, usize>) -> Option<usize> {
    let mut name = name;
    loop {
        if let Some(&found) = known.get(name) {
            return Some(found);
        }
        name = &name[..name.rfind('.')?];
    }
}

/// Packing for a product doesn't count as a product.
fn is_product(node: &TypedNode) -> bool {
    let name = node.op.name();
    node.op_is::<FloatConvolution>() || (name.contains("MatMul") && !name.contains("Pack"))
}

fn kernel(node: &TypedNode) -> String {
    let name = node.op.name().to_string();
    // Only matrix products choose among kernels; their description contains the kernel.
    match node.op.info() {
        Ok(lines) if is_product(node) => {
            let kernel_word = lines.iter().find_map(|line| kernel_name(line));
            kernel_word.map_or(name.clone(), |kernel| format!("{name} {kernel}"))
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
