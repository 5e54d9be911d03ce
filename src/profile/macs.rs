//! Multiply-accumulate operations of a node, from the shapes of its inputs and outputs.

use crate::graph::Node;
use crate::graph::operators::{MacRule, Operator};

/// Counts a node's operations; `shape` returns the shape of a value. The count is 0 for operators
/// without matrix products and for unknown shapes.
pub fn macs(node: &Node, shape: impl Fn(&str) -> Option<Vec<u64>>) -> u64 {
    let input = |slot| shape(node.input_at(slot)?);
    let output = || shape(node.output.first()?);
    count(node, &input, &output).unwrap_or(0)
}

fn count(
    node: &Node,
    input: &impl Fn(usize) -> Option<Vec<u64>>,
    output: &impl Fn() -> Option<Vec<u64>>,
) -> Option<u64> {
    let all = |dims: &[u64]| dims.iter().try_fold(1u64, |a, &d| a.checked_mul(d));
    let operator = Operator::in_any_domain(node.op_type.as_str());
    match operator.macs {
        MacRule::Zero => None,
        // W is [out, in/groups, …].
        MacRule::Conv(weight) => all(&output()?)?.checked_mul(all(input(weight)?.get(1..)?)?),
        // W is [in, out/groups, …].
        MacRule::ConvTranspose => all(&input(0)?)?.checked_mul(all(input(1)?.get(1..)?)?),
        MacRule::Product => all(&output()?)?.checked_mul(*input(0)?.last()?),
        MacRule::Gemm => {
            let first = input(0)?;
            let from_end = if node.int("transA").unwrap_or(0) != 0 {
                2
            } else {
                1
            };
            let inner = first.len().checked_sub(from_end)?;
            all(&output()?)?.checked_mul(first[inner])
        }
        // X [length, batch, in]; W [directions, gates·hidden, in]; R [directions, gates·hidden,
        // hidden].
        MacRule::Recurrent => {
            let steps = all(input(0)?.get(..2)?)?;
            let weights = all(&input(1)?)?.checked_add(all(&input(2)?)?)?;
            steps.checked_mul(weights)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute;

    #[test]
    fn products_are_counted_from_their_shapes() {
        let shapes = |name: &str| -> Option<Vec<u64>> {
            Some(match name {
                "x" => vec![1, 8, 10, 10],
                "w" => vec![16, 8, 3, 3],
                "depth" => vec![8, 1, 3, 3],
                "c" => vec![1, 16, 10, 10],
                "a" => vec![2, 5, 7],
                "b" => vec![7, 3],
                "ab" => vec![2, 5, 3],
                "tall" => vec![7, 5],
                "row" => vec![5, 3],
                "seq" => vec![6, 2, 4],
                "W" => vec![1, 12, 4],
                "R" => vec![1, 12, 3],
                _ => return None,
            })
        };
        let node = |operator: &str, inputs: &[&str], output: &str| {
            Node::new(operator, "n", inputs, &[output])
        };
        let transposed = node("Gemm", &["tall", "b"], "row").with(Attribute::int("transA", 1));
        for (node, wanted) in [
            (node("Conv", &["x", "w"], "c"), 1600 * 72),
            (node("Conv", &["x", "depth"], "x"), 800 * 9),
            (node("ConvTranspose", &["c", "w"], "x"), 1600 * 72),
            (node("MatMul", &["a", "b"], "ab"), 30 * 7),
            (transposed, 15 * 7),
            (node("LSTM", &["seq", "W", "R"], "h"), 12 * (48 + 36)),
            (node("Relu", &["x"], "x"), 0),
            (node("MatMul", &["a", "b"], "unknown"), 0),
        ] {
            assert_eq!(macs(&node, shapes), wanted, "{node:?}");
        }
    }
}
