//! Mish, x times tanh(softplus(x)).

use super::{OperatorPattern, PatternFinder, PatternOperator, PatternRule};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

const MISH: PatternOperator = PatternOperator {
    name: "Mish",
    reason: StaysFloat::InGate,
};

pub(super) const RULES: &[PatternRule] = &[PatternRule {
    from: &["Softplus"],
    chain: |finder, index, node| finder.mish(index, node),
}];

impl<'a> PatternFinder<'a> {
    /// x · tanh(softplus(x)). Matched from the Softplus.
    fn mish(&self, index: usize, softplus: &'a Node) -> Option<OperatorPattern> {
        let (at, tanh) = self.only_consumer(softplus.output.first()?, "Tanh")?;
        self.times_itself(MISH, softplus.input_at(0)?, vec![index, at], tanh)
    }
}
