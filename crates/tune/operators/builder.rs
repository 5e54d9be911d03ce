//! Builds the program of some nodes of a quantized model, for inputs of one shape.

use std::collections::HashMap;

use octet_graph::prepare::Types;
use octet_graph::{Graph, Model, Node};
use octet_onnx::schema::{DataType, TensorProto};
use octet_training::reverse::{
    FakeQuantize, ProgramStep, ReverseOperation, ReverseProgram, ValueGather,
};

use crate::layers::{TunedLayer, integer_ends};

/// The scale, zero point and type of a quantized value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueGrid {
    pub(crate) scale: f32,
    pub(crate) zero_point: i64,
    element: DataType,
}

/// A constant scale that can learn.
pub(crate) struct StepScale {
    /// The name of the constant.
    pub(crate) name: String,
    pub(crate) leaf: usize,
}

/// The leaves of a layer that learns.
#[derive(Clone, Copy)]
pub(crate) struct LayerLeaves {
    /// The place of the layer.
    pub(crate) place: usize,
    pub(crate) weights: usize,
    pub(crate) bias: Option<usize>,
}

/// A program in the making.
pub(crate) struct Builder<'a> {
    pub(crate) model: &'a Model,
    pub(crate) types: &'a Types,
    layers: &'a [TunedLayer],
    /// Values by name; those of quantized values are the reals.
    values: HashMap<String, usize>,
    grids: HashMap<String, ValueGrid>,
    pub(crate) shapes: Vec<Vec<usize>>,
    /// The numbers of constants, by value.
    pub(crate) constants: HashMap<usize, Vec<f32>>,
    pub(crate) steps: Vec<ProgramStep>,
    pub(crate) scales: Vec<StepScale>,
    pub(crate) learned: Vec<LayerLeaves>,
}

/// The grid of a QuantizeLinear or DequantizeLinear with one constant scale.
pub(crate) fn grid_of(graph: &Graph, linear: &Node) -> Option<ValueGrid> {
    let constant = |slot: usize| graph.initializers.get(linear.input_at(slot)?);
    let &[scale] = constant(1)?.to_f32().ok()?.as_slice() else {
        return None;
    };
    let (zero_point, element) = match constant(2) {
        Some(tensor) => (*tensor.to_i64().ok()?.first()?, tensor.element().ok()?),
        None if linear.input_at(2).is_some() => return None,
        None => (0, DataType::Uint8),
    };
    Some(ValueGrid {
        scale,
        zero_point,
        element,
    })
}

impl ValueGrid {
    /// The integers less the zero point.
    fn rounding(&self) -> Option<FakeQuantize> {
        let [low, high] = integer_ends(self.element)?;
        let zero_point = i32::try_from(self.zero_point).ok()?;
        Some(FakeQuantize {
            low: low - zero_point,
            high: high - zero_point,
        })
    }
}

impl<'a> Builder<'a> {
    pub(crate) fn new(model: &'a Model, types: &'a Types, layers: &'a [TunedLayer]) -> Builder<'a> {
        Builder {
            model,
            types,
            layers,
            values: HashMap::new(),
            grids: HashMap::new(),
            shapes: Vec::new(),
            constants: HashMap::new(),
            steps: Vec::new(),
            scales: Vec::new(),
            learned: Vec::new(),
        }
    }

    pub(crate) fn graph(&self) -> &'a Graph {
        &self.model.graph
    }

    /// The program of the steps so far, and the numbers of its constants, by value. The steps and
    /// constants go into it.
    pub(crate) fn program(
        &mut self,
        outputs: Vec<usize>,
        learned: &[usize],
    ) -> Option<(ReverseProgram, Vec<Vec<f32>>)> {
        let sizes = self.shapes.iter().map(|shape| shape.iter().product());
        let sizes: Vec<usize> = sizes.collect();
        let mut constants = vec![Vec::new(); sizes.len()];
        for (value, numbers) in std::mem::take(&mut self.constants) {
            constants[value] = numbers;
        }
        let steps = std::mem::take(&mut self.steps);
        let program = ReverseProgram::new(sizes, steps, outputs, learned)?;
        Some((program, constants))
    }

    /// A value without a step: the caller gives its numbers.
    pub(crate) fn leaf(&mut self, shape: &[usize]) -> usize {
        self.shapes.push(shape.to_vec());
        self.shapes.len() - 1
    }

    /// A constant.
    pub(crate) fn constant(&mut self, shape: &[usize], numbers: Vec<f32>) -> Option<usize> {
        let fits = shape.iter().product::<usize>() == numbers.len();
        let value = fits.then(|| self.leaf(shape))?;
        self.constants.insert(value, numbers);
        Some(value)
    }

    /// A value that rests before the nodes, under its name.
    pub(crate) fn input(&mut self, name: &str) -> Option<usize> {
        let shape = self.types.get(name)?.sizes()?;
        let value = self.leaf(&shape);
        self.values.insert(name.to_string(), value);
        let readers = self.graph().consumers(name).iter();
        let mut readers = readers.map(|reader| &self.graph().nodes()[reader.node]);
        if let Some(linear) = readers.find(|node| node.op_type == "DequantizeLinear") {
            let grid = grid_of(self.graph(), linear)?;
            self.grids.insert(name.to_string(), grid);
        }
        Some(value)
    }

    /// Names a value.
    pub(crate) fn name(&mut self, name: &str, value: usize) {
        self.values.insert(name.to_string(), value);
    }

    /// A value that is already known.
    pub(crate) fn known(&self, name: &str) -> Option<usize> {
        self.values.get(name).copied()
    }

    /// The grid of a quantized value.
    pub(crate) fn grid(&self, name: &str) -> Option<&ValueGrid> {
        self.grids.get(name)
    }

    /// The reals of a value: known, constant, or dequantized.
    pub(crate) fn value(&mut self, name: &str) -> Option<usize> {
        if let Some(value) = self.known(name) {
            return Some(value);
        }
        let graph = self.graph();
        let value = if let Some(tensor) = graph.initializers.get(name) {
            let shape = tensor.shape().ok()?;
            let float = tensor.element().ok()? == DataType::Float;
            let numbers = float.then(|| tensor.to_f32().ok())??;
            self.constant(&shape, numbers)?
        } else {
            let linear = &graph.nodes()[graph.producer(name)?];
            if linear.op_type != "DequantizeLinear" {
                return None;
            }
            let integers = linear.input_at(0)?;
            match (self.known(integers), graph.initializers.get(integers)) {
                // A pair with two grids would be a change of scale, which has no operation.
                (Some(value), _) => {
                    let same = self.grid(integers) == grid_of(graph, linear).as_ref();
                    same.then_some(value)?
                }
                (None, Some(tensor)) => {
                    let numbers = dequantized(graph, linear, tensor)?;
                    self.constant(&tensor.shape().ok()?, numbers)?
                }
                _ => return None,
            }
        };
        self.name(name, value);
        Some(value)
    }

    /// The value in a slot of a node.
    pub(crate) fn at(&mut self, node: &Node, slot: usize) -> Option<usize> {
        self.value(node.input_at(slot)?)
    }

    /// The numbers of a constant in a slot.
    pub(crate) fn numbers(&mut self, node: &Node, slot: usize) -> Option<Vec<f32>> {
        let value = self.at(node, slot)?;
        self.constants.get(&value).cloned()
    }

    /// Integers that are constant or follow from shapes.
    pub(crate) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        match self.graph().initializers.get(name) {
            Some(tensor) => tensor.to_i64().ok(),
            None => self.types.get(name)?.all_integers(),
        }
    }

    pub(crate) fn shape(&self, value: usize) -> &[usize] {
        &self.shapes[value]
    }

    /// Adds a step; returns its value.
    pub(crate) fn push(
        &mut self,
        operation: ReverseOperation,
        inputs: &[usize],
        shape: &[usize],
    ) -> usize {
        let output = self.leaf(shape);
        self.steps.push(ProgramStep {
            operation,
            inputs: inputs.to_vec(),
            output,
        });
        output
    }

    /// Adds a step with a result of the shape of its first input.
    pub(crate) fn push_alike(&mut self, operation: ReverseOperation, inputs: &[usize]) -> usize {
        let shape = self.shape(inputs[0]).to_vec();
        self.push(operation, inputs, &shape)
    }

    /// A value's numbers in another shape.
    pub(crate) fn reshaped(&mut self, value: usize, shape: &[usize]) -> usize {
        if self.shape(value) == shape {
            return value;
        }
        let same = ValueGather {
            places: None,
            constant: 0.0,
        };
        self.push(ReverseOperation::Gather(same), &[value], shape)
    }

    /// A value repeated to a shape.
    pub(crate) fn repeated(&mut self, value: usize, shape: &[usize]) -> Option<usize> {
        if self.shape(value) == shape {
            return Some(value);
        }
        let places = Some(repeated_places(self.shape(value), shape)?);
        let of = ValueGather {
            places,
            constant: 0.0,
        };
        Some(self.push(ReverseOperation::Gather(of), &[value], shape))
    }

    /// The layer of a node, if it learns, with new leaves of these sizes.
    pub(crate) fn learned_layer(&mut self, node: usize, weights: usize) -> Option<LayerLeaves> {
        let place = self.layers.iter().position(|layer| layer.node == node)?;
        let outputs = self.layers[place].rows.outputs();
        let bias = self.layers[place].bias.is_some();
        let leaves = LayerLeaves {
            place,
            weights: self.leaf(&[weights]),
            bias: bias.then(|| self.leaf(&[outputs])),
        };
        self.learned.push(leaves);
        Some(leaves)
    }

    /// QuantizeLinear: the reals of the rounded value, under the name of its integers.
    pub(crate) fn quantize(&mut self, node: &Node) -> Option<()> {
        let grid = grid_of(self.graph(), node)?;
        let value = self.at(node, 0)?;
        let (name, known) = (node.input_at(1)?, self.scales.iter());
        let leaf = match known.clone().find(|scale| scale.name == name) {
            Some(scale) => scale.leaf,
            None => {
                let (name, leaf) = (name.to_string(), self.constant(&[1], vec![grid.scale])?);
                self.scales.push(StepScale { name, leaf });
                leaf
            }
        };
        let rounding = ReverseOperation::FakeQuantize(grid.rounding()?);
        let rounded = self.push_alike(rounding, &[value, leaf]);
        let integers = node.output.first()?;
        self.grids.insert(integers.clone(), grid);
        self.name(integers, rounded);
        Some(())
    }
}

/// The place of each value of a shape in a value that is repeated to it.
pub(crate) fn repeated_places(from: &[usize], to: &[usize]) -> Option<Vec<u32>> {
    let more = to.len().checked_sub(from.len())?;
    let mut places = vec![0u32];
    let mut stride = from.iter().product::<usize>();
    u32::try_from(stride).ok()?;
    for (axis, &size) in to.iter().enumerate() {
        let own = if axis < more { 1 } else { from[axis - more] };
        if own != size && own != 1 {
            return None;
        }
        stride /= own.max(1);
        let step = if own == 1 { 0 } else { stride as u32 };
        let along = |place: &u32| {
            (0..size as u32).map(move |at| at * step).map({
                let place = *place;
                move |more| place + more
            })
        };
        places = places.iter().flat_map(along).collect();
    }
    Some(places)
}

/// The reals of a constant, with a scale for all or for each index along an axis.
fn dequantized(graph: &Graph, linear: &Node, tensor: &TensorProto) -> Option<Vec<f32>> {
    if linear.int("block_size").unwrap_or(0) != 0 {
        return None;
    }
    let constant = |slot: usize| graph.initializers.get(linear.input_at(slot)?);
    let (integers, shape) = (tensor.to_i64().ok()?, tensor.shape().ok()?);
    let scales = constant(1)?.to_f32().ok()?;
    let zero_points = match constant(2) {
        Some(tensor) => tensor.to_i64().ok()?,
        None => vec![0; scales.len()],
    };
    let axis = linear.int("axis").unwrap_or(1);
    let axis = usize::try_from(if axis < 0 {
        axis + shape.len() as i64
    } else {
        axis
    })
    .ok()?;
    let inner: usize = match scales.len() {
        1 => integers.len(),
        count if shape.get(axis) == Some(&count) => shape[axis + 1..].iter().product(),
        _ => return None,
    };
    if zero_points.len() != scales.len() {
        return None;
    }
    let real = |(place, integer): (usize, &i64)| {
        let own = place / inner.max(1) % scales.len();
        (integer - zero_points[own]) as f32 * scales[own]
    };
    Some(integers.iter().enumerate().map(real).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_along_axes_of_size_one() {
        let places = |from: &[usize], to: &[usize]| repeated_places(from, to);
        assert_eq!(places(&[2, 1], &[2, 3]), Some(vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(places(&[3], &[2, 3]), Some(vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(places(&[], &[2]), Some(vec![0, 0]));
        assert_eq!(
            places(&[2, 1, 2], &[2, 2, 2]),
            Some(vec![0, 1, 0, 1, 2, 3, 2, 3])
        );
        assert_eq!(places(&[2], &[3]), None);
        assert_eq!(places(&[1, 2], &[2]), None);
    }
}
