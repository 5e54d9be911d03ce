//! Gates, x times a function of x: Swish (SiLU), HardSwish and Mish.

use super::{OperatorPattern, PatternFinder, PatternOperator};
use octet_onnx::schema::NodeProto;

impl<'a> PatternFinder<'a> {
    /// x · sigmoid(x). Matched from the Sigmoid.
    pub(super) fn swish(&self, index: usize, sigmoid: &'a NodeProto) -> Option<OperatorPattern> {
        self.times_itself(
            PatternOperator::Swish,
            sigmoid.input_at(0)?,
            vec![index],
            sigmoid,
        )
    }

    /// x · hardsigmoid(x), with slope 1/6 and offset 1/2. Matched from the HardSigmoid.
    pub(super) fn hard_swish(&self, index: usize, gate: &'a NodeProto) -> Option<OperatorPattern> {
        let attribute = |name: &str, usual: f32| f64::from(gate.float(name).unwrap_or(usual));
        let (slope, half) = (attribute("alpha", 0.2), attribute("beta", 0.5));
        let is_gate = super::is_near(slope, 1.0 / 6.0) && super::is_near(half, 0.5);
        is_gate.then_some(())?;
        self.times_itself(
            PatternOperator::HardSwish,
            gate.input_at(0)?,
            vec![index],
            gate,
        )
    }

    /// x · min(max(x + 3, 0), 6) / 6, with the division on the gate or on the product. Matched from
    /// the Clip.
    pub(super) fn hard_swish_by_clip(
        &self,
        index: usize,
        clip: &'a NodeProto,
    ) -> Option<OperatorPattern> {
        let bound = |slot| self.number(clip.input_at(slot)?);
        if bound(1) != Some(0.0) || bound(2) != Some(6.0) {
            return None;
        }
        let (add_index, add) = self.producer(clip.input_at(0)?, "Add")?;
        let x = self.operand_beside(add, 3.0)?;
        let nodes = vec![add_index, index];
        let clipped = clip.output.first()?;
        if let Some((at, sixth)) = self.sixth(clipped) {
            return self.times_itself(
                PatternOperator::HardSwish,
                x,
                [nodes, vec![at]].concat(),
                sixth,
            );
        }
        let mut pattern = self.times_itself(PatternOperator::HardSwish, x, nodes, clip)?;
        let product = self.graph.nodes[pattern.last()].output.first()?;
        let (at, _) = self.sixth(product)?;
        pattern.nodes.push(at);
        Some(pattern)
    }

    /// x · tanh(softplus(x)). Matched from the Softplus.
    pub(super) fn mish(&self, index: usize, softplus: &'a NodeProto) -> Option<OperatorPattern> {
        let (at, tanh) = self.only_consumer(softplus.output.first()?, "Tanh")?;
        self.times_itself(
            PatternOperator::Mish,
            softplus.input_at(0)?,
            vec![index, at],
            tanh,
        )
    }

    /// The only consumer of a value, if it divides the value by six.
    fn sixth(&self, value: &str) -> Option<(usize, &'a NodeProto)> {
        let divided = self.only_consumer(value, "Div").filter(|(_, div)| {
            let by_six = div.input_at(1).is_some_and(|by| self.is_number(by, 6.0));
            by_six && div.input_at(0) == Some(value)
        });
        divided.or_else(|| {
            let (at, mul) = self.only_consumer(value, "Mul")?;
            (self.operand_beside(mul, 1.0 / 6.0)? == value).then_some((at, mul))
        })
    }

    /// The chain that ends in the product of `x` and the output of `gate`, after `nodes`.
    fn times_itself(
        &self,
        operator: PatternOperator,
        x: &str,
        mut nodes: Vec<usize>,
        gate: &'a NodeProto,
    ) -> Option<OperatorPattern> {
        let gated = gate.output.first()?;
        let (at, mul) = self.only_consumer(gated, "Mul")?;
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
