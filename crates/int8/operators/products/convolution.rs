//! Conv and ConvTranspose of images with one or two spatial axes.

use std::sync::Arc;

use octet_kernels::int8::{BlockOrder, Window};

use super::overflow;
use super::packing::{AccumulatorScales, byte_planes, images, output_element, product_of_planes};
use crate::error::ProgramError;
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::operators::depth_space::Blocks;
use crate::operators::windows;
use crate::pattern::attributes::{slot, slot_out};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::pattern::reader::Reader;
use crate::pattern::weights::SignedWeights;
use crate::program::image_size::ImageSize;
use crate::program::instruction::{BufferElement, InputSource};
use crate::values::IrOperand;
use octet_graph::Node;

pub(in crate::operators) const CONVOLUTION: OperatorMatcher = OperatorMatcher {
    names: &["Conv", "ConvTranspose"],
    pass: MatchPass::Quantized,
    node: NodeMatcher::Steps(convolution),
};

struct WeightedConvolution {
    weights: SignedWeights,
    /// In units of input scale times weight scale; may be empty.
    bias: Vec<i32>,
    window: Window,
    groups: usize,
    transposed: bool,
}

/// The result may stay float.
fn convolution(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let (mut operation, operand) = weighted(node, &matcher.reader)?;
    let output = slot_out(node)?;
    let end = matcher.any_destination(output);
    let axis = usize::from(operation.transposed);
    let columns = (&operation.weights, axis, operation.groups);
    overflow::fit_bias(columns, 1.0, &mut operation.bias, &operand, &end)?;
    matcher.push(index, Arc::new(operation), vec![operand], output, end)?;
    Ok(())
}

fn weighted(node: &Node, reader: &Reader) -> Result<(WeightedConvolution, IrOperand), FloatReason> {
    let transposed = node.is("ConvTranspose");
    let (input, real) = (slot(node, 0)?, slot(node, 1)?);
    let operand = reader.operand_or_int16(input)?;
    let groups = groups(node)?;
    let mut weights = reader.weights(real, usize::from(transposed))?;
    let (window, channels) = window(node, reader, &weights.shape, groups)?;
    if transposed && groups > 1 {
        // The weights' output axis covers one group; its parameters are repeated for every group.
        weights.zero_points = weights.zero_points.repeat(groups);
        if weights.scales.len() > 1 {
            weights.scales = weights.scales.repeat(groups);
        }
    }
    let bias = match node.input_at(2) {
        Some(real) => reader.product_bias(real, &operand, &weights.scales, channels, 1.0)?,
        None => Vec::new(),
    };
    let operation = WeightedConvolution {
        weights,
        bias,
        window,
        groups,
        transposed,
    };
    Ok((operation, operand))
}

/// Number of groups of a convolution.
pub(super) fn groups(node: &Node) -> Result<usize, FloatReason> {
    usize::try_from(node.int("group").unwrap_or(1))
        .ok()
        .filter(|&groups| groups > 0)
        .ok_or(FloatReason::Groups)
}

/// Window and number of output channels of a convolution.
pub(super) fn window(
    node: &Node,
    reader: &Reader,
    weight: &[usize],
    groups: usize,
) -> Result<(Window, usize), FloatReason> {
    let transposed = node.is("ConvTranspose");
    let image = reader.shape(slot(node, 0)?)?;
    if weight.len() != image.len() || !matches!(image.len(), 3 | 4) {
        return Err(FloatReason::ImageAxes(image.len(), weight.len()));
    }
    let output = reader.shape(slot_out(node)?)?;
    let window = windows::convolution_window(node, &weight[2..], &image, &output, transposed)?;
    let (inputs, channels) = match transposed {
        true => (weight[0], weight[1].saturating_mul(groups)),
        false => (weight[1].saturating_mul(groups), weight[0]),
    };
    let whole = channels.is_multiple_of(groups) && inputs.is_multiple_of(groups);
    if inputs != image[1] || !whole || groups > inputs.max(1) {
        return Err(FloatReason::WeightForImage(weight.to_vec(), groups, image));
    }
    if !windows::has_output(&window, &image, channels, &output, transposed, false) {
        return Err(FloatReason::WindowOutput(output));
    }
    Ok((window, channels))
}

impl Operation for WeightedConvolution {
    fn name(&self) -> &'static str {
        match (self.transposed, self.groups) {
            (true, _) => "transposed convolution",
            (false, 2..) => "grouped convolution",
            (false, _) => "convolution",
        }
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        MemoryLayout::ChannelsLast
    }

    fn has_float_output(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (values, shape, output) = (step.values, step.shape, step.output);
        if self.transposed
            && self.groups == 1
            && let Some(block) = block_size(&self.window, shape, output)
        {
            return self.blocks(step, compiler, block);
        }
        let (weights, window) = (&self.weights, (&self.window, self.groups, self.transposed));
        // ONNX Runtime computes a convolution on integers only if its output is quantized.
        let on_integers = values.quantization.is_some();
        let form = match on_integers {
            true => compiler.form_of(step.first, weights),
            false => compiler.form,
        };
        let weighted = images(compiler, form, weights, window, [shape, output])?;
        let factors = AccumulatorScales {
            scales: &weights.scales,
            other: 1.0,
            columns: output[1],
        };
        let layout = MemoryLayout::ChannelsLast;
        let planes = byte_planes(compiler, step.first, layout, false)?;
        let product = (&self.bias[..], factors);
        let result = product_of_planes(compiler, values, planes, output, product, weighted)?;
        put(step, compiler, result);
        Ok(())
    }
}

/// Puts an image whose channels are last.
fn put<'a>(step: &LoweredStep<'a>, compiler: &mut Compiler<'a>, image: InputSource) {
    if step.values.quantization.is_none() && step.values.int16.is_none() {
        // Floats leave in ONNX's layout.
        let result = compiler.to_nchw(image, BufferElement::Float, step.output);
        compiler.put(step, MemoryLayout::Plain, result);
    } else {
        compiler.put(step, MemoryLayout::ChannelsLast, image);
    }
}

impl WeightedConvolution {
    /// A transposed convolution with a window as large as its stride. It is a 1×1 convolution with
    /// one output channel per position of the block, followed by DepthToSpace.
    fn blocks<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
        block: usize,
    ) -> Result<(), ProgramError> {
        let (weights, shape, output) = (&self.weights, step.shape, step.output);
        let (inputs, outputs) = (shape[1], output[1]);
        let area = block * block;
        // [in, out, position] becomes [position, out, in].
        let integer = |at: usize| {
            let (column, input) = (at / inputs.max(1), at % inputs.max(1));
            let (place, channel) = (column / outputs, column % outputs);
            weights.integers[(input * outputs + channel) * area + place]
        };
        let each = weights.scales.len() > 1;
        let of_pixels = SignedWeights {
            shape: vec![area * outputs, inputs, 1, 1],
            integers: (0..weights.integers.len()).map(integer).collect(),
            scales: weights.scales.repeat(if each { area } else { 1 }),
            zero_points: weights.zero_points.repeat(area),
            // ONNX Runtime has no integer kernel for transposed convolutions.
            stored_as_i8: false,
        };
        let result = [shape[0], area * outputs, shape[2], shape[3]];
        let pixel = (&Window::PIXEL, 1, false);
        let weighted = images(compiler, compiler.form, &of_pixels, pixel, [shape, &result])?;
        let factors = AccumulatorScales {
            scales: &of_pixels.scales,
            other: 1.0,
            columns: area * outputs,
        };
        let layout = MemoryLayout::ChannelsLast;
        let bias = self.bias.repeat(area);
        let planes = byte_planes(compiler, step.first, layout, false)?;
        let product = (&bias[..], factors);
        let channels =
            product_of_planes(compiler, step.values, planes, &result, product, weighted)?;
        let kernel = Box::new(Blocks {
            from: ImageSize::of(&result),
            block,
            to_space: Some(BlockOrder::BlockFirst),
        });
        let element = output_element(step.values);
        let result = compiler.add(kernel, vec![channels], element, output);
        put(step, compiler, result);
        Ok(())
    }
}

/// Block size of a transposed convolution whose window equals its stride.
fn block_size(window: &Window, shape: &[usize], output: &[usize]) -> Option<usize> {
    let [block, width] = window.kernel;
    let whole = block == width
        && window.strides == window.kernel
        && window.dilations == [1, 1]
        && window.pads == [0; 4]
        && shape.len() == 4
        && output[2..] == [shape[2] * block, shape[3] * block];
    (whole && block > 1 && shape[1] > 0 && output[1] > 0).then_some(block)
}

#[cfg(test)]
mod tests {
    use octet_graph::Attribute;
    use octet_graph::Node;
    use octet_onnx::schema::DataType;

    use crate::test_graph::{TestGraph, rounded};

    const SIZE: usize = 4;

    /// Convolution of one image of four by four with windows of three by three and zeros around it.
    fn expected(x: &[f32], weights: &[f32], [inputs, outputs]: [usize; 2]) -> Vec<f32> {
        let groups = if weights.len() == outputs * 9 {
            outputs
        } else {
            1
        };
        let each = inputs / groups;
        let mut result = Vec::new();
        for at in 0..outputs * SIZE * SIZE {
            let (channel, row, column) = (at / 16, at / 4 % 4, at % 4);
            let mut sum = 0.0;
            for tap in 0..each * 9 {
                let (input, dy, dx) = (tap / 9, tap / 3 % 3, tap % 3);
                let (y, x_at) = (row + dy, column + dx);
                if (1..=SIZE).contains(&y) && (1..=SIZE).contains(&x_at) {
                    let input = input + channel / (outputs / groups) * each;
                    let pixel = x[input * 16 + (y - 1) * 4 + x_at - 1];
                    sum += pixel * weights[channel * each * 9 + tap];
                }
            }
            result.push(sum);
        }
        result
    }

    fn node(group: i64) -> Node {
        Node::new("Conv", "n", &["x", "w"], &["y"])
            .with(Attribute::ints("pads", &[1; 4]))
            .with(Attribute::int("group", group))
    }

    #[test]
    fn dense_and_depthwise_convolutions() {
        for (group, name) in [(1, "convolution"), (2, "grouped convolution")] {
            for wide in [false, true] {
                let mut graph = TestGraph::new(wide);
                let x = graph.input("x", &[1, 2, SIZE, SIZE]);
                let w = graph.weight("w", &[2, 2 / group, 3, 3]);
                graph.tested(node(group as i64), &[&[1, 2, SIZE, SIZE]]);
                let run = graph.run();
                assert_eq!(run.operation("n"), name);
                run.assert_near(&rounded(expected(&x, &w, [2, 2])), 1.0);
            }
        }
    }

    #[test]
    fn bias_and_relu_are_fused() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 2, SIZE, SIZE]);
        let w = graph.weight("w", &[3, 2, 3, 3]);
        graph.constant("b", &[3], &[1.0, -2.0, 0.5]);
        let mut conv = node(1);
        conv.input.push("b".into());
        conv.output = vec!["c".into()];
        graph.node(conv, DataType::Float, &[&[1, 3, SIZE, SIZE]]);
        let relu = Node::new("Relu", "relu", &["c"], &["y"]);
        graph.tested(relu, &[&[1, 3, SIZE, SIZE]]);
        let run = graph.run();
        let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
        assert!(node.fused.iter().any(|title| title == "relu"), "{node:?}");
        let sums = expected(&x, &w, [2, 3]).into_iter().enumerate();
        let relu = sums.map(|(at, sum)| (sum + [1.0, -2.0, 0.5][at / 16]).max(0.0));
        run.assert_near(&rounded(relu), 1.0);
    }

    #[test]
    fn arithmetic_reads_its_float_output() {
        let mut graph = TestGraph::new(false);
        let x = graph.input("x", &[1, 2, SIZE, SIZE]);
        let w = graph.weight("w", &[2, 2, 3, 3]);
        let mut conv = node(1);
        conv.output = vec!["c".into()];
        graph.node(conv, DataType::Float, &[&[1, 2, SIZE, SIZE]]);
        let add = Node::new("Add", "add", &["c", "x"], &["y"]);
        graph.tested(add, &[&[1, 2, SIZE, SIZE]]);
        let run = graph.run();
        assert_eq!(run.operation("add"), "arithmetic on 16 bits");
        let sums = expected(&x, &w, [2, 2]).into_iter().zip(&x);
        run.assert_near(&rounded(sums.map(|(sum, x)| sum + x)), 1.0);
    }

    #[test]
    fn a_transposed_convolution_without_overlap() {
        // Bits of the input and of the output.
        for (from, to) in [(8, 8), (8, 16), (16, 16)] {
            let mut graph = TestGraph::new(from == 16);
            let x = graph.input("x", &[1, 2, 2, 2]);
            let mut graph = if to == 16 { graph.on_16_bits() } else { graph };
            let w = graph.weight("w", &[2, 3, 2, 2]);
            let node = Node::new("ConvTranspose", "n", &["x", "w"], &["y"]);
            let node = node.with(Attribute::ints("strides", &[2, 2]));
            graph.tested(node, &[&[1, 3, SIZE, SIZE]]);
            let run = graph.run();
            assert_eq!(run.operation("n"), "transposed convolution");
            let of = |at: usize| {
                let (channel, at) = (at / 16, at % 16);
                let (pixel, tap) = (at / 8 * 2 + at % 4 / 2, at / 4 % 2 * 2 + at % 2);
                x[pixel] * w[channel * 4 + tap] + x[4 + pixel] * w[12 + channel * 4 + tap]
            };
            let wanted: Vec<f32> = (0..48).map(of).collect();
            match to {
                8 => run.assert_near(&rounded(wanted), 1.0),
                _ => run.assert_near(&wanted, 0.01),
            }
        }
    }

    #[test]
    fn a_weight_that_does_not_fit_is_a_reason() {
        let mut graph = TestGraph::new(false);
        graph.input("x", &[1, 2, SIZE, SIZE]);
        graph.weight("w", &[2, 3, 3, 3]);
        graph.tested(node(1), &[&[1, 2, SIZE, SIZE]]);
        let reason = "its weight [2, 3, 3, 3] with 1 groups does not fit its image [1, 2, 4, 4]";
        assert_eq!(graph.reason("n"), reason);
    }
}
