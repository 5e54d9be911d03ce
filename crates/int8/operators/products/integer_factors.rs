//! Factors of MatMulInteger and ConvInteger: bytes, weights and zero points.

use octet_kernels::int8::Window;
use octet_onnx::schema::DataType;

use super::convolution::{groups, window};
use super::matrix_batch::{MatrixBatch, matrix_batch};
use crate::float_reason::FloatReason;
use crate::pattern::attributes::slot;
use crate::pattern::reader::Reader;
use crate::pattern::weights::SignedWeights;
use crate::quantization::{Int8Quantization, SIGN};
use crate::values::IrOperand;
use octet_graph::Node;

/// Right factor of an integer product. Its scales are part of the factors of the output.
pub(super) enum Multiplier {
    /// A constant, [depth, columns].
    Matrix(SignedWeights),
    /// Weights, window and groups of a convolution.
    Image(SignedWeights, Window, usize),
    /// Another value of bytes, with its zero point if constant.
    Bytes(MatrixBatch, Option<u8>),
}

impl Reader<'_> {
    /// Bytes without known parameters, and true if they are signed.
    fn bytes(&self, name: &str) -> Result<(IrOperand, bool), FloatReason> {
        if self.constant(name).is_some() {
            return Err(FloatReason::ConstantInput(name.to_owned()));
        }
        let signed = match self.element(name) {
            Some(DataType::Uint8) => false,
            Some(DataType::Int8) => true,
            _ => return Err(FloatReason::InputType(name.to_owned())),
        };
        Ok((IrOperand::Bytes(name.to_owned()), signed))
    }

    /// Bytes of a value or of a constant, without known parameters.
    fn bytes_or_constant(&self, name: &str) -> Result<(IrOperand, bool), FloatReason> {
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
        let constant = self.quantized(name, tensor, quantization)?;
        Ok((IrOperand::Constant(constant), signed))
    }

    /// The zero point of bytes: its value if it is constant, else the operand that provides it.
    fn zero_point(
        &self,
        name: Option<&str>,
        signed: bool,
    ) -> Result<(Option<u8>, Option<IrOperand>), FloatReason> {
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
pub(super) struct IntegerFactors {
    pub(super) by: Multiplier,
    pub(super) inputs: Vec<IrOperand>,
    pub(super) zero_point: Option<u8>,
}

impl Reader<'_> {
    /// Factors of a ConvInteger.
    pub(super) fn convolution_factors(&self, node: &Node) -> Result<IntegerFactors, FloatReason> {
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
    pub(super) fn matrix_factors(
        &self,
        node: &Node,
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
