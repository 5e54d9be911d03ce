//! Maxima of windows in planes of floats.

use super::polyphase::take_strided;
use super::{Geometry, GeometryError, length};

/// A pool over planes of one size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaxPooling {
    geometry: Geometry,
    /// Columns of a padded row.
    padded: usize,
}

impl MaxPooling {
    /// Builds a pool. Channels and groups of the geometry are one.
    pub fn new(geometry: Geometry) -> Result<MaxPooling, GeometryError> {
        geometry.check()?;
        if [geometry.input_channels, geometry.output_channels] != [1, 1] {
            return Err(GeometryError::Sizes(geometry));
        }
        let padded = geometry.reach(1).max(geometry.pad[1] + geometry.input[1]);
        Ok(MaxPooling { geometry, padded })
    }

    /// Returns the geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Computes some planes. Padding and NaN lose against any value.
    pub fn run(&self, input: &[f32], output: &mut [f32]) -> Result<(), GeometryError> {
        let geometry = &self.geometry;
        let (from, to) = (geometry.input_len(), geometry.output_len());
        length("input", input.len(), output.len() / to * from)?;
        length("output", output.len(), output.len() / to * to)?;
        let columns = geometry.output[1];
        // Maxima of the rows of a window, with padding on both sides.
        let mut line = vec![f32::NEG_INFINITY; self.padded];
        let mut taken = vec![0.0; columns];
        for (plane, output) in input.chunks_exact(from).zip(output.chunks_exact_mut(to)) {
            for (row, output) in output.chunks_exact_mut(columns).enumerate() {
                self.maxima_of_rows(plane, row, &mut line);
                output.fill(f32::NEG_INFINITY);
                for tap in 0..geometry.kernel[1] {
                    let line = &line[tap * geometry.dilation[1]..];
                    match geometry.stride[1] {
                        1 => raise(output, line),
                        stride => {
                            let reached = line.len().min((columns - 1) * stride + 1);
                            take_strided(stride, &line[..reached], &mut taken);
                            raise(output, &taken);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the maximum over the rows of the windows of an output row.
    fn maxima_of_rows(&self, plane: &[f32], row: usize, line: &mut [f32]) {
        let geometry = &self.geometry;
        let [height, width] = geometry.input;
        let line = &mut line[geometry.pad[1]..][..width];
        line.fill(f32::NEG_INFINITY);
        for tap in 0..geometry.kernel[0] {
            let padded = row * geometry.stride[0] + tap * geometry.dilation[0];
            let Some(from) = padded.checked_sub(geometry.pad[0]) else {
                continue;
            };
            if from < height {
                raise(line, &plane[from * width..][..width]);
            }
        }
    }
}

/// Raises values to those of a slice that is at least as long.
fn raise(values: &mut [f32], to: &[f32]) {
    for (value, to) in values.iter_mut().zip(to) {
        *value = if *value < *to { *to } else { *value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum of each window, by its definition.
    fn reference(g: &Geometry, input: &[f32]) -> Vec<f32> {
        let mut all = Vec::new();
        for plane in input.chunks_exact(g.input_len()) {
            for row in 0..g.output[0] {
                for column in 0..g.output[1] {
                    let mut most = f32::NEG_INFINITY;
                    for down in 0..g.kernel[0] {
                        for right in 0..g.kernel[1] {
                            let y = (row * g.stride[0] + down * g.dilation[0])
                                .checked_sub(g.pad[0])
                                .filter(|&y| y < g.input[0]);
                            let x = (column * g.stride[1] + right * g.dilation[1])
                                .checked_sub(g.pad[1])
                                .filter(|&x| x < g.input[1]);
                            if let (Some(y), Some(x)) = (y, x) {
                                most = most.max(plane[y * g.input[1] + x]);
                            }
                        }
                    }
                    all.push(most);
                }
            }
        }
        all
    }

    #[test]
    fn maxima_match_the_definition() {
        // Input, kernel, stride, dilation, pad before, pad after.
        for [input, kernel, stride, dilation, pad, after] in [
            [[9, 11], [3, 3], [2, 2], [1, 1], [1, 1], [1, 1]],
            [[8, 30], [2, 2], [2, 2], [1, 1], [0, 0], [0, 0]],
            [[7, 23], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1]],
            [[12, 40], [3, 2], [3, 3], [2, 3], [1, 0], [2, 1]],
            [[1, 19], [1, 5], [1, 4], [1, 1], [0, 2], [0, 3]],
            [[13, 13], [13, 13], [1, 1], [1, 1], [6, 6], [6, 6]],
        ] {
            let output = std::array::from_fn(|axis| {
                let whole = input[axis] + pad[axis] + after[axis];
                (whole - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1
            });
            let geometry = Geometry {
                input_channels: 1,
                output_channels: 1,
                groups: 1,
                input,
                output,
                kernel,
                stride,
                dilation,
                pad,
            };
            let mut values: Vec<f32> = (0..2 * geometry.input_len())
                .map(|at| (at * 7919 % 1009) as f32 - 504.0)
                .collect();
            values[3] = f32::NAN;
            let mut found = vec![f32::NAN; 2 * geometry.output_len()];
            let pool = MaxPooling::new(geometry).unwrap();
            pool.run(&values, &mut found).unwrap();
            assert_eq!(found, reference(&geometry, &values), "{geometry:?}");
        }
    }
}
