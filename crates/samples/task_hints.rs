//! The hints that tell the task of a model.

use std::collections::HashSet;

use super::InputSpec;
use super::audio::waveform;
use super::certainty::Certainty;
use super::image_placement::axes;
use super::table::takes_rows;
use super::task::ModelTask;
use super::text_inputs::{TextInputs, TextRole};
use octet_graph::{Dim, Model, tensor_type_of};

/// Fewest entries of a vocabulary.
const VOCABULARY: usize = 1000;

/// An output, as far as the hints need it.
struct TaskOutput {
    name: String,
    shape: Vec<Dim>,
}

/// Everything that tells the task of a model.
pub(crate) struct TaskHints<'a> {
    inputs: &'a [InputSpec],
    outputs: Vec<TaskOutput>,
    operators: HashSet<&'a str>,
    /// Names of the file, the graph and from the metadata, in lower case.
    names: Vec<String>,
    /// Task that the metadata state.
    task: Option<&'a str>,
}

pub(crate) type MaybeTask = Option<(ModelTask, Certainty, String)>;

fn likely(task: ModelTask, why: impl Into<String>) -> MaybeTask {
    Some((task, Certainty::Likely, why.into()))
}

fn guess(task: ModelTask, why: impl Into<String>) -> MaybeTask {
    Some((task, Certainty::Guess, why.into()))
}

impl<'a> TaskHints<'a> {
    pub(crate) fn new(file: &str, model: &'a Model, inputs: &'a [InputSpec]) -> TaskHints<'a> {
        let graph = &model.graph;
        let output = |value: &octet_onnx::schema::ValueInfoProto| TaskOutput {
            name: value.name.clone().unwrap_or_default(),
            shape: tensor_type_of(value)
                .and_then(|t| t.shape)
                .unwrap_or_default(),
        };
        let entries = &model.header().metadata_props;
        let metadata = |key: &str| {
            let found = entries
                .iter()
                .find(|entry| entry.key.as_deref() == Some(key));
            found.and_then(|entry| entry.value.as_deref())
        };
        let described = ["description", "model_name", "model_type", "architecture"].map(metadata);
        let names = [Some(file), graph.name()].into_iter().chain(described);
        TaskHints {
            inputs,
            outputs: graph.outputs().iter().map(output).collect(),
            operators: graph
                .nodes()
                .iter()
                .map(|node| node.op_type.as_str())
                .collect(),
            names: names.flatten().map(str::to_ascii_lowercase).collect(),
            task: metadata("task"),
        }
    }

    /// The first of these words that a name contains.
    fn named(&self, words: &[&'static str]) -> Option<&'static str> {
        let has = |word: &&&str| self.names.iter().any(|name| name.contains(**word));
        words.iter().find(has).copied()
    }

    /// The first output whose name contains one of these words.
    fn output(&self, words: &[&str]) -> Option<&str> {
        let has = |output: &&TaskOutput| {
            let name = output.name.to_ascii_lowercase();
            words.iter().any(|word| name.contains(word))
        };
        self.outputs
            .iter()
            .find(has)
            .map(|output| output.name.as_str())
    }

    pub(crate) fn stated(&self) -> MaybeTask {
        let task = match self.task? {
            "detect" | "pose" | "obb" | "object-detection" => ModelTask::Detector,
            "segment" | "image-segmentation" | "semantic-segmentation" => ModelTask::Segmenter,
            "classify" | "image-classification" => ModelTask::Classifier,
            "feature-extraction" | "sentence-similarity" => ModelTask::TextEncoder,
            "text-generation" => ModelTask::LanguageModel,
            "text-classification" | "token-classification" => ModelTask::TextClassifier,
            "automatic-speech-recognition" => ModelTask::Speech,
            "audio-classification" => ModelTask::Audio,
            _ => return None,
        };
        let why = format!("the file's metadata state the task {:?}", self.task?);
        Some((task, Certainty::Sure, why))
    }

    pub(crate) fn of_text(&self) -> MaybeTask {
        let texts = TextInputs::new(self.inputs).ok()?;
        let ids = &self.inputs[texts.ids].name;
        let reads = format!("the input {ids:?} takes the numbers of tokens");
        if texts.roles.contains(&TextRole::Cache) {
            return likely(
                ModelTask::LanguageModel,
                format!("{reads}, and there are caches of earlier ones"),
            );
        }
        let first = self.outputs.first()?;
        let output = &first.name;
        match first.shape.as_slice() {
            [.., last]
                if first.shape.len() == 3
                    && known(last) >= Some(VOCABULARY)
                    && first.name.contains("logits") =>
            {
                likely(
                    ModelTask::LanguageModel,
                    format!("{reads}, and the output {output:?} scores a vocabulary"),
                )
            }
            [_, _] | [_, _, _] if first.name.contains("logits") => likely(
                ModelTask::TextClassifier,
                format!("{reads}, and the output {output:?} scores classes"),
            ),
            _ => likely(
                ModelTask::TextEncoder,
                format!("{reads}, and the output {output:?} is no score"),
            ),
        }
    }

    pub(crate) fn of_sound(&self) -> MaybeTask {
        let spectrogram = self.inputs.iter().find(|input| {
            let name = input.name.to_ascii_lowercase();
            let words = ["mel", "spec", "input_features", "fbank", "audio_signal"];
            words.iter().any(|word| name.contains(word)) && (3..=4).contains(&input.shape.len())
        });
        let why = match (waveform(self.inputs), spectrogram) {
            (Some(place), _) => format!("the input {:?} is a waveform", self.inputs[place].name),
            (None, Some(input)) => format!("the input {:?} is a spectrogram", input.name),
            (None, None) if self.operators.contains("STFT") => "it has the operator STFT".into(),
            _ => return None,
        };
        let words = [
            "whisper",
            "wav2vec",
            "hubert",
            "asr",
            "conformer",
            "speech",
            "stt",
            "moonshine",
        ];
        if let Some(word) = self.named(&words) {
            return likely(
                ModelTask::Speech,
                format!("{why}, and models named {word:?} hear speech"),
            );
        }
        let steps = |output: &TaskOutput| match output.shape.as_slice() {
            [_, _, letters] => known(letters).is_some_and(|count| (20..=60_000).contains(&count)),
            _ => false,
        };
        match self
            .outputs
            .iter()
            .find(|output| steps(output) && output.name.contains("log"))
        {
            Some(output) => likely(
                ModelTask::Speech,
                format!(
                    "{why}, and the output {:?} scores letters by time",
                    output.name
                ),
            ),
            None => likely(ModelTask::Audio, why),
        }
    }

    pub(crate) fn of_image(&self) -> MaybeTask {
        let image = self
            .inputs
            .iter()
            .find(|input| input.shape.len() == 4 && axes(input).is_some())?;
        let reads = format!("the input {:?} has the shape of an image", image.name);
        if self.operators.contains("NonMaxSuppression") {
            return likely(
                ModelTask::Detector,
                format!("{reads}, and NonMaxSuppression chooses among boxes"),
            );
        }
        if let Some(name) = self.output(&["box", "bbox", "dets"]) {
            return likely(
                ModelTask::Detector,
                format!("{reads}, and the output {name:?} is named after boxes"),
            );
        }
        let words = [
            "yolo",
            "detr",
            "ssd",
            "dfine",
            "d-fine",
            "retinanet",
            "faster_rcnn",
            "picodet",
            "centernet",
        ];
        let first = self.outputs.first()?;
        let output = &first.name;
        let cells = |dim: &Dim| known(dim).is_none_or(|count| count > 600);
        let few = |dim: &Dim| known(dim).is_some_and(|count| (5..=600).contains(&count));
        if let [_, a, b] = first.shape.as_slice()
            && (few(a) && cells(b) || cells(a) && few(b))
            && !output.contains("hidden")
            && (image.name == "images" || known(a).is_some() && known(b).is_some())
        {
            return likely(
                ModelTask::Detector,
                format!("{reads}, and the output {output:?} has the shape of many boxes"),
            );
        }
        if let Some(word) = self.named(&words) {
            return likely(
                ModelTask::Detector,
                format!("{reads}, and models named {word:?} find boxes"),
            );
        }
        let segments = [
            "segm", "deeplab", "u2net", "unet", "bisenet", "pspnet", "lraspp", "matting", "modnet",
            "isnet",
        ];
        match first.shape.as_slice() {
            [_, Dim::Known(2..)] if self.output(&["embed", "feature", "pooler"]).is_none() => {
                likely(
                    ModelTask::Classifier,
                    format!("{reads}, and the output {output:?} scores classes"),
                )
            }
            [_, Dim::Known(2..), Dim::Known(1), Dim::Known(1)] => likely(
                ModelTask::Classifier,
                format!("{reads}, and the output {output:?} scores classes"),
            ),
            [_, _] => likely(
                ModelTask::ImageEncoder,
                format!("{reads}, and the output {output:?} is a vector"),
            ),
            [_, channels, _, _] => match (self.named(&segments), known(channels)) {
                (Some(word), _) => likely(
                    ModelTask::Segmenter,
                    format!("{reads}, and models named {word:?} give masks"),
                ),
                (None, Some(3)) => guess(
                    ModelTask::ImageToImage,
                    format!("{reads}, and so has the output {output:?}"),
                ),
                (None, Some(count)) if count > 4 => guess(
                    ModelTask::Segmenter,
                    format!("{reads}, and the output {output:?} has {count} channels of pixels"),
                ),
                _ => guess(
                    ModelTask::ImageToImage,
                    format!("{reads}, and the output {output:?} has pixels, too"),
                ),
            },
            [_, _, _] if self.operators.contains("ArgMax") => guess(
                ModelTask::Segmenter,
                format!("{reads}, and ArgMax gives a class for each pixel"),
            ),
            [_, _, _] => guess(
                ModelTask::ImageEncoder,
                format!("{reads}, and the output {output:?} is a list of vectors"),
            ),
            _ => None,
        }
    }

    pub(crate) fn of_table(&self) -> MaybeTask {
        let trees = [
            "TreeEnsembleClassifier",
            "TreeEnsembleRegressor",
            "TreeEnsemble",
            "LinearClassifier",
            "SVMClassifier",
            "Scaler",
        ];
        if let Some(operator) = trees
            .iter()
            .find(|operator| self.operators.contains(**operator))
        {
            return likely(ModelTask::Table, format!("it has the operator {operator}"));
        }
        if !takes_rows(self.inputs) {
            return None;
        }
        match self.inputs {
            [input] => guess(
                ModelTask::Table,
                format!("the input {:?} is a row of numbers", input.name),
            ),
            inputs => likely(
                ModelTask::Table,
                format!(
                    "its {} inputs are single numbers, like columns",
                    inputs.len()
                ),
            ),
        }
    }
}

fn known(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Known(size) => Some(*size),
        _ => None,
    }
}
