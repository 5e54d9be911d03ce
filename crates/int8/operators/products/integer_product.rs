//! MatMulInteger, and ConvInteger with constant weights: products with scales or zero points known
//! only during the run.
//!
//! A product's step includes the nodes that dequantize its accumulators (`dequantization.rs`).
//! Without these, the accumulators are the output.

use std::sync::Arc;

use octet_kernels::int8::{Form, Layout as MatrixLayout};
use octet_onnx::schema::DataType;

use super::batched::matrix_products;
use super::dequantization::Dequantization;
use super::integer_factors::{IntegerFactors, Multiplier};
use super::matrix_batch::MatrixBatch;
use super::packing::{images, rows};
use super::weighted::{OutputConstructor, ProductEpilogue, WeightedProduct, floats, product, sums};
use crate::error::{CompilerBug, ProgramError};
use crate::float_reason::FloatReason;
use crate::layout::MemoryLayout;
use crate::lowering::compiler::Compiler;
use crate::lowering::lowered_step::LoweredStep;
use crate::operation::Operation;
use crate::pattern::attributes::{slot, slot_out};
use crate::pattern::matcher::{MatchPass, Matcher, NodeMatcher, OperatorMatcher};
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of, one};
use crate::program::split_rows::split_rows;
use crate::values::{ElementKind, IrOperand};

pub(in crate::operators) const INTEGER_PRODUCT: OperatorMatcher = OperatorMatcher {
    names: &["MatMulInteger", "ConvInteger"],
    pass: MatchPass::Defined,
    node: NodeMatcher::Steps(integer_product),
};

/// A product of bytes with weights or other bytes. Its inputs are the bytes of one or both factors,
/// the zero points that are not constant, and the scales.
struct IntegerProduct {
    by: Multiplier,
    zero_point: Option<u8>,
    /// Dequantization of the accumulators; `None` if the accumulators are the output.
    reals: Option<Dequantization>,
}

/// MatMulInteger, and ConvInteger with constant weights.
fn integer_product(matcher: &mut Matcher, index: usize) -> Result<(), FloatReason> {
    let node = matcher.node(index);
    let output = slot_out(node)?;
    let result = matcher.reader.shape(output)?;
    let IntegerFactors {
        by,
        mut inputs,
        zero_point,
    } = match node.is("ConvInteger") {
        true => matcher.reader.convolution_factors(node)?,
        false => matcher.reader.matrix_factors(node, &result)?,
    };
    let axis = match &by {
        Multiplier::Image(..) => Some(1),
        // The result of a product with a vector has no column axis.
        _ if matcher.reader.shape(slot(node, 1)?)?.len() == 1 => None,
        _ => result.len().checked_sub(1),
    };
    let end = matcher.scaled(index, output, (&result, axis));
    let (reals, real, nodes) = match end {
        Some((scaled, real, nodes)) => (Some(scaled), real, nodes),
        None => (None, output.to_owned(), Vec::new()),
    };
    let kind = if reals.is_some() {
        ElementKind::Float
    } else {
        ElementKind::Accumulator
    };
    for operand in &inputs {
        let Some(name) = operand.value() else {
            continue;
        };
        let signed = matcher.reader.element(name) == Some(DataType::Int8);
        let (name, shape) = (name.to_owned(), matcher.reader.shape(name)?);
        matcher.value(&name, &shape, ElementKind::Byte { signed });
    }
    for scale in reals.iter().flat_map(|reals| &reals.scales) {
        matcher.value(scale, &[], ElementKind::Float);
        inputs.push(IrOperand::Floats(scale.clone()));
    }
    matcher.value(&real, &result, kind);
    let operation = IntegerProduct {
        by,
        zero_point,
        reals,
    };
    let nodes = std::iter::once(index).chain(nodes).collect();
    matcher.step(nodes, Arc::new(operation), inputs, &real);
    Ok(())
}

impl Operation for IntegerProduct {
    fn name(&self) -> &'static str {
        match self.by {
            Multiplier::Image(..) => "dynamically quantized convolution",
            _ => "dynamically quantized product",
        }
    }

    fn preference(&self, _own: MemoryLayout) -> MemoryLayout {
        match self.by {
            Multiplier::Image(..) => MemoryLayout::ChannelsLast,
            _ => MemoryLayout::Plain,
        }
    }

    fn lower<'a>(
        &'a self,
        step: &LoweredStep<'a>,
        compiler: &mut Compiler<'a>,
    ) -> Result<(), ProgramError> {
        let (first, others) = step
            .values
            .inputs
            .split_first()
            .ok_or(CompilerBug::MissingOperand)?;
        let (shape, output) = (step.shape, step.output);
        let (by, layout) = match &self.by {
            Multiplier::Image(weights, window, groups) => {
                // ONNX Runtime's ConvInteger is exact.
                let form = compiler.form;
                let window = (window, *groups, false);
                let weighted = images(compiler, form, weights, window, [shape, output])?;
                (RightFactor::Weights(weighted), MemoryLayout::ChannelsLast)
            }
            Multiplier::Matrix(weights) => {
                let form = compiler.form_of(first, weights);
                let weighted = rows(compiler, form, weights, MatrixLayout::DepthFirst, shape)?;
                (RightFactor::Weights(weighted), MemoryLayout::Plain)
            }
            Multiplier::Bytes(batch, zero) => (
                RightFactor::Bytes(batch.clone(), *zero),
                MemoryLayout::Plain,
            ),
        };
        let mut sources = vec![compiler.operand(first, layout)?];
        for operand in others {
            sources.push(compiler.operand(operand, MemoryLayout::Plain)?);
        }
        let reals = self.reals.as_ref();
        let bias = reals.map(|reals| &reals.bias[..]).unwrap_or_default();
        let kernel = Box::new(DynamicProduct {
            by,
            zero_point: self.zero_point,
            scales: reals.map_or(0, |reals| reals.scales.len()),
            factors: reals.map(|reals| reals.factors.clone()).unwrap_or_default(),
            bias: (!bias.is_empty()).then(|| Arc::from(bias)),
        });
        let element = match reals {
            Some(_) => BufferElement::Float,
            None => BufferElement::Accumulator,
        };
        let mut result = compiler.add(kernel, sources, element, output);
        if let Some(bounds) = reals.and_then(|reals| reals.bounds) {
            result = compiler.add(Box::new(ClampFloats(bounds)), vec![result], element, output);
        }
        // Accumulators leave the region in ONNX's layout. Floats keep theirs, because they may be
        // quantized again.
        let layout = match element {
            BufferElement::Accumulator if layout == MemoryLayout::ChannelsLast => {
                result = compiler.to_nchw(result, element, output);
                MemoryLayout::Plain
            }
            _ => layout,
        };
        compiler.put(step, layout, result);
        Ok(())
    }
}

/// Right factor of an integer product.
enum RightFactor {
    Weights(WeightedProduct),
    /// Another value of bytes, with its zero point if constant.
    Bytes(MatrixBatch, Option<u8>),
}

/// An integer product with scales or zero points known only during the run. It reads the bytes of
/// one or both factors, the zero points that are not constant, and the scales.
struct DynamicProduct {
    by: RightFactor,
    zero_point: Option<u8>,
    scales: usize,
    /// Per column, without these scales.
    factors: Vec<f32>,
    bias: Option<Arc<[f32]>>,
}

impl InstructionKernel for DynamicProduct {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        match output {
            OutputSlice::Floats(output) => self.product(inputs, output, floats),
            OutputSlice::Accumulators(output) => self.product(inputs, output, sums),
            OutputSlice::Bytes(_) => Err(CompilerBug::InstructionOutput.into()),
        }
    }

    fn form(&self) -> Option<String> {
        Some(match &self.by {
            RightFactor::Weights(weighted) => weighted.form(),
            RightFactor::Bytes(..) => Form::best().name().to_owned(),
        })
    }
}

impl DynamicProduct {
    /// A product whose zero points and scales are inputs.
    fn product<T: Send>(
        &self,
        inputs: &[InputSlice],
        output: &mut [T],
        sink: OutputConstructor<T>,
    ) -> Result<(), ProgramError> {
        let mut behind = match self.by {
            RightFactor::Weights(_) => 1,
            RightFactor::Bytes(..) => 2,
        };
        let mut zero_point = |known: Option<u8>| -> Result<u8, CompilerBug> {
            match known {
                Some(known) => Ok(known),
                None => {
                    behind += 1;
                    one(bytes_of(inputs, behind - 1)?)
                }
            }
        };
        let zero = zero_point(self.zero_point)?;
        let other = match self.by {
            RightFactor::Weights(_) => 0,
            RightFactor::Bytes(_, known) => zero_point(known)?,
        };
        let mut scale = 1.0;
        for at in inputs.len() - self.scales..inputs.len() {
            scale *= one(floats_of(inputs, at)?)?;
        }
        let epilogue = ProductEpilogue {
            factors: self.factors.iter().map(|own| scale * own).collect(),
            bias: self.bias.clone(),
            to: None,
            rounding: None,
        };
        let (input, output) = (bytes_of(inputs, 0)?, (output, &epilogue));
        match &self.by {
            RightFactor::Weights(weighted) => product(weighted, (input, zero), None, output, sink)?,
            RightFactor::Bytes(batch, _) => {
                let (factors, zeros) = ([input, bytes_of(inputs, 1)?], [zero, other]);
                matrix_products(batch, factors, zeros, None, output, sink)?;
            }
        }
        Ok(())
    }
}

/// Clamps floats.
struct ClampFloats([f32; 2]);

impl InstructionKernel for ClampFloats {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let ClampFloats([low, high]) = *self;
        let (floats, output) = (floats_of(inputs, 0)?, output.floats()?);
        split_rows(output, 1, floats.len(), |part, output| {
            for (to, &value) in output.iter_mut().zip(&floats[part]) {
                // NaN stays NaN.
                let raised = if value < low { low } else { value };
                *to = if raised > high { high } else { raised };
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use octet_graph::{Attribute, Node};
    use octet_onnx::schema::DataType;

    use crate::test_graph::{TestGraph, assert_near};

    /// A product of dynamically quantized rows with weights, from the float input on.
    fn graph() -> (TestGraph, Vec<f32>) {
        let mut graph = TestGraph::new(false);
        let reals: Vec<f32> = (0..8).map(|at| (at * 5 % 8) as f32 / 4.0 - 0.75).collect();
        graph.floats("x", &[2, 4], &reals);
        let outputs = ["q", "scale_of_x", "zero_of_x"];
        let quantize = Node::new("DynamicQuantizeLinear", "quantize", &["x"], &outputs);
        graph.node(quantize, DataType::Uint8, &[&[2, 4], &[], &[]]);
        graph.float("scale_of_x");
        graph.bytes("w", &[4, 2], &[1, -2, 3, 4, -5, 6, 7, -8]);
        let inputs = ["q", "w", "zero_of_x"];
        let product = Node::new("MatMulInteger", "n", &inputs, &["sums"]);
        graph.node(product, DataType::Int32, &[&[2, 2]]);
        let cast = Node::new("Cast", "cast", &["sums"], &["floats"]);
        let cast = cast.with(Attribute::int("to", DataType::Float as i64));
        graph.node(cast, DataType::Float, &[&[2, 2]]);
        (graph, reals)
    }

    #[test]
    fn the_nodes_behind_the_accumulators_are_fused() {
        let (mut graph, x) = graph();
        let scaled = Node::new("Mul", "scaled", &["floats", "scale_of_x"], &["s"]);
        graph.node(scaled, DataType::Float, &[&[2, 2]]);
        graph.constant("b", &[2], &[0.5, -1.0]);
        let biased = Node::new("Add", "biased", &["s", "b"], &["t"]);
        graph.node(biased, DataType::Float, &[&[2, 2]]);
        let relu = Node::new("Relu", "relu", &["t"], &["y"]);
        graph.node(relu, DataType::Float, &[&[2, 2]]);
        graph.output("y");
        let run = graph.run();
        assert_eq!(run.operation("quantize"), "dynamic quantization");
        assert_eq!(run.operation("n"), "dynamically quantized product");
        let node = run.nodes.iter().find(|node| node.node == "n").unwrap();
        assert_eq!(node.fused, ["cast", "scaled", "biased", "relu"]);
        let scale = (1.0 + 0.75) / 255.0;
        let zero_point = (0.75f32 / scale).round_ties_even();
        let weights = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0, 7.0, -8.0];
        let of = |at: usize| {
            let (row, column) = (at / 2, at % 2);
            let integer = |real: f32| (real / scale).round_ties_even() + zero_point;
            let term = |k: usize| (integer(x[row * 4 + k]) - zero_point) * weights[k * 2 + column];
            ((0..4).map(term).sum::<f32>() * scale + [0.5, -1.0][column]).max(0.0)
        };
        let expected: Vec<f32> = (0..4).map(of).collect();
        assert_near(&run.results[0], &expected, 1e-4);
    }
}
