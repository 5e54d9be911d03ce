//! Splits the output error of a whole model in two: weights alone as integers, and activations
//! alone. Both variants run beside the comparison, so the split is optional.

use super::difference::Difference;
use super::outputs::floats;
use super::simulate::simulate;
use crate::graph::Model;
use crate::onnx::schema::TensorProto;
use crate::runtime::{Engine, EngineError};
use crate::tensor::Tensor;

/// Both variants and the differences of their outputs.
pub(super) struct ErrorSplit {
    weights: SplitVariant,
    activations: SplitVariant,
}

struct SplitVariant {
    engine: Engine,
    outputs: Vec<Difference>,
}

impl ErrorSplit {
    /// Builds both variants of a model with the same opset as its float model. `None` if no
    /// constant behind DequantizeLinear has a counterpart in the float model.
    pub(super) fn new(float: &Model, quantized: &Model) -> Option<ErrorSplit> {
        let simulated = simulate(quantized);
        let (mut weights, mut activations) = (float.clone(), quantized.clone());
        let mut swapped = 0;
        for node in simulated.model.graph.nodes() {
            let mut same = float.graph.nodes().iter();
            let Some(place) = same.position(|other| other.title() == node.title()) else {
                continue;
            };
            let other = &float.graph.nodes()[place];
            if other.op_type != node.op_type || other.input.len() != node.input.len() {
                continue;
            }
            for (slot, (integers, floats)) in node.input.iter().zip(&other.input).enumerate() {
                if !simulated.constants.contains(integers) {
                    continue;
                }
                let known = simulated.model.graph.initializers.get(integers);
                let (Some(integers), Some(floats)) = (known, float.graph.initializers.get(floats))
                else {
                    continue;
                };
                if integers.shape().ok() != floats.shape().ok() {
                    continue;
                }
                swapped += 1;
                let named = |model: &mut Model, tensor: &TensorProto| {
                    let name = format!("split/{swapped}");
                    let mut tensor = tensor.clone();
                    tensor.name = Some(name.clone());
                    model.graph.initializers.insert(tensor);
                    name
                };
                let name = named(&mut weights, integers);
                weights.graph.edit(place, |node| node.input[slot] = name);
                let mut its = activations.graph.nodes().iter();
                let its = its.position(|one| one.title() == node.title())?;
                let name = named(&mut activations, floats);
                activations.graph.edit(its, |node| node.input[slot] = name);
            }
        }
        activations.graph.remove_unused();
        let part = |model: Model| SplitVariant {
            outputs: vec![Difference::default(); model.graph.outputs().len()],
            engine: Engine::new(model, Vec::new()),
        };
        (swapped > 0).then(|| ErrorSplit {
            weights: part(weights),
            activations: part(activations),
        })
    }

    /// Runs a sample; `float` holds the outputs of the float model.
    pub(super) fn add(
        &mut self,
        inputs: &[Tensor],
        float: &[Tensor],
        stop: impl Fn() -> bool,
    ) -> Result<(), EngineError> {
        let right: Vec<Vec<f32>> = float.iter().map(floats).collect();
        for part in [&mut self.weights, &mut self.activations] {
            let results = part.engine.run(inputs, |_, _| {}, &stop)?;
            for ((sum, right), results) in part.outputs.iter_mut().zip(&right).zip(&results) {
                sum.add(right, &floats(results));
            }
        }
        Ok(())
    }

    /// The differences so far: with weights alone, with activations alone.
    pub(super) fn sums(&self) -> [Vec<Difference>; 2] {
        [&self.weights, &self.activations].map(|part| part.outputs.clone())
    }

    /// Replaces the differences.
    pub(super) fn replace(&mut self, [weights, activations]: [Vec<Difference>; 2]) {
        self.weights.outputs = weights;
        self.activations.outputs = activations;
    }

    /// SQNR of each output in decibels: with weights alone, with activations alone.
    pub(super) fn finish(&self) -> Vec<(f64, f64)> {
        let sqnr = |sum: &Difference| sum.metrics().sqnr;
        let weights = self.weights.outputs.iter().map(sqnr);
        weights
            .zip(self.activations.outputs.iter().map(sqnr))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Dim, TensorType};
    use crate::onnx::schema::{
        DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };
    use crate::tensor::Values;

    fn model(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Model {
        let typed = |name: &str, shape: [usize; 2]| {
            let shape = shape.map(Dim::Known).to_vec();
            let tensor_type = TensorType {
                element: DataType::Float,
                shape: Some(shape),
            };
            ValueInfoProto::new(name, &tensor_type)
        };
        let graph = GraphProto {
            input: vec![typed("x", [1, 2])],
            output: vec![typed("y", [1, 1])],
            node: nodes,
            initializer: constants,
            ..Default::default()
        };
        Model::from_proto(ModelProto::from_graph(graph, 17)).unwrap()
    }

    #[test]
    fn weights_and_activations_are_rounded_each_alone() {
        let float = model(
            vec![NodeProto::new("MatMul", "m", &["x", "w"], &["y"])],
            vec![TensorProto::from_f32("w", &[2, 1], &[0.5, 0.3])],
        );
        // The weights are rounded to 0.5 and 0.25 (scale 0.25), the inputs to 1 and 2 (scale 1).
        let quantized = model(
            vec![
                NodeProto::new("DequantizeLinear", "dw", &["wq", "ws", "z"], &["wd"]),
                NodeProto::new("QuantizeLinear", "qx", &["x", "xs", "z"], &["xq"]),
                NodeProto::new("DequantizeLinear", "dx", &["xq", "xs", "z"], &["xd"]),
                NodeProto::new("MatMul", "m", &["xd", "wd"], &["y"]),
            ],
            vec![
                TensorProto::from_i8("wq", &[2, 1], &[2, 1]),
                TensorProto::from_f32("ws", &[], &[0.25]),
                TensorProto::from_i8("z", &[], &[0]),
                TensorProto::from_f32("xs", &[], &[1.0]),
            ],
        );
        let tensor = |shape: [usize; 2], values: &[f32]| {
            Tensor::new(shape.to_vec(), Values::F32(values.to_vec())).unwrap()
        };
        let mut split = ErrorSplit::new(&float, &quantized).unwrap();
        let (inputs, results) = (tensor([1, 2], &[1.4, 2.0]), tensor([1, 1], &[1.3]));
        split.add(&[inputs], &[results], || false).unwrap();
        let [(weights, activations)] = split.finish()[..] else {
            panic!("one output");
        };
        // The results are 1.2 and 1.1 instead of 1.3.
        assert!((weights - 20.0 * 13f64.log10()).abs() < 1e-3, "{weights}");
        assert!(
            (activations - 20.0 * 6.5f64.log10()).abs() < 1e-3,
            "{activations}"
        );
        assert!(ErrorSplit::new(&float, &float).is_none());
    }
}
