//! Kinds of outputs, which decide the measure of quality. A classifier is judged by its top class,
//! an embedding by its direction, a detector by its boxes. Integers and values that pass unchanged
//! don't show quantization error.

use serde::{Deserialize, Serialize};

use crate::graph::operators::{Operator, Property};
use crate::graph::{Model, Node};
use crate::onnx::schema::DataType;
use crate::samples::{InputSpec, takes_rows};

/// The kind of an output.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum OutputKind {
    /// One row of class scores for each sample; judged by top-1.
    Classes,
    /// A row of class scores at each step of a sequence, as in OCR; judged by top-1 at each step.
    Steps,
    /// A score for each token of a vocabulary at each position of a text; judged by top-1 and the KL
    /// divergence.
    Tokens,
    /// A vector that represents the sample; judged by the cosine.
    Embedding,
    /// Boxes of a detector, with or without scores; judged by matching boxes.
    Boxes,
    /// Scores of boxes that are in another output.
    Scores,
    /// Other floats; judged by SQNR.
    #[default]
    Values,
    /// Integers or booleans; not judged.
    Integers,
    /// Floats that come unchanged from inputs or constants; not judged.
    Passed,
}

impl std::fmt::Display for OutputKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OutputKind::Classes => "classes",
            OutputKind::Steps => "classes at each step",
            OutputKind::Tokens => "tokens",
            OutputKind::Embedding => "embedding",
            OutputKind::Boxes => "boxes",
            OutputKind::Scores => "scores of boxes",
            OutputKind::Values => "values",
            OutputKind::Integers => "integers",
            OutputKind::Passed => "passed through",
        })
    }
}

impl OutputKind {
    /// True if an output of this kind can be judged.
    pub fn is_judged(self) -> bool {
        !matches!(self, OutputKind::Integers | OutputKind::Passed)
    }
}

/// Properties of an output that follow from the graph; its shape is known after the first run.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputTraits {
    name: String,
    integers: bool,
    passed: bool,
    /// The last operator that computes.
    last: String,
    /// True if a Sigmoid or Softmax is near, so it may hold scores between 0 and 1.
    squashed: bool,
    /// True if the output is selected from boxes.
    selected: bool,
    /// True if the model takes rows of numbers. Its numbers may be classes or quantities.
    of_table: bool,
}

/// Usual widths of embeddings; classifiers rarely have exactly as many classes.
const WIDTHS: [usize; 12] = [64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048];
/// Limit on the nodes that are searched for a Sigmoid, Softmax or selection.
const SEARCH_LIMIT: usize = 64;

/// Words in the names of outputs.
const EMBEDDINGS: [&str; 7] = [
    "embed",
    "feature",
    "hidden",
    "pool",
    "vector",
    "encod",
    "descriptor",
];
const SCORES: [&str; 8] = [
    "logit", "prob", "score", "class", "label", "softmax", "conf", "cls",
];
const PLACES: [&str; 9] = [
    "landmark", "keypoint", "kpt", "point", "coord", "pose", "offset", "regress", "vert",
];
const BOXES: [&str; 4] = ["box", "loc", "rect", "dets"];

impl OutputTraits {
    /// Describes the outputs of a prepared model, in order.
    pub(crate) fn all(model: &Model) -> Vec<OutputTraits> {
        let elements = model.graph.element_types();
        let of_table = takes_rows(&InputSpec::all(model));
        let outputs = model.graph.outputs().iter();
        let names = outputs.map(|output| output.name.as_deref().unwrap_or_default());
        names
            .map(|name| {
                let element = elements.get(name);
                let floats = [
                    DataType::Float,
                    DataType::Float16,
                    DataType::Double,
                    DataType::Bfloat16,
                ];
                OutputTraits {
                    name: name.to_lowercase(),
                    integers: element.is_some_and(|element| !floats.contains(element)),
                    passed: passed(model, name),
                    last: last(model, name),
                    squashed: is_near(model, name, Property::Squashes),
                    selected: is_near(model, name, Property::SelectsBoxes),
                    of_table,
                }
            })
            .collect()
    }

    /// An output of this name without other properties.
    #[cfg(test)]
    pub(super) fn named(name: &str) -> OutputTraits {
        OutputTraits {
            name: name.into(),
            ..OutputTraits::default()
        }
    }

    /// An output that joins boxes and squashed scores.
    #[cfg(test)]
    pub(super) fn joined() -> OutputTraits {
        OutputTraits {
            last: "Concat".into(),
            squashed: true,
            ..OutputTraits::default()
        }
    }

    /// An output of selected boxes.
    #[cfg(test)]
    pub(super) fn selected() -> OutputTraits {
        OutputTraits {
            selected: true,
            ..OutputTraits::default()
        }
    }

    fn name_contains(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.name.contains(word))
    }

    pub(super) fn is_called_boxes(&self) -> bool {
        self.name_contains(&BOXES)
    }

    pub(super) fn is_called_scores(&self) -> bool {
        self.name_contains(&SCORES)
    }

    /// True if the output is a Concat with scores between 0 and 1 among its inputs.
    pub(super) fn joins_scores(&self) -> bool {
        self.last == "Concat" && self.squashed
    }

    /// True if its rows are selected from boxes.
    pub(super) fn is_selection(&self) -> bool {
        self.selected
    }

    /// True if an output with a score for each token at each position may be that of a language
    /// model: its values are logits.
    pub(super) fn may_be_tokens(&self, kind: OutputKind) -> bool {
        let last = Operator::in_any_domain(&self.last);
        let logits = self.is_called_scores() || last.has(Property::EndsClassifier);
        matches!(kind, OutputKind::Steps | OutputKind::Values)
            && logits
            && !last.has(Property::Squashes)
    }

    /// The kind of an output that can't be judged, regardless of shape.
    pub(super) fn unjudged(&self) -> Option<OutputKind> {
        match (self.integers, self.passed) {
            (true, _) => Some(OutputKind::Integers),
            (false, true) => Some(OutputKind::Passed),
            (false, false) => None,
        }
    }

    /// The kind of an output of this shape that belongs to no detector.
    pub(crate) fn kind(&self, shape: &[usize]) -> OutputKind {
        if let Some(kind) = self.unjudged() {
            return kind;
        }
        let last = Operator::in_any_domain(&self.last);
        let squashed = last.has(Property::Squashes);
        let named = squashed || self.name_contains(&SCORES);
        match *shape_of_rows(shape) {
            [_, width] if width > 1 => {
                let linear = last.has(Property::EndsClassifier);
                match (
                    named,
                    self.name_contains(&EMBEDDINGS),
                    self.name_contains(&PLACES),
                ) {
                    _ if squashed => OutputKind::Classes,
                    (_, true, _) => OutputKind::Embedding,
                    (_, _, true) => OutputKind::Values,
                    (true, ..) => OutputKind::Classes,
                    _ if self.of_table => OutputKind::Values,
                    _ if linear && !WIDTHS.contains(&width) => OutputKind::Classes,
                    _ if width >= WIDTHS[0] => OutputKind::Embedding,
                    _ => OutputKind::Values,
                }
            }
            [_, _, width] if width > 1 => match self.name_contains(&EMBEDDINGS) {
                true => OutputKind::Embedding,
                // A Sigmoid judges each class by itself, as in note or segmentation maps.
                false if self.last.ends_with("Sigmoid") => OutputKind::Values,
                false if named => OutputKind::Steps,
                false if self.last == "LayerNormalization" => OutputKind::Embedding,
                false => OutputKind::Values,
            },
            _ => OutputKind::Values,
        }
    }
}

/// A shape without trailing image axes of size 1 behind the classes.
pub(crate) fn shape_of_rows(shape: &[usize]) -> &[usize] {
    match shape {
        [_, _, 1, 1] => &shape[..2],
        _ => shape,
    }
}

fn maker<'a>(model: &'a Model, value: &str) -> Option<&'a Node> {
    model
        .graph
        .producer(value)
        .map(|node| &model.graph.nodes()[node])
}

/// The descriptor of a node's operator, whatever its domain.
fn operator_of(node: &Node) -> &'static Operator {
    Operator::in_any_domain(node.op_type.as_str())
}

/// True if only data movement lies between inputs or constants and this value.
fn passed(model: &Model, value: &str) -> bool {
    let mut waiting = vec![value.to_string()];
    let mut seen = std::collections::HashSet::new();
    while let Some(value) = waiting.pop() {
        let Some(node) = maker(model, &value) else {
            continue;
        };
        let operator = operator_of(node);
        if !operator.has(Property::MovesData) && !operator.has(Property::ChangesType) {
            return false;
        }
        let inputs = node.input.iter().filter(|input| !input.is_empty());
        waiting.extend(
            inputs
                .filter(|input| seen.insert((*input).clone()))
                .cloned(),
        );
    }
    true
}

/// The operator of the last node that changes more than shape or type.
fn last(model: &Model, value: &str) -> String {
    let mut value = value.to_string();
    while let Some(node) = maker(model, &value) {
        match node.input.first() {
            Some(before) if operator_of(node).has(Property::ChangesForm) => {
                value.clone_from(before);
            }
            _ => return node.op_type.clone(),
        }
    }
    String::new()
}

/// True if an operator with the property is among the nearest nodes before a value.
fn is_near(model: &Model, value: &str, property: Property) -> bool {
    let mut waiting = std::collections::VecDeque::from([value.to_string()]);
    let mut seen = std::collections::HashSet::new();
    while let (Some(value), true) = (waiting.pop_front(), seen.len() < SEARCH_LIMIT) {
        let Some(place) = model.graph.producer(&value) else {
            continue;
        };
        if !seen.insert(place) {
            continue;
        }
        let node = &model.graph.nodes()[place];
        let operator = Operator::of(node);
        if operator.has(property) {
            return true;
        }
        // Stop at linear operators with a weight: their inputs are of another kind.
        if !operator.has(Property::EndsClassifier) || operator.weight_slots.is_empty() {
            waiting.extend(node.input.iter().cloned());
        }
    }
    false
}

#[cfg(test)]
#[path = "output_kinds_tests.rs"]
mod tests;
