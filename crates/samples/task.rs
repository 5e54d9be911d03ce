//! The task of a model: what it is for, from its inputs, outputs, operators, names and metadata.

use serde::Serialize;

use super::InputSpec;
use super::certainty::Certainty;
use super::task_hints::TaskHints;
use octet_graph::Model;

/// Task of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelTask {
    /// A class for each image.
    Classifier,
    /// Boxes in an image.
    Detector,
    /// A class for each pixel.
    Segmenter,
    /// Another image.
    ImageToImage,
    /// A vector for each image.
    ImageEncoder,
    /// A vector for a text, or for each token.
    TextEncoder,
    /// A class for a text, or for each token.
    TextClassifier,
    /// The next token.
    LanguageModel,
    /// The words of speech.
    Speech,
    /// Sound of another kind.
    Audio,
    /// Rows of a table.
    Table,
    /// None of these, or not known.
    Other,
}

impl ModelTask {
    /// The task in words.
    pub fn name(self) -> &'static str {
        match self {
            ModelTask::Classifier => "image classifier",
            ModelTask::Detector => "detector",
            ModelTask::Segmenter => "segmenter",
            ModelTask::ImageToImage => "images from images",
            ModelTask::ImageEncoder => "image encoder",
            ModelTask::TextEncoder => "text encoder",
            ModelTask::TextClassifier => "text classifier",
            ModelTask::LanguageModel => "language model",
            ModelTask::Speech => "speech",
            ModelTask::Audio => "sound",
            ModelTask::Table => "table",
            ModelTask::Other => "unknown",
        }
    }
}

/// Task that a model is taken for, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TaskGuess {
    /// The task.
    pub task: ModelTask,
    /// Certainty of it.
    pub certainty: Certainty,
    /// Hints, as the end of a sentence.
    pub why: String,
}

impl TaskGuess {
    /// The task of a model in a file of this name.
    pub fn new(file: &str, model: &Model, inputs: &[InputSpec]) -> TaskGuess {
        let hints = TaskHints::new(file, model, inputs);
        let found = hints
            .stated()
            .or_else(|| hints.of_text())
            .or_else(|| hints.of_sound())
            .or_else(|| hints.of_image())
            .or_else(|| hints.of_table());
        let (task, certainty, why) = found.unwrap_or_else(|| {
            let why = "neither its inputs nor its names tell it".to_owned();
            (ModelTask::Other, Certainty::Guess, why)
        });
        TaskGuess {
            task,
            certainty,
            why,
        }
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
