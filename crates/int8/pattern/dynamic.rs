//! Products with dynamic quantization: DynamicQuantizeLinear, MatMulInteger, ConvInteger.
//!
//! Scale and zero point are values of the graph here. A product's step includes the Cast and Mul
//! that dequantize its accumulators. It also includes an Add of a constant and a Relu or Clip
//! behind them. Without these nodes, the accumulators are the output.

use super::Matcher;
use super::ir::{
    Dequantization, ElementKind, IntegerProduct, IrValue, Multiplier, Operand, Operation,
};
use super::matrix_batch::matrix_batch;
use super::reader::{Reader, Reason};
use super::weighted_products::{self, slot, slot_out};
use crate::quantization::{Int8Quantization, SIGN};
use octet_onnx::schema::{DataType, NodeProto};

impl Reader<'_> {
    /// Bytes without known parameters, and true if they are signed.
    fn bytes(&self, name: &str) -> Result<(Operand, bool), Reason> {
        if self.constant(name).is_some() {
            return Err(format!("its input {name} is a constant"));
        }
        let signed = match self.element(name) {
            Some(DataType::Uint8) => false,
            Some(DataType::Int8) => true,
            _ => {
                return Err(format!(
                    "the type of its input {name} is not int8 or uint8, or not known"
                ));
            }
        };
        Ok((Operand::Bytes(name.to_owned()), signed))
    }

    /// Bytes of a value or of a constant, without known parameters.
    fn bytes_or_constant(&self, name: &str) -> Result<(Operand, bool), Reason> {
        let Some(tensor) = self.constant(name) else {
            return self.bytes(name);
        };
        let signed = match tensor.element() {
            Ok(DataType::Uint8) => false,
            Ok(DataType::Int8) => true,
            _ => return Err(format!("its constant {name} is not int8 or uint8")),
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
    ) -> Result<(Option<u8>, Option<Operand>), Reason> {
        let flip = if signed { SIGN } else { 0 };
        let Some(name) = name else {
            return Ok((Some(flip), None));
        };
        if self.shape(name)?.iter().product::<usize>() != 1 {
            return Err(format!("its input has several zero points ({name})"));
        }
        if let Some(tensor) = self.constant(name) {
            let zero = tensor.to_i64().map_err(|error| error.to_string())?;
            let zero = zero.first().ok_or("its zero point is empty")?;
            return Ok((Some(*zero as u8 ^ flip), None));
        }
        match self.bytes(name)? {
            (operand, same) if same == signed => Ok((None, Some(operand))),
            _ => Err(format!(
                "the zero point {name} has another type than the integers"
            )),
        }
    }

    /// A constant that broadcasts along the channel axis only: one number, or one per channel.
    pub(super) fn per_channel(
        &self,
        name: &str,
        shape: &[usize],
        axis: impl Into<Option<usize>>,
    ) -> Option<Vec<f32>> {
        let axis = axis.into();
        let (sizes, values) = self.reals(name)?;
        let missing = shape.len().checked_sub(sizes.len())?;
        let mut along = vec![1; missing];
        along.extend(&sizes);
        let alone = along
            .iter()
            .enumerate()
            .all(|(at, &size)| size == 1 || Some(at) == axis);
        let channels = axis.and_then(|axis| shape.get(axis));
        let fits = alone && (values.len() == 1 || Some(&values.len()) == channels);
        let sound = values.iter().all(|value| value.is_finite());
        (fits && sound).then_some(values)
    }

    /// True for a float scalar that comes from outside or from a node before `index`.
    fn is_number_before(&self, name: &str, index: usize) -> bool {
        self.element(name) == Some(DataType::Float)
            && self
                .shape(name)
                .is_ok_and(|shape| shape.iter().product::<usize>() == 1)
            && self.uses.producer(name).is_none_or(|maker| maker < index)
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
    fn convolution_factors(&self, node: &NodeProto) -> Result<IntegerFactors, Reason> {
        let (operand, signed) = self.bytes(slot(node, 0)?)?;
        let (zero_point, measured) = self.zero_point(node.input_at(2), signed)?;
        let weights = self.plain_weights(slot(node, 1)?, node.input_at(3), 0)?;
        let groups = weighted_products::groups(node)?;
        let (window, _) = weighted_products::window(node, self, &weights.shape, groups)?;
        Ok(IntegerFactors {
            by: Multiplier::Image(weights, window, groups),
            inputs: std::iter::once(operand).chain(measured).collect(),
            zero_point,
        })
    }

    /// Factors of a MatMulInteger with an output of this shape.
    fn matrix_factors(&self, node: &NodeProto, result: &[usize]) -> Result<IntegerFactors, Reason> {
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
                return Err(format!(
                    "its factors {rows:?} and {columns:?} do not fit together"
                ));
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

impl Matcher<'_> {
    /// DynamicQuantizeLinear.
    pub(super) fn dynamic_quantize(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let input = slot(node, 0)?;
        let shape = self.reader.shape(input)?;
        if self.reader.element(input) != Some(DataType::Float) {
            return Err(format!("the type of {input} is not float32 or not known"));
        }
        if self.reader.constant(input).is_some() || shape.contains(&0) {
            return Err("its input is constant or empty".into());
        }
        let [integers, scale, zero_point] = node.output.as_slice() else {
            return Err("one of its three outputs has no name".into());
        };
        if node.output.iter().any(String::is_empty) {
            return Err("one of its three outputs has no name".into());
        }
        let byte = ElementKind::Byte { signed: false };
        for (name, shape, kind) in [
            (input, &shape, ElementKind::Float),
            (integers, &shape, byte),
            (scale, &Vec::new(), ElementKind::Float),
            (zero_point, &Vec::new(), byte),
        ] {
            self.value(name, shape, kind);
        }
        let inputs = vec![Operand::Floats(input.to_owned())];
        let step = self.step(vec![index], Operation::DynamicQuantize, inputs, integers);
        step.more_outputs = vec![scale.clone(), zero_point.clone()];
        Ok(())
    }

    /// MatMulInteger, and ConvInteger with constant weights.
    pub(super) fn integer_product(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let output = slot_out(node)?;
        let result = self.reader.shape(output)?;
        let IntegerFactors {
            by,
            mut inputs,
            zero_point,
        } = match node.is("ConvInteger") {
            true => self.reader.convolution_factors(node)?,
            false => self.reader.matrix_factors(node, &result)?,
        };
        let axis = match &by {
            Multiplier::Image(..) => Some(1),
            // The result of a product with a vector has no column axis.
            _ if self.reader.shape(slot(node, 1)?)?.len() == 1 => None,
            _ => result.len().checked_sub(1),
        };
        let end = self.scaled(index, output, (&result, axis));
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
            let signed = self.reader.element(name) == Some(DataType::Int8);
            let (name, shape) = (name.to_owned(), self.reader.shape(name)?);
            self.value(&name, &shape, ElementKind::Byte { signed });
        }
        for scale in reals.iter().flat_map(|reals| &reals.scales) {
            self.value(scale, &[], ElementKind::Float);
            inputs.push(Operand::Floats(scale.clone()));
        }
        self.value(&real, &result, kind);
        let sums = IntegerProduct {
            by,
            zero_point,
            reals,
        };
        let nodes = std::iter::once(index).chain(nodes).collect();
        self.step(
            nodes,
            Operation::IntegerProduct(Box::new(sums)),
            inputs,
            &real,
        );
        Ok(())
    }

    fn value(&mut self, name: &str, shape: &[usize], kind: ElementKind) {
        let shape = shape.to_vec();
        let value = IrValue { shape, kind };
        self.ir.values.insert(name.to_owned(), value);
    }

    /// The chain that dequantizes accumulators: Cast, Mul, a Mul of the scales, Add, and Relu or
    /// Clip. Returns its parameters, its output and its nodes.
    fn scaled(
        &self,
        index: usize,
        sums: &str,
        (shape, axis): (&[usize], Option<usize>),
    ) -> Option<(Dequantization, String, Vec<usize>)> {
        let count = axis.map_or(1, |axis| shape[axis]);
        let cast = self.reader.only_reader(sums)?;
        let node = self.unmatched(cast)?;
        if !node.is("Cast") || node.int("to") != Some(DataType::Float as i64) {
            return None;
        }
        let (product, other) = self.partner(node.output.first()?, "Mul")?;
        let (factors, scales, maker) = self.factors(other, index, (shape, axis))?;
        let mut real = self.node(product).output.first()?;
        let mut nodes = vec![cast, product];
        nodes.extend(maker);
        if self.reader.shape(real).ok()? != shape {
            return None;
        }
        let mut bias = Vec::new();
        if let Some((add, other)) = self.partner(real, "Add")
            && let Some(sum) = self.node(add).output.first()
            && let Some(found) = self.reader.per_channel(other, shape, axis)
            && self.reader.shape(sum).is_ok_and(|found| found == shape)
        {
            bias = columns(found, count);
            nodes.push(add);
            real = sum;
        }
        let clamp = self.clamp_behind(real);
        let clamp = clamp.filter(|(node, _)| self.unmatched(*node).is_some());
        if let Some((clamp, _)) = clamp {
            nodes.push(clamp);
            real = self.node(clamp).output.first()?;
        }
        let scaled = Dequantization {
            factors: columns(factors, count),
            bias,
            scales,
            bounds: clamp.map(|(_, bounds)| bounds),
        };
        Some((scaled, real.clone(), nodes))
    }

    /// A factor of the accumulators: a constant, a scalar, or the product of two of these. The last
    /// item is the node of that product, if no other node reads it.
    fn factors(
        &self,
        name: &str,
        index: usize,
        (shape, axis): (&[usize], Option<usize>),
    ) -> Option<(Vec<f32>, Vec<String>, Option<usize>)> {
        let reader = &self.reader;
        if let Some(factors) = reader.per_channel(name, shape, axis) {
            return Some((factors, Vec::new(), None));
        }
        let number =
            |name: &str| reader.is_number_before(name, index) && reader.constant(name).is_none();
        let maker = reader.uses.producer(name);
        if let Some(at) = maker
            && let Some(node) = self.unmatched(at).filter(|node| node.is("Mul"))
            && let [left, right] = node.input.as_slice()
        {
            let alone = reader.uses.consumers(name).len() == 1 && !reader.is_observed(name);
            let maker = Some(at).filter(|_| alone);
            for (scale, constant) in [(left, right), (right, left)] {
                if number(scale)
                    && let Some(factors) = reader.per_channel(constant, shape, axis)
                {
                    return Some((factors, vec![scale.clone()], maker));
                }
            }
            if number(left) && number(right) {
                return Some((vec![1.0], vec![left.clone(), right.clone()], maker));
            }
        }
        number(name).then(|| (vec![1.0], vec![name.to_owned()], None))
    }

    /// A node of an ONNX operator that no step contains yet.
    pub(super) fn unmatched(&self, index: usize) -> Option<&NodeProto> {
        let taken = self.owned.contains(&index) || self.reader.refused.contains(&index);
        let node = self.node(index);
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        (own && !taken).then_some(node)
    }

    /// The only reader of a value, if it is the given binary operator, with its other input.
    pub(super) fn partner(&self, value: &str, operator: &str) -> Option<(usize, &str)> {
        let [(reader, slot @ (0 | 1))] = *self.reader.uses.consumers(value) else {
            return None;
        };
        let node = self.unmatched(reader).filter(|node| node.is(operator))?;
        let other = node.input_at(1 - slot)?;
        (!self.reader.is_observed(value)).then_some((reader, other))
    }
}

/// Repeats a single value for each column.
fn columns(values: Vec<f32>, count: usize) -> Vec<f32> {
    match values[..] {
        [one] => vec![one; count],
        _ => values,
    }
}
