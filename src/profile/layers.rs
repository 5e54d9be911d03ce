//! The layer table: for each layer its kernels, time and memory.
//!
//! The terminal, JavaScript, YAML, CSV, HTML and traces all show these rows.

use serde::Serialize;

use super::layer_ports::{conversion, layer_ports};
pub use super::model_values::{LayerPort, ModelValues};
use super::recording::{Repeats, RunRecord};
use super::timing_summary::TimingSummary;
use crate::graph::Node;
use crate::runtime::{PlanStep, PlanSteps};

/// One layer of a run: a node of the model with the nodes fused into it, or a conversion.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// Name of the main node.
    pub name: String,
    /// Operator of the main node.
    pub operator: String,
    /// All nodes of the model that the layer executes, in their order.
    pub nodes: Vec<String>,
    /// Kernels that ran, in order and without duplicates.
    pub kernel: String,
    /// For conversions between number formats: the reason for it.
    pub conversion: Option<String>,
    /// For float layers of a quantized model: the reason for float.
    pub in_float: Option<String>,
    /// Inputs, without constants.
    pub inputs: Vec<LayerPort>,
    /// Outputs that other layers read.
    pub outputs: Vec<LayerPort>,
    /// Multiply-accumulate operations.
    pub macs: u64,
    /// Number of engine steps in one run.
    pub calls: usize,
    /// Own time in milliseconds over all runs.
    pub ms: TimingSummary,
    /// Own time of each run in milliseconds.
    #[serde(skip)]
    pub times: Vec<f64>,
    /// Share of the time of all layers, from the means.
    pub share: f64,
    /// 10⁹ multiply-accumulate operations per second, from the median. `None` without such
    /// operations, or for a time below the clock's resolution.
    pub gmacs: Option<f64>,
    /// Bytes of its outputs.
    pub own_bytes: u64,
    /// Peak of live memory while it ran, beyond the memory before the run.
    pub peak_bytes: u64,
    /// Live memory after it, beyond the memory before the run.
    pub live_bytes: u64,
}

/// All layers of a run, in the order in which they first run.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayerTable {
    /// The rows.
    pub layers: Vec<Layer>,
    /// Number of measured runs.
    pub runs: usize,
    /// Number of warm-up runs before them.
    pub warm_up: usize,
    /// Number of threads that most of the measured runs used, the fastest number by trial runs.
    pub threads: usize,
    /// Number of threads that were available.
    pub max_threads: usize,
    /// Resolution of the clock in milliseconds.
    pub resolution_ms: f64,
    /// Time of a whole run in milliseconds.
    pub total: TimingSummary,
    /// Milliseconds of a run outside all layers, from the means: passing values on, and measuring.
    pub outside_ms: f64,
    /// Bytes allocated before the run that stay: file, weights and plan.
    pub resident_bytes: u64,
    /// Peak of live memory beyond those.
    pub peak_bytes: u64,
    /// Layer at which the peak occurs.
    pub peak_layer: String,
    /// Bytes of the outputs of all layers: the memory it would take to keep everything.
    pub sum_bytes: u64,
    /// Multiply-accumulate operations of all layers.
    pub macs: u64,
    /// Nodes of the model that did not run: folded before, or without effect.
    pub before: Vec<String>,
}

/// Data for a layer table.
pub struct LayerMeasurements<'a> {
    /// Nodes of the model that ran.
    pub nodes: &'a [Node],
    /// Steps of the plan, with the nodes they belong to.
    pub steps: &'a PlanSteps,
    /// The measured runs.
    pub runs: &'a [RunRecord],
    /// Numbers of measured and warm-up runs.
    pub repeats: Repeats,
    /// Number of threads that were available.
    pub max_threads: usize,
    /// Live memory before the runs, in bytes.
    pub resident: u64,
    /// Resolution of the clock in milliseconds.
    pub resolution_ms: f64,
}

impl LayerTable {
    /// Builds the table from measurements.
    pub fn new(measured: &LayerMeasurements<'_>, values: &impl ModelValues) -> LayerTable {
        let LayerMeasurements {
            nodes, steps, runs, ..
        } = *measured;
        let rows = rows(&steps.steps);
        let mut layers: Vec<Layer> = rows
            .iter()
            .map(|(node, steps_of)| layer(*node, steps_of, measured, values))
            .collect();
        let sum: f64 = layers.iter().map(|l| l.ms.mean).sum();
        for layer in &mut layers {
            layer.share = if sum > 0.0 { layer.ms.mean / sum } else { 0.0 };
        }
        let total = TimingSummary::from_values(&runs.iter().map(|run| run.ms).collect::<Vec<_>>());
        let highest = layers.iter().max_by_key(|layer| layer.peak_bytes);
        let before = steps.layers.iter().zip(nodes);
        LayerTable {
            runs: runs.len(),
            warm_up: measured.repeats.warm_up,
            threads: usual_threads(runs),
            max_threads: measured.max_threads,
            resolution_ms: measured.resolution_ms,
            total,
            outside_ms: (total.mean - sum).max(0.0),
            resident_bytes: measured.resident,
            peak_bytes: highest.map_or(0, |l| l.peak_bytes),
            peak_layer: highest.map(|l| l.name.clone()).unwrap_or_default(),
            sum_bytes: layers.iter().map(|l| l.own_bytes).sum(),
            macs: layers.iter().map(|l| l.macs).sum(),
            before: before
                .filter(|(layer, _)| layer.is_none())
                .map(|(_, node)| node.title().to_string())
                .collect(),
            layers,
        }
    }

    /// Finds a layer by its name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }
}

/// The number of threads that most runs used.
fn usual_threads(runs: &[RunRecord]) -> usize {
    let with = |threads: usize| runs.iter().filter(|run| run.threads == threads).count();
    let numbers = runs.iter().map(|run| run.threads);
    numbers.max_by_key(|&threads| with(threads)).unwrap_or(0)
}

/// Groups steps into layers, in the order in which they first run. Each step of unknown origin is a
/// layer.
fn rows(steps: &[PlanStep]) -> Vec<(Option<usize>, Vec<usize>)> {
    let mut rows: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        match rows
            .iter_mut()
            .find(|(node, _)| node.is_some() && *node == step.node)
        {
            Some((_, of)) => of.push(place),
            None => rows.push((step.node, vec![place])),
        }
    }
    rows
}

/// Row of each step in the table.
pub fn row_of_step(steps: &[PlanStep]) -> Vec<usize> {
    let mut result = vec![0; steps.len()];
    for (row, (_, places)) in rows(steps).iter().enumerate() {
        for &place in places {
            result[place] = row;
        }
    }
    result
}

fn layer(
    main: Option<usize>,
    places: &[usize],
    measured: &LayerMeasurements<'_>,
    values: &impl ModelValues,
) -> Layer {
    let all = &measured.steps.steps;
    let mut kernels: Vec<&str> = Vec::new();
    for &place in places {
        if !kernels.contains(&all[place].kernel.as_str()) {
            kernels.push(&all[place].kernel);
        }
    }
    let (mut times, mut peak, mut live) = (Vec::new(), 0, 0);
    for run in measured.runs {
        let mut own = run.steps.iter().filter(|m| places.contains(&m.step));
        times.push(own.clone().map(|m| m.ms).sum());
        peak = own.clone().map(|m| m.peak).fold(peak, u64::max);
        live = own.next_back().map_or(live, |m| m.live);
    }
    let ms = TimingSummary::from_values(&times);
    let mut result = Layer {
        kernel: kernels.join(" + "),
        calls: places.len(),
        ms,
        times,
        peak_bytes: peak,
        live_bytes: live,
        ..Layer::default()
    };
    let Some(main) = main else {
        // The step belongs to no node of the model.
        result.name = format!("({})", result.kernel);
        result.operator = result.kernel.clone();
        result.own_bytes = own_bytes(places, all);
        return result;
    };
    let members: Vec<&Node> = measured
        .steps
        .layers
        .iter()
        .zip(measured.nodes)
        .filter(|(layer, _)| **layer == Some(main))
        .map(|(_, node)| node)
        .collect();
    let node = &measured.nodes[main];
    result.name = node.title().to_string();
    result.operator = node.operator();
    result.nodes = members.iter().map(|n| n.title().to_string()).collect();
    result.conversion = conversion(node, values);
    result.in_float = measured.steps.reasons.get(main).cloned().flatten();
    (result.inputs, result.outputs) = layer_ports(&members, values);
    if let Some(step) = places.iter().map(|&at| &all[at]).find(|s| s.on_integers) {
        for (port, real) in result.inputs.iter_mut().zip(&step.inputs) {
            port.element.clone_from(&real.element);
        }
        for (port, real) in result.outputs.iter_mut().zip(&step.outputs) {
            port.element.clone_from(&real.element);
        }
    }
    result.macs = members
        .iter()
        .map(|n| super::macs::macs(n, |name| values.shape(name)))
        .sum();
    result.own_bytes = own_bytes(places, all);
    result.gmacs = (result.macs > 0 && ms.median > measured.resolution_ms)
        .then(|| result.macs as f64 / (ms.median * 1e6));
    result
}

/// Output bytes of a layer's last step. Outputs of earlier steps are scratch memory and count in
/// the layer's peak.
fn own_bytes(places: &[usize], all: &[PlanStep]) -> u64 {
    places
        .last()
        .map_or(0, |&last| all[last].outputs.iter().map(|o| o.bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::recording::StepRecord;

    struct TestModel(Vec<Node>);

    impl ModelValues for TestModel {
        fn port(&self, name: &str) -> Option<LayerPort> {
            (name != "w").then(|| LayerPort {
                name: name.into(),
                element: "float32".into(),
                shape: vec![1, 4],
            })
        }

        fn shape(&self, name: &str) -> Option<Vec<u64>> {
            Some(if name == "w" { vec![4, 4] } else { vec![1, 4] })
        }

        fn readers(&self, name: &str) -> Vec<&Node> {
            let reads = |n: &&Node| n.input.iter().any(|i| i == name);
            self.0.iter().filter(reads).collect()
        }

        fn maker(&self, name: &str) -> Option<&Node> {
            self.0.iter().find(|n| n.output.iter().any(|o| o == name))
        }
    }

    fn step(node: Option<usize>, kernel: &str) -> PlanStep {
        PlanStep {
            node,
            kernel: kernel.into(),
            product: false,
            on_integers: false,
            inputs: vec![],
            outputs: vec![crate::runtime::StepValue {
                element: "float32".into(),
                shape: vec![1, 4],
                bytes: 16,
            }],
        }
    }

    fn record(step: usize, ms: f64, peak: u64, live: u64) -> StepRecord {
        StepRecord {
            step,
            begin_ms: 0.0,
            ms,
            peak,
            live,
        }
    }

    #[test]
    fn steps_of_a_layer_add_up_and_fused_nodes_are_named() {
        let nodes = vec![
            Node::new("MatMul", "m", &["x", "w"], &["a"]),
            Node::new("Relu", "r", &["a"], &["b"]),
            Node::new("DequantizeLinear", "d", &["b"], &["y"]),
            Node::new("Shape", "s", &["x"], &["n"]),
        ];
        let steps = PlanSteps {
            steps: vec![
                step(Some(0), "Pack"),
                step(Some(0), "Product"),
                step(Some(2), "Table"),
                step(None, "Odd"),
            ],
            layers: vec![Some(0), Some(0), Some(2), None],
            reasons: vec![Some("it was asked for".into()), None, None, None],
        };
        let run = |scale: f64| RunRecord {
            begin_ms: 0.0,
            ms: 10.0 * scale,
            threads: if scale > 1.0 { 2 } else { 1 },
            steps: vec![
                record(0, scale, 50, 10),
                record(1, 2.0 * scale, 90, 20),
                record(2, scale, 60, 30),
                record(3, 0.0, 30, 30),
            ],
        };
        let measured = LayerMeasurements {
            nodes: &nodes,
            steps: &steps,
            runs: &[run(1.0), run(2.0), run(3.0)],
            repeats: Repeats::default(),
            max_threads: 4,
            resident: 1000,
            resolution_ms: 0.001,
        };
        let table = LayerTable::new(&measured, &TestModel(nodes.clone()));
        let names: Vec<_> = table.layers.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["m", "d", "(Odd)"]);
        let first = &table.layers[0];
        assert_eq!(first.nodes, ["m", "r"]);
        assert_eq!(
            (first.kernel.as_str(), first.calls, first.macs),
            ("Pack + Product", 2, 16)
        );
        assert_eq!((first.ms.median, first.share), (6.0, 0.75));
        let ports = |ports: &[LayerPort]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (ports(&first.inputs), ports(&first.outputs)),
            (vec!["x".to_string()], vec!["b".to_string()])
        );
        assert_eq!((first.peak_bytes, first.live_bytes), (90, 20));
        let why = table.layers[1].conversion.as_deref();
        assert_eq!(why, Some("the model's output runs in float"));
        let reasons = [0, 1].map(|at| table.layers[at].in_float.as_deref());
        assert_eq!(reasons, [Some("it was asked for"), None]);
        assert_eq!((table.peak_bytes, table.peak_layer.as_str()), (90, "m"));
        assert_eq!((table.sum_bytes, table.outside_ms), (48, 12.0));
        assert_eq!((table.threads, table.max_threads), (2, 4));
        assert_eq!(table.before, ["s"]);
    }
}
