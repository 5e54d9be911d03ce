//! Values that move, repeat or add up: each operation is the other's gradient.

/// The place of a value that no input gives.
pub const NOWHERE: u32 = u32::MAX;

/// Values by their places in the inputs, which follow one another.
#[derive(Clone, Debug)]
pub struct ValueGather {
    /// The place of each value; `None` for the inputs as they are.
    pub places: Option<Vec<u32>>,
    /// The value that stands [`NOWHERE`].
    pub constant: f32,
}

impl ValueGather {
    pub(super) fn forward(&self, inputs: &[&[f32]], y: &mut [f32]) {
        let all: Vec<f32>;
        let values = match inputs {
            [one] => *one,
            _ => {
                all = inputs.concat();
                &all
            }
        };
        match &self.places {
            None => y.copy_from_slice(values),
            Some(places) => {
                for (y, &place) in y.iter_mut().zip(places) {
                    *y = values.get(place as usize).copied().unwrap_or(self.constant);
                }
            }
        }
    }

    pub(super) fn backward(
        &self,
        lens: &[usize],
        slope: &[f32],
        gradients: &mut [Option<Vec<f32>>],
    ) {
        let mut first = 0;
        for (&len, gradient) in lens.iter().zip(gradients) {
            if let Some(gradient) = gradient {
                match &self.places {
                    None => {
                        let own = gradient.iter_mut().zip(&slope[first..]);
                        own.for_each(|(to, slope)| *to += slope);
                    }
                    Some(places) => {
                        for (&place, slope) in places.iter().zip(slope) {
                            let own = (place as usize).wrapping_sub(first);
                            if let Some(to) = gradient.get_mut(own) {
                                *to += slope;
                            }
                        }
                    }
                }
            }
            first += len;
        }
    }
}

/// Sums of values, times a factor.
#[derive(Clone, Debug)]
pub struct GroupedSums {
    /// The sum to which each value belongs.
    pub places: Vec<u32>,
    /// The factor of the sums.
    pub factor: f32,
}

impl GroupedSums {
    pub(super) fn forward(&self, x: &[f32], y: &mut [f32]) {
        y.fill(0.0);
        for (x, &place) in x.iter().zip(&self.places) {
            y[place as usize] += x * self.factor;
        }
    }

    pub(super) fn backward(&self, slope: &[f32], by_x: &mut [f32]) {
        for (by_x, &place) in by_x.iter_mut().zip(&self.places) {
            *by_x += slope[place as usize] * self.factor;
        }
    }
}
