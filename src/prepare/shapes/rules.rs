//! A rule per operator: what is known of its outputs, from what is known of its inputs.

use super::numbers::{elementwise, known, places, spread, strides};
use super::{Known, LARGEST, Types, sizes, windows};
use crate::graph::Dim;
use crate::onnx::schema::{DataType, NodeProto};

/// What is known of each output, in order.
pub(super) fn outputs(node: &NodeProto, types: &Types) -> Vec<Option<Known>> {
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
    fn input(&self, slot: usize) -> Option<&Known> {
        self.types.get(self.node.input_at(slot)?)
    }

    /// A list of integers, an attribute in old opsets and an input in new ones.
    fn list(&self, key: &str, slot: usize) -> Option<Vec<i64>> {
        match self.node.ints(key) {
            Some(list) => Some(list.to_vec()),
            None => self.input(slot)?.all_integers(),
        }
    }

    fn is_given(&self, key: &str, slot: usize) -> bool {
        self.node.attribute(key).is_some() || self.node.input_at(slot).is_some()
    }

    fn same(&self, slot: usize) -> Option<Known> {
        let input = self.input(slot)?;
        Some(Known::new(input.element, input.shape.clone()))
    }

    fn single(&self, operator: &str) -> Option<Known> {
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
            | "Scatter" => self.same(0),
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "Min" | "Max" | "Sum" | "Mean"
            | "And" | "Or" | "Xor" | "Equal" | "Less" | "LessOrEqual" | "Greater"
            | "GreaterOrEqual" | "Where" => self.broadcast(operator),
            "Cast" => {
                let element = DataType::try_from(i32::try_from(node.int("to")?).ok()?).ok()?;
                let input = self.input(0)?;
                Some(elementwise(
                    node,
                    &[input],
                    Known::new(element, input.shape.clone()),
                ))
            }
            "Shape" => self.shape_of(),
            "Size" => {
                let count: usize = self.input(0)?.sizes()?.iter().product();
                let mut result = Known::new(DataType::Int64, Some(vec![]));
                result.integers = Some(vec![Some(count as i64)]);
                Some(result)
            }
            "ConstantOfShape" => self.constant_of_shape(),
            "Range" => self.range(),
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
            "GatherElements" => Some(Known::new(
                self.input(0)?.element,
                self.input(1)?.shape.clone(),
            )),
            "Conv" | "ConvTranspose" | "MaxPool" | "AveragePool" | "LpPool" => Some(Known::new(
                self.input(0)?.element,
                windows::shape(node, self.types),
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
                Some(Known::new(DataType::Int64, shape))
            }
            _ if operator.starts_with("Reduce") => self.reduce(operator),
            _ => None,
        }
    }

    fn broadcast(&self, operator: &str) -> Option<Known> {
        let inputs: Option<Vec<&Known>> =
            (0..self.node.input.len()).map(|i| self.input(i)).collect();
        let element = match operator {
            "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => DataType::Bool,
            "Where" => self.input(1).or(self.input(2))?.element,
            _ => self.input(0).or(self.input(1))?.element,
        };
        // Before opset 7 an axis aligned the shapes otherwise.
        let Some(inputs) = inputs.filter(|_| self.node.attribute("axis").is_none()) else {
            return Some(Known::new(element, None));
        };
        let shapes: Option<Vec<&[Dim]>> = inputs.iter().map(|k| k.shape.as_deref()).collect();
        let shape = shapes.map(|s| broadcast(&s));
        Some(elementwise(self.node, &inputs, Known::new(element, shape)))
    }

    fn shape_of(&self) -> Option<Known> {
        let shape = self.input(0)?.shape.as_ref()?;
        let rank = shape.len() as i64;
        let clamp = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank) as usize;
        let start = clamp(self.node.int("start").unwrap_or(0));
        let end = clamp(self.node.int("end").unwrap_or(rank)).max(start);
        let mut result = Known::new(DataType::Int64, known(&[end - start]));
        let size = |d: &Dim| {
            if let Dim::Known(size) = d {
                Some(*size as i64)
            } else {
                None
            }
        };
        result.integers = Some(shape[start..end].iter().map(size).collect());
        Some(result)
    }

    /// The shape that an input of integers tells; `None` where its length is not known.
    fn told(&self, slot: usize) -> Option<Vec<Dim>> {
        let input = self.input(slot)?;
        if let Some(integers) = &input.integers {
            let size = |v: &Option<i64>| {
                v.and_then(|v| usize::try_from(v).ok())
                    .map_or(Dim::Unknown, Dim::Known)
            };
            return Some(integers.iter().map(size).collect());
        }
        match input.shape.as_deref()? {
            [Dim::Known(rank)] if *rank < 64 => Some(vec![Dim::Unknown; *rank]),
            _ => None,
        }
    }

    fn constant_of_shape(&self) -> Option<Known> {
        let value = self.node.tensor("value");
        let constant = match value {
            Some(tensor) => Known::of_constant(tensor)?,
            None => {
                let mut zero = Known::new(DataType::Float, None);
                zero.floats = Some(vec![0.0]);
                zero
            }
        };
        let result = Known::new(constant.element, self.told(0));
        let Some(shape) = result.sizes() else {
            return Some(result);
        };
        let count: usize = shape.iter().product();
        if count > LARGEST {
            return Some(result);
        }
        Some(result.picked(&constant, &vec![0; count]))
    }

    fn range(&self) -> Option<Known> {
        let number = |slot: usize| self.input(slot)?.all_integers()?.first().copied();
        let element = self.input(0).or(self.input(1)).or(self.input(2))?.element;
        let mut result = Known::new(element, Some(vec![Dim::Unknown]));
        let (Some(start), Some(limit), Some(delta)) = (number(0), number(1), number(2)) else {
            return Some(result);
        };
        let mut numbers = Vec::new();
        let mut at = start;
        while delta != 0 && (if delta > 0 { at < limit } else { at > limit }) {
            if numbers.len() == LARGEST {
                return Some(result);
            }
            numbers.push(Some(at));
            let Some(next) = at.checked_add(delta) else {
                break;
            };
            at = next;
        }
        result.shape = known(&[numbers.len()]);
        result.integers = Some(numbers);
        Some(result)
    }

    fn expand(&self) -> Option<Known> {
        let input = self.input(0)?;
        let shape = match (&input.shape, self.told(1)) {
            (Some(a), Some(b)) => Some(broadcast(&[a, &b])),
            _ => None,
        };
        let result = Known::new(input.element, shape);
        let places = input
            .sizes()
            .zip(result.sizes())
            .and_then(|(from, to)| spread(&from, &to));
        Some(match places {
            Some(places) => result.picked(input, &places),
            None => result,
        })
    }

    fn tile(&self) -> Option<Known> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let repeats = self.input(1).and_then(Known::all_integers);
        let dims = match repeats {
            Some(repeats) if repeats.len() == shape.len() => {
                let times = |(d, r): (&Dim, i64)| match (d, r) {
                    (d, 1) => d.clone(),
                    (Dim::Known(size), r) if r >= 0 => Dim::Known(size * r as usize),
                    _ => Dim::Unknown,
                };
                shape.iter().zip(repeats).map(times).collect()
            }
            _ => vec![Dim::Unknown; shape.len()],
        };
        Some(Known::new(input.element, Some(dims)))
    }

    fn reshape(&self) -> Option<Known> {
        let input = self.input(0)?;
        let Some(target) = (match self.node.ints("shape") {
            Some(shape) => Some(shape.iter().map(|&v| Some(v)).collect::<Vec<_>>()),
            None => self.input(1)?.integers.clone(),
        }) else {
            return Some(Known::new(input.element, self.told(1)));
        };
        let keeps = self.node.int("allowzero").unwrap_or(0) == 0;
        let from = input.shape.as_deref();
        // Sizes that are taken over cancel out of the one to be found, known or not.
        let mut rest: Option<Vec<Dim>> = from.map(<[Dim]>::to_vec);
        let mut taken = Some(1usize);
        let mut dims = Vec::new();
        let mut open = None;
        for (axis, &size) in target.iter().enumerate() {
            dims.push(match size {
                Some(0) if keeps => {
                    let size = from
                        .and_then(|f| f.get(axis))
                        .cloned()
                        .unwrap_or(Dim::Unknown);
                    if let Some(rest) = rest.as_mut().and_then(|r| r.get_mut(axis)) {
                        *rest = Dim::Known(1);
                    }
                    size
                }
                Some(-1) => {
                    open = Some(axis);
                    Dim::Unknown
                }
                Some(size) if size >= 0 => {
                    taken = taken.and_then(|t| t.checked_mul(size as usize));
                    Dim::Known(size as usize)
                }
                _ => {
                    taken = None;
                    Dim::Unknown
                }
            });
        }
        if let (Some(axis), Some(taken), Some(rest)) =
            (open, taken, rest.as_deref().and_then(sizes))
        {
            let count: usize = rest.iter().product();
            if taken > 0 && count % taken == 0 {
                dims[axis] = Dim::Known(count / taken);
            }
        }
        Some(Known::new(input.element, Some(dims)).reshaped(input))
    }

    fn flatten(&self) -> Option<Known> {
        let input = self.input(0)?;
        let result = |dims| Some(Known::new(input.element, Some(dims)).reshaped(input));
        let Some(shape) = &input.shape else {
            return result(vec![Dim::Unknown; 2]);
        };
        let axis = self.node.int("axis").unwrap_or(1);
        let axis = if axis < 0 {
            axis + shape.len() as i64
        } else {
            axis
        };
        let (left, right) = shape.split_at_checked(usize::try_from(axis).ok()?)?;
        result(vec![product(left), product(right)])
    }

    fn squeeze(&self) -> Option<Known> {
        let input = self.input(0)?;
        let unknown = Some(Known::new(input.element, None));
        let Some(shape) = &input.shape else {
            return unknown;
        };
        let axes = match (self.list("axes", 1), self.is_given("axes", 1)) {
            (Some(axes), _) => positions(&axes, shape.len())?,
            (None, true) => return unknown,
            (None, false) if shape.iter().all(|d| matches!(d, Dim::Known(_))) => (0..shape.len())
                .filter(|&a| shape[a] == Dim::Known(1))
                .collect(),
            (None, false) => return unknown,
        };
        let kept = shape.iter().enumerate().filter(|(a, _)| !axes.contains(a));
        let dims = kept.map(|(_, d)| d.clone()).collect();
        Some(Known::new(input.element, Some(dims)).reshaped(input))
    }

    fn unsqueeze(&self) -> Option<Known> {
        let input = self.input(0)?;
        let (Some(shape), Some(axes)) = (&input.shape, self.list("axes", 1)) else {
            return Some(Known::new(input.element, None));
        };
        let rank = shape.len() + axes.len();
        let axes = positions(&axes, rank)?;
        let mut old = shape.iter();
        let dims: Option<Vec<Dim>> = (0..rank)
            .map(|a| {
                if axes.contains(&a) {
                    Some(Dim::Known(1))
                } else {
                    old.next().cloned()
                }
            })
            .collect();
        Some(Known::new(input.element, dims).reshaped(input))
    }

    fn transpose(&self) -> Option<Known> {
        let input = self.input(0)?;
        let Some(shape) = &input.shape else {
            return Some(Known::new(input.element, None));
        };
        let order: Vec<usize> = match self.node.ints("perm") {
            Some(order) => positions(order, shape.len())?,
            None => (0..shape.len()).rev().collect(),
        };
        let dims: Vec<Dim> = order.iter().map(|&a| shape[a].clone()).collect();
        let result = Known::new(input.element, Some(dims));
        let (Some(from), Some(to)) = (input.sizes(), result.sizes()) else {
            return Some(result);
        };
        if to.iter().product::<usize>() > LARGEST {
            return Some(result);
        }
        let steps = strides(&from);
        let places = places(&to, |index| {
            order.iter().zip(index).map(|(&a, i)| steps[a] * i).sum()
        });
        Some(result.picked(input, &places))
    }

    fn concat(&self) -> Option<Known> {
        let inputs: Option<Vec<&Known>> =
            (0..self.node.input.len()).map(|i| self.input(i)).collect();
        let element = (0..self.node.input.len())
            .find_map(|i| self.input(i))?
            .element;
        let unknown = Some(Known::new(element, None));
        let Some(inputs) = inputs else { return unknown };
        let Some(shapes) = inputs
            .iter()
            .map(|k| k.shape.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            return unknown;
        };
        let rank = shapes.first()?.len();
        if shapes.iter().any(|s| s.len() != rank) {
            return None;
        }
        let axis = position(self.node.int("axis").unwrap_or(1), rank)?;
        let along: Vec<Dim> = shapes.iter().map(|s| s[axis].clone()).collect();
        let dims = (0..rank).map(|a| {
            if a == axis {
                return sizes(&along).map_or(Dim::Unknown, |s| Dim::Known(s.iter().sum()));
            }
            let known = shapes
                .iter()
                .map(|s| &s[a])
                .find(|d| matches!(d, Dim::Known(_)));
            known.unwrap_or(&shapes[0][a]).clone()
        });
        let mut result = Known::new(element, Some(dims.collect()));
        // Values are joined where they are lists, which is what shapes are made of.
        if rank == 1 {
            let integers = inputs
                .iter()
                .zip(&shapes)
                .map(|(k, s)| match (&k.integers, &s[0]) {
                    (Some(integers), _) => Some(integers.clone()),
                    (None, Dim::Known(size)) if *size <= LARGEST => Some(vec![None; *size]),
                    _ => None,
                });
            let integers: Option<Vec<_>> = integers.collect();
            let is_integer = !matches!(
                element,
                DataType::Float | DataType::Double | DataType::Float16
            );
            result.integers = integers
                .filter(|_| is_integer)
                .map(|v| v.concat())
                .filter(|v| v.len() <= LARGEST);
            let floats: Option<Vec<_>> = inputs.iter().map(|k| k.floats.clone()).collect();
            result.floats = floats.map(|v| v.concat()).filter(|v| v.len() <= LARGEST);
        }
        Some(result)
    }

    fn slice(&self) -> Option<Known> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let rank = shape.len();
        let (starts, ends) = (self.list("starts", 1), self.list("ends", 2));
        let axes = match (self.list("axes", 3), self.is_given("axes", 3)) {
            (Some(axes), _) => Some(axes),
            (None, true) => None,
            (None, false) => starts.as_ref().map(|s| (0..s.len() as i64).collect()),
        };
        let steps = match (self.list("steps", 4), self.node.input_at(4)) {
            (Some(steps), _) => Some(steps),
            (None, Some(_)) => None,
            (None, None) => starts.as_ref().map(|s| vec![1; s.len()]),
        };
        let Some(axes) = axes else {
            return Some(Known::new(input.element, Some(vec![Dim::Unknown; rank])));
        };
        let axes = positions(&axes, rank)?;
        let mut dims = shape.clone();
        let mut from = vec![(0i64, 1i64); rank];
        for (i, &axis) in axes.iter().enumerate() {
            let number = |list: &Option<Vec<i64>>| list.as_ref().and_then(|l| l.get(i)).copied();
            dims[axis] = match (&shape[axis], number(&starts), number(&ends), number(&steps)) {
                (Dim::Known(size), Some(start), Some(end), Some(step)) if step != 0 => {
                    let (first, count) = cut(*size as i64, start, end, step);
                    from[axis] = (first, step);
                    Dim::Known(count)
                }
                // The whole axis, however long it is.
                (dim, Some(0), Some(i64::MAX), Some(1)) => dim.clone(),
                _ => Dim::Unknown,
            };
        }
        let result = Known::new(input.element, Some(dims));
        let (Some(old), Some(new)) = (input.sizes(), result.sizes()) else {
            return Some(result);
        };
        if old.iter().product::<usize>() > LARGEST {
            return Some(result);
        }
        let stride = strides(&old);
        let places = places(&new, |index| {
            let along = |a: usize| (from[a].0 + from[a].1 * index[a] as i64) as usize * stride[a];
            (0..rank).map(along).sum()
        });
        Some(result.picked(input, &places))
    }

    fn gather(&self) -> Option<Known> {
        let (input, indices) = (self.input(0)?, self.input(1)?);
        let (Some(shape), Some(index_shape)) = (&input.shape, &indices.shape) else {
            return Some(Known::new(input.element, None));
        };
        let axis = position(self.node.int("axis").unwrap_or(0), shape.len())?;
        let dims = [&shape[..axis], index_shape, &shape[axis + 1..]].concat();
        let result = Known::new(input.element, Some(dims));
        let (Some(old), Some(new), Some(at)) =
            (input.sizes(), result.sizes(), indices.all_integers())
        else {
            return Some(result);
        };
        if new.iter().product::<usize>() > LARGEST || old.iter().product::<usize>() > LARGEST {
            return Some(result);
        }
        let size = old[axis] as i64;
        let at: Option<Vec<usize>> = at
            .iter()
            .map(|&i| {
                usize::try_from(if i < 0 { i + size } else { i })
                    .ok()
                    .filter(|&i| i < old[axis])
            })
            .collect();
        let Some(at) = at else { return Some(result) };
        let after: usize = old[axis + 1..].iter().product();
        let count: usize = new.iter().product();
        let places: Vec<usize> = (0..count)
            .map(|i| {
                let (rest, inner) = (i / after.max(1), i % after.max(1));
                let (outer, which) = (rest / at.len(), rest % at.len());
                (outer * old[axis] + at[which]) * after + inner
            })
            .collect();
        Some(result.picked(input, &places))
    }

    fn matmul(&self) -> Option<Known> {
        let (a, b) = (self.input(0), self.input(1));
        let element = a.or(b)?.element;
        let (Some(left), Some(right)) = (
            a.and_then(|k| k.shape.as_deref()),
            b.and_then(|k| k.shape.as_deref()),
        ) else {
            return Some(Known::new(element, None));
        };
        let batch = |s: &[Dim]| s[..s.len().saturating_sub(2)].to_vec();
        let mut dims = broadcast(&[&batch(left), &batch(right)]);
        if left.len() > 1 {
            dims.push(left[left.len() - 2].clone());
        }
        if right.len() > 1 {
            dims.push(right[right.len() - 1].clone());
        }
        Some(Known::new(element, Some(dims)))
    }

    fn gemm(&self) -> Option<Known> {
        let side = |slot: usize, key: &str, axis: usize| {
            let axis = if self.node.int(key).unwrap_or(0) != 0 {
                1 - axis
            } else {
                axis
            };
            self.input(slot)
                .and_then(|k| k.shape.as_ref()?.get(axis).cloned())
                .unwrap_or(Dim::Unknown)
        };
        let element = self.input(0).or(self.input(1))?.element;
        Some(Known::new(
            element,
            Some(vec![side(0, "transA", 0), side(1, "transB", 1)]),
        ))
    }

    fn pad(&self) -> Option<Known> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let pads = match self.node.ints("paddings") {
            Some(pads) => Some(pads.to_vec()),
            None => self.list("pads", 1),
        };
        let rank = shape.len();
        let pads = pads.filter(|p| p.len() == 2 * rank && self.node.input_at(3).is_none());
        let size = |axis: usize| match (&shape[axis], &pads) {
            (Dim::Known(size), Some(pads)) => {
                let size = *size as i64 + pads[axis] + pads[axis + rank];
                usize::try_from(size).map_or(Dim::Unknown, Dim::Known)
            }
            (dim, Some(pads)) if pads[axis] == 0 && pads[axis + rank] == 0 => dim.clone(),
            _ => Dim::Unknown,
        };
        Some(Known::new(
            input.element,
            Some((0..rank).map(size).collect()),
        ))
    }

    fn resize(&self) -> Option<Known> {
        let input = self.input(0)?;
        let shape = input.shape.as_ref()?;
        let unknown = Some(Known::new(
            input.element,
            Some(vec![Dim::Unknown; shape.len()]),
        ));
        if self.node.attribute("axes").is_some()
            || self
                .node
                .text("keep_aspect_ratio_policy")
                .is_some_and(|p| p != "stretch")
            || self.node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
        {
            return unknown;
        }
        if let Some(dims) = self.told(3).filter(|d| d.len() == shape.len()) {
            return Some(Known::new(input.element, Some(dims)));
        }
        let slot = if self.node.input.len() <= 2 { 1 } else { 2 };
        let scales = match self.node.attribute("scales") {
            Some(attribute) => Some(attribute.floats.clone()),
            None => self.input(slot).and_then(|k| k.floats.clone()),
        };
        let Some(scales) = scales.filter(|s| s.len() == shape.len()) else {
            return unknown;
        };
        let size = |(dim, &scale): (&Dim, &f32)| match dim {
            Dim::Known(size) => Dim::Known((*size as f32 * scale).floor() as usize),
            dim if scale == 1.0 => dim.clone(),
            _ => Dim::Unknown,
        };
        Some(Known::new(
            input.element,
            Some(shape.iter().zip(&scales).map(size).collect()),
        ))
    }

    /// DepthToSpace and back.
    fn blocks(&self, to_space: bool) -> Option<Known> {
        let input = self.input(0)?;
        let shape = input.shape.as_deref()?;
        let block = usize::try_from(self.node.int("blocksize")?)
            .ok()
            .filter(|&b| b > 0)?;
        let [batch, channel, height, width] = shape else {
            return None;
        };
        let times = |d: &Dim, by: usize, up: bool| match d {
            Dim::Known(size) => Dim::Known(if up { size * by } else { size / by }),
            _ => Dim::Unknown,
        };
        let dims = vec![
            batch.clone(),
            times(channel, block * block, !to_space),
            times(height, block, to_space),
            times(width, block, to_space),
        ];
        Some(Known::new(input.element, Some(dims)))
    }

    fn reduced(&self, axes: Option<Vec<i64>>) -> Option<Vec<Dim>> {
        let shape = self.input(0)?.shape.as_ref()?;
        let keep = self.node.int("keepdims").unwrap_or(1) != 0;
        let axes = positions(&axes?, shape.len())?;
        let mut dims = Vec::new();
        for (axis, dim) in shape.iter().enumerate() {
            match (axes.contains(&axis), keep) {
                (false, _) => dims.push(dim.clone()),
                (true, true) => dims.push(Dim::Known(1)),
                (true, false) => {}
            }
        }
        Some(dims)
    }

    fn reduce(&self, operator: &str) -> Option<Known> {
        let input = self.input(0)?;
        let rank = input.shape.as_ref().map(Vec::len);
        let given = self.is_given("axes", 1);
        let axes = self.list("axes", 1).filter(|a| !a.is_empty());
        if given && axes.is_none() || !given && self.node.int("noop_with_empty_axes") == Some(1) {
            return Some(Known::new(input.element, None));
        }
        let axes = axes.or_else(|| rank.map(|r| (0..r as i64).collect()));
        let mut result = Known::new(input.element, self.reduced(axes));
        if result
            .sizes()
            .is_some_and(|s| s.iter().product::<usize>() == 1)
        {
            if let Some(all) = input.all_integers() {
                let number = match operator {
                    "ReduceProd" => all.iter().try_fold(1i64, |a, &v| a.checked_mul(v)),
                    "ReduceSum" => all.iter().try_fold(0i64, |a, &v| a.checked_add(v)),
                    "ReduceMax" => all.into_iter().max(),
                    "ReduceMin" => all.into_iter().min(),
                    _ => None,
                };
                result.integers = number.map(|n| vec![Some(n)]);
            }
        }
        Some(result)
    }

    fn split(&self) -> Vec<Option<Known>> {
        let count = self.node.output.len();
        let Some(input) = self.input(0) else {
            return vec![None; count];
        };
        let unknown = vec![Some(Known::new(input.element, None)); count];
        let Some(shape) = &input.shape else {
            return unknown;
        };
        let Some(axis) = position(self.node.int("axis").unwrap_or(0), shape.len()) else {
            return unknown;
        };
        let parts: Option<Vec<usize>> = match (self.list("split", 1), &shape[axis]) {
            (Some(parts), _) => parts.iter().map(|&p| usize::try_from(p).ok()).collect(),
            (None, Dim::Known(size)) if !self.is_given("split", 1) && count > 0 => {
                // Even parts, the last one the smaller.
                let part = size.div_ceil(count);
                Some(
                    (0..count)
                        .map(|i| part.min(size.saturating_sub(i * part)))
                        .collect(),
                )
            }
            _ => None,
        };
        let parts = parts.filter(|p| p.len() == count);
        let mut start = 0;
        (0..count)
            .map(|i| {
                let mut dims = shape.clone();
                dims[axis] = parts.as_ref().map_or(Dim::Unknown, |p| Dim::Known(p[i]));
                let result = Known::new(input.element, Some(dims));
                let (Some(parts), 1) = (&parts, shape.len()) else {
                    return Some(result);
                };
                let places: Vec<usize> = (start..start + parts[i]).collect();
                start += parts[i];
                Some(result.picked(input, &places))
            })
            .collect()
    }

    fn top_k(&self) -> Vec<Option<Known>> {
        let Some(input) = self.input(0) else {
            return vec![None; 2];
        };
        let k = match self.node.int("k") {
            Some(k) => Some(k),
            None => self
                .input(1)
                .and_then(|k| k.all_integers()?.first().copied()),
        };
        let k = k
            .and_then(|k| usize::try_from(k).ok())
            .map_or(Dim::Unknown, Dim::Known);
        let shape = input.shape.clone().and_then(|mut shape| {
            let axis = position(self.node.int("axis").unwrap_or(-1), shape.len())?;
            shape[axis] = k;
            Some(shape)
        });
        vec![
            Some(Known::new(input.element, shape.clone())),
            Some(Known::new(DataType::Int64, shape)),
        ]
    }

    fn recurrent(&self) -> Vec<Option<Known>> {
        let Some(input) = self.input(0) else {
            return vec![];
        };
        let element = input.element;
        let hidden = self
            .node
            .int("hidden_size")
            .and_then(|h| usize::try_from(h).ok());
        let both = self.node.text("direction") == Some("bidirectional");
        let shape = input.shape.as_deref().filter(|s| s.len() == 3);
        let (Some(hidden), Some(shape), 0) = (hidden, shape, self.node.int("layout").unwrap_or(0))
        else {
            return vec![Some(Known::new(element, None)); 3];
        };
        let (sides, hidden) = (Dim::Known(if both { 2 } else { 1 }), Dim::Known(hidden));
        let all = vec![
            shape[0].clone(),
            sides.clone(),
            shape[1].clone(),
            hidden.clone(),
        ];
        let last = vec![sides, shape[1].clone(), hidden];
        [all, last.clone(), last]
            .map(|s| Some(Known::new(element, Some(s))))
            .into()
    }
}

/// The shape of values of these shapes together.
fn broadcast(shapes: &[&[Dim]]) -> Vec<Dim> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let at = |axis: usize| {
        let mut found = Dim::Known(1);
        for shape in shapes {
            let Some(own) = (axis + shape.len()).checked_sub(rank) else {
                continue;
            };
            found = match (&found, &shape[own]) {
                (Dim::Known(1), dim) => dim.clone(),
                (dim, Dim::Known(1)) => dim.clone(),
                // Whatever the other is, 1 or the same, this is the result.
                (Dim::Known(size), _) | (_, Dim::Known(size)) => Dim::Known(*size),
                (Dim::Named(a), Dim::Named(b)) if a == b => Dim::Named(a.clone()),
                _ => Dim::Unknown,
            };
        }
        found
    };
    (0..rank).map(at).collect()
}

fn product(dims: &[Dim]) -> Dim {
    match dims {
        [one] => one.clone(),
        _ => sizes(dims).map_or(Dim::Unknown, |s| Dim::Known(s.iter().product())),
    }
}

/// An axis counted from the front.
fn position(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&a| a < rank)
}

fn positions(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    axes.iter().map(|&a| position(a, rank)).collect()
}

/// First index and number of elements of a slice, as ONNX clamps it.
fn cut(size: i64, start: i64, end: i64, step: i64) -> (i64, usize) {
    let from_front = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
    let (low, high) = if step > 0 { (0, size) } else { (0, size - 1) };
    let first = from_front(start).clamp(low, high.max(low));
    let last = if step > 0 {
        from_front(end).clamp(0, size)
    } else {
        from_front(end).clamp(-1, size - 1)
    };
    let distance = if step > 0 { last - first } else { first - last };
    let count = if distance <= 0 || size == 0 {
        0
    } else {
        (distance - 1) / step.saturating_abs() + 1
    };
    (first, count as usize)
}
