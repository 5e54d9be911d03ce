//! Learned rounding in a session: after a calibration, with the samples again, and before the
//! quantization that uses its constants.

use prost::Message;

use super::error::{Error, OrderError};
use super::progress::{Event, ProgressMonitor};
use super::source::Checksum;
use super::tuning_journal::{header, is_journal, parts as parts_of, record};
use super::{Session, warm_up};
use crate::onnx::in_memory::Tensor;
use crate::onnx::schema::TensorProto;
use crate::profile::RunStep;
use crate::quantize::{
    Finetune, FinetuneAlgorithm, LEARNED_OPERATORS, Rounding, Settings, before_learning,
};
use crate::tune::{
    FrontierPlace, LayerReport, LearnedPart, OpenValueFile, TuneAlgorithm, TuneError, TuneForecast,
    TuneOptions, Tuned, TunedPart, Tuning, TuningSummary,
};

/// AMD Quark's seed.
const SEED: u32 = 1_705_472_343;
/// Values of the data of one layer, at most. Inputs take a byte or two, outputs four.
const LAYER_VALUES: usize = 12 << 20;

/// Learned constants of a session, and the settings that they belong to.
#[derive(Default)]
pub(super) struct LearnedConstants(Option<(Settings, Tuned)>);

impl LearnedConstants {
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// The constants for these settings, and a note about them.
    pub(super) fn for_settings(
        &self,
        settings: &Settings,
    ) -> Result<(&[TensorProto], Vec<String>), OrderError> {
        if !settings.tunes() {
            return Ok((&[], Vec::new()));
        }
        match &self.0 {
            Some((known, tuned)) if same(known, settings) => {
                Ok((&tuned.constants, vec![note(&tuned.summary)]))
            }
            _ => Err(OrderError::NotTuned),
        }
    }
}

/// True for settings that give the same constants: the form of the file has no part in them.
fn same(one: &Settings, other: &Settings) -> bool {
    let plain = |settings: &Settings| Settings {
        format: Default::default(),
        images: None,
        ..settings.clone()
    };
    plain(one) == plain(other)
}

/// Counts the layers, blocks and models with learned constants: "2 of 7 layers and 1 of 2 blocks".
fn parts(reports: &[LayerReport]) -> String {
    let kinds = [
        (TunedPart::Layer, "layers"),
        (TunedPart::Block, "blocks"),
        (TunedPart::Model, "distillations"),
    ];
    let told = kinds.into_iter().filter_map(|(part, word)| {
        let own = || reports.iter().filter(|report| report.part == part);
        let changed = own().filter(|report| report.is_changed()).count();
        (own().count() > 0).then(|| format!("{changed} of {} {word}", own().count()))
    });
    told.collect::<Vec<_>>().join(" and ")
}

fn note(summary: &TuningSummary) -> String {
    let parts = parts(&summary.layers);
    if !summary.layers.iter().any(LayerReport::is_changed) {
        return format!("{parts} gained from learned rounding; more samples may help");
    }
    match summary.judgement {
        Some(judged) if !judged.taken => format!(
            "the learned constants were dropped: on the samples that did not teach, the outputs have {:.1} dB with them and {:.1} dB \
             without; more samples may help",
            judged.after, judged.before
        ),
        Some(judged) => format!(
            "{parts} have learned constants; on the samples that did not teach, the outputs have {:.1} dB in \
             place of {:.1}",
            judged.after, judged.before
        ),
        None => format!(
            "{parts} have learned constants; with four samples or more, some of them would judge the whole model"
        ),
    }
}

/// The options of these settings.
fn options(settings: &Settings) -> TuneOptions {
    let chosen = settings.finetune.clone();
    let learn = chosen.is_some();
    let Finetune {
        algorithm,
        num_iterations,
        learning_rate,
        positions,
        fixed_seed,
        update_bias,
        output_qdq,
        reg_param,
        beta_range,
        warm_start,
        target_op_type,
        mem_opt_level,
        select_max_mem_layer,
        blocks,
        batch_size,
        drop_ratio,
        activation_scales,
        distillation,
        data_size: _,
    } = chosen.unwrap_or_default();
    let (algorithm, steps, rate) = match algorithm {
        FinetuneAlgorithm::AdaRound => (TuneAlgorithm::AdaRound, 1000, 0.1),
        FinetuneAlgorithm::AdaQuant => (TuneAlgorithm::AdaQuant, 3000, 1e-5),
    };
    let all = || LEARNED_OPERATORS.map(str::to_string).to_vec();
    TuneOptions {
        closed_form: settings.rounding == Rounding::ClosedForm,
        learn,
        algorithm,
        iterations: num_iterations.unwrap_or(steps),
        learning_rate: learning_rate.unwrap_or(rate),
        positions: positions.unwrap_or(256),
        reg_param: reg_param.unwrap_or(0.01),
        beta_range: beta_range.unwrap_or([20.0, 2.0]),
        warm_start: warm_start.unwrap_or(0.2),
        update_bias,
        output_qdq,
        seed: fixed_seed.unwrap_or(SEED).into(),
        operators: target_op_type.unwrap_or_else(all),
        resting: match mem_opt_level {
            Some(0) => FrontierPlace::Floats,
            Some(2) => FrontierPlace::File,
            _ => FrontierPlace::Halves,
        },
        layer_values: LAYER_VALUES,
        blocks,
        samples: batch_size.unwrap_or(4),
        drop_ratio: drop_ratio.unwrap_or(1.0),
        activation_scales,
        distillation: distillation.unwrap_or(0),
        only_largest: select_max_mem_layer,
    }
}

/// A run that learns constants: the caller adds samples, then calls [`Session::tune`].
pub struct TuningRun {
    tuning: Tuning,
    settings: Settings,
    /// Of everything that the constants depend on.
    key: Checksum,
    /// Parts that a journal gave.
    known: usize,
}

/// The outcome of [`TuningRun::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumedParts {
    /// Number of parts that need not learn again.
    pub parts: usize,
    /// Bytes of the journal that are whole. What follows must be cut off before records are added.
    pub bytes: usize,
}

impl TuningRun {
    /// The number of layers that will be learned.
    pub fn layers(&self) -> usize {
        self.tuning.layers().count()
    }

    /// The memory of the layer that needs most.
    pub fn forecast(&self) -> Option<TuneForecast> {
        self.tuning.forecast()
    }

    /// Adds a sample.
    pub fn add(&mut self, inputs: Vec<Tensor>) -> Result<(), Error> {
        for input in &inputs {
            let message = TensorProto::from_tensor("", input);
            self.key.add(&message.encode_to_vec());
        }
        Ok(self.tuning.add(inputs)?)
    }

    /// The beginning of a journal of this run, after all samples. [`ProgressMonitor::learned`]
    /// receives its records.
    pub fn journal(&self) -> Vec<u8> {
        header(&self.key.clone().bytes())
    }

    /// True if a file begins as a journal does.
    pub fn is_journal(file: &[u8]) -> bool {
        is_journal(file)
    }

    /// Takes over the parts of a journal, after all samples. One of another model, other settings
    /// or other samples gives none.
    pub fn resume(&mut self, journal: &[u8]) -> ResumedParts {
        let (parts, bytes) = parts_of(journal, &self.key.clone().bytes());
        self.known = parts.len();
        self.tuning.resume(parts);
        ResumedParts {
            parts: self.known,
            bytes,
        }
    }
}

impl Session {
    /// Begins to learn the constants of these settings: see [`Settings::tunes`]. `file` opens the
    /// file of values if the settings ask for one, such as `octet::tune::unnamed_file`.
    pub fn begin_tuning(
        &mut self,
        settings: &Settings,
        file: OpenValueFile,
    ) -> Result<TuningRun, Error> {
        warm_up::ensure_isa_chosen();
        self.learned.clear();
        self.journal.profiler.resume();
        let (ready, ranges) = self
            .stage
            .prepare(&mut self.opened, &mut self.journal.profiler)?;
        let ranges = ranges.ok_or(OrderError::NotCalibrated)?;
        let model = ready.model_for(settings, Some(ranges))?;
        let quantized = before_learning(model, settings, ranges.activation_ranges())?;
        let mut key = Checksum::new();
        key.add(env!("CARGO_PKG_VERSION").as_bytes());
        key.add(self.opened.summary.sha256.as_bytes());
        key.add(&serde_json::to_vec(settings).unwrap_or_default());
        for constant in quantized.graph.initializers.iter() {
            key.add(&constant.encode_to_vec());
        }
        Ok(TuningRun {
            tuning: Tuning::new(model.clone(), quantized, options(settings), file)?,
            settings: settings.clone(),
            key,
            known: 0,
        })
    }

    /// Learns the constants, and keeps them for [`Session::quantize`] with these settings.
    pub fn tune(
        &mut self,
        run: TuningRun,
        monitor: &dyn ProgressMonitor,
    ) -> Result<TuningSummary, Error> {
        self.journal.profiler.begin(RunStep::Tuning);
        let TuningRun {
            tuning,
            settings,
            known,
            ..
        } = run;
        let of = tuning.reports();
        let done = |place: usize, part: &LearnedPart| {
            if place >= known {
                monitor.learned(&record(part));
            }
            monitor.event(&Event::Layer {
                done: place + 1,
                of,
                report: part.report.clone(),
            });
        };
        let tuned = tuning.run(done, &|| monitor.cancelled());
        self.journal.profiler.end();
        let tuned = tuned?;
        self.journal.report.tuned(&tuned.summary);
        let summary = tuned.summary.clone();
        self.learned = LearnedConstants(Some((settings, tuned)));
        Ok(summary)
    }
}

impl From<TuneError> for Error {
    fn from(error: TuneError) -> Error {
        match error {
            TuneError::Stopped => Error::Stopped,
            TuneError::Engine(error) => error.into(),
            other => Error::Tune(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Judgement;

    #[test]
    fn a_run_without_a_gain_says_so() {
        let layer = |taken: &str| LayerReport {
            part: TunedPart::Layer,
            layer: "conv".into(),
            operator: "Conv".into(),
            taken: taken.into(),
            before: 2.0,
            after: 1.0,
            curve: Vec::new(),
        };
        let of = |taken: &str| {
            note(&TuningSummary {
                layers: vec![layer(taken)],
                judgement: Some(Judgement {
                    before: 20.0,
                    after: 21.0,
                    taken: true,
                }),
                samples: 4,
                frontier_bytes: 0,
                forecast: None,
            })
        };
        assert_eq!(
            of("given"),
            "0 of 1 layers gained from learned rounding; more samples may help"
        );
        assert!(of("learned").starts_with("1 of 1 layers have learned constants"));
    }
}
