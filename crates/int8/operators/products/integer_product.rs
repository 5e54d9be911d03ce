//! MatMulInteger, and ConvInteger with constant weights: products with scales or zero points known
//! only during the run.
//!
//! A product's step includes the nodes that dequantize its accumulators (`dequantization.rs`).
//! Without these, the accumulators are the output.

use std::sync::Arc;

use octet_kernels::int8::{Form, Layout as MatrixLayout, Window};
use octet_onnx::schema::{DataType, NodeProto};

use super::batched::matrix_products;
use super::convolution::{groups, window};
use super::dequantization::Dequantization;
use super::matrix_batch::{MatrixBatch, matrix_batch};
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
use crate::pattern::reader::Reader;
use crate::pattern::weights::Weights;
use crate::program::instruction::{BufferElement, InstructionKernel};
use crate::program::slices::{InputSlice, OutputSlice, bytes_of, floats_of, one};
use crate::program::split_rows::split_rows;
use crate::quantization::{Int8Quantization, SIGN};
use crate::values::{ElementKind, Operand};

pub(in crate::operators) const INTEGER_PRODUCT: OperatorMatcher = OperatorMatcher {
    names: &["MatMulInteger", "ConvInteger"],
    pass: MatchPass::Defined,
    node: NodeMatcher::Steps(integer_product),
};

/// Right factor of an integer product. Its scales are part of the factors of the output.
#[derive(Debug)]
pub(super) enum Multiplier {
    /// A constant, [depth, columns].
    Matrix(Weights),
    /// Weights, window and groups of a convolution.
    Image(Weights, Window, usize),
    /// Another value of bytes, with its zero point if constant.
    Bytes(MatrixBatch, Option<u8>),
}

/// A product of bytes with weights or other bytes. Its inputs are the bytes of one or both factors,
/// the zero points that are not constant, and the scales.
#[derive(Debug)]
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
        inputs.push(Operand::Floats(scale.clone()));
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

impl Reader<'_> {
    /// Bytes without known parameters, and true if they are signed.
    fn bytes(&self, name: &str) -> Result<(Operand, bool), FloatReason> {
        if self.constant(name).is_some() {
            return Err(FloatReason::ConstantInput(name.to_owned()));
        }
        let signed = match self.element(name) {
            Some(DataType::Uint8) => false,
            Some(DataType::Int8) => true,
            _ => return Err(FloatReason::InputType(name.to_owned())),
        };
        Ok((Operand::Bytes(name.to_owned()), signed))
    }

    /// Bytes of a value or of a constant, without known parameters.
    fn bytes_or_constant(&self, name: &str) -> Result<(Operand, bool), FloatReason> {
        let Some(tensor) = self.constant(name) else {
            return self.bytes(name);
        };
        let signed = match tensor.element() {
            Ok(DataType::Uint8) => false,
            Ok(DataType::Int8) => true,
            _ => return Err(FloatReason::ConstantType(name.to_owned())),
        };
        // The parameters belong to the product.
        let quantization = Int8Quantization {
            scale: 1.0,
            zero_point: 0,
            signed,
        };
        let found = self.quantized(name, tensor, quantization);
        Ok((Operand::Constant(found?), signed))
    }

    /// The zero point of bytes: its value if it is constant, else the operand that provides it.
    fn zero_point(
        &self,
        name: Option<&str>,
        signed: bool,
    ) -> Result<(Option<u8>, Option<Operand>), FloatReason> {
        let flip = if signed { SIGN } else { 0 };
        let Some(name) = name else {
            return Ok((Some(flip), None));
        };
        if self.shape(name)?.iter().product::<usize>() != 1 {
            return Err(FloatReason::InputZeroPoints(name.to_owned()));
        }
        if let Some(tensor) = self.constant(name) {
            let zero = tensor.to_i64()?;
            let zero = zero.first().ok_or(FloatReason::EmptyZeroPoint)?;
            return Ok((Some(*zero as u8 ^ flip), None));
        }
        match self.bytes(name)? {
            (operand, same) if same == signed => Ok((None, Some(operand))),
            _ => Err(FloatReason::ZeroPointType(name.to_owned())),
        }
    }
}

/// Factors of an integer product: the right factor, the operands, and the zero point of the left
/// factor if it is constant.
struct IntegerFactors {
    by: Multiplier,
    inputs: Vec<Operand>,
    zero_point: Option<u8>,
}

impl Reader<'_> {
    /// Factors of a ConvInteger.
    fn convolution_factors(&self, node: &NodeProto) -> Result<IntegerFactors, FloatReason> {
        let (operand, signed) = self.bytes(slot(node, 0)?)?;
        let (zero_point, measured) = self.zero_point(node.input_at(2), signed)?;
        let weights = self.plain_weights(slot(node, 1)?, node.input_at(3), 0)?;
        let groups = groups(node)?;
        let (window, _) = window(node, self, &weights.shape, groups)?;
        Ok(IntegerFactors {
            by: Multiplier::Image(weights, window, groups),
            inputs: std::iter::once(operand).chain(measured).collect(),
            zero_point,
        })
    }

    /// Factors of a MatMulInteger with an output of this shape.
    fn matrix_factors(
        &self,
        node: &NodeProto,
        result: &[usize],
    ) -> Result<IntegerFactors, FloatReason> {
        let (left, right) = (slot(node, 0)?, slot(node, 1)?);
        let (rows, columns) = (self.shape(left)?, self.shape(right)?);
        let constant = self.constant(right).is_some() && columns.len() <= 2;
        let (operand, signed) = match constant {
            true => self.bytes(left)?,
            false => self.bytes_or_constant(left)?,
        };
        let (zero_point, measured) = self.zero_point(node.input_at(2), signed)?;
        if constant {
            let weights = self.plain_weights(right, node.input_at(3), 1)?;
            let [depth, count] = [weights.shape[0], weights.shape[1]];
            // A vector contributes no column axis to the output.
            let last = Some(&count).filter(|_| columns.len() == 2);
            if rows.last() != Some(&depth) || last.is_some_and(|count| result.last() != Some(count))
            {
                return Err(FloatReason::Factors(rows, columns));
            }
            return Ok(IntegerFactors {
                by: Multiplier::Matrix(weights),
                inputs: std::iter::once(operand).chain(measured).collect(),
                zero_point,
            });
        }
        let (other, signed) = self.bytes_or_constant(right)?;
        let (zero, more) = self.zero_point(node.input_at(3), signed)?;
        Ok(IntegerFactors {
            by: Multiplier::Bytes(matrix_batch(&rows, &columns, result)?, zero),
            inputs: [operand, other]
                .into_iter()
                .chain(measured)
                .chain(more)
                .collect(),
            zero_point,
        })
    }
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
                let weighted =
                    images(compiler, weights, (window, *groups, false), [shape, output])?;
                (RightFactor::Weights(weighted), MemoryLayout::ChannelsLast)
            }
            Multiplier::Matrix(weights) => {
                let weighted = rows(compiler, weights, MatrixLayout::DepthFirst, shape)?;
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
            result = compiler.add(Box::new(Clamp(bounds)), vec![result], element, output);
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
struct Clamp([f32; 2]);

impl InstructionKernel for Clamp {
    fn run(&self, inputs: &[InputSlice], output: OutputSlice) -> Result<(), ProgramError> {
        let Clamp([low, high]) = *self;
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
