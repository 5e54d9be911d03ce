//! Operations along one axis: softmax, and the normalization of rows.

/// Softmax along the middle of three axes.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxRows {
    /// Values along the axis.
    pub count: usize,
    /// Values behind the axis.
    pub inner: usize,
}

impl SoftmaxRows {
    /// The places of each row.
    fn rows(&self, len: usize) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone> {
        let SoftmaxRows { count, inner } = *self;
        let outer = len / (count * inner).max(1);
        (0..outer * inner).map(move |row| {
            let first = row / inner * count * inner + row % inner;
            (0..count).map(move |place| first + place * inner)
        })
    }

    pub(super) fn forward(&self, x: &[f32], y: &mut [f32]) {
        for row in self.rows(x.len()) {
            let most = row
                .clone()
                .map(|at| x[at])
                .fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for at in row.clone() {
                y[at] = (x[at] - most).exp();
                sum += y[at];
            }
            row.for_each(|at| y[at] /= sum);
        }
    }

    pub(super) fn backward(&self, y: &[f32], slope: &[f32], by_x: &mut [f32]) {
        for row in self.rows(y.len()) {
            let mean: f32 = row.clone().map(|at| slope[at] * y[at]).sum();
            row.for_each(|at| by_x[at] += y[at] * (slope[at] - mean));
        }
    }
}

/// Rows of this many values become values of variance 1, and of mean 0 if they are centred.
#[derive(Clone, Copy, Debug)]
pub struct Normalization {
    /// Values of a row.
    pub count: usize,
    /// Added to the variance.
    pub epsilon: f32,
    /// The mean is subtracted.
    pub centred: bool,
}

impl Normalization {
    /// Mean of a row, and the factor of its values.
    fn of(&self, row: &[f32]) -> [f32; 2] {
        let count = row.len() as f32;
        let mean = match self.centred {
            true => row.iter().sum::<f32>() / count,
            false => 0.0,
        };
        let squares: f32 = row.iter().map(|x| (x - mean) * (x - mean)).sum();
        [mean, 1.0 / (squares / count + self.epsilon).sqrt()]
    }

    pub(super) fn forward(&self, x: &[f32], y: &mut [f32]) {
        let count = self.count.max(1);
        for (x, y) in x.chunks(count).zip(y.chunks_mut(count)) {
            let [mean, factor] = self.of(x);
            y.iter_mut()
                .zip(x)
                .for_each(|(y, x)| *y = (x - mean) * factor);
        }
    }

    pub(super) fn backward(&self, x: &[f32], slope: &[f32], by_x: &mut [f32]) {
        let count = self.count.max(1);
        let rows = x.chunks(count).zip(slope.chunks(count));
        for ((x, slope), by_x) in rows.zip(by_x.chunks_mut(count)) {
            let [mean, factor] = self.of(x);
            let products = x
                .iter()
                .zip(slope)
                .map(|(x, slope)| (x - mean) * factor * slope);
            let along = products.sum::<f32>() / count as f32;
            let level = match self.centred {
                true => slope.iter().sum::<f32>() / count as f32,
                false => 0.0,
            };
            for ((by_x, x), slope) in by_x.iter_mut().zip(x).zip(slope) {
                *by_x += factor * (slope - level - (x - mean) * factor * along);
            }
        }
    }
}
