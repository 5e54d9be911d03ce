//! Pad, with positive and negative amounts.

use std::sync::Arc;

use octet_kernels::int8::{Padding, padded};

use super::selection::Selection;
use crate::float_reason::FloatReason;
use crate::operation::Operation;
use crate::pattern::attributes::{axis, bounded};
use crate::pattern::matcher::{MatchPass, NodeMatcher, OneOperand, OperatorMatcher};

pub(super) const PAD: OperatorMatcher = OperatorMatcher {
    names: &["Pad"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::OneOperand(pad),
};

fn pad(one: &OneOperand) -> Result<Arc<dyn Operation>, FloatReason> {
    let (node, reader, shape) = (one.node, one.reader, &one.shape);
    let pads = reader.list(node, "pads", 1);
    let pads = pads.ok_or(FloatReason::PadsNotConstant)?;
    let rank = shape.len();
    let axes: Vec<usize> = match node.input_at(3) {
        None => (0..rank).collect(),
        Some(_) => {
            let named = reader.list(node, "axes", 3);
            let named = named.ok_or(FloatReason::AxesNotConstant)?;
            let places = named.iter().map(|&named| axis(named, rank));
            places.collect::<Result<_, _>>()?
        }
    };
    if pads.len() != 2 * axes.len() {
        return Err(FloatReason::PadCount(pads, axes.len()));
    }
    let padding = match node.text("mode").unwrap_or("constant") {
        "constant" => Padding::Constant,
        "edge" => Padding::Edge,
        "reflect" => Padding::Reflect,
        "wrap" => Padding::Wrap,
        other => return Err(FloatReason::Mode(other.to_owned())),
    };
    let quantization = one.operand.quantization();
    let quantization = quantization.ok_or(FloatReason::FloatInput)?;
    let fill = match node.input_at(2) {
        None => quantization.zero_point,
        Some(name) => {
            let value = reader.number(name);
            let value = value.ok_or(FloatReason::FillNotConstant)?;
            let integer = quantization.integer(value);
            // The fill value is quantized with the result. Before that, it must be representable in
            // the input's quantization.
            if (quantization.real(integer) - value).abs() > quantization.scale * 1e-3 {
                return Err(FloatReason::FillValue(value));
            }
            integer
        }
    };
    let mut positions = Vec::with_capacity(rank);
    let mut output = Vec::with_capacity(rank);
    for (along, &size) in shape.iter().enumerate() {
        let named = axes.iter().position(|&axis| axis == along);
        let amounts = named.map_or([0, 0], |at| [pads[at], pads[at + axes.len()]]);
        let size_of = |amount: i64| usize::try_from(amount.max(0)).unwrap_or(usize::MAX);
        // Negative amounts crop before positive ones pad.
        let [cut, cut_behind] = amounts.map(|amount| size_of(amount.saturating_neg()));
        let rest = size.saturating_sub(cut).saturating_sub(cut_behind);
        let [before, behind] = amounts.map(size_of);
        output.push(before.saturating_add(behind).saturating_add(rest));
        bounded(&output)?;
        let places = padded(rest, before, behind, padding)?;
        positions.push(places.into_iter().map(|at| at.map(|at| at + cut)).collect());
    }
    Selection::of_one(one, positions, fill)
}

#[cfg(test)]
mod tests {
    use octet_graph::Node;

    use crate::test_graph::TestGraph;

    fn tested(pads: &[i64], fill: f32) -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[2, 3]);
        graph.integers("pads", pads);
        graph.constant("fill", &[], &[fill]);
        let node = Node::new("Pad", "n", &["x", "pads", "fill"], &["y"]);
        graph.tested(node, &[&[2, 4]]);
        (graph, x)
    }

    #[test]
    fn rows_are_padded_and_cropped() {
        let (graph, x) = tested(&[0, 2, 0, -1], 0.25);
        let run = graph.run();
        assert_eq!(run.operation("n"), "selection");
        let rows = [0.25, 0.25, x[0], x[1], 0.25, 0.25, x[3], x[4]];
        run.assert_near(&rows, 0.0);
    }

    #[test]
    fn pads_that_cannot_be_represented_are_reasons() {
        let (graph, _) = tested(&[0, 2, 0, -1], 0.03);
        let reason = "its fill value 0.03 is not representable in the input's quantization";
        assert_eq!(graph.reason("n"), reason);
        let (graph, _) = tested(&[0, 2, 0], 0.0);
        assert_eq!(graph.reason("n"), "its pads [0, 2, 0] do not fit 2 axes");
        let (graph, _) = tested(&[0, 2, 0, 0], 0.0);
        let reason = "its output shape [2, 4] does not follow from its input shape [2, 3]";
        assert_eq!(graph.reason("n"), reason);
    }
}
