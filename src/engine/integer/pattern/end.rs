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

impl Matcher<'_> {
    /// The QuantizeLinear that alone reads a real value.
    pub(super) fn quantizer(&self, real: &str) -> Option<End> {
        let reader = self.reader.only_reader(real)?;
        let node = self.node(reader);
        let output = node.output.first().filter(|_| node.is("QuantizeLinear"))?;
        let quantization = self.reader.quantization(node, output).ok()?;
        Some(End::Integers {
            output: output.clone(),
            quantization,
            bounds: [0, 255],
            nodes: vec![reader],
        })
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
        if let Some(end) = self.quantizer(real) {
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
        let clamp = self.node(reader);
        let title = clamp.title();
        if clamp.is("QuantizeLinear") {
            let output = clamp.output.first().map_or("", String::as_str);
            return match self.reader.quantization(clamp, output) {
                Err(reason) => End::Floats(format!("its result is no eight-bit integer: {reason}")),
                Ok(_) => floats("its result is quantized in a way that is not known"),
            };
        }
        let limits = self.clamp_behind(real).map(|(_, limits)| limits);
        let next = clamp.output.first().and_then(|name| self.quantizer(name));
        match (limits, next) {
            // Rounding keeps order, so clamping before it and after it are the same.
            (
                Some([low, high]),
                Some(End::Integers {
                    output,
                    quantization,
                    mut nodes,
                    ..
                }),
            ) => {
                nodes.push(reader);
                End::Integers {
                    output,
                    quantization,
                    bounds: [quantization.integer(low), quantization.integer(high)],
                    nodes,
                }
            }
            _ => End::Floats(format!("its result is read in float by {title}")),
        }
    }
}
