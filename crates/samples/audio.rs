//! Sound as samples: a WAV file becomes a waveform of the rate and length that the model takes.

use serde::{Deserialize, Serialize};

use super::certainty::Certainty;
use super::wav::{read as read_wav, resampled};
use super::{Array, InputSpec, LARGEST_ARRAY, SampleProblem};
use octet_graph::{Dim, Model};
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

/// Settings for reading sound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AudioSettings {
    /// Samples a second that the model takes.
    pub rate: u32,
}

impl Default for AudioSettings {
    fn default() -> Self {
        AudioSettings { rate: USUAL_RATE }
    }
}

/// Rate of most models of speech.
const USUAL_RATE: u32 = 16_000;

/// Rates that names may state.
const RATES: [u32; 7] = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

/// Rates of models by a word in their names.
const FAMILIES: [(&str, u32); 10] = [
    ("yamnet", 16_000),
    ("wav2vec", 16_000),
    ("hubert", 16_000),
    ("wavlm", 16_000),
    ("silero", 16_000),
    ("whisper", 16_000),
    ("panns", 32_000),
    ("clap", 48_000),
    ("demucs", 44_100),
    ("encodec", 24_000),
];

/// Form of the sound that a model takes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AudioForm {
    /// Proposed samples a second.
    pub rate: u32,
    /// Certainty of the rate.
    pub certainty: Certainty,
    /// Reason for the rate, as the end of a sentence.
    pub why: String,
    /// Number of values, if the model fixes it.
    pub length: Option<usize>,
}

impl AudioForm {
    /// The form for a model with these inputs; `None` if none of them is a waveform.
    pub fn new(file: &str, model: &Model, inputs: &[InputSpec]) -> Option<AudioForm> {
        let waveform = &inputs[waveform(inputs)?];
        let (rate, certainty, why) = rate(file, model);
        Some(AudioForm {
            rate,
            certainty,
            why,
            length: known(waveform.shape.last()?),
        })
    }
}

fn rate(file: &str, model: &Model) -> (u32, Certainty, String) {
    let entries = &model.header().metadata_props;
    let stated = entries.iter().find_map(|entry| {
        let key = entry.key.as_deref()?;
        let named = matches!(key, "sample_rate" | "sampling_rate" | "samplerate" | "sr");
        let value: u32 = entry.value.as_deref()?.trim().parse().ok()?;
        (named && (1_000..=384_000).contains(&value)).then(|| (value, key.to_owned()))
    });
    if let Some((value, key)) = stated {
        return (
            value,
            Certainty::Sure,
            format!("the file's metadata state it: {key}"),
        );
    }
    let names = [Some(file), model.graph.name()];
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |rate: &&u32| {
        let words = [
            format!("{rate}"),
            format!("{}k", **rate / 1000),
            format!("{}khz", **rate / 1000),
        ];
        let mut parts = names
            .iter()
            .flat_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric()));
        parts.any(|part| words.iter().any(|word| word == part))
    };
    if let Some(rate) = RATES.iter().find(has) {
        return (
            *rate,
            Certainty::Likely,
            "the model's name contains it".into(),
        );
    }
    let known = |(word, _): &&(&str, u32)| names.iter().any(|name| name.contains(word));
    if let Some((word, rate)) = FAMILIES.iter().find(known) {
        let why = format!("models named {word:?} usually take it");
        return (*rate, Certainty::Likely, why);
    }
    (
        USUAL_RATE,
        Certainty::Guess,
        "most models of speech take it".into(),
    )
}

fn known(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Known(size) => Some(*size),
        _ => None,
    }
}

/// Shortest fixed waveform.
const SHORTEST: usize = 256;

/// Words in the names of waveforms.
const NAMES: [&str; 10] = [
    "audio",
    "wav",
    "speech",
    "sound",
    "pcm",
    "samples",
    "signal",
    "input_values",
    "mix",
    "voice",
];

/// The place of the input that takes a waveform: one long axis, or an open one and a name of the
/// input or the axis.
pub(super) fn waveform(inputs: &[InputSpec]) -> Option<usize> {
    let named = |input: &InputSpec| {
        let name = input.name.to_ascii_lowercase();
        NAMES.iter().any(|word| name.contains(word))
    };
    let fits = |input: &&InputSpec| {
        let float = input.element == DataType::Float || input.element.is_half();
        let Some((length, others)) = input.shape.split_last() else {
            return false;
        };
        let ones = others
            .iter()
            .all(|dim| known(dim).is_none_or(|size| size == 1));
        let long = match known(length) {
            Some(size) => size >= SHORTEST && (named(input) || size >= 8 * 1024),
            None => named(input) || counts_samples(length),
        };
        float && ones && others.len() <= 2 && long
    };
    inputs.iter().position(|input| fits(&input))
}

/// True if an open axis is called after the samples of a sound.
fn counts_samples(length: &Dim) -> bool {
    matches!(length, Dim::Named(name) if name.to_ascii_lowercase().contains("samples"))
}

/// The arrays of a sound: its waveform, and what the other inputs need beside it.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    inputs: &[InputSpec],
    settings: &AudioSettings,
) -> Result<Vec<Array>, SampleProblem> {
    let Some(place) = waveform(inputs) else {
        return Err(SampleProblem::broken(
            file,
            "it is sound, and the model has no input for a waveform",
            "give .npy or .npz files of what it takes, such as a spectrogram",
        ));
    };
    let sound = read_wav(file, bytes)?;
    let longest = LARGEST_ARRAY / 4;
    let count = sound.values.len() as f64 * f64::from(settings.rate) / f64::from(sound.rate);
    if settings.rate == 0 || count > longest as f64 {
        return Err(SampleProblem::TooLarge {
            array: file.into(),
            bytes: 4 * count as u64,
            limit: LARGEST_ARRAY,
        });
    }
    let mut values = resampled(&sound, settings.rate);
    if let Some(length) = inputs[place].shape.last().and_then(known) {
        // A longer sound is cut, a shorter one gets silence behind it.
        values.resize(length, 0.0);
    }
    if values.is_empty() {
        return Err(SampleProblem::broken(
            file,
            "it has no sound",
            "record some",
        ));
    }
    let length = values.len();
    let mut values = Some(values);
    let array = |(at, input): (usize, &InputSpec)| {
        let sizes = input
            .shape
            .iter()
            .enumerate()
            .map(|(axis, dim)| match known(dim) {
                Some(size) => size,
                None if axis + 1 == input.shape.len() && (at == place || is_mask(input)) => length,
                None => 1,
            });
        let shape: Vec<usize> = sizes.collect();
        let tensor = match at == place {
            true => Tensor::new(shape, Values::F32(values.take().unwrap_or_default())),
            false => beside(input, &shape, length, settings.rate)?,
        };
        let unfit = || {
            let why = format!("its waveform does not fit the input {:?}", input.name);
            SampleProblem::broken(file, why, "give .npz files with an array for each input")
        };
        Ok(Array::of_input(input, tensor.ok_or_else(unfit)?))
    };
    inputs.iter().enumerate().map(array).collect()
}

fn is_mask(input: &InputSpec) -> bool {
    input.name.to_ascii_lowercase().contains("mask")
}

/// Values of another input: the rate, the length, a mask of ones, or a state of zeros.
fn beside(
    input: &InputSpec,
    shape: &[usize],
    length: usize,
    rate: u32,
) -> Result<Option<Tensor>, SampleProblem> {
    let count: usize = shape.iter().product();
    if count as u64 > LARGEST_ARRAY / 8 {
        return Err(SampleProblem::TooLarge {
            array: input.name.clone(),
            bytes: 8 * count as u64,
            limit: LARGEST_ARRAY,
        });
    }
    let name = input.name.to_ascii_lowercase();
    let value = match () {
        () if is_mask(input) => 1,
        () if name == "sr" || name.contains("rate") => i64::from(rate),
        () if name.contains("len") => length as i64,
        () => 0,
    };
    let values = match input.element.is_float() {
        true => Values::F32(vec![value as f32; count]),
        false => Values::I64(vec![value; count]),
    };
    Ok(Tensor::new(shape.to_vec(), values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wav::file;
    use crate::{Encoded, SampleSettings, decode};

    fn input(name: &str, element: DataType, shape: &[usize]) -> InputSpec {
        let dim = |&size: &usize| match size {
            0 => Dim::Unknown,
            size => Dim::Known(size),
        };
        InputSpec {
            name: name.into(),
            element,
            shape: shape.iter().map(dim).collect(),
        }
    }

    fn decoded(inputs: &[InputSpec], rate: u32) -> Vec<Tensor> {
        let data: Vec<u8> = (0..800i16).flat_map(|x| (x * 10).to_le_bytes()).collect();
        let sample = Encoded {
            name: "a.wav".into(),
            parts: vec![("a.wav".into(), file((1, 16), 1, 8000, &data).into())],
        };
        let settings = SampleSettings {
            audio: AudioSettings { rate },
            ..SampleSettings::default()
        };
        decode(&sample, inputs, &settings).unwrap()
    }

    #[test]
    fn a_sound_gets_the_rate_and_the_length_of_the_model() {
        let open = [input("waveform", DataType::Float, &[0, 0])];
        assert_eq!(decoded(&open, 8000)[0].shape(), [1, 800]);
        assert_eq!(decoded(&open, 16_000)[0].shape(), [1, 1600]);
        let fixed = [input("audio", DataType::Float, &[1, 1, 1000])];
        let padded = &decoded(&fixed, 8000)[0];
        assert_eq!(padded.shape(), [1, 1, 1000]);
        assert_eq!(padded.as_f32().unwrap()[799..801], [7990.0 / 32_768.0, 0.0]);
        let short = [input("audio", DataType::Float, &[300])];
        assert_eq!(decoded(&short, 8000)[0].shape(), [300]);
    }

    #[test]
    fn other_inputs_get_what_they_are_named_after() {
        let inputs = [
            input("input_values", DataType::Float, &[0, 0]),
            input("attention_mask", DataType::Int64, &[0, 0]),
            input("lengths", DataType::Int64, &[0]),
            input("sr", DataType::Int64, &[]),
            input("state", DataType::Float, &[2, 0, 4]),
        ];
        let found = decoded(&inputs, 8000);
        let shapes: Vec<_> = found.iter().map(|tensor| tensor.shape().to_vec()).collect();
        let wanted = [vec![1, 800], vec![1, 800], vec![1], vec![], vec![2, 1, 4]];
        assert_eq!(shapes, wanted);
        assert_eq!(found[1].values(), &Values::I64(vec![1; 800]));
        assert_eq!(found[2].values(), &Values::I64(vec![800]));
        assert_eq!(found[3].values(), &Values::I64(vec![8000]));
        assert_eq!(found[4].values(), &Values::F32(vec![0.0; 8]));
    }

    #[test]
    fn a_waveform_is_known_by_its_length_or_its_name() {
        let is = |name: &str, shape: &[usize]| {
            waveform(&[input(name, DataType::Float, shape)]).is_some()
        };
        assert!(is("x", &[1, 16_000]) && is("audio", &[0, 0]) && is("wav", &[1, 1, 4000]));
        assert!(!is("x", &[0, 0]) && !is("x", &[1, 2048]) && !is("x", &[1, 80, 3000]));
        assert!(!is("audio", &[1, 64, 0]) && !is("features", &[1, 4]));
        let spectrogram = [input("mel", DataType::Float, &[1, 80, 3000])];
        let wav = file((1, 16), 1, 8000, &[0, 0]);
        let said = read("a.wav", &wav, &spectrogram, &AudioSettings::default());
        assert!(
            said.unwrap_err()
                .to_string()
                .contains("no input for a waveform")
        );
        let mut open = input("input", DataType::Float, &[0, 0]);
        assert_eq!(waveform(std::slice::from_ref(&open)), None);
        open.shape[1] = Dim::Named("num_samples".into());
        assert_eq!(waveform(&[open]), Some(0));
    }
}
