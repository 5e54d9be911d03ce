//! Inference rules, one for each operator: outputs from inputs.

mod images;
mod indexing;
mod layout;
mod reductions;
mod shape_values;

pub use indexing::slice_bounds;

use super::small_values::elementwise;
use super::{InferredValue, Types, count, sizes, windows};
use crate::Dim;
use octet_onnx::schema::{DataType, NodeProto};

/// The outputs of a node, inferred, in order.
pub(super) fn outputs(node: &NodeProto, types: &Types) -> Vec<Option<InferredValue>> {
    let ctx = Context { node, types };
    match node.op_type.as_deref().unwrap_or_default() {
        "Split" => ctx.split(),
        "TopK" => ctx.top_k(),
        "LSTM" | "GRU" | "RNN" => ctx.recurrent(),
        "Dropout" => vec![ctx.same(0)],
        operator => vec![ctx.single(operator)],
    }
}

struct Context<'a> {
    node: &'a NodeProto,
    types: &'a Types,
}
impl Context<'_> {
    fn input(&self, slot: usize) -> Option<&InferredValue> {
        self.types.get(self.node.input_at(slot)?)
    }

    /// A list of integers: an attribute in old opsets, an input in new ones.
    fn list(&self, key: &str, slot: usize) -> Option<Vec<i64>> {
        match self.node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.input(slot)?.all_integers(),
        }
    }

    fn is_present(&self, key: &str, slot: usize) -> bool {
        self.node.attribute(key).is_some() || self.node.input_at(slot).is_some()
    }

    fn same(&self, slot: usize) -> Option<InferredValue> {
        let input = self.input(slot)?;
        Some(InferredValue::new(input.element, input.shape.clone()))
    }

    fn single(&self, operator: &str) -> Option<InferredValue> {
        let node = self.node;
        match operator {
            "Identity" => self.input(0).cloned(),
            "Relu" | "LeakyRelu" | "Sigmoid" | "Tanh" | "Erf" | "Exp" | "Log" | "Sqrt" | "Neg"
            | "Abs" | "Floor" | "Ceil" | "Round" | "HardSigmoid" | "HardSwish" | "Elu" | "Selu"
            | "Celu" | "Gelu" | "Mish" | "Softplus" | "Softsign" | "Sign" | "Reciprocal"
            | "Sin" | "Cos" | "Tan" | "ThresholdedRelu" | "Not" => {
                let input = self.input(0)?;
                Some(elementwise(node, &[input], self.same(0)?))
            }
            "Softmax"
            | "LogSoftmax"
            | "Hardmax"
            | "Clip"
            | "BatchNormalization"
            | "InstanceNormalization"
            | "LayerNormalization"
            | "GroupNormalization"
            | "PRelu"
            | "CumSum"
            | "LpNormalization"
            | "LRN"
            | "MeanVarianceNormalization"
            | "ScatterElements"
            | "ScatterND"
            | "Scatter"
            | "ReverseSequence" => self.same(0),
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "Min" | "Max" | "Sum" | "Mean"
            | "And" | "Or" | "Xor" | "Equal" | "Less" | "LessOrEqual" | "Greater"
            | "GreaterOrEqual" | "Where" => self.broadcast(operator),
            "Cast" => {
                let element = DataType::try_from(i32::try_from(node.int("to")?).ok()?).ok()?;
                let input = self.input(0)?;
                Some(elementwise(
                    node,
                    &[input],
                    InferredValue::new(element, input.shape.clone()),
                ))
            }
            "QuantizeLinear" => {
                let target = node.int("output_dtype").filter(|&target| target != 0);
                let target = target.and_then(|t| DataType::try_from(i32::try_from(t).ok()?).ok());
                let element = self.input(2).map(|zero_point| zero_point.element);
                let element = element.or(target).unwrap_or(DataType::Uint8);
                Some(InferredValue::new(element, self.input(0)?.shape.clone()))
            }
            "DequantizeLinear" => {
                let element = self.input(1).map_or(DataType::Float, |scale| scale.element);
                Some(InferredValue::new(element, self.input(0)?.shape.clone()))
            }
            "Shape" => self.shape_of(),
            "Size" => {
                let count = count(&self.input(0)?.sizes()?);
                let mut result = InferredValue::new(DataType::Int64, Some(vec![]));
                result.integers = Some(vec![Some(count as i64)]);
                Some(result)
            }
            "ConstantOfShape" => self.constant_of_shape(),
            "Range" => self.range(),
            "OneHot" => self.one_hot(),
            "Expand" => self.expand(),
            "Tile" => self.tile(),
            "Reshape" => self.reshape(),
            "Flatten" => self.flatten(),
            "Squeeze" => self.squeeze(),
            "Unsqueeze" => self.unsqueeze(),
            "Transpose" => self.transpose(),
            "Concat" => self.concat(),
            "Slice" => self.slice(),
            "Gather" => self.gather(),
            "GatherND" => self.gather_nd(),
            "NonMaxSuppression" => {
                let shape = vec![Dim::Unknown, Dim::Known(3)];
                Some(InferredValue::new(DataType::Int64, Some(shape)))
            }
            "NonZero" => {
                let rank = self.input(0)?.shape.as_ref().map(Vec::len);
                let rank = rank.map_or(Dim::Unknown, Dim::Known);
                Some(InferredValue::new(
                    DataType::Int64,
                    Some(vec![rank, Dim::Unknown]),
                ))
            }
            "GatherElements" => Some(InferredValue::new(
                self.input(0)?.element,
                self.input(1)?.shape.clone(),
            )),
            "Conv" | "ConvTranspose" | "DeformConv" | "MaxPool" | "AveragePool" | "LpPool" => Some(
                InferredValue::new(self.input(0)?.element, windows::shape(node, self.types)),
            ),
            "MaxUnpool" | "RoiAlign" | "MaxRoiPool" | "AffineGrid" | "Col2Im" | "CenterCropPad"
            | "Det" => Some(InferredValue::new(
                self.input(0)?.element,
                self.image_shape(operator),
            )),
            "GlobalAveragePool" | "GlobalMaxPool" => {
                let mut result = self.same(0)?;
                if let Some(shape) = &mut result.shape {
                    shape.iter_mut().skip(2).for_each(|d| *d = Dim::Known(1));
                }
                Some(result)
            }
            "MatMul" => self.matmul(),
            "Gemm" => self.gemm(),
            "Pad" => self.pad(),
            "Resize" | "Upsample" => self.resize(),
            "DepthToSpace" => self.blocks(true),
            "SpaceToDepth" => self.blocks(false),
            "ArgMax" | "ArgMin" => {
                let axis = node.int("axis").unwrap_or(0);
                let shape = self.reduced(Some(vec![axis]));
                Some(InferredValue::new(DataType::Int64, shape))
            }
            _ if operator.starts_with("Reduce") => self.reduce(operator),
            _ => None,
        }
    }

    fn broadcast(&self, operator: &str) -> Option<InferredValue> {
        let inputs: Option<Vec<&InferredValue>> =
            (0..self.node.input.len()).map(|i| self.input(i)).collect();
        let element = match operator {
            "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => DataType::Bool,
            "Where" => self.input(1).or(self.input(2))?.element,
            _ => self.input(0).or(self.input(1))?.element,
        };
        // Before opset 7 an axis attribute aligned the shapes differently.
        let Some(inputs) = inputs.filter(|_| self.node.attribute("axis").is_none()) else {
            return Some(InferredValue::new(element, None));
        };
        let shapes: Option<Vec<&[Dim]>> = inputs.iter().map(|k| k.shape.as_deref()).collect();
        let shape = shapes.map(|s| broadcast(&s));
        Some(elementwise(
            self.node,
            &inputs,
            InferredValue::new(element, shape),
        ))
    }
}

/// The result of broadcasting these shapes.
fn broadcast(shapes: &[&[Dim]]) -> Vec<Dim> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let at = |axis: usize| {
        let mut result = Dim::Known(1);
        for shape in shapes {
            let Some(own) = (axis + shape.len()).checked_sub(rank) else {
                continue;
            };
            result = match (&result, &shape[own]) {
                (Dim::Known(1), dim) => dim.clone(),
                (dim, Dim::Known(1)) => dim.clone(),
                // The other size is 1 or equal, so this is the result either way.
                (Dim::Known(size), _) | (_, Dim::Known(size)) => Dim::Known(*size),
                (Dim::Named(a), Dim::Named(b)) if a == b => Dim::Named(a.clone()),
                _ => Dim::Unknown,
            };
        }
        result
    };
    (0..rank).map(at).collect()
}

fn product(dims: &[Dim]) -> Dim {
    match dims {
        [one] => one.clone(),
        _ => sizes(dims).map_or(Dim::Unknown, |s| Dim::Known(count(&s))),
    }
}

/// An axis counted from the front; `None` if it is out of range.
pub fn position(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&a| a < rank)
}

fn positions(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    axes.iter().map(|&a| position(a, rank)).collect()
}
