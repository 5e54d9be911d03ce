//! Estimates memory and work of a run from its plan.
//!
//! Live memory follows from a walk over the plan in tract's order: a value lives from the step that
//! makes it until its last reader. An operator that may write over its input allocates nothing, if
//! it is the only reader.

use std::collections::HashMap;

use tract_onnx::prelude::{OutletId, TypedFact, TypedNode, TypedSimplePlan};
use tract_onnx::tract_core::ops::Cost;
use tract_onnx::tract_core::ops::binary::{OptBinByScalar, OptBinChain, OptBinUnicast, TypedBinOp};
use tract_onnx::tract_core::ops::change_axes::{AxisOp, IntoShape};
use tract_onnx::tract_core::ops::element_wise::ElementWiseOp;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::source::TypedSource;

use super::observe::Observe;
use super::weights::Addend;

/// Memory and work of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// Peak of live bytes in a run: values, inputs, and the remembered bytes of values watched
    /// until then.
    pub peak: u64,
    /// Remembered bytes at the peak.
    pub remembered: u64,
    /// During nine tenths of the work, live memory is at most this.
    pub usual: u64,
    /// Work of each operator in execution order, in units of about equal time.
    pub work: Vec<u64>,
}

impl CostEstimate {
    /// Cost of this run followed by another. Remembered bytes accumulate; `next` counts the values
    /// that pass from one to the other.
    pub(super) fn then(self, next: CostEstimate) -> CostEstimate {
        let behind = next.peak + self.remembered;
        let (peak, remembered) = match behind > self.peak {
            true => (behind, self.remembered + next.remembered),
            false => (self.peak, self.remembered),
        };
        CostEstimate {
            peak,
            remembered,
            usual: self.usual.max(next.usual + self.remembered),
            work: [self.work, next.work].concat(),
        }
    }
}

/// Time to read or write an element, in multiplications of a product.
const ELEMENT: u64 = 8;

/// Estimates the cost of a plan; `remembered` returns how many bytes a run keeps of a watched
/// value, by its slot.
pub(super) fn from_plan(plan: &TypedSimplePlan, remembered: impl Fn(usize) -> u64) -> CostEstimate {
    let model = plan.model();
    let order = plan.order_without_consts();
    let mut readers = HashMap::<OutletId, usize>::new();
    for &id in order {
        for &input in &model.nodes[id].inputs {
            *readers.entry(input).or_default() += 1;
        }
    }
    // Outputs live to the end.
    if let Ok(outputs) = model.output_outlets() {
        for &output in outputs {
            *readers.entry(output).or_default() += 1;
        }
    }
    let mut buffers = LiveBuffers::default();
    let mut work = Vec::with_capacity(order.len());
    let mut passed = Vec::with_capacity(order.len());
    for &id in order {
        let node = &model.nodes[id];
        if let Some(observer) = node.op_as::<Observe>() {
            buffers.remember(remembered(observer.slot));
        }
        let fed = node.inputs.first().copied();
        let taken = fed.filter(|input| {
            forwards(node)
                || (in_place(node)
                    && readers.get(input) == Some(&1)
                    && buffers.is_unshared(*input)
                    && bytes(&node.outputs[0].fact) == buffers.size_of_buffer(*input))
        });
        for (slot, output) in node.outputs.iter().enumerate() {
            let made = OutletId::new(id, slot);
            match taken.filter(|_| slot == 0) {
                Some(input) => buffers.share(input, made),
                None => buffers.make(made, bytes(&output.fact)),
            }
        }
        buffers.update_peak_with(temporary_bytes(node));
        for &input in &node.inputs {
            if let Some(left) = readers.get_mut(&input) {
                *left -= 1;
                if *left == 0 {
                    buffers.free(input);
                }
            }
        }
        for slot in 0..node.outputs.len() {
            let made = OutletId::new(id, slot);
            if !readers.contains_key(&made) {
                buffers.free(made);
            }
        }
        work.push(work_of(plan, node));
        passed.push(buffers.now + buffers.remembered);
    }
    CostEstimate {
        peak: buffers.peak,
        remembered: buffers.remembered_at_peak,
        usual: usual(&passed, &work),
        work,
    }
}

/// The smallest number of bytes that covers nine tenths of the work.
fn usual(passed: &[u64], work: &[u64]) -> u64 {
    let mut order: Vec<(u64, u64)> = passed.iter().copied().zip(work.iter().copied()).collect();
    order.sort_unstable();
    let all: u128 = work.iter().map(|&one| u128::from(one)).sum();
    let mut done = 0;
    for (bytes, work) in &order {
        done += u128::from(*work);
        if done * 10 >= all * 9 {
            return *bytes;
        }
    }
    0
}

/// Live buffers, and the values in each.
#[derive(Default)]
struct LiveBuffers {
    /// The buffer of each value.
    places: HashMap<OutletId, usize>,
    /// Size of each buffer, and the number of values in it.
    buffers: Vec<(u64, usize)>,
    now: u64,
    remembered: u64,
    peak: u64,
    remembered_at_peak: u64,
}

impl LiveBuffers {
    fn make(&mut self, value: OutletId, bytes: u64) {
        self.places.insert(value, self.buffers.len());
        self.buffers.push((bytes, 1));
        self.now += bytes;
        self.update_peak();
    }

    fn remember(&mut self, bytes: u64) {
        self.remembered += bytes;
        self.update_peak();
    }

    /// Updates the peak at a point with `bytes` of temporary memory.
    fn update_peak_with(&mut self, bytes: u64) {
        if self.now + self.remembered + bytes > self.peak {
            self.peak = self.now + self.remembered + bytes;
            self.remembered_at_peak = self.remembered;
        }
    }

    fn update_peak(&mut self) {
        self.update_peak_with(0);
    }

    fn share(&mut self, with: OutletId, value: OutletId) {
        match self.places.get(&with).copied() {
            Some(place) => {
                self.places.insert(value, place);
                self.buffers[place].1 += 1;
            }
            // A constant that is passed on.
            None => self.make(value, 0),
        }
    }

    fn free(&mut self, value: OutletId) {
        if let Some(place) = self.places.remove(&value) {
            let (bytes, values) = &mut self.buffers[place];
            *values -= 1;
            if *values == 0 {
                self.now -= *bytes;
            }
        }
    }

    fn is_unshared(&self, value: OutletId) -> bool {
        self.places
            .get(&value)
            .is_some_and(|&place| self.buffers[place].1 == 1)
    }

    fn size_of_buffer(&self, value: OutletId) -> u64 {
        self.places
            .get(&value)
            .map_or(0, |&place| self.buffers[place].0)
    }
}

/// Returns true for operators that pass their input on unchanged or as a view.
fn forwards(node: &TypedNode) -> bool {
    // tract doesn't export the type.
    node.op_is::<Observe>() || node.op.name() == "LazyIm2col"
}

/// Temporary bytes besides inputs and outputs.
fn temporary_bytes(node: &TypedNode) -> u64 {
    // These compute in a vector and copy it into the output tensor.
    match node.op.name().as_ref() {
        "Pad" | "Resize" => node.outputs.iter().map(|o| bytes(&o.fact)).sum(),
        _ => 0,
    }
}

/// Returns true for operators that write over their first input if they may.
fn in_place(node: &TypedNode) -> bool {
    node.op_is::<ElementWiseOp>()
        || node.op_is::<OptBinByScalar>()
        || node.op_is::<OptBinUnicast>()
        || node.op_is::<OptBinChain>()
        || node.op_is::<TypedBinOp>()
        || node.op_is::<Addend>()
        || node.op_is::<IntoShape>()
        || node
            .op_as::<AxisOp>()
            .is_some_and(|axis| !matches!(axis, AxisOp::Move(..)))
}

fn bytes(fact: &TypedFact) -> u64 {
    fact.mem_size()
        .to_i64()
        .ok()
        .and_then(|bytes| u64::try_from(bytes).ok())
        .unwrap_or(0)
}

fn elements(fact: &TypedFact) -> u64 {
    let volume = fact.shape.volume().to_i64().ok();
    volume.and_then(|v| u64::try_from(v).ok()).unwrap_or(0)
}

fn work_of(plan: &TypedSimplePlan, node: &TypedNode) -> u64 {
    let model = plan.model();
    if node.op_is::<TypedSource>() || node.op_is::<Const>() {
        return 0;
    }
    let inputs: Vec<&TypedFact> = node
        .inputs
        .iter()
        .filter_map(|&input| model.outlet_fact(input).ok())
        .collect();
    let made: u64 = node.outputs.iter().map(|o| elements(&o.fact)).sum();
    let costs = node.op.cost(&inputs).unwrap_or_default();
    let products = costs.into_iter().filter_map(|(cost, count)| match cost {
        Cost::FMA(_) => u64::try_from(count.to_i64().ok()?).ok(),
        _ => None,
    });
    let products: u64 = products.sum();
    products.saturating_add(made.saturating_mul(ELEMENT))
}

#[cfg(test)]
mod tests {
    use crate::{Engine, EngineError};
    use octet_graph::{Dim, Model, TensorType};
    use octet_onnx::in_memory::{Tensor, Values};
    use octet_onnx::schema::{DataType, GraphProto, ModelProto, NodeProto, ValueInfoProto};

    /// x → relu → r; r and exp(r) are added: at most two buffers at once.
    fn model() -> Model {
        let port = |name: &str| {
            let shape = Some(vec![Dim::Known(4), Dim::Known(256)]);
            let element = DataType::Float;
            ValueInfoProto::new(name, &TensorType { element, shape })
        };
        let nodes = vec![
            NodeProto::new("Relu", "r", &["x"], &["r"]),
            NodeProto::new("Exp", "e", &["r"], &["e"]),
            NodeProto::new("Add", "y", &["r", "e"], &["y"]),
        ];
        let graph = GraphProto {
            node: nodes,
            input: vec![port("x")],
            output: vec![port("y")],
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn values_written_over_are_not_counted_twice_and_what_is_remembered_is() {
        let input = Tensor::new(vec![4, 256], Values::F32(vec![0.5; 1024])).unwrap();
        let engine = Engine::new(model(), vec!["e".to_string()]);
        let run_plan = engine
            .run_plan(std::slice::from_ref(&input), &|| false)
            .unwrap();
        let cost_estimate = run_plan.cost_estimate(|_| 100);
        assert_eq!(
            (cost_estimate.peak, cost_estimate.remembered),
            (2 * 4096 + 100, 100)
        );
        assert!(cost_estimate.usual <= cost_estimate.peak && cost_estimate.usual >= 4096);
        let clock = std::cell::Cell::new(0.0);
        let tick = || clock.replace(clock.get() + 1.0);
        let whole = engine
            .probe(
                &run_plan,
                std::slice::from_ref(&input),
                1e9,
                tick,
                |_, _| {},
                &|| false,
            )
            .unwrap();
        assert_eq!(whole.share, 1.0);
        let part = engine
            .probe(
                &run_plan,
                std::slice::from_ref(&input),
                1.0,
                tick,
                |_, _| {},
                &|| false,
            )
            .unwrap();
        assert!(part.share < 1.0 && part.ms > 0.0, "{part:?}");
        let stopped = engine.probe(
            &run_plan,
            std::slice::from_ref(&input),
            1e9,
            tick,
            |_, _| {},
            &|| true,
        );
        assert!(matches!(stopped, Err(EngineError::Stopped)), "{stopped:?}");
    }
}
