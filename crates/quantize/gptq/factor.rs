//! GPTQ's rounding: each weight is rounded so that it corrects the errors of those rounded before.
//!
//! After Frantar and others, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
//! Transformers" (2022). Weight errors e add an output error with the mean square eᵀ·M·e, where M
//! is the Gram matrix of the inputs. With M = L·Lᵀ this is a sum of squares, Σ (Lᵀe)². The square
//! of input k contains the errors of k and of later inputs only.
//!
//! The weights are rounded from the last input to the first. Each integer minimizes its own square,
//! given the later ones. GPTQ reaches the same result by updating the weights not yet rounded; this
//! form needs no inverse.

use octet_kernels::{dot, take_off};

/// Damping of the diagonal, as a fraction of its mean. `FEW_POSITIONS` adds more if the samples have
/// about as few positions as the layer has inputs, because correlations are noisy then.
const DAMPING: f64 = 0.01;
const FEW_POSITIONS: f64 = 0.2;

/// The scaled Cholesky factor of a Gram matrix.
pub struct GramFactor {
    /// The input index at each position. The largest inputs come last and are rounded first.
    order: Vec<usize>,
    /// Lᵀ with its diagonal scaled to 1. Row k holds the factors by which later errors enter square
    /// k.
    rows: Vec<f64>,
    /// The square of the scale of each row.
    squares: Vec<f64>,
}

impl GramFactor {
    /// Factorizes the lower triangle of a Gram matrix, stored by rows and averaged over
    /// `positions`.
    ///
    /// With `means`, the matrix is centred, because a bias corrects the mean error. `None` for a
    /// zero matrix or one with infinite or NaN elements.
    pub fn new(products: &[f64], means: Option<&[f64]>, positions: u64) -> Option<GramFactor> {
        let size = (0..).find(|size| size * (size + 1) / 2 >= products.len())?;
        let product = |a: usize, b: usize| {
            let (a, b) = (a.max(b), a.min(b));
            let common = means.map_or(0.0, |means| means[a] * means[b]);
            products[a * (a + 1) / 2 + b] - common
        };
        let own: Vec<f64> = (0..size)
            .map(|input| product(input, input).max(0.0))
            .collect();
        let fraction = DAMPING + FEW_POSITIONS * size as f64 / positions.max(1) as f64;
        let damping = fraction * own.iter().sum::<f64>() / size as f64;
        if !(damping.is_finite() && damping > 0.0) {
            return None;
        }
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|&a, &b| own[a].total_cmp(&own[b]));
        // Cholesky by rows: each row is subtracted from the remaining triangle.
        let mut rows = vec![0.0; size * size];
        for (place, &a) in order.iter().enumerate() {
            for (behind, &b) in order.iter().enumerate().skip(place) {
                rows[place * size + behind] = product(a, b);
            }
            rows[place * size + place] = own[a] + damping;
        }
        let mut squares = Vec::with_capacity(size);
        for place in 0..size {
            let (done, left) = rows.split_at_mut((place + 1) * size);
            let row = &mut done[place * size..];
            // Floating-point errors can make a pivot zero or negative.
            let square = row[place].max(damping * 1e-6);
            for (offset, later) in left.chunks_exact_mut(size).enumerate() {
                let behind = place + 1 + offset;
                let share = row[behind] / square;
                if share != 0.0 {
                    take_off(&mut later[behind..], share, &row[behind..]);
                }
            }
            row[place] = 1.0;
            row[place + 1..]
                .iter_mut()
                .for_each(|value| *value /= square);
            squares.push(square);
        }
        let sound = rows.iter().chain(&squares).all(|value| value.is_finite());
        sound.then_some(GramFactor {
            order,
            rows,
            squares,
        })
    }

    /// Replaces integers rounded to nearest if GPTQ finds better ones for a row of weights.
    ///
    /// `round` returns the integer for an input index and a wanted value, and the real that it
    /// represents. Returns the mean square of the added output error, before and after.
    pub fn improve<I: Copy + Default>(
        &self,
        weights: &[f32],
        integers: &mut [I],
        round: impl Fn(usize, f64) -> (I, f64),
    ) -> [f64; 2] {
        let nearest_error = self.errors(|input, _| {
            let weight = f64::from(weights[input]);
            round(input, weight).1 - weight
        });
        let mut improved = vec![I::default(); weights.len()];
        let error = self.errors(|input, added| {
            let weight = f64::from(weights[input]);
            let (integer, real) = round(input, weight - added);
            improved[input] = integer;
            real - weight
        });
        if error >= nearest_error {
            return [nearest_error, nearest_error];
        }
        integers.copy_from_slice(&improved);
        [nearest_error, error]
    }

    /// The mean square of the added output error. `own` returns the error of an input, from the
    /// contribution of later errors to its square.
    fn errors(&self, mut own: impl FnMut(usize, f64) -> f64) -> f64 {
        let size = self.order.len();
        let mut errors = vec![0.0; size];
        let mut sum = 0.0;
        for place in (0..size).rev() {
            let row = &self.rows[place * size..][place + 1..size];
            let added = dot(row, &errors[place + 1..]);
            let error = own(self.order[place], added);
            errors[place] = error;
            sum += self.squares[place] * (error + added) * (error + added);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input rows with correlated neighbours, and the lower triangle of their Gram matrix.
    fn inputs(size: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut state = 7u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        let rows: Vec<Vec<f64>> = (0..400)
            .map(|_| {
                let common = random();
                (0..size)
                    .map(|k| (common + 0.3 * random()) * (1 + k % 3) as f64 + 0.2)
                    .collect()
            })
            .collect();
        let product =
            |a: usize, b: usize| rows.iter().map(|row| row[a] * row[b]).sum::<f64>() / 400.0;
        let products = (0..size).flat_map(|a| (0..=a).map(move |b| (a, b)));
        let products = products.map(|(a, b)| product(a, b)).collect();
        (rows, products)
    }

    fn weights(size: usize) -> Vec<f32> {
        (0..size).map(|k| (k as f32 * 0.61).sin()).collect()
    }

    /// A count of positions without extra damping.
    const MANY: u64 = 1 << 40;
    const STEP: f64 = 0.25;

    fn nearest(_: usize, wanted: f64) -> (i32, f64) {
        let integer = (wanted / STEP).round_ties_even().clamp(-8.0, 7.0);
        (integer as i32, integer * STEP)
    }

    fn mean_square(rows: &[Vec<f64>], errors: &[f64], centred: bool) -> f64 {
        let added = |row: &Vec<f64>| row.iter().zip(errors).map(|(x, e)| x * e).sum::<f64>();
        let mean = rows.iter().map(added).sum::<f64>() / rows.len() as f64;
        let off = if centred { mean } else { 0.0 };
        rows.iter()
            .map(|row| (added(row) - off).powi(2))
            .sum::<f64>()
            / rows.len() as f64
    }

    #[test]
    fn the_error_is_the_mean_square_of_the_output_error() {
        let (rows, products) = inputs(12);
        let means: Vec<f64> = (0..12)
            .map(|k| rows.iter().map(|row| row[k]).sum::<f64>() / 400.0)
            .collect();
        let errors: Vec<f64> = weights(12).iter().map(|&w| f64::from(w) * 0.1).collect();
        for means in [None, Some(means.as_slice())] {
            let actual = GramFactor::new(&products, means, MANY)
                .unwrap()
                .errors(|input, _| errors[input]);
            // Damping adds the same amount for every input.
            let own = |k: usize| products[k * (k + 3) / 2] - means.map_or(0.0, |m| m[k] * m[k]);
            let damping = DAMPING * (0..12).map(own).sum::<f64>() / 12.0;
            let damped = damping * errors.iter().map(|e| e * e).sum::<f64>();
            let wanted = mean_square(&rows, &errors, means.is_some()) + damped;
            assert!((actual / wanted - 1.0).abs() < 1e-9, "{actual} {wanted}");
        }
    }

    #[test]
    fn errors_cancel() {
        let (rows, products) = inputs(40);
        let weights = weights(40);
        let factor = GramFactor::new(&products, None, MANY).unwrap();
        let plain: Vec<i32> = weights
            .iter()
            .map(|&w| nearest(0, f64::from(w)).0)
            .collect();
        let mut integers = plain.clone();
        let [before, after] = factor.improve(&weights, &mut integers, nearest);
        let errors = |integers: &[i32]| -> Vec<f64> {
            let pairs = integers.iter().zip(&weights);
            pairs
                .map(|(&q, &w)| f64::from(q) * STEP - f64::from(w))
                .collect()
        };
        for (integers, returned) in [(&plain, before), (&integers, after)] {
            let errors = errors(integers);
            let actual = factor.errors(|input, _| errors[input]);
            assert!((actual / returned - 1.0).abs() < 1e-9);
        }
        let [together, apart] = [&integers, &plain].map(|q| mean_square(&rows, &errors(q), false));
        assert!(together * 5.0 < apart, "{together} {apart}");
    }

    #[test]
    fn weights_of_uncorrelated_inputs_are_rounded_to_nearest() {
        let size = 9;
        let products: Vec<f64> = (0..size)
            .flat_map(|a| (0..=a).map(move |b| if a == b { 1.0 + a as f64 } else { 0.0 }))
            .collect();
        let weights = weights(size);
        let mut integers = vec![99; size];
        let factor = GramFactor::new(&products, None, MANY).unwrap();
        let [before, after] = factor.improve(&weights, &mut integers, nearest);
        // No better integers exist, so none changed.
        assert_eq!((before, &integers), (after, &vec![99; size]));
    }

    #[test]
    fn degenerate_gram_matrices_have_no_factor() {
        assert!(GramFactor::new(&[], None, MANY).is_none());
        assert!(GramFactor::new(&[0.0, 0.0, 0.0], None, MANY).is_none());
        assert!(GramFactor::new(&[1.0, f64::NAN, 1.0], None, MANY).is_none());
        // The Gram matrix equals the product of the means.
        assert!(GramFactor::new(&[4.0], Some(&[2.0]), MANY).is_none());
    }
}
