//! Swish (SiLU), x times sigmoid(x), and the product that ends each gate.

use super::{OperatorPattern, PatternFinder, PatternOperator, PatternRule};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

const SWISH: PatternOperator = PatternOperator {
    name: "Swish",
    reason: StaysFloat::InGate,
};

pub(super) const RULES: &[PatternRule] = &[PatternRule {
    from: &["Sigmoid"],
    chain: |finder, index, node| finder.swish(index, node),
}];

impl<'a> PatternFinder<'a> {
    /// x · sigmoid(x). Matched from the Sigmoid.
    fn swish(&self, index: usize, sigmoid: &'a Node) -> Option<OperatorPattern> {
        self.times_itself(SWISH, sigmoid.input_at(0)?, vec![index], sigmoid)
    }

    /// The chain that ends in the product of `x` and the output of `gate`, after `nodes`.
    pub(super) fn times_itself(
        &self,
        operator: PatternOperator,
        x: &str,
        mut nodes: Vec<usize>,
        gate: &'a Node,
    ) -> Option<OperatorPattern> {
        let gated = gate.output.first()?;
        let (at, mul) = self.multiplication_behind(gated)?;
        if self.other_operand(mul, gated)? != x {
            return None;
        }
        nodes.push(at);
        Some(OperatorPattern {
            operator,
            input: x.to_string(),
            nodes,
        })
    }
}
