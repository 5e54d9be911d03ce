//! Checks axes and permutations.

use super::{NodeValidator, Validation, ensure};
use octet_graph::Dim;

impl NodeValidator<'_> {
    pub(super) fn axes(&self, operator: &str) -> Validation {
        let Some(rank) = self.shape(0).map(<[Dim]>::len) else {
            return match (operator, self.node.ints("perm")) {
                ("Transpose", Some(order)) => permutation(order, order.len()),
                _ => Ok(()),
            };
        };
        match operator {
            "Transpose" => match self.node.ints("perm") {
                Some(order) => permutation(order, rank),
                None => Ok(()),
            },
            "Squeeze" => self.several(rank),
            "Unsqueeze" => {
                let more = self.list("axes", 1).map_or(0, |axes| axes.len());
                self.several(rank + more)
            }
            _ if operator.starts_with("Reduce") => self.several(rank),
            "ReverseSequence" => {
                let [time, batch] = [("time_axis", 0), ("batch_axis", 1)];
                let axis = |(key, usual)| self.node.int(key).unwrap_or(usual);
                let axes = [axis(time), axis(batch)];
                let expected = "0 and 1, or 1 and 0";
                ensure(matches!(axes, [0, 1] | [1, 0]), time.0, axes, expected)
            }
            // Flatten may also split behind the last axis.
            "Flatten" => {
                let axis = self.node.int("axis").unwrap_or(1);
                self.axis(axis, rank, true)
            }
            "Concat" | "Split" | "Softmax" | "LogSoftmax" | "Hardmax" | "Gather"
            | "GatherElements" | "ScatterElements" | "ArgMax" | "ArgMin" | "TopK"
            | "LayerNormalization" | "LpNormalization" | "Compress" => self.one(rank, false),
            _ => Ok(()),
        }
    }

    pub(super) fn one(&self, rank: usize, behind: bool) -> Validation {
        match self.node.int("axis") {
            Some(axis) => self.axis(axis, rank, behind),
            None => Ok(()),
        }
    }

    fn axis(&self, axis: i64, rank: usize, behind: bool) -> Validation {
        let rank = rank as i64;
        let least = -rank;
        let most = if behind { rank } else { rank - 1 };
        // Some models give axis 0 of a scalar; it is accepted.
        let inside = (least..=most).contains(&axis) || rank == 0 && matches!(axis, -1 | 0);
        ensure(inside, "axis", axis, format!("from {least} to {most}"))
    }

    fn several(&self, rank: usize) -> Validation {
        let Some(axes) = self.list("axes", 1) else {
            return Ok(());
        };
        let rank = rank as i64;
        let expected = format!("from {} to {}", -rank, rank - 1);
        let inside = axes.iter().all(|axis| (-rank..rank).contains(axis))
            || rank == 0
                && !self.node.is("Squeeze")
                && axes.iter().all(|axis| matches!(axis, -1 | 0));
        ensure(inside, "axes", &axes, expected)?;
        if self.node.is("Squeeze") {
            for &axis in &axes {
                let along = if axis < 0 { axis + rank } else { axis };
                if let Some(size) = self.size(0, along as usize) {
                    let expected = format!("axes of size 1, but axis {axis} has size {size}");
                    ensure(size == 1, "axes", &axes, expected)?;
                }
            }
        }
        // Reductions and Squeeze take a set of axes; Unsqueeze requires different axes.
        let mut places: Vec<i64> = axes
            .iter()
            .map(|&a| if a < 0 { a + rank } else { a })
            .collect();
        places.sort_unstable();
        let twice = places.windows(2).any(|pair| pair[0] == pair[1]);
        let put_in = self.node.is("Unsqueeze");
        ensure(!(put_in && twice), "axes", &axes, "each another")
    }
}

fn permutation(order: &[i64], rank: usize) -> Validation {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let whole = sorted.iter().copied().eq(0..rank as i64);
    let expected = format!("a permutation of 0 to {}", rank as i64 - 1);
    ensure(whole, "perm", order, expected)
}
