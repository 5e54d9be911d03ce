//! Destination of a float node's result: a QuantizeLinear, possibly behind a Relu or Clip, or float
//! readers.

use super::super::quantization::{Int8Quantization, Int16Quantization};
use super::Matcher;
use super::reader::Reason;

/// Destination of a float node's result.
pub(super) enum Destination {
    /// An eight-bit QuantizeLinear, possibly behind a Relu or Clip.
    Int8 {
        output: String,
        quantization: Int8Quantization,
        bounds: [u8; 2],
        nodes: Vec<usize>,
    },
    /// A 16-bit QuantizeLinear, possibly behind a Relu or Clip.
    Int16 {
        output: String,
        int16: Int16Quantization,
        nodes: Vec<usize>,
    },
    /// Float readers, with the reason why the result is not quantized.
    Floats(Reason),
}

impl Destination {
    /// Parameters of eight-bit results.
    pub(super) fn quantization(&self) -> Option<Int8Quantization> {
        match self {
            Destination::Int8 { quantization, .. } => Some(*quantization),
            _ => None,
        }
    }
}

impl Matcher<'_> {
    /// The QuantizeLinear that is the only reader of a real value, with a Clip of its integers.
    pub(super) fn quantizer(&self, real: &str) -> Option<Destination> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        let quantization = self.reader.quantization(node, output).ok()?;
        let (output, bounds, clip) = self.clipped(output, quantization);
        Some(Destination::Int8 {
            output,
            quantization,
            bounds,
            nodes: std::iter::once(reader).chain(clip).collect(),
        })
    }

    /// A Clip that is the only reader of integers; Brevitas writes narrow types this way. Returns
    /// its output, the bounds in the unsigned representation, and the node.
    pub(super) fn clipped(
        &self,
        integers: &str,
        quantization: Int8Quantization,
    ) -> (String, [u8; 2], Option<usize>) {
        let clip = || {
            let reader = self.reader.only_reader(integers)?;
            let clip = self.unmatched(reader).filter(|node| node.is("Clip"))?;
            let bound = |slot: usize, none: i64| match clip.input_at(slot) {
                Some(name) => {
                    let values = self.reader.constant(name)?.to_i64().ok()?;
                    values.first().copied().filter(|_| values.len() == 1)
                }
                None => Some(none),
            };
            let first = if quantization.signed { -128 } else { 0 };
            // Integers of either sign are counted from the minimum of their type.
            let place = |integer: i64| (integer - first).clamp(0, 255) as u8;
            let bounds = [place(bound(1, first)?), place(bound(2, first + 255)?)];
            Some((clip.output.first()?.clone(), bounds, Some(reader)))
        };
        clip().unwrap_or_else(|| (integers.to_owned(), [0, 255], None))
    }

    /// A Relu or Clip that is the only reader of a real value, and its bounds.
    pub(super) fn clamp_behind(&self, real: &str) -> Option<(usize, [f32; 2])> {
        let reader = self.reader.only_reader(real)?;
        let clamp = self.node(reader);
        let bound = |slot: usize, key: &str, none: f32| match clamp.input_at(slot) {
            Some(name) => self.reader.number(name),
            None => Some(clamp.float(key).unwrap_or(none)),
        };
        let limits = if clamp.is("Relu") {
            [0.0, f32::INFINITY]
        } else if clamp.is("Clip") {
            [
                bound(1, "min", f32::NEG_INFINITY)?,
                bound(2, "max", f32::INFINITY)?,
            ]
        } else {
            return None;
        };
        Some((reader, limits))
    }

    /// Finds the destination of a real value, past a Relu or Clip.
    pub(super) fn destination(&self, real: &str) -> Destination {
        if let Some(end) = self.clamped_quantizer(real) {
            return end;
        }
        let floats = |reason: &str| Destination::Floats(reason.to_owned());
        if self.reader.is_observed(real) {
            return floats("its result is a float output of the model");
        }
        let Some(reader) = self.reader.only_reader(real) else {
            return match self.reader.uses.consumers(real) {
                [(reader, _)] => Destination::Floats(format!(
                    "its result is read as float by {}",
                    self.node(*reader).title()
                )),
                _ => floats("its result is read as float, or by several nodes"),
            };
        };
        let node = self.node(reader);
        let title = node.title();
        if node.is("QuantizeLinear") {
            let output = node.output.first().map_or("", String::as_str);
            return match self.reader.quantization(node, output) {
                Err(reason) => Destination::Floats(format!(
                    "its result is not quantized to eight bits: {reason}"
                )),
                Ok(_) => floats("its result is quantized in an unsupported way"),
            };
        }
        Destination::Floats(format!("its result is read as float by {title}"))
    }

    /// The QuantizeLinear behind a sequence of Relu and Clip nodes. Rounding is monotonic, so
    /// clamping before or after it is the same.
    fn clamped_quantizer(&self, real: &str) -> Option<Destination> {
        let (mut value, mut clamps) = (real, Vec::new());
        let [mut least, mut greatest] = [f32::NEG_INFINITY, f32::INFINITY];
        while let Some((clamp, [low, high])) = self.clamp_behind(value) {
            least = least.max(low).min(high);
            greatest = greatest.max(low).min(high);
            clamps.push(clamp);
            value = self.node(clamp).output.first()?;
        }
        let Destination::Int8 {
            output,
            quantization,
            bounds: [low, high],
            mut nodes,
        } = self.quantizer(value)?
        else {
            return None;
        };
        nodes.extend(clamps);
        let bound = |real: f32| quantization.integer(real).clamp(low, high.max(low));
        Some(Destination::Int8 {
            output,
            quantization,
            bounds: [bound(least), bound(greatest)],
            nodes,
        })
    }
}
