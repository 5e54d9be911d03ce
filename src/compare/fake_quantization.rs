//! Rounding to integers and back, in float arithmetic.
//!
//! QuantizeLinear followed by DequantizeLinear turns x into `(clamp(round(x/s) + z, low, high) -
//! z)·s`. Integers of at most 16 bits are exact in float32, so this equals `clamp(round(x/s), low -
//! z, high - z)·s`. Div, Round (half to even, as QuantizeLinear), Clip and Mul compute the same
//! bits.

use crate::graph::{Model, Node};
use crate::onnx::schema::{DataType, TensorProto};

/// Rounding of a value to its quantization grid.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeQuantization {
    pub(super) scale: f32,
    /// Smallest and largest integer, minus the zero point.
    low: f32,
    high: f32,
}

impl FakeQuantization {
    /// The rounding of a QuantizeLinear or DequantizeLinear with a single scale and at most 16 bits.
    pub(super) fn from_node(model: &Model, node: &Node) -> Option<FakeQuantization> {
        let constant = |slot| model.graph.initializers.get(node.input_at(slot)?);
        let scale = constant(1)?.to_f32().ok()?;
        let (element, zero_point) = match constant(2) {
            Some(tensor) => (tensor.element().ok()?, tensor.to_i64().ok()?),
            None => (DataType::Uint8, vec![0]),
        };
        let ([scale], [zero_point]) = (scale.as_slice(), zero_point.as_slice()) else {
            return None;
        };
        FakeQuantization::new(element, *scale, i32::try_from(*zero_point).ok()?)
    }

    /// The rounding to integers of this type; `None` for integers of more than 16 bits.
    pub fn new(element: DataType, scale: f32, zero_point: i32) -> Option<FakeQuantization> {
        let (low, high) = match element {
            DataType::Uint4 => (0, 15),
            DataType::Int4 => (-8, 7),
            DataType::Uint8 => (0, 255),
            DataType::Int8 => (-128, 127),
            DataType::Uint16 => (0, 65_535),
            DataType::Int16 => (-32_768, 32_767),
            _ => return None,
        };
        Some(FakeQuantization {
            scale,
            low: (low - zero_point) as f32,
            high: (high - zero_point) as f32,
        })
    }

    /// Rounding to the integers of this range, with this scale.
    #[cfg(test)]
    pub(super) fn of(scale: f32, (low, high): (f32, f32)) -> FakeQuantization {
        FakeQuantization { scale, low, high }
    }

    /// The range of reals that the integers represent.
    pub(super) fn range(&self) -> (f32, f32) {
        (self.low * self.scale, self.high * self.scale)
    }

    /// A test for values that none of the integers is near: values up to half a step beyond an end
    /// still round to it.
    pub(super) fn outside(&self) -> impl Fn(f32) -> bool + use<> {
        let (low, high) = self.range();
        // The ends are products in float32, which are slightly off.
        let slack = self.scale * 0.5 + (high - low) * 1e-6;
        move |value| value < low - slack || value > high + slack
    }

    /// The mean squared error of rounding these values.
    pub fn error(&self, values: &[f32]) -> f64 {
        let square = |&x: &f32| {
            let steps = (x / self.scale).round_ties_even();
            let apart = f64::from(steps.clamp(self.low, self.high) * self.scale - x);
            if apart.is_finite() {
                apart * apart
            } else {
                0.0
            }
        };
        values.iter().map(square).sum::<f64>() / values.len().max(1) as f64
    }

    /// Nodes that round `input` into `output`. Adds their constants to the model.
    pub fn nodes(&self, model: &mut Model, input: &str, output: &str) -> Vec<Node> {
        let mut constant = |word: &str, value: f32| {
            let name = format!("{output}/{word}");
            let tensor = TensorProto::from_f32(&name, &[], &[value]);
            model.graph.initializers.insert(tensor);
            name
        };
        let (scale, low, high) = (
            constant("scale", self.scale),
            constant("low", self.low),
            constant("high", self.high),
        );
        let step = |word: &str| format!("{output}/{word}");
        let (steps, whole, inside) = (step("steps"), step("whole"), step("inside"));
        vec![
            Node::new("Div", &steps, &[input, &scale], &[&steps]),
            Node::new("Round", &whole, &[&steps], &[&whole]),
            Node::new("Clip", &inside, &[&whole, &low, &high], &[&inside]),
            Node::new("Mul", output, &[&inside, &scale], &[output]),
        ]
    }
}
