//! Conv: a ConvInteger on the quantized activation, its accumulators dequantized, then the bias.

use super::{Dynamic, product, scaled};
use crate::rewrite::{NotQuantized, Rewriter};
use crate::stays_float::StaysFloat;
use octet_graph::Node;
use octet_onnx::schema::TensorProto;

impl Dynamic<'_> {
    /// Rewrites a Conv with a constant weight.
    pub(super) fn conv<'a>(
        &self,
        graph: &mut Rewriter<'a>,
        node: &'a Node,
    ) -> Result<(), NotQuantized> {
        graph.float_activations(node)?;
        let weight = graph.weight(node, 1)?;
        if weight.shape.len() < 3 {
            return Err(StaysFloat::NoSpatialAxis.into());
        }
        let mut beside = vec![1; weight.shape.len()];
        beside[1] = weight.shape[0];
        let weights = self.around_zero(graph, &weight, 0, &beside)?;
        let input = node.input_at(0).unwrap_or_default();
        let output = node.output.first().map_or("", String::as_str);
        let name = graph.fresh(&format!("{}_quant", node.title()));
        let mut integer = Node::new("ConvInteger", &name, &[], &[]);
        integer.attributes.clone_from(&node.attributes);
        let (sums, scale) = product(graph, integer, input, &weights, output)?;
        let scales = [scale.as_str(), &weights.scale];
        let Some(bias) = node.input_at(2) else {
            scaled(graph, &name, &sums, scales, output);
            return Ok(());
        };
        let unbiased = graph.fresh(&format!("{output}quant_scaled_output"));
        scaled(graph, &name, &sums, scales, &unbiased);
        let bias = beside_channels(graph, bias, output, weight.shape.len())?;
        let name = graph.fresh(&format!("{output}_bias_add"));
        graph.push(Node::new("Add", &name, &[&unbiased, &bias], &[output]));
        Ok(())
    }
}

/// The bias in the shape [1, channels, 1 …], which broadcasts over a convolution's output.
fn beside_channels(
    graph: &mut Rewriter,
    bias: &str,
    output: &str,
    rank: usize,
) -> Result<String, NotQuantized> {
    let shaped = graph.fresh(&format!("{output}_bias_reshape_output"));
    let mut shape = vec![1; rank];
    if let Some(tensor) = graph.model.graph.initializers.get(bias) {
        shape[1] = tensor.element_count()? as i64;
        graph.constant(TensorProto {
            name: Some(shaped.clone()),
            dims: shape,
            ..tensor.clone()
        });
        return Ok(shaped);
    }
    shape[1] = -1;
    let sizes = graph.fresh(&format!("{output}_bias_reshape_shape"));
    graph.constant(TensorProto::from_i64(&sizes, &[rank], &shape));
    let name = graph.fresh(&format!("{output}_bias_reshape"));
    graph.push(Node::new("Reshape", &name, &[bias, &sizes], &[&shaped]));
    Ok(shaped)
}
