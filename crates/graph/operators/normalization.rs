//! Normalizations.

use super::Property::ChangesVectors;
use super::descriptor::ALL_INPUTS;
use super::float16::NO_KERNEL;
use super::node_context::{NodeContext, Validation, ensure};
use super::opset_context::{Adapted, OpsetContext};
use super::properties::{ChannelPosition, ChannelRole, Float16};
use super::shape_context::ShapeContext;
use super::{Operator, Treatment};
use crate::inferred_value::{InferredValue, position};
use crate::{Dim, Node};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::onnx("BatchNormalization")
        .requires(5)
        .at_most(5)
        .ranks(&[(0, 2)])
        .changed(&[(9, without_training), (14, inference_only)])
        .checks_shapes(|ctx| ctx.per_channel(&[1, 2, 3, 4], ctx.size(0, 1)))
        .infers_same()
        .quantized(Treatment::Normalize)
        .channels(ChannelRole::Norm(ChannelPosition::Second)),
    Operator::onnx("GroupNormalization")
        .requires(3)
        .changed(&[(21, |_, _| {
            Err("its scale and bias belonged to groups, not channels, before opset 21".to_owned())
        })])
        .infers_same()
        .quantized_here(Treatment::Normalize),
    Operator::onnx("InstanceNormalization")
        .requires(3)
        .at_most(3)
        .ranks(&[(0, 2)])
        .checks_shapes(|ctx| ctx.per_channel(&[1, 2], ctx.size(0, 1)))
        .infers_same()
        .quantized(Treatment::Normalize)
        .same_type(ALL_INPUTS)
        .channels(ChannelRole::Norm(ChannelPosition::Second)),
    Operator::onnx("LRN").ranks(&[(0, 2)]).infers_same(),
    Operator::onnx("LayerNormalization")
        .with(&[ChangesVectors])
        .requires(2)
        .ranks(&[(0, 1)])
        .checks(|ctx| ctx.axis_in_range())
        .checks_shapes(broadcasts_over_input)
        .infers_same()
        .decomposes(|to, node| to.early_norm(node))
        .quantized(Treatment::Normalize)
        .float16(Float16::StaysWithMoreOutputs(
            "its statistics are always float32",
        ))
        .channels(ChannelRole::Norm(ChannelPosition::Last)),
    Operator::onnx("LpNormalization")
        .ranks(&[(0, 1)])
        .checks(|ctx| ctx.axis_in_range())
        .infers_same(),
    Operator::onnx("MeanVarianceNormalization")
        .infers_same()
        .float16(NO_KERNEL),
    root_mean_square(Operator::onnx("RMSNormalization")),
    // ONNX Runtime has it in both domains.
    root_mean_square(Operator::onnx("SimplifiedLayerNormalization")),
    root_mean_square(Operator::microsoft("SimplifiedLayerNormalization")),
    Operator::microsoft("SkipLayerNormalization")
        .infers_all(|ctx| vec![ctx.same(0), None, None, ctx.same(0)])
        .fused(|to, node| to.norm_of_sum(node)),
    Operator::microsoft("SkipSimplifiedLayerNormalization")
        .with(&[ChangesVectors])
        .requires(3)
        .checks(sum_of_vectors)
        .infers_all(|ctx| vec![ctx.same(0), None, None, ctx.same(0)]),
];

/// A division by the root of the mean of squares, along the last axes.
const fn root_mean_square(operator: Operator) -> Operator {
    operator
        .with(&[ChangesVectors])
        .requires(2)
        .at_most(2)
        .ranks(&[(0, 1)])
        .checks(|ctx| {
            ctx.axis_in_range()?;
            broadcasts_over_input(ctx)
        })
        .infers_all(|ctx| vec![ctx.same(0), statistics(ctx)])
}

/// The second output: one number for each normalized vector.
fn statistics(ctx: &ShapeContext) -> Option<InferredValue> {
    let input = ctx.input(0)?;
    let mut shape = input.shape.clone()?;
    let axis = position(ctx.node.int("axis").unwrap_or(-1), shape.len())?;
    shape[axis..].fill(Dim::Known(1));
    Some(InferredValue::new(input.element, Some(shape)))
}

/// Checks the operands of a sum that is normalized along its last axis.
fn sum_of_vectors(ctx: &NodeContext) -> Validation {
    let Some(shape) = ctx.shape(0) else {
        return Ok(());
    };
    let ranked = matches!(shape.len(), 2 | 3);
    ensure(ranked, "the shape of its input 0", shape, "of 2 or 3 axes")?;
    let last = ctx.size(0, shape.len() - 1);
    for slot in [1, 2, 3] {
        let Some(own) = ctx.shape(slot) else {
            continue;
        };
        let size = own.len().checked_sub(1).map(|axis| ctx.size(slot, axis));
        let fits = match (size, last) {
            (Some(Some(size)), Some(last)) => size == last,
            (size, _) => size.is_some(),
        };
        let what = format!("the shape of its input {slot}");
        let expected = format!("one that ends like its input of shape {shape:?}");
        ensure(fits && (slot == 1 || own.len() == 1), &what, own, expected)?;
    }
    Ok(())
}

/// Checks the scale and bias of a layer normalization.
fn broadcasts_over_input(ctx: &NodeContext) -> Validation {
    let Some(shape) = ctx.shape(0) else {
        return Ok(());
    };
    for slot in [1, 2] {
        let Some(own) = ctx.shape(slot) else {
            continue;
        };
        let fits = own.len() <= shape.len()
            && own
                .iter()
                .rev()
                .zip(shape.iter().rev())
                .all(|pair| match pair {
                    (Dim::Known(own), Dim::Known(size)) => own == size || *own == 1,
                    _ => true,
                });
        let what = format!("the shape of its input {slot}");
        let expected = format!("one that is broadcast over its input of shape {shape:?}");
        ensure(fits, &what, own, expected)?;
    }
    Ok(())
}

/// Changes BatchNormalization to opset 9. Statistics for each position have no equivalent;
/// outputs for training are dropped.
fn without_training(to: &mut OpsetContext, mut node: Node) -> Adapted {
    if node.take("spatial").and_then(|a| a.as_int()) == Some(0) {
        return Err("ONNX removed statistics for each position (spatial = 0)".to_owned());
    }
    node.take("is_test");
    // A reader of one of the further outputs fails by its name.
    node.output.truncate(1);
    to.write(node);
    Ok(())
}

/// Changes BatchNormalization to opset 14.
fn inference_only(to: &mut OpsetContext, node: Node) -> Adapted {
    if node.output.iter().skip(1).any(|o| !o.is_empty()) {
        return Err("it outputs statistics, as in training".to_owned());
    }
    to.write(node);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_models::ExtraInput::Floats;
    use super::super::test_models::{PICTURE, node, refused, taken};

    #[test]
    fn parameters_fit_the_channels() {
        let four = || Floats(&[4], &[1.0; 4]);
        let norm = |last| [four(), four(), four(), last];
        let odd = Floats(&[6], &[1.0; 6]);
        refused(node("BatchNormalization"), PICTURE, &norm(odd));
        taken(node("BatchNormalization"), PICTURE, &norm(four()));
        refused(node("LayerNormalization"), PICTURE, &[four()]);
    }
}
