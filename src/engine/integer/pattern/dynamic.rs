//! Products whose activations are measured as the model runs: DynamicQuantizeLinear, MatMulInteger, ConvInteger.
//!
//! Scale and zero point are values like others here. The Cast and the Mul that make reals of a product's sums belong to its
//! step, and so do an Add of a constant and a Relu or Clip behind them; where they aren't there, the sums come out.

use super::Matcher;
use super::network::{Kind, Operand, Operation, Scaled, Sums, Value};
use super::reader::{Reader, Reason};
use super::weighted::{self, slot, slot_out};
use crate::engine::integer::quantization::SIGN;
use crate::onnx::schema::{DataType, NodeProto};

impl Reader<'_> {
    /// Bytes that say nothing of what they mean, and whether they are signed.
    fn bytes(&self, name: &str) -> Result<(Operand, bool), Reason> {
        if self.constant(name).is_some() {
            return Err(format!("its input {name} is a constant"));
        }
        let signed = match self.element(name) {
            Some(DataType::Uint8) => false,
            Some(DataType::Int8) => true,
            _ => return Err(format!("its input {name} is not known to be bytes")),
        };
        Ok((Operand::Bytes(name.to_owned()), signed))
    }

    /// The zero point of bytes, where it is known or where it comes from.
    fn zero_of(
        &self,
        name: Option<&str>,
        signed: bool,
    ) -> Result<(Option<u8>, Option<Operand>), Reason> {
        let flip = if signed { SIGN } else { 0 };
        let Some(name) = name else {
            return Ok((Some(flip), None));
        };
        if self.shape(name)?.iter().product::<usize>() != 1 {
            return Err(format!("its input has several zero points, {name}"));
        }
        if let Some(tensor) = self.constant(name) {
            let zero = tensor.to_i64().map_err(|error| error.to_string())?;
            let zero = zero.first().ok_or("it has an empty zero point")?;
            return Ok((Some(*zero as u8 ^ flip), None));
        }
        match self.bytes(name)? {
            (operand, same) if same == signed => Ok((None, Some(operand))),
            _ => Err(format!("the zero point {name} is of another type")),
        }
    }

    /// A constant's numbers beside the channels along `axis` of a shape: one a channel, or one for all.
    pub(super) fn beside(&self, name: &str, shape: &[usize], axis: usize) -> Option<Vec<f32>> {
        let (sizes, values) = self.reals(name)?;
        let missing = shape.len().checked_sub(sizes.len())?;
        let mut along = vec![1; missing];
        along.extend(&sizes);
        let alone = along
            .iter()
            .enumerate()
            .all(|(at, &size)| size == 1 || at == axis);
        let fits = alone && matches!(values.len(), n if n == 1 || Some(&n) == shape.get(axis));
        let sound = values.iter().all(|value| value.is_finite());
        (fits && sound).then_some(values)
    }

    /// A float that a node before `index`, or the outside, makes.
    fn is_number_before(&self, name: &str, index: usize) -> bool {
        self.element(name) == Some(DataType::Float)
            && self
                .shape(name)
                .is_ok_and(|shape| shape.iter().product::<usize>() == 1)
            && self.uses.producer(name).is_none_or(|maker| maker < index)
    }
}

impl Matcher<'_> {
    /// DynamicQuantizeLinear.
    pub(super) fn measured(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let input = slot(node, 0)?;
        let shape = self.reader.shape(input)?;
        if self.reader.element(input) != Some(DataType::Float) {
            return Err(format!("{input} is not known to be 32-bit floats"));
        }
        if self.reader.constant(input).is_some() || shape.contains(&0) {
            return Err("its input is a constant, or empty".into());
        }
        let [integers, scale, zero_point] = node.output.as_slice() else {
            return Err("it doesn't name its three results".into());
        };
        if node.output.iter().any(String::is_empty) {
            return Err("it doesn't name its three results".into());
        }
        let byte = Kind::Byte { signed: false };
        for (name, shape, kind) in [
            (input, &shape, Kind::Float),
            (integers, &shape, byte),
            (scale, &Vec::new(), Kind::Float),
            (zero_point, &Vec::new(), byte),
        ] {
            self.value(name, shape, kind);
        }
        let inputs = vec![Operand::Floats(input.to_owned())];
        let step = self.step(vec![index], Operation::Measure, inputs, integers);
        step.beside = vec![scale.clone(), zero_point.clone()];
        Ok(())
    }

    /// MatMulInteger and ConvInteger with constant weights.
    pub(super) fn sums(&mut self, index: usize) -> Result<(), Reason> {
        let node = self.node(index);
        let (input, weight, output) = (slot(node, 0)?, slot(node, 1)?, slot_out(node)?);
        let reader = &self.reader;
        let (shape, made) = (reader.shape(input)?, reader.shape(output)?);
        let (operand, signed) = reader.bytes(input)?;
        let (zero_point, measured) = reader.zero_of(node.input_at(2), signed)?;
        let convolves = node.is("ConvInteger");
        let weights = reader.plain_weights(weight, node.input_at(3), usize::from(!convolves))?;
        let (window, axis) = match convolves {
            true => {
                let groups = weighted::groups(node)?;
                let (window, _) = weighted::window(node, reader, &weights.shape, groups)?;
                (Some((window, groups)), 1)
            }
            false => {
                let &[depth, columns] = weights.shape.as_slice() else {
                    return Err(format!("its weight has the shape {:?}", weights.shape));
                };
                if shape.len() < 2 {
                    return Err("its first factor is a vector".into());
                }
                if shape.last() != Some(&depth) || made.last() != Some(&columns) {
                    return Err(format!(
                        "its factors {shape:?} and {:?} don't fit",
                        weights.shape
                    ));
                }
                (None, made.len() - 1)
            }
        };
        let columns = made[axis];
        let end = self.scaled(index, output, (&made, axis));
        let (reals, real, nodes) = match end {
            Some((scaled, real, nodes)) => (Some(scaled), real, nodes),
            None => (None, output.to_owned(), Vec::new()),
        };
        let mut inputs = vec![operand];
        inputs.extend(measured);
        let scale = reals.as_ref().and_then(|reals| reals.scale.clone());
        let kind = if reals.is_some() {
            Kind::Float
        } else {
            Kind::Sum
        };
        self.value(input, &shape, Kind::Byte { signed });
        for operand in &inputs[1..] {
            let name = operand.value().unwrap_or_default().to_owned();
            self.value(&name, &[], Kind::Byte { signed });
        }
        if let Some(scale) = scale {
            self.value(&scale, &[], Kind::Float);
            inputs.push(Operand::Floats(scale));
        }
        self.value(&real, &made, kind);
        debug_assert!(reals.as_ref().is_none_or(|r| r.factors.len() == columns));
        let sums = Sums {
            weights,
            window,
            zero_point,
            reals,
        };
        let nodes = std::iter::once(index).chain(nodes).collect();
        self.step(nodes, Operation::Sums(Box::new(sums)), inputs, &real);
        Ok(())
    }

    fn value(&mut self, name: &str, shape: &[usize], kind: Kind) {
        let shape = shape.to_vec();
        let value = Value { shape, kind };
        self.network.values.insert(name.to_owned(), value);
    }

    /// What makes reals of sums: the Cast, the Mul, the Mul beside it, and the Add and the Relu or Clip behind; the value that
    /// comes out, and the nodes that this stands for.
    fn scaled(
        &self,
        index: usize,
        sums: &str,
        (shape, axis): (&[usize], usize),
    ) -> Option<(Scaled, String, Vec<usize>)> {
        let cast = self.reader.only_reader(sums)?;
        let node = self.free(cast)?;
        if !node.is("Cast") || node.int("to") != Some(DataType::Float as i64) {
            return None;
        }
        let (product, other) = self.partner(node.output.first()?, "Mul")?;
        let (factors, scale, maker) = self.factors(other, index, (shape, axis))?;
        let mut real = self.node(product).output.first()?;
        let mut nodes = vec![cast, product];
        nodes.extend(maker);
        if self.reader.shape(real).ok()? != shape {
            return None;
        }
        let mut bias = Vec::new();
        if let Some((add, other)) = self.partner(real, "Add")
            && let Some(sum) = self.node(add).output.first()
            && let Some(found) = self.reader.beside(other, shape, axis)
            && self.reader.shape(sum).is_ok_and(|found| found == shape)
        {
            bias = columns(found, shape[axis]);
            nodes.push(add);
            real = sum;
        }
        let clamp = self.clamp_behind(real);
        let clamp = clamp.filter(|(node, _)| self.free(*node).is_some());
        if let Some((clamp, _)) = clamp {
            nodes.push(clamp);
            real = self.node(clamp).output.first()?;
        }
        let scaled = Scaled {
            factors: columns(factors, shape[axis]),
            bias,
            scale,
            bounds: clamp.map(|(_, bounds)| bounds),
        };
        Some((scaled, real.clone(), nodes))
    }

    /// A factor of sums: a constant, a number, or the product of both; then the node that makes it, if nobody else needs that.
    fn factors(
        &self,
        name: &str,
        index: usize,
        (shape, axis): (&[usize], usize),
    ) -> Option<(Vec<f32>, Option<String>, Option<usize>)> {
        let reader = &self.reader;
        if let Some(factors) = reader.beside(name, shape, axis) {
            return Some((factors, None, None));
        }
        let maker = reader.uses.producer(name);
        if let Some(at) = maker
            && let Some(node) = self.free(at).filter(|node| node.is("Mul"))
            && let [left, right] = node.input.as_slice()
        {
            for (number, constant) in [(left, right), (right, left)] {
                if reader.is_number_before(number, index)
                    && reader.constant(number).is_none()
                    && let Some(factors) = reader.beside(constant, shape, axis)
                {
                    let alone = reader.uses.consumers(name).len() == 1 && !reader.is_kept(name);
                    return Some((factors, Some(number.clone()), Some(at).filter(|_| alone)));
                }
            }
        }
        let number = reader.is_number_before(name, index);
        number.then(|| (vec![1.0], Some(name.to_owned()), None))
    }

    /// A node of ONNX's own that nothing stands for yet.
    pub(super) fn free(&self, index: usize) -> Option<&NodeProto> {
        let taken = self.owned.contains(&index) || self.reader.refused.contains(&index);
        let node = self.node(index);
        let own = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
        (own && !taken).then_some(node)
    }

    /// The only node that reads a value, if it is this operator of two, and its other input.
    pub(super) fn partner(&self, value: &str, operator: &str) -> Option<(usize, &str)> {
        let [(reader, slot @ (0 | 1))] = *self.reader.uses.consumers(value) else {
            return None;
        };
        let node = self.free(reader).filter(|node| node.is(operator))?;
        let other = node.input_at(1 - slot)?;
        (!self.reader.is_kept(value)).then_some((reader, other))
    }
}

/// One a column, where there is one for all.
fn columns(values: Vec<f32>, count: usize) -> Vec<f32> {
    match values[..] {
        [one] => vec![one; count],
        _ => values,
    }
}
