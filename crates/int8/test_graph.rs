//! Small QDQ graphs for the tests of operators, and float operators to evaluate their tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{DataType, GraphProto, ModelProto, TensorProto, ValueInfoProto};

use crate::error::ProgramError;
use crate::float_evaluator::FloatEvaluator;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::program::{OutputSlice, RegionInput};
use crate::{FusedNode, Processor, Scope};
use octet_graph::{Dim, Model, Node, TensorType};

/// Scale of all eight-bit values of a test graph; their zero point is 128.
pub(crate) const SCALE: f32 = 1.0 / 16.0;

/// Scale of all 16-bit values of a test graph; their zero point is 32768.
const SCALE_16: f32 = 1.0 / 4096.0;

/// The operation of a step that is never lowered.
struct NoOperation;

impl Operation for NoOperation {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn lower<'a>(&'a self, _: &LoweredStep<'a>, _: &mut Compiler<'a>) -> Result<(), ProgramError> {
        Ok(())
    }
}

/// Float operators that tests put into tables.
pub(crate) struct TestFloats;

impl FloatEvaluator for TestFloats {
    fn evaluate(&self, model: Model, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, String> {
        let graph = &model.graph;
        let count = inputs[0].shape()[0];
        let mut values: HashMap<String, Vec<f32>> = HashMap::new();
        for (port, tensor) in graph.inputs.iter().zip(&inputs) {
            let floats = tensor.as_f32().ok_or("a table of floats only")?;
            values.insert(port.name.clone().unwrap_or_default(), floats.to_vec());
        }
        for node in graph.nodes() {
            let read = |name: &String| match graph.initializers.get(name) {
                Some(tensor) => vec![tensor.to_f32().unwrap()[0]; count],
                None => values[name].clone(),
            };
            let operands: Vec<Vec<f32>> = node.input.iter().map(read).collect();
            let at = |place: usize| float_operator(node, operands.iter().map(|o| o[place]));
            let result = (0..count).map(at).collect::<Result<_, _>>()?;
            values.insert(node.output[0].clone(), result);
        }
        let results = graph.outputs().iter().map(|port| {
            let floats = values[port.name.as_deref().unwrap_or_default()].clone();
            Tensor::new(vec![count], Values::F32(floats)).ok_or_else(|| "a size".to_owned())
        });
        results.collect()
    }
}

fn float_operator(node: &Node, mut operands: impl Iterator<Item = f32>) -> Result<f32, String> {
    let mut next = || operands.next().unwrap_or_default();
    Ok(match node.operator().as_str() {
        "Relu" => next().max(0.0),
        "Sigmoid" => 1.0 / (1.0 + (-next()).exp()),
        "Add" => next() + next(),
        "Sub" => next() - next(),
        "Mul" => next() * next(),
        "Abs" => next().abs(),
        other => return Err(format!("the test has no {other}")),
    })
}

/// A graph with Q/DQ pairs around its nodes.
#[derive(Default)]
pub(crate) struct TestGraph {
    nodes: Vec<Node>,
    constants: Vec<TensorProto>,
    types: BTreeMap<String, TensorType>,
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<String>,
    wide: bool,
    opset: Option<i64>,
}

/// Results of a run.
#[derive(Debug)]
pub(crate) struct TestRun {
    pub(crate) nodes: Vec<FusedNode>,
    /// For each output, its reals.
    pub(crate) results: Vec<Vec<f32>>,
}

impl TestGraph {
    /// A graph whose activations have eight or 16 bits.
    pub(crate) fn new(wide: bool) -> TestGraph {
        TestGraph {
            wide,
            ..TestGraph::default()
        }
    }

    /// Activations from now on have 16 bits.
    pub(crate) fn on_16_bits(self) -> TestGraph {
        TestGraph { wide: true, ..self }
    }

    /// Declares a value as a float scalar.
    pub(crate) fn float(&mut self, name: &str) {
        self.typed(name, DataType::Float, &[]);
    }

    pub(crate) fn opset(&mut self, opset: i64) {
        self.opset = Some(opset);
    }

    fn typed(&mut self, name: &str, element: DataType, shape: &[usize]) {
        let shape = shape.iter().map(|&size| Dim::Known(size)).collect();
        let of = TensorType {
            element,
            shape: Some(shape),
        };
        self.types.insert(name.to_owned(), of);
    }

    /// A float input with numbers between -4 and 4 that its quantization represents; also returns
    /// these numbers. Nodes read it as `name`.
    pub(crate) fn input(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        let count: usize = shape.iter().product();
        let seed = name.bytes().map(usize::from).sum::<usize>();
        let real = |at: usize| ((at * 37 + seed * 11) % 128) as f32 / 16.0 - 4.0;
        let reals: Vec<f32> = (0..count).map(real).collect();
        let tensor = Tensor::new(shape.to_vec(), Values::F32(reals.clone())).unwrap();
        self.inputs.push((format!("{name}_outside"), tensor));
        self.typed(&format!("{name}_outside"), DataType::Float, shape);
        self.pair(&format!("{name}_outside"), name, shape);
        reals
    }

    /// A Boolean input; true at every third place.
    pub(crate) fn condition(&mut self, name: &str, shape: &[usize]) -> Vec<bool> {
        let count: usize = shape.iter().product();
        let truths: Vec<bool> = (0..count).map(|at| at % 3 == 0).collect();
        let bytes = truths.iter().map(|&truth| u8::from(truth)).collect();
        let tensor = Tensor::new(shape.to_vec(), Values::U8(bytes)).unwrap();
        self.inputs.push((name.to_owned(), tensor));
        self.typed(name, DataType::Bool, shape);
        truths
    }

    /// A float input without quantization.
    pub(crate) fn floats(&mut self, name: &str, shape: &[usize], reals: &[f32]) {
        let tensor = Tensor::new(shape.to_vec(), Values::F32(reals.to_vec())).unwrap();
        self.inputs.push((name.to_owned(), tensor));
        self.typed(name, DataType::Float, shape);
    }

    /// QuantizeLinear and DequantizeLinear from one real value to another.
    pub(crate) fn pair(&mut self, real: &str, result: &str, shape: &[usize]) {
        let integers = format!("{result}_integers");
        let (element, parameters) = match self.wide {
            false => (DataType::Uint8, ["scale_8", "zero_point_8"]),
            true => (DataType::Uint16, ["scale_16", "zero_point_16"]),
        };
        let [scale, zero_point] = parameters;
        for (operator, from, to) in [
            ("QuantizeLinear", real, &*integers),
            ("DequantizeLinear", &*integers, result),
        ] {
            let name = format!("{operator}_{result}");
            let inputs = [from, scale, zero_point];
            self.nodes.push(Node::new(operator, &name, &inputs, &[to]));
        }
        self.typed(&integers, element, shape);
        self.typed(result, DataType::Float, shape);
    }

    pub(crate) fn constant(&mut self, name: &str, shape: &[usize], reals: &[f32]) {
        self.constants
            .push(TensorProto::from_f32(name, shape, reals));
    }

    pub(crate) fn integers(&mut self, name: &str, integers: &[i64]) {
        let tensor = Tensor::new(vec![integers.len()], Values::I64(integers.to_vec())).unwrap();
        self.constants.push(TensorProto::from_tensor(name, &tensor));
    }

    pub(crate) fn bytes(&mut self, name: &str, shape: &[usize], integers: &[i8]) {
        let tensor = Tensor::new(shape.to_vec(), Values::I8(integers.to_vec())).unwrap();
        self.constants.push(TensorProto::from_tensor(name, &tensor));
    }

    /// A quantized weight with small integers and a scale of 1/8. Returns its reals.
    pub(crate) fn weight(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        let count: usize = shape.iter().product();
        let integers: Vec<i8> = (0..count).map(|at| (at * 5 % 15) as i8 - 7).collect();
        let bytes = format!("{name}_bytes");
        self.bytes(&bytes, shape, &integers);
        let inputs = [&*bytes, "weight_scale"];
        let title = format!("DequantizeLinear_{name}");
        self.nodes
            .push(Node::new("DequantizeLinear", &title, &inputs, &[name]));
        self.typed(name, DataType::Float, shape);
        integers.iter().map(|&i| f32::from(i) * 0.125).collect()
    }

    /// Adds a node and the types of its outputs.
    pub(crate) fn node(&mut self, node: Node, element: DataType, shapes: &[&[usize]]) {
        for (name, shape) in node.output.clone().iter().zip(shapes) {
            self.typed(name, element, shape);
        }
        self.nodes.push(node);
    }

    /// Adds a node of floats with quantized outputs, which are outputs of the graph.
    pub(crate) fn tested(&mut self, node: Node, shapes: &[&[usize]]) {
        let names = node.output.clone();
        self.node(node, DataType::Float, shapes);
        for (name, shape) in names.iter().zip(shapes) {
            let result = format!("{name}_result");
            self.pair(name, &result, shape);
            self.outputs.push(result);
        }
    }

    /// Makes a value an output of the graph.
    pub(crate) fn output(&mut self, name: &str) {
        self.outputs.push(name.to_owned());
    }

    fn model(&self) -> Model {
        let port = |name: &String| ValueInfoProto::new(name, &self.types[name]);
        let mut constants = vec![
            TensorProto::from_f32("scale_8", &[], &[SCALE]),
            TensorProto::from_f32("scale_16", &[], &[SCALE_16]),
            TensorProto::from_f32("weight_scale", &[], &[0.125]),
        ];
        let zero_points = [Values::U8(vec![128]), Values::U16(vec![32768])];
        for (name, values) in ["zero_point_8", "zero_point_16"].iter().zip(zero_points) {
            let tensor = Tensor::new(Vec::new(), values).unwrap();
            constants.push(TensorProto::from_tensor(name, &tensor));
        }
        constants.extend(self.constants.iter().cloned());
        let graph = GraphProto {
            node: self.nodes.iter().map(Node::to_proto).collect(),
            initializer: constants,
            input: self.inputs.iter().map(|(name, _)| port(name)).collect(),
            output: self.outputs.iter().map(port).collect(),
            ..GraphProto::default()
        };
        let opset = self.opset.unwrap_or(21);
        Model::from_proto(ModelProto::from_graph(graph, opset)).unwrap()
    }

    fn compiled(&self) -> crate::Fused {
        crate::compile(
            self.model(),
            &self.types,
            &[],
            (Scope::Integers, Processor::Exact),
            &TestFloats,
        )
        .unwrap()
    }

    /// Compiles the graph, which must become one region, and runs it.
    pub(crate) fn run(&self) -> TestRun {
        let fused = self.compiled();
        let reasons: Vec<_> = fused.nodes.iter().filter(|n| n.reason.is_some()).collect();
        assert!(reasons.is_empty(), "{reasons:#?}");
        let [program] = &fused.programs[..] else {
            panic!("{} regions", fused.programs.len());
        };
        let [region] = fused.model.graph.nodes() else {
            panic!("nodes are left outside the region");
        };
        let input = |name: &String| {
            let (_, tensor) = self.inputs.iter().find(|(input, _)| input == name).unwrap();
            match tensor.values() {
                Values::F32(floats) => RegionInput::Floats(floats),
                Values::U8(bytes) => RegionInput::Bytes(bytes),
                _ => panic!("an input of another type"),
            }
        };
        let inputs: Vec<RegionInput> = region.input.iter().map(input).collect();
        let sizes = program.outputs().map(|value| value.shape.iter().product());
        let mut results: Vec<Vec<f32>> = sizes.map(|size| vec![f32::NAN; size]).collect();
        let mut slices: Vec<OutputSlice> = results
            .iter_mut()
            .map(|result| OutputSlice::Floats(result))
            .collect();
        program.run(&inputs, &mut slices, None).unwrap();
        let place = |name: &String| region.output.iter().position(|o| o == name).unwrap();
        let results = self
            .outputs
            .iter()
            .map(|name| results[place(name)].clone())
            .collect();
        TestRun {
            nodes: fused.nodes,
            results,
        }
    }

    /// The reason why a node runs in float.
    pub(crate) fn reason(&self, node: &str) -> String {
        let fused = self.compiled();
        let node = fused.nodes.iter().find(|fused| fused.node == node);
        node.unwrap().reason.clone().unwrap()
    }
}

impl TestRun {
    /// The operation of a node.
    pub(crate) fn operation(&self, node: &str) -> &str {
        let node = self.nodes.iter().find(|fused| fused.node == node);
        &node.unwrap().operation
    }

    /// Asserts that the first output has these reals, apart from a number of steps of its scale.
    pub(crate) fn assert_near(&self, expected: &[f32], steps: f32) {
        assert_near(&self.results[0], expected, steps * SCALE);
    }
}

/// Asserts that all reals differ by at most `most`.
pub(crate) fn assert_near(result: &[f32], expected: &[f32], most: f32) {
    assert_eq!(result.len(), expected.len());
    let rounding = 1e-5;
    for (at, (result, expected)) in result.iter().zip(expected).enumerate() {
        let near = (result - expected).abs() <= most + rounding;
        assert!(near, "{at}: {result}, expected {expected}");
    }
}

/// The integers of eight bits nearest to these reals, as reals.
pub(crate) fn rounded(reals: impl IntoIterator<Item = f32>) -> Vec<f32> {
    let one = |real: f32| (real / SCALE).round_ties_even().clamp(-128.0, 127.0) * SCALE;
    reals.into_iter().map(one).collect()
}

/// An operation that no test lowers.
pub(crate) fn no_operation() -> Arc<dyn Operation> {
    Arc::new(NoOperation)
}
