//! Where the result of a float node goes: into a QuantizeLinear, past a Relu or Clip perhaps, or to floats.

use super::super::quantization::{Quantization, Wide};
use super::Matcher;
use super::reader::Reason;

/// Where the result of a float node goes.
pub(super) enum End {
    /// Through a QuantizeLinear, after a Relu or Clip perhaps.
    Integers {
        output: String,
        quantization: Quantization,
        bounds: [u8; 2],
        nodes: Vec<usize>,
    },
    /// Through a QuantizeLinear of 16 bits, after a Relu or Clip perhaps.
    Wide {
        output: String,
        wide: Wide,
        nodes: Vec<usize>,
    },
    /// To floats, and why not to integers.
    Floats(Reason),
}

impl End {
    /// What the bytes mean that come out, if bytes do.
    pub(super) fn quantization(&self) -> Option<Quantization> {
        match self {
            End::Integers { quantization, .. } => Some(*quantization),
            _ => None,
        }
    }
}

impl Matcher<'_> {
    /// The QuantizeLinear that alone reads a real value, and a Clip of its integers.
    pub(super) fn quantizer(&self, real: &str) -> Option<End> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        let quantization = self.reader.quantization(node, output).ok()?;
        let (output, bounds, clip) = self.clipped(output, quantization);
        Some(End::Integers {
            output,
            quantization,
            bounds,
            nodes: std::iter::once(reader).chain(clip).collect(),
        })
    }

    /// Integers behind the Clip that alone reads them, if there is one: of fewer bits than their type has, as Brevitas writes them.
    /// Their name, the bounds in the unsigned form, and the Clip.
    pub(super) fn clipped(
        &self,
        integers: &str,
        quantization: Quantization,
    ) -> (String, [u8; 2], Option<usize>) {
        let clip = || {
            let reader = self.reader.only_reader(integers)?;
            let clip = self.free(reader).filter(|node| node.is("Clip"))?;
            let bound = |slot: usize, none: i64| match clip.input_at(slot) {
                Some(name) => {
                    let values = self.reader.constant(name)?.to_i64().ok()?;
                    values.first().copied().filter(|_| values.len() == 1)
                }
                None => Some(none),
            };
            let first = if quantization.signed { -128 } else { 0 };
            // Integers of either sign are counted from the least of their type.
            let place = |integer: i64| (integer - first).clamp(0, 255) as u8;
            let bounds = [place(bound(1, first)?), place(bound(2, first + 255)?)];
            Some((clip.output.first()?.clone(), bounds, Some(reader)))
        };
        clip().unwrap_or_else(|| (integers.to_owned(), [0, 255], None))
    }

    /// The Relu or Clip that alone reads a real value, and the reals it lets through.
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

    /// Where a real value goes, past a Relu or Clip.
    pub(super) fn end(&self, real: &str) -> End {
        if let Some(end) = self.clamped_quantizer(real) {
            return end;
        }
        let floats = |reason: &str| End::Floats(reason.to_owned());
        if self.reader.is_kept(real) {
            return floats("its result is an output of the model in float");
        }
        let Some(reader) = self.reader.only_reader(real) else {
            return match self.reader.uses.consumers(real) {
                [(reader, _)] => End::Floats(format!(
                    "its result is read in float by {}",
                    self.node(*reader).title()
                )),
                _ => floats("its result is read in float, or by several nodes"),
            };
        };
        let node = self.node(reader);
        let title = node.title();
        if node.is("QuantizeLinear") {
            let output = node.output.first().map_or("", String::as_str);
            return match self.reader.quantization(node, output) {
                Err(reason) => End::Floats(format!("its result is no eight-bit integer: {reason}")),
                Ok(_) => floats("its result is quantized in a way that is not known"),
            };
        }
        End::Floats(format!("its result is read in float by {title}"))
    }

    /// The QuantizeLinear behind a row of Relu and Clip. Rounding keeps order, so clamping before it and after it are the same.
    fn clamped_quantizer(&self, real: &str) -> Option<End> {
        let (mut value, mut clamps) = (real, Vec::new());
        let [mut least, mut greatest] = [f32::NEG_INFINITY, f32::INFINITY];
        while let Some((clamp, [low, high])) = self.clamp_behind(value) {
            least = least.max(low).min(high);
            greatest = greatest.max(low).min(high);
            clamps.push(clamp);
            value = self.node(clamp).output.first()?;
        }
        let End::Integers {
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
        Some(End::Integers {
            output,
            quantization,
            bounds: [bound(least), bound(greatest)],
            nodes,
        })
    }
}
