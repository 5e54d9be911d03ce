//! The function behind a layer, and the rounding of its output: both are a part of the loss.

use octet_training::{QuantizationGrid, fake_quantize, fake_quantize_gradient, mask_len};

/// The function that reads a layer's output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LayerFunction {
    Identity,
    /// Relu and Clip, with their bounds.
    Clamp(f32, f32),
    /// LeakyRelu, with its slope.
    Leaky(f32),
    Sigmoid,
    Tanh,
}

impl LayerFunction {
    /// The value of the function.
    pub(crate) fn of(self, x: f32) -> f32 {
        match self {
            LayerFunction::Identity => x,
            LayerFunction::Clamp(low, high) => x.max(low).min(high),
            LayerFunction::Leaky(slope) => {
                if x < 0.0 {
                    slope * x
                } else {
                    x
                }
            }
            LayerFunction::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            LayerFunction::Tanh => x.tanh(),
        }
    }

    /// Replaces values by those of the function.
    fn apply(self, values: &mut [f32]) {
        match self {
            LayerFunction::Identity => {}
            // A loop of its own is vectorized.
            LayerFunction::Clamp(low, high) => {
                values.iter_mut().for_each(|x| *x = x.max(low).min(high));
            }
            other => values.iter_mut().for_each(|x| *x = other.of(*x)),
        }
    }

    /// Takes the function's values of `wanted` off `values`.
    pub(crate) fn take_off(self, wanted: &[f32], values: &mut [f32]) {
        let pairs = values.iter_mut().zip(wanted);
        match self {
            LayerFunction::Identity => pairs.for_each(|(value, x)| *value -= x),
            LayerFunction::Clamp(low, high) => {
                pairs.for_each(|(value, x)| *value -= x.max(low).min(high));
            }
            other => pairs.for_each(|(value, x)| *value -= other.of(*x)),
        }
    }
}

/// A function and an optional rounding, with the memory that its gradient needs: one bit a value,
/// and the result itself for Sigmoid and Tanh.
pub(crate) struct OutputStage {
    activation: LayerFunction,
    output: Option<QuantizationGrid>,
    passed: Vec<u32>,
    kept: Vec<u32>,
    curved: Vec<f32>,
    scratch: Vec<f32>,
}

impl OutputStage {
    pub(crate) fn new(activation: LayerFunction, output: Option<QuantizationGrid>) -> OutputStage {
        OutputStage {
            activation,
            output,
            passed: Vec::new(),
            kept: Vec::new(),
            curved: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Bytes of the masks.
    #[cfg(test)]
    fn mask_bytes(&self) -> usize {
        (self.passed.len() + self.kept.len()) * size_of::<u32>()
    }

    /// Replaces the layer's outputs by those of the stage.
    pub(crate) fn forward(&mut self, values: &mut [f32]) {
        let words = mask_len(values.len());
        if let LayerFunction::Clamp(..) | LayerFunction::Leaky(_) = self.activation {
            self.passed.clear();
            self.passed.resize(words, 0);
            let inside = |x: f32| match self.activation {
                LayerFunction::Clamp(low, high) => x > low && x < high,
                _ => x >= 0.0,
            };
            for (word, values) in self.passed.iter_mut().zip(values.chunks(32)) {
                let bits = values.iter().enumerate();
                *word = bits.fold(0, |word, (bit, &x)| word | u32::from(inside(x)) << bit);
            }
        }
        self.activation.apply(values);
        if let LayerFunction::Sigmoid | LayerFunction::Tanh = self.activation {
            self.curved.clear();
            self.curved.extend_from_slice(values);
        }
        if let Some(grid) = self.output {
            self.kept.clear();
            self.kept.resize(words, 0);
            self.scratch.clear();
            self.scratch.extend_from_slice(values);
            // The lengths fit by construction.
            let _fits = fake_quantize(&self.scratch, grid, values, &mut self.kept);
        }
    }

    /// Turns the gradient of the stage's outputs into that of its inputs, in place.
    pub(crate) fn backward(&mut self, gradient: &mut [f32]) {
        if self.output.is_some() {
            self.scratch.clear();
            self.scratch.extend_from_slice(gradient);
            let _fits = fake_quantize_gradient(&self.scratch, &self.kept, gradient);
        }
        match self.activation {
            LayerFunction::Identity => {}
            LayerFunction::Clamp(..) => {
                self.scratch.clear();
                self.scratch.extend_from_slice(gradient);
                let _fits = fake_quantize_gradient(&self.scratch, &self.passed, gradient);
            }
            LayerFunction::Leaky(slope) => {
                for (place, gradient) in gradient.iter_mut().enumerate() {
                    let passed = self.passed[place / 32] >> (place % 32) & 1 == 1;
                    *gradient *= if passed { 1.0 } else { slope };
                }
            }
            LayerFunction::Sigmoid => {
                for (gradient, y) in gradient.iter_mut().zip(&self.curved) {
                    *gradient *= y * (1.0 - y);
                }
            }
            LayerFunction::Tanh => {
                for (gradient, y) in gradient.iter_mut().zip(&self.curved) {
                    *gradient *= 1.0 - y * y;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LayerFunction; 5] = [
        LayerFunction::Identity,
        LayerFunction::Clamp(0.0, 1.5),
        LayerFunction::Leaky(0.1),
        LayerFunction::Sigmoid,
        LayerFunction::Tanh,
    ];

    #[test]
    fn gradients_match_central_differences() {
        let values: Vec<f32> = (0..70)
            .map(|i| (i as f32 * 0.37).sin() * 2.0 + 0.013)
            .collect();
        for activation in ALL {
            let mut stage = OutputStage::new(activation, None);
            let mut out = values.clone();
            stage.forward(&mut out);
            let mut gradient = vec![1.0; values.len()];
            stage.backward(&mut gradient);
            for (&x, &actual) in values.iter().zip(&gradient) {
                let step = 1e-3;
                let slope = (activation.of(x + step) - activation.of(x - step)) / (2.0 * step);
                assert!(
                    (actual - slope).abs() < 2e-3,
                    "{activation:?} {x}: {actual} {slope}"
                );
            }
        }
    }

    #[test]
    fn masks_have_a_thirty_second_of_the_bytes_of_the_floats() {
        let grid = QuantizationGrid::new(0.01, -100, 100);
        let mut values = vec![0.5; 4096];
        let mut stage = OutputStage::new(LayerFunction::Clamp(0.0, 6.0), None);
        stage.forward(&mut values);
        assert_eq!(stage.mask_bytes() * 32, values.len() * size_of::<f32>());
        // With a rounded output there is a second mask.
        let mut stage = OutputStage::new(LayerFunction::Clamp(0.0, 6.0), grid);
        stage.forward(&mut values);
        assert_eq!(stage.mask_bytes() * 16, values.len() * size_of::<f32>());
    }

    #[test]
    fn a_rounded_output_passes_gradients_inside_of_its_range_only() {
        let grid = QuantizationGrid::new(0.5, 0, 4);
        let mut stage = OutputStage::new(LayerFunction::Identity, grid);
        let mut values = [0.6, 7.0, -3.0];
        stage.forward(&mut values);
        assert_eq!(values, [0.5, 2.0, 0.0]);
        let mut gradient = [1.0; 3];
        stage.backward(&mut gradient);
        assert_eq!(gradient, [1.0, 0.0, 0.0]);
    }
}
