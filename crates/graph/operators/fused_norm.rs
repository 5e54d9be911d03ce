//! Layer normalization: of a sum, and in opsets without the operator.

use super::decomposer::FusedOperatorDecomposer;
use crate::{Attribute, Node};

/// The first opset with LayerNormalization. Below it, ReduceMean has its axes as an attribute.
pub(crate) const OPSET_WITH_NORM: i64 = 17;

/// Default epsilons of ONNX Runtime's SkipLayerNormalization and ONNX's LayerNormalization.
const EPSILON: f32 = 1e-12;
const EPSILON_OF_NORM: f32 = 1e-5;

impl FusedOperatorDecomposer<'_> {
    /// SkipLayerNormalization: two values and an optional bias are added, then normalized.
    pub(super) fn norm_of_sum(&mut self, node: &Node) -> Option<()> {
        let slot = |at: usize| node.input_at(at);
        let (one, other, scale) = (slot(0)?, slot(1)?, slot(2)?);
        let (title, output) = (node.title(), node.output.first()?);
        let wanted = |at: usize| node.output.get(at).filter(|name| !name.is_empty());
        // The mean and deviation outputs serve training only.
        if wanted(1).is_some() || wanted(2).is_some() {
            return None;
        }
        let mut sum = self.steps.step("Add", &[one, other], title, "sum");
        if let Some(bias) = slot(4) {
            sum = self.steps.step("Add", &[&sum, bias], title, "biased");
        }
        if let Some(asked) = wanted(3) {
            let name = self.steps.names.fresh(&format!("{title}.given_out"));
            self.steps
                .last("Identity", &[&sum], &name, asked, Vec::new());
        }
        let epsilon = node.float("epsilon").unwrap_or(EPSILON);
        self.norm(&sum, scale, slot(3), epsilon, title, output);
        Some(())
    }

    /// LayerNormalization along the last axis, in an opset that lacks the operator.
    pub(super) fn early_norm(&mut self, node: &Node) -> Option<()> {
        let (x, scale, output) = (node.input_at(0)?, node.input_at(1)?, node.output.first()?);
        let last = self.shape(Some(x)).map(|shape| shape.len() as i64 - 1);
        let axis = node.int("axis").unwrap_or(-1);
        let more = node.output.iter().skip(1).any(|name| !name.is_empty());
        if more || !(axis == -1 || Some(axis) == last) {
            return None;
        }
        let epsilon = node.float("epsilon").unwrap_or(EPSILON_OF_NORM);
        self.norm(x, scale, node.input_at(2), epsilon, node.title(), output);
        Some(())
    }

    fn norm(
        &mut self,
        x: &str,
        scale: &str,
        bias: Option<&str>,
        epsilon: f32,
        title: &str,
        output: &str,
    ) {
        if self.opset >= OPSET_WITH_NORM {
            let mut inputs = vec![x, scale];
            inputs.extend(bias);
            let attributes = vec![
                Attribute::int("axis", -1),
                Attribute::float("epsilon", epsilon),
            ];
            return self
                .steps
                .last("LayerNormalization", &inputs, title, output, attributes);
        }
        let steps = &mut self.steps;
        let along = || Attribute::ints("axes", &[-1]);
        let mean = steps.step_with("ReduceMean", &[x], title, "mean", vec![along()]);
        let apart = steps.step("Sub", &[x, &mean], title, "apart");
        let square = steps.step("Mul", &[&apart, &apart], title, "square");
        let variance = steps.step_with("ReduceMean", &[&square], title, "variance", vec![along()]);
        let epsilon = steps.number(title, epsilon);
        let raised = steps.step("Add", &[&variance, &epsilon], title, "raised");
        let deviation = steps.step("Sqrt", &[&raised], title, "deviation");
        let even = steps.step("Div", &[&apart, &deviation], title, "even");
        let Some(bias) = bias else {
            return self
                .steps
                .last("Mul", &[&even, scale], title, output, Vec::new());
        };
        let scaled = steps.step("Mul", &[&even, scale], title, "scaled");
        self.steps
            .last("Add", &[&scaled, bias], title, output, Vec::new());
    }
}
