//! Partition of the steps into regions that are as large as possible.
//!
//! A region runs as one operator, so no float node may lie on a path that leaves it and returns.
//! Initially every step is a region. Two neighbouring regions merge if no other path leads from the
//! first to the second, because the merge then creates no cycle. Regions that stay separate have a
//! float node between them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::ir::{Ir, IrStep};
use octet_graph::Graph;

/// Steps that run as one operator.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Region {
    /// Indices into the steps of the IR, ascending.
    pub(super) steps: Vec<usize>,
    /// Values that the region reads from outside.
    pub(super) inputs: Vec<String>,
    /// Values that nodes outside the region read.
    pub(super) outputs: Vec<String>,
}

/// Partitions the IR into regions, without steps whose results are unused.
pub(super) fn regions(graph: &Graph, ir: &Ir, watched: &[String]) -> Vec<Region> {
    let taken: HashSet<usize> = ir
        .steps
        .iter()
        .flat_map(|s| s.nodes.iter().copied())
        .collect();
    let outside = readers(graph, &taken);
    let kept: HashSet<&str> = graph
        .outputs()
        .iter()
        .filter_map(|output| output.name.as_deref())
        .chain(watched.iter().map(String::as_str))
        .chain(outside.values().flatten().map(String::as_str))
        .collect();
    let live = live(&ir.steps, &kept);
    let mut parts = RegionPartition::new(&ir.steps, &live, graph, &outside);
    parts.join();
    parts.regions(&kept)
}

/// Inputs of every float node that still runs. A DequantizeLinear without float readers does not
/// run.
fn readers(graph: &Graph, taken: &HashSet<usize>) -> BTreeMap<usize, Vec<String>> {
    let mut needed: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, node) in graph.nodes().iter().enumerate().rev() {
        let read = node.output.iter().any(|name| {
            graph.is_output(name)
                || graph
                    .consumers(name)
                    .iter()
                    .any(|reader| needed.contains_key(&reader.node))
        });
        if taken.contains(&index) || node.is("DequantizeLinear") && !read {
            continue;
        }
        let mut names: Vec<String> = node
            .input
            .iter()
            .filter(|n| !n.is_empty())
            .cloned()
            .collect();
        names.extend(node.captured());
        needed.insert(index, names);
    }
    needed
}

fn live(steps: &[IrStep], kept: &HashSet<&str>) -> Vec<usize> {
    let mut wanted: HashSet<&str> = HashSet::new();
    let mut live = Vec::new();
    for (index, step) in steps.iter().enumerate().rev() {
        let mut outputs = step.values.outputs();
        if outputs.any(|name| kept.contains(name) || wanted.contains(name)) {
            live.push(index);
            wanted.extend(step.values.read());
        }
    }
    live.reverse();
    live
}

/// Partition of the items: merged steps, and float nodes by themselves.
struct RegionPartition<'a> {
    steps: &'a [IrStep],
    live: &'a [usize],
    /// The part of each item: live steps first, then float nodes.
    part: Vec<usize>,
    /// For each item, the items that read its results.
    next: Vec<Vec<usize>>,
}

impl<'a> RegionPartition<'a> {
    fn new(
        steps: &'a [IrStep],
        live: &'a [usize],
        graph: &Graph,
        outside: &BTreeMap<usize, Vec<String>>,
    ) -> RegionPartition<'a> {
        let mut makers: HashMap<&str, usize> = HashMap::new();
        for (item, &index) in live.iter().enumerate() {
            makers.extend(steps[index].values.outputs().map(|name| (name, item)));
        }
        for (offset, &node) in outside.keys().enumerate() {
            for output in graph.nodes()[node]
                .output
                .iter()
                .filter(|name| !name.is_empty())
            {
                makers.insert(output, live.len() + offset);
            }
        }
        let mut next = vec![Vec::new(); live.len() + outside.len()];
        for (item, &index) in live.iter().enumerate() {
            let read = steps[index].values.read();
            for maker in read.filter_map(|name| makers.get(name)) {
                next[*maker].push(item);
            }
        }
        for (offset, names) in outside.values().enumerate() {
            for maker in names.iter().filter_map(|name| makers.get(name.as_str())) {
                next[*maker].push(live.len() + offset);
            }
        }
        RegionPartition {
            steps,
            live,
            part: (0..next.len()).collect(),
            next,
        }
    }

    /// Values that a step reads. Values read by float nodes are among the kept ones.
    fn read(&self, item: usize) -> impl Iterator<Item = &str> {
        let step = self.live.get(item).map(|&index| &self.steps[index]);
        step.into_iter().flat_map(|step| step.values.read())
    }

    fn join(&mut self) {
        let mut members: Vec<Vec<usize>> = (0..self.part.len()).map(|item| vec![item]).collect();
        for item in 0..self.live.len() {
            for reader in self.next[item].clone() {
                if reader >= self.live.len() {
                    continue;
                }
                let (from, to) = (self.part[item], self.part[reader]);
                if from == to || self.has_other_path(&members, from, to) {
                    continue;
                }
                // The smaller part moves into the larger.
                let (keep, absorbed) = match members[from].len() >= members[to].len() {
                    true => (from, to),
                    false => (to, from),
                };
                let moved = std::mem::take(&mut members[absorbed]);
                for &member in &moved {
                    self.part[member] = keep;
                }
                members[keep].extend(moved);
            }
        }
    }

    /// True if a path leads from one part to the other through a third.
    fn has_other_path(&self, members: &[Vec<usize>], from: usize, to: usize) -> bool {
        let mut seen: HashSet<usize> = HashSet::from([from, to]);
        let mut open = vec![from];
        while let Some(part) = open.pop() {
            let readers = members[part].iter().flat_map(|&member| &self.next[member]);
            for reached in readers.map(|&reader| self.part[reader]) {
                if reached == to && part != from {
                    return true;
                }
                if seen.insert(reached) {
                    open.push(reached);
                }
            }
        }
        false
    }

    fn regions(&self, kept: &HashSet<&str>) -> Vec<Region> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for item in 0..self.live.len() {
            found.entry(self.part[item]).or_default().push(item);
        }
        let mut regions: Vec<Region> = found
            .values()
            .map(|items| {
                let inside: HashSet<usize> = items.iter().copied().collect();
                let steps: Vec<usize> = items.iter().map(|&item| self.live[item]).collect();
                let result: HashSet<&str> = steps
                    .iter()
                    .flat_map(|&s| self.steps[s].values.outputs())
                    .collect();
                let read = steps.iter().flat_map(|&s| self.steps[s].values.read());
                let inputs: BTreeSet<&str> = read.filter(|name| !result.contains(name)).collect();
                let outputs = items.iter().flat_map(|&item| {
                    let readers = self.next[item].iter();
                    let left: HashSet<&str> = readers
                        .filter(|reader| !inside.contains(reader))
                        .flat_map(|&reader| self.read(reader))
                        .collect();
                    let result = self.steps[self.live[item]].values.outputs();
                    result.filter(move |name| kept.contains(name) || left.contains(name))
                });
                Region {
                    inputs: inputs.into_iter().map(str::to_owned).collect(),
                    outputs: outputs.map(str::to_owned).collect(),
                    steps,
                }
            })
            .collect();
        regions.sort_by_key(|region| region.steps.first().copied());
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantization::Int8Quantization;
    use crate::test_graph::no_operation;
    use crate::values::{IrOperand, StepValues};
    use octet_graph::Model;
    use octet_onnx::schema::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
    use proptest::prelude::*;

    const UNIT: Int8Quantization = Int8Quantization {
        scale: 1.0,
        zero_point: 0,
        signed: false,
    };

    /// Builds a graph: node i computes `v<i>` from earlier values or the input. The flag marks
    /// steps.
    fn built(nodes: &[(bool, Vec<usize>)]) -> (Graph, Ir) {
        let name = |i: usize| {
            if i == 0 {
                "x".to_owned()
            } else {
                format!("v{}", i - 1)
            }
        };
        let port = |name: String| ValueInfoProto {
            name: Some(name),
            ..ValueInfoProto::default()
        };
        let mut ir = Ir::default();
        let mut result = Vec::new();
        for (i, (integer, reads)) in nodes.iter().enumerate() {
            let inputs: Vec<String> = reads.iter().map(|&r| name(r % (i + 1))).collect();
            let output = name(i + 1);
            let refs: Vec<&str> = inputs.iter().map(String::as_str).collect();
            result.push(NodeProto::new("Any", &output, &refs, &[&output]));
            if *integer {
                let operands = inputs.into_iter().map(|n| IrOperand::Int8(n, UNIT));
                ir.steps.push(IrStep {
                    values: StepValues::new(operands.collect(), &output),
                    node: output,
                    operator: "Any".into(),
                    nodes: vec![i],
                    operation: no_operation(),
                });
            }
        }
        let last = name(nodes.len());
        let graph = GraphProto {
            node: result,
            input: vec![port("x".into())],
            output: vec![port(last)],
            ..GraphProto::default()
        };
        let model = ModelProto {
            graph: Some(graph),
            ..ModelProto::default()
        };
        (Model::from_proto(model).unwrap().graph, ir)
    }

    #[test]
    fn a_chain_is_one_region_and_a_float_node_in_it_makes_two() {
        let step = |reads: &[usize]| (true, reads.to_vec());
        let (graph, ir) = built(&[step(&[0]), step(&[1]), step(&[2, 1])]);
        let found = regions(&graph, &ir, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].inputs[..], &found[0].outputs[..]),
            (&["x".to_owned()][..], &["v2".to_owned()][..])
        );

        let (graph, ir) = built(&[step(&[0]), (false, vec![1]), step(&[2, 1])]);
        let found = regions(&graph, &ir, &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].inputs, ["v0", "v1"]);
    }

    #[test]
    fn a_float_reader_beside_the_path_splits_nothing() {
        let (graph, ir) = built(&[(true, vec![0]), (false, vec![1]), (true, vec![1])]);
        let found = regions(&graph, &ir, &["v1".to_owned()]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].outputs, ["v0", "v2"]);
    }

    #[test]
    fn unused_steps_are_in_no_region() {
        let (graph, ir) = built(&[(true, vec![0]), (true, vec![0]), (true, vec![1])]);
        let found = regions(&graph, &ir, &[]);
        assert_eq!(found[0].steps, [0, 2], "{found:?}");
    }

    /// Checks that some order runs all regions and float nodes exactly once.
    fn can_be_run(nodes: &[(bool, Vec<usize>)]) -> Result<(), String> {
        let (graph, ir) = built(nodes);
        let found = regions(&graph, &ir, &[]);
        // Simulates the graph: values become available until all are, or no node can run.
        let mut known: HashSet<String> = HashSet::from(["x".to_owned()]);
        let steps = ir.steps.iter();
        let taken: HashSet<usize> = steps.flat_map(|s| s.nodes.iter().copied()).collect();
        let mut waiting: Vec<(Vec<String>, Vec<String>)> = found
            .iter()
            .map(|region| (region.inputs.clone(), region.outputs.clone()))
            .collect();
        let floats = graph.nodes().iter().enumerate();
        let floats = floats.filter(|(i, _)| !taken.contains(i));
        waiting.extend(floats.map(|(_, node)| (node.input.clone(), node.output.clone())));
        loop {
            let before = waiting.len();
            waiting.retain(|(inputs, outputs)| {
                let ready = inputs.iter().all(|name| known.contains(name));
                if ready {
                    known.extend(outputs.iter().cloned());
                }
                !ready
            });
            if waiting.len() == before {
                break;
            }
        }
        let mut seen = HashSet::new();
        let once = |step: &usize| seen.insert(*step);
        if !waiting.is_empty() {
            Err(format!("a cycle or a missing value: {waiting:?}"))
        } else if !known.contains(&format!("v{}", nodes.len() - 1)) {
            Err("the output is missing".into())
        } else if !found.iter().flat_map(|region| &region.steps).all(once) {
            Err("a step runs twice".into())
        } else {
            Ok(())
        }
    }

    #[test]
    fn a_path_leads_through_merged_steps() {
        // v0 and v10 merge first. A float node leads from v1 to v10, another from v0 to v5.
        let [yes, no] = [true, false];
        let nodes = [
            (yes, vec![0]),
            (yes, vec![20]),
            (no, vec![19]),
            (no, vec![0]),
            (no, vec![7]),
            (yes, vec![32, 21]),
            (no, vec![0]),
            (no, vec![0]),
            (no, vec![2]),
            (no, vec![36]),
            (yes, vec![31, 34]),
        ];
        assert_eq!(can_be_run(&nodes), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn regions_can_be_run_one_after_the_other(
            nodes in prop::collection::vec((any::<bool>(), prop::collection::vec(0usize..40, 1..4)), 1..24)
        ) {
            prop_assert_eq!(can_be_run(&nodes), Ok(()));
        }
    }
}
