//! The answers of a quantized model on an emulated processor, beside those with exact sums.

use super::{Error, ProgressMonitor, Runner, Session};
use crate::compare::{Difference, OutputKind, SampleAnswers, Warning, WarningKind};
use crate::runtime::Processor;
use crate::tensor::Tensor;

/// Layers that a warning names.
const MAX_NAMED: usize = 8;

/// Runs of a quantized model with exact sums and with those of another processor.
pub struct Emulation {
    runners: [Runner; 2],
    outputs: Vec<EmulatedOutput>,
    /// Layers whose sums may be cut off.
    layers: Vec<String>,
}

/// An output, with the errors of exact sums and of emulated ones.
struct EmulatedOutput {
    name: String,
    kind: OutputKind,
    errors: [Difference; 2],
    /// Rows of classes, and those with the top class of the float model.
    rows: usize,
    same: [usize; 2],
}

impl Session {
    /// Begins an emulation of this quantized model.
    pub fn emulation(&self, processor: Processor) -> Result<Emulation, Error> {
        Ok(Emulation {
            runners: [self.runner()?, self.runner()?.emulating(processor)],
            outputs: Vec::new(),
            layers: Vec::new(),
        })
    }
}

impl Emulation {
    /// Runs one sample, of which the float model gave these answers.
    pub fn feed(
        &mut self,
        inputs: &[Tensor],
        float: &SampleAnswers,
        monitor: &dyn ProgressMonitor,
    ) -> Result<(), Error> {
        if self.outputs.is_empty() {
            self.layers = self.runners[1].cut_layers(inputs, monitor)?;
            let outputs = float.outputs.iter().map(|(name, kind)| EmulatedOutput {
                name: name.clone(),
                kind: *kind,
                errors: Default::default(),
                rows: 0,
                same: [0; 2],
            });
            self.outputs = outputs.collect();
        }
        for (way, runner) in self.runners.iter().enumerate() {
            let answers = runner.run(inputs, monitor)?;
            let both = float.float.iter().zip(&answers);
            for (output, (float, (_, answer))) in self.outputs.iter_mut().zip(both) {
                output.add(way, float, answer);
            }
        }
        Ok(())
    }

    /// A sentence for each output, and one for the layers.
    pub fn finish(self) -> Vec<Warning> {
        let warning = |message: String| Warning {
            kind: WarningKind::Processor,
            message,
            keep_float: Vec::new(),
        };
        let judged = self.outputs.iter().filter(|output| output.kind.is_judged());
        let mut warnings: Vec<Warning> = judged.map(|output| warning(output.words())).collect();
        warnings.push(warning(match self.layers.len() {
            0 => "no layer has a product that native ONNX Runtime cuts off on x86 without VNNI, so its answers are these \
                  there"
                .to_owned(),
            count => {
                let named: Vec<String> = self.layers.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
                let more = count - named.len();
                let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!(
                    "native ONNX Runtime may cut off sums at 16 bits on x86 without VNNI in {count} layers: {}{rest}; weights \
                     of the type u8 avoid it (`weights: {{type: u8}}`), and so does one bit less (`weights: \
                     {{reduce_range: true}}`)",
                    named.join(", ")
                )
            }
        }));
        warnings
    }
}

impl EmulatedOutput {
    fn add(&mut self, way: usize, float: &Tensor, answer: &Tensor) {
        let (Some(a), Some(b)) = (float.as_f32(), answer.as_f32()) else {
            return;
        };
        self.errors[way].add(a, b);
        let width = float.shape().last().copied().unwrap_or(0);
        let classes = [OutputKind::Classes, OutputKind::Steps, OutputKind::Tokens];
        if !classes.contains(&self.kind) || width == 0 {
            return;
        }
        let rows = a.chunks_exact(width).zip(b.chunks_exact(width));
        let same = rows.filter(|(a, b)| top(a) == top(b)).count();
        self.same[way] += same;
        if way == 0 {
            self.rows += a.len() / width;
        }
    }

    fn words(&self) -> String {
        let [exact, emulated] = self.errors.each_ref().map(|error| error.metrics().sqnr);
        let answers = match self.rows {
            0 => String::new(),
            rows => {
                let [exact, emulated] = self.same.map(|same| same as f64 * 100.0 / rows as f64);
                format!(
                    "; the top class of float: {emulated:.1} % of the rows there, {exact:.1} % with exact sums"
                )
            }
        };
        format!(
            "output `{}` on x86 without VNNI: {emulated:.1} dB from float there, {exact:.1} dB with exact sums{answers}",
            self.name
        )
    }
}

/// The place of the largest number.
fn top(row: &[f32]) -> Option<usize> {
    let numbers = row.iter().enumerate();
    let best = numbers.max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    best.map(|(place, _)| place)
}
