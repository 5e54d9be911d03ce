//! HardSwish, by a HardSigmoid or a Clip.

use super::{OperatorPattern, PatternFinder, PatternOperator, PatternRule};
use crate::stays_float::StaysFloat;
use octet_graph::Node;

const HARD_SWISH: PatternOperator = PatternOperator {
    name: "HardSwish",
    reason: StaysFloat::InGate,
};

pub(super) const RULES: &[PatternRule] = &[
    PatternRule {
        from: &["HardSigmoid"],
        chain: |finder, index, node| finder.hard_swish(index, node),
    },
    PatternRule {
        from: &["Clip"],
        chain: |finder, index, node| finder.hard_swish_by_clip(index, node),
    },
];

impl<'a> PatternFinder<'a> {
    /// x · hardsigmoid(x), with slope 1/6 and offset 1/2. Matched from the HardSigmoid.
    fn hard_swish(&self, index: usize, gate: &'a Node) -> Option<OperatorPattern> {
        let attribute = |name: &str, usual: f32| f64::from(gate.float(name).unwrap_or(usual));
        let (slope, half) = (attribute("alpha", 0.2), attribute("beta", 0.5));
        let is_gate = super::is_near(slope, 1.0 / 6.0) && super::is_near(half, 0.5);
        is_gate.then_some(())?;
        self.times_itself(HARD_SWISH, gate.input_at(0)?, vec![index], gate)
    }

    /// x · min(max(x + 3, 0), 6) / 6, with the division on the gate or on the product. Matched from
    /// the Clip.
    fn hard_swish_by_clip(&self, index: usize, clip: &'a Node) -> Option<OperatorPattern> {
        let bound = |slot| self.number(clip.input_at(slot)?);
        if bound(1) != Some(0.0) || bound(2) != Some(6.0) {
            return None;
        }
        let (add_index, add) = self.addition_before(clip.input_at(0)?)?;
        let x = self.operand_beside(add, 3.0)?;
        let nodes = vec![add_index, index];
        let clipped = clip.output.first()?;
        if let Some((at, sixth)) = self.sixth(clipped) {
            return self.times_itself(HARD_SWISH, x, [nodes, vec![at]].concat(), sixth);
        }
        let mut pattern = self.times_itself(HARD_SWISH, x, nodes, clip)?;
        let product = self.graph.nodes()[pattern.last()].output.first()?;
        let (at, _) = self.sixth(product)?;
        pattern.nodes.push(at);
        Some(pattern)
    }

    /// The only consumer of a value, if it divides the value by six.
    fn sixth(&self, value: &str) -> Option<(usize, &'a Node)> {
        let divided = self.division_behind(value).filter(|(_, div)| {
            let by_six = div.input_at(1).is_some_and(|by| self.is_number(by, 6.0));
            by_six && div.input_at(0) == Some(value)
        });
        divided.or_else(|| {
            let (at, mul) = self.multiplication_behind(value)?;
            (self.operand_beside(mul, 1.0 / 6.0)? == value).then_some((at, mul))
        })
    }
}
