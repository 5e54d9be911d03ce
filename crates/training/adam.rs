//! The optimizer Adam, by Kingma and Ba (2015), with its usual constants.

const FIRST: f32 = 0.9;
const SECOND: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// State of the optimizer for some parameters.
#[derive(Clone, Debug)]
pub struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
}

impl Adam {
    /// The state before the first step.
    pub fn new(parameters: usize) -> Adam {
        Adam {
            first: vec![0.0; parameters],
            second: vec![0.0; parameters],
            steps: 0,
        }
    }

    /// Moves the parameters against their gradient. NaN gradients count as zero.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        self.steps += 1;
        let corrections = [FIRST, SECOND].map(|decay| 1.0 - decay.powi(self.steps));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, &slope), (first, second)) in
            parameters.iter_mut().zip(gradient).zip(moments)
        {
            let slope = if slope.is_nan() { 0.0 } else { slope };
            *first += (1.0 - FIRST) * (slope - *first);
            *second += (1.0 - SECOND) * (slope * slope - *second);
            let mean = *first / corrections[0];
            let spread = (*second / corrections[1]).sqrt();
            *parameter -= rate * mean / (spread + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_length_of_the_rate() {
        let (mut adam, mut parameters) = (Adam::new(3), [1.0, 1.0, 1.0]);
        adam.step(&mut parameters, &[0.5, -20.0, 0.0], 0.1);
        for (actual, expected) in parameters.iter().zip([0.9, 1.1, 1.0]) {
            assert!((actual - expected).abs() < 1e-5, "{actual}");
        }
    }

    #[test]
    fn steps_reach_a_minimum() {
        let (mut adam, mut parameters) = (Adam::new(2), [3.0f32, -2.0]);
        for _ in 0..500 {
            let gradient = [2.0 * (parameters[0] - 1.0), 20.0 * parameters[1]];
            adam.step(&mut parameters, &gradient, 0.05);
        }
        assert!((parameters[0] - 1.0).abs() < 1e-2 && parameters[1].abs() < 1e-2);
        adam.step(&mut parameters, &[f32::NAN, 0.0], 0.05);
        assert!(parameters.iter().all(|parameter| parameter.is_finite()));
    }
}
