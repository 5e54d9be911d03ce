//! Confidence intervals of 95 % for what was measured on samples.

/// The quantile of the normal distribution that leaves 2.5 % on either side.
const Z: f64 = 1.959_964;

/// Quantiles of Student's distribution: degrees of freedom, and the value that leaves 2.5 % on
/// either side.
const STUDENT: [(usize, f64); 16] = [
    (1, 12.706),
    (2, 4.303),
    (3, 3.182),
    (4, 2.776),
    (5, 2.571),
    (6, 2.447),
    (7, 2.365),
    (8, 2.306),
    (9, 2.262),
    (10, 2.228),
    (12, 2.179),
    (15, 2.131),
    (20, 2.086),
    (30, 2.042),
    (60, 2.000),
    (1000, Z),
];

/// Wilson's interval of a share that was observed in `count` independent trials.
pub(crate) fn wilson(share: f64, count: f64) -> (f64, f64) {
    let weight = Z * Z / count;
    let middle = (share + weight / 2.0) / (1.0 + weight);
    let half = Z / (1.0 + weight) * (share * (1.0 - share) / count + weight / (4.0 * count)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The change of a share between two answers to the same `count` questions, by Agresti and Min:
/// Wald's interval after half a case is added to each of the four outcomes.
pub(crate) fn paired_change(gained: u64, lost: u64, count: u64) -> (f64, f64) {
    let (gained, lost, count) = (gained as f64 + 0.5, lost as f64 + 0.5, count as f64 + 2.0);
    let change = gained - lost;
    let half = Z * (gained + lost - change * change / count).max(0.0).sqrt() / count;
    let middle = change / count;
    ((middle - half).max(-1.0), (middle + half).min(1.0))
}

/// The mean of all values, and its interval by Student's distribution; no interval of one value.
pub(super) fn mean(values: &[f64]) -> (f64, Option<(f64, f64)>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = student(values.len()).map(|t| t * (squares / (count - 1.0) / count).sqrt());
    (mean, half.map(|half| (mean - half, mean + half)))
}

/// Sum of parts over sum of wholes, and its standard error between samples; the parts of a sample
/// may depend on one another.
pub(crate) fn ratio(pairs: &[(f64, f64)]) -> (f64, f64) {
    let count = pairs.len() as f64;
    let whole: f64 = pairs.iter().map(|(_, whole)| whole).sum();
    let share = pairs.iter().map(|(part, _)| part).sum::<f64>() / whole;
    let squares: f64 = pairs
        .iter()
        .map(|(part, whole)| (part - share * whole).powi(2))
        .sum();
    let scale = if count > 1.0 {
        count / (count - 1.0)
    } else {
        1.0
    };
    (share, (scale * squares).sqrt() / whole)
}

/// The quantile for the mean of so many values; `None` below two.
pub(crate) fn student(count: usize) -> Option<f64> {
    let freedom = count.checked_sub(1)?;
    let known = STUDENT.iter().rev();
    known
        .map(|&(least, value)| (least, value))
        .find(|&(least, _)| least <= freedom)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson's interval, solved from its definition: |share - p| = z·√(p(1 - p)/n).
    #[test]
    fn the_ends_of_wilsons_interval_solve_its_equation() {
        for (share, count) in [(0.9, 40.0), (0.5, 7.0), (0.99, 1000.0)] {
            let (low, high) = wilson(share, count);
            for end in [low, high] {
                let distance = Z * (end * (1.0 - end) / count).sqrt();
                assert!(((share - end).abs() - distance).abs() < 1e-9);
            }
        }
        let (low, high) = wilson(1.0, 20.0);
        assert!((low - 0.839).abs() < 1e-3 && high > 0.999_999);
    }

    #[test]
    fn a_paired_change_depends_on_the_answers_that_differ() {
        let (low, high) = paired_change(0, 0, 100);
        assert!((low + high).abs() < 1e-12 && high < 0.02);
        let (low, high) = paired_change(0, 30, 100);
        assert!(low < -0.3 && high < -0.2 && high < 0.0);
        let more = paired_change(30, 30, 1000);
        let less = paired_change(3, 3, 1000);
        assert!(more.1 > less.1);
    }

    #[test]
    fn a_mean_has_an_interval_from_two_values_on() {
        assert_eq!(mean(&[3.0]), (3.0, None));
        let (middle, ends) = mean(&[1.0, 3.0]);
        let (low, high) = ends.unwrap();
        assert_eq!(middle, 2.0);
        assert!((high - 2.0 - 12.706).abs() < 1e-9 && (low + high - 4.0).abs() < 1e-9);
        assert!(student(500).unwrap() > student(2000).unwrap());
        assert_eq!(student(1), None);
    }

    #[test]
    fn samples_of_many_rows_count_as_one_each_where_their_rows_agree() {
        // Ten rows that fail together are one failure.
        let clustered: Vec<(f64, f64)> = (0..20)
            .map(|i| (f64::from(i32::from(i != 0)) * 10.0, 10.0))
            .collect();
        let single: Vec<(f64, f64)> = (0..20)
            .map(|i| (f64::from(i32::from(i != 0)), 1.0))
            .collect();
        let (a, b) = (ratio(&clustered), ratio(&single));
        assert!((a.0 - 0.95).abs() < 1e-12 && (a.0 - b.0).abs() < 1e-12);
        assert!((a.1 - b.1).abs() < 1e-12);
    }
}
