//! What is apart at the outputs, and whether the answers are still the same.

use serde::Serialize;

use super::difference::{Apart, Difference};
use crate::graph::Model;
use crate::tensor::{Tensor, Values};

/// What quantizing did to an output.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputError {
    /// Its name.
    pub name: String,
    /// How far it is apart.
    pub apart: Apart,
    /// Of outputs with a row of classes a sample: the share of rows whose greatest class is the same.
    pub top1: Option<f64>,
    /// The share of rows whose greatest float class is among the five greatest quantized ones.
    pub top5: Option<f64>,
    /// With labels: the share of samples whose greatest class is the label, float and quantized.
    pub accuracy: Option<(f64, f64)>,
}

/// Sums for all outputs.
pub(super) struct Outputs(Vec<Output>);

struct Output {
    name: String,
    sum: Difference,
    rows: u64,
    same: u64,
    among: u64,
    labelled: u64,
    right: (u64, u64),
}

impl Outputs {
    pub(super) fn of(model: &Model) -> Outputs {
        let names = model.graph.outputs.iter();
        Outputs(
            names
                .map(|output| Output {
                    name: output.name.clone().unwrap_or_default(),
                    sum: Difference::default(),
                    rows: 0,
                    same: 0,
                    among: 0,
                    labelled: 0,
                    right: (0, 0),
                })
                .collect(),
        )
    }

    pub(super) fn add(&mut self, float: &[Tensor], quantized: &[Tensor], label: Option<usize>) {
        for ((output, float), quantized) in self.0.iter_mut().zip(float).zip(quantized) {
            let (first, second) = (floats(float), floats(quantized));
            output.sum.add(&first, &second);
            // A row of classes for each of a batch.
            let [_, classes] = *float.shape() else {
                continue;
            };
            if classes < 2 || float.shape() != quantized.shape() {
                continue;
            }
            for (a, b) in first.chunks(classes).zip(second.chunks(classes)) {
                let (best, other) = (greatest(a), greatest(b));
                output.rows += 1;
                output.same += u64::from(best == other);
                let above = b.iter().filter(|&&value| value > b[best]).count();
                output.among += u64::from(above < 5);
                if let Some(label) = label {
                    output.labelled += 1;
                    output.right.0 += u64::from(best == label);
                    output.right.1 += u64::from(other == label);
                }
            }
        }
    }

    pub(super) fn finish(self) -> Vec<OutputError> {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let finish = |output: Output| OutputError {
            name: output.name,
            apart: output.sum.apart(),
            top1: share(output.same, output.rows),
            top5: share(output.among, output.rows),
            accuracy: share(output.right.0, output.labelled)
                .zip(share(output.right.1, output.labelled)),
        };
        self.0.into_iter().map(finish).collect()
    }
}

/// The place of the greatest value, the first of equal ones.
fn greatest(values: &[f32]) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = place;
        }
    }
    best
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    match tensor.values() {
        Values::F32(v) => v.clone(),
        Values::F64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::I8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::I32(v) => v.iter().map(|&x| x as f32).collect(),
        Values::I64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Values::U32(v) => v.iter().map(|&x| x as f32).collect(),
        Values::U64(v) => v.iter().map(|&x| x as f32).collect(),
        Values::Bool(v) => v.iter().map(|&x| f32::from(u8::from(x))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f32]) -> Tensor {
        Tensor::new(vec![1, values.len()], Values::F32(values.to_vec())).unwrap()
    }

    #[test]
    fn answers_are_counted_row_by_row() {
        let mut outputs = Outputs(vec![Output {
            name: "y".into(),
            sum: Difference::default(),
            rows: 0,
            same: 0,
            among: 0,
            labelled: 0,
            right: (0, 0),
        }]);
        let float = row(&[0.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let float = std::slice::from_ref(&float);
        outputs.add(float, float, Some(1));
        // The second greatest in the quantized model …
        let second = row(&[0.0, 8.0, 1.0, 2.0, 3.0, 4.0, 8.5]);
        outputs.add(float, &[second], Some(6));
        // … and the last.
        let last = row(&[0.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        outputs.add(float, &[last], None);
        let found = outputs.finish();
        assert_eq!(found[0].top1, Some(1.0 / 3.0));
        assert_eq!(found[0].top5, Some(2.0 / 3.0));
        assert_eq!(found[0].accuracy, Some((0.5, 1.0)));
    }
}
