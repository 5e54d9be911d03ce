//! The destination of a float node's result: behind a Relu or Clip, a QuantizeLinear or float
//! readers.

use super::destination::Destination;
use super::matcher::Matcher;
use crate::float_reason::FloatReason;
use crate::quantization::Int8Quantization;

impl Matcher<'_> {
    /// The QuantizeLinear that is the only reader of a real value, with a Clip of its integers.
    pub(crate) fn quantizer(&self, real: &str) -> Option<Destination> {
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
    pub(crate) fn clipped(
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
    pub(crate) fn clamp_behind(&self, real: &str) -> Option<(usize, [f32; 2])> {
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

    /// The eight-bit or 16-bit destination of a real value; on failure, the reason refers to eight
    /// bits.
    pub(crate) fn quantized_destination(&self, real: &str) -> Result<Destination, FloatReason> {
        match self.destination(real) {
            Destination::Floats(reason) => self.int16_destination(real).ok_or(reason),
            end => Ok(end),
        }
    }

    /// The destination of a real value, which may have 16 bits or be float.
    pub(crate) fn any_destination(&self, real: &str) -> Destination {
        let end = self.quantized_destination(real);
        end.unwrap_or_else(Destination::Floats)
    }

    /// Finds the eight-bit destination of a real value, past a Relu or Clip.
    pub(crate) fn destination(&self, real: &str) -> Destination {
        if let Some(end) = self.clamped_quantizer(real) {
            return end;
        }
        if self.reader.is_observed(real) {
            return Destination::Floats(FloatReason::FloatOutput);
        }
        let read_by = |reader: usize| {
            let title = self.node(reader).title().to_owned();
            Destination::Floats(FloatReason::ReadAsFloat(title))
        };
        let Some(reader) = self.reader.only_reader(real) else {
            return match self.reader.graph.consumers(real) {
                [reader] => read_by(reader.node),
                _ => Destination::Floats(FloatReason::ReadBySeveral),
            };
        };
        let node = self.node(reader);
        if node.is("QuantizeLinear") {
            let output = node.output.first().map_or("", String::as_str);
            return Destination::Floats(match self.reader.quantization(node, output) {
                Err(reason) => FloatReason::NotEightBits(Box::new(reason)),
                Ok(_) => FloatReason::UnsupportedQuantization,
            });
        }
        read_by(reader)
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
