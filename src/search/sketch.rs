//! The sketch of sensitivities: the noise of every tensor at the output, from a few runs in which
//! all tensors are rounded at once with random signs.
//!
//! For small errors the change of the output is the sum of the changes g_l by single tensors l. Run
//! k adds sign s_lk times the rounding error of each tensor, so it changes the output by y_k = Σ_l
//! s_lk · g_l. Over two runs j ≠ k the mean of s_lj · s_lk · ⟨y_j, y_k⟩ is ‖g_l‖², since the signs of
//! other tensors are independent. The mean over all pairs of runs is therefore an estimate without
//! bias. Its error comes from pairs of other tensors whose signs agree by chance, and it falls with
//! the number of runs.

use super::interval::mixed;

/// The sign of a tensor's error in a run.
pub fn sign(run: usize, tensor: usize) -> f32 {
    let number = (run as u64) << 32 | tensor as u64;
    match mixed(number.wrapping_add(0x9e37_79b9_7f4a_7c15)) & 1 {
        0 => 1.0,
        _ => -1.0,
    }
}

/// The inner products of all pairs of output changes.
#[derive(Clone, Debug)]
pub struct Products {
    runs: usize,
    sums: Vec<f64>,
}

impl Products {
    /// No sums yet.
    pub fn new(runs: usize) -> Products {
        Products {
            runs,
            sums: vec![0.0; runs * runs],
        }
    }

    /// Adds the changes of one output of one sample, one for each run, with a weight.
    pub fn add(&mut self, changes: &[&[f32]], weight: f64) {
        for first in 0..self.runs {
            for second in first..self.runs {
                let products = changes[first].iter().zip(changes[second]);
                let product: f64 = products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                self.sums[first * self.runs + second] += weight * product;
            }
        }
    }

    /// The noise of all tensors together: the mean power of the changes.
    pub fn total(&self) -> f64 {
        let powers = (0..self.runs).map(|run| self.sums[run * self.runs + run]);
        powers.sum::<f64>() / self.runs.max(1) as f64
    }

    /// The noise of each tensor, with the noises that the sketch can't tell from zero replaced: these
    /// share what the others leave of the total.
    pub fn resolved(&self, tensors: usize) -> Vec<f64> {
        let noises = self.noises(tensors);
        let pairs = (self.runs * self.runs.saturating_sub(1) / 2).max(1) as f64;
        let squares: f64 = noises.iter().map(|noise| noise * noise).sum();
        let least = 2.0 * (squares / pairs).sqrt();
        let known: f64 = noises.iter().filter(|noise| **noise > least).sum();
        let unknown = noises
            .iter()
            .filter(|noise| **noise <= least)
            .count()
            .max(1) as f64;
        let share = ((self.total() - known) / unknown).clamp(least * 1e-3, least);
        let noise = |noise: f64| if noise > least { noise } else { share };
        noises.into_iter().map(noise).collect()
    }

    /// The noise of each tensor. An estimate may be below zero, where the truth is near it.
    pub fn noises(&self, tensors: usize) -> Vec<f64> {
        let pairs = (self.runs * self.runs.saturating_sub(1) / 2).max(1) as f64;
        let noise = |tensor: usize| {
            let signs: Vec<f64> = (0..self.runs)
                .map(|run| f64::from(sign(run, tensor)))
                .collect();
            let mut sum = 0.0;
            for first in 0..self.runs {
                for second in first + 1..self.runs {
                    sum += signs[first] * signs[second] * self.sums[first * self.runs + second];
                }
            }
            sum / pairs
        };
        (0..tensors).map(noise).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_noises_of_a_linear_model_are_found() {
        // 60 tensors, each with a change of 200 outputs; ten of them are three times as large.
        let change = |tensor: usize| -> Vec<f32> {
            let size = if tensor < 10 { 3.0 } else { 1.0 };
            let value = |at: u64| (mixed(tensor as u64 * 1000 + at) % 2001) as f32 / 1000.0 - 1.0;
            (0..200).map(|at| size * value(at + 7)).collect()
        };
        let changes: Vec<Vec<f32>> = (0..60).map(change).collect();
        let runs: Vec<Vec<f32>> = (0..32)
            .map(|run| {
                let mut sum = vec![0.0; 200];
                for (tensor, change) in changes.iter().enumerate() {
                    let sign = sign(run, tensor);
                    sum.iter_mut().zip(change).for_each(|(s, c)| *s += sign * c);
                }
                sum
            })
            .collect();
        let mut products = Products::new(32);
        let views: Vec<&[f32]> = runs.iter().map(Vec::as_slice).collect();
        products.add(&views, 1.0);
        let noises = products.noises(60);
        let mut order: Vec<usize> = (0..60).collect();
        order.sort_by(|&a, &b| noises[b].total_cmp(&noises[a]));
        let found = order[..10].iter().filter(|&&tensor| tensor < 10).count();
        assert!(found >= 9, "{found} of 10: {order:?}");
        let truth: f64 = changes[0].iter().map(|&c| f64::from(c * c)).sum();
        let resolved = products.resolved(60);
        let all: f64 = changes.iter().flatten().map(|&c| f64::from(c * c)).sum();
        let sum: f64 = resolved.iter().sum();
        assert!(
            (0.6..1.4).contains(&(sum / all)) && resolved.iter().all(|n| *n > 0.0),
            "{sum} {all}"
        );
        assert!(
            (noises[0] / truth - 1.0).abs() < 0.25,
            "{} {truth}",
            noises[0]
        );
    }

    #[test]
    fn signs_are_balanced_and_differ_between_runs() {
        let ups = (0..1000).filter(|&tensor| sign(3, tensor) > 0.0).count();
        assert!((450..550).contains(&ups), "{ups}");
        let same = (0..1000)
            .filter(|&tensor| sign(3, tensor) == sign(4, tensor))
            .count();
        assert!((450..550).contains(&same), "{same}");
    }
}
