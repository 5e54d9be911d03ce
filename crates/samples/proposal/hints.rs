//! Hints on preprocessing in a model file, apart from its shapes.

use super::super::InputSpec;
use super::families::{KnownFamily, ModelKind, named};
use octet_graph::{Dim, Model, Node, tensor_type_of};

/// Numbers in a name that may be an image size.
const SIDES: std::ops::RangeInclusive<u32> = 64..=2048;

/// The parts of a model that contain hints.
pub(super) struct Hints<'a> {
    model: &'a Model,
    input: &'a InputSpec,
    /// Names in lower case: of the file, of the graph, and from the metadata.
    names: Vec<String>,
    /// Shape of each output.
    outputs: Vec<Vec<Dim>>,
}

impl<'a> Hints<'a> {
    pub(super) fn new(file: &str, model: &'a Model, input: &'a InputSpec) -> Hints<'a> {
        let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let described = ["description", "model_name", "model_type", "architecture"];
        let described = described.iter().filter_map(|key| metadata(model, key));
        let names = [Some(stem), model.graph.name()];
        let names = names.into_iter().flatten().chain(described);
        let shapes = model.graph.outputs().iter();
        Hints {
            model,
            input,
            names: names.map(str::to_ascii_lowercase).collect(),
            outputs: shapes
                .filter_map(|output| tensor_type_of(output)?.shape)
                .collect(),
        }
    }

    /// Model family that one of the names contains.
    pub(super) fn family(&self) -> Option<KnownFamily> {
        named(&self.names)
    }

    /// True for the metadata of an Ultralytics export.
    pub(super) fn is_ultralytics(&self) -> bool {
        let author = metadata(self.model, "author");
        author.is_some_and(|author| author.eq_ignore_ascii_case("ultralytics"))
            || ["imgsz", "stride", "names"]
                .iter()
                .all(|key| metadata(self.model, key).is_some())
    }

    /// Task of an Ultralytics model, such as `detect`.
    pub(super) fn task(&self) -> Option<&str> {
        metadata(self.model, "task")
    }

    /// True if the shorter side is resized to the input's own, so that only the longer side is
    /// cropped.
    pub(super) fn crops_nothing(&self, family: Option<&KnownFamily>) -> bool {
        self.is_ultralytics() || family.is_some_and(|family| family.whole)
    }

    /// Height and width from the metadata: `[480, 640]`, or one number.
    pub(super) fn imgsz(&self) -> Option<(u32, u32)> {
        let text = ["imgsz", "image_size", "input_size"]
            .iter()
            .find_map(|key| metadata(self.model, key))?;
        let numbers = text.trim_matches(['[', ']', '(', ')', ' ']).split(',');
        let numbers: Option<Vec<u32>> = numbers.map(|number| number.trim().parse().ok()).collect();
        match numbers?.as_slice() {
            [side] if *side > 0 => Some((*side, *side)),
            [height, width] if *height > 0 && *width > 0 => Some((*height, *width)),
            _ => None,
        }
    }

    /// Stride from the metadata: height and width must be multiples of it.
    pub(super) fn stride(&self) -> Option<u32> {
        let stride = metadata(self.model, "stride")?.trim().parse().ok()?;
        (1..=128).contains(&stride).then_some(stride)
    }

    /// An image size in one of the names, as in `resnet50_224` or `seg-480x640`, with that name.
    pub(super) fn size_in_names(&self) -> Option<((u32, u32), &str)> {
        self.names.iter().find_map(|name| {
            let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
            let side = |text: &str| text.parse().ok().filter(|side| SIDES.contains(side));
            let size = |part: &str| match part.split_once('x') {
                Some((height, width)) => Some((side(height)?, side(width)?)),
                None => side(part)
                    .filter(|side| side % 8 == 0 || *side == 299)
                    .map(|s| (s, s)),
            };
            let mut sizes = parts.filter_map(size);
            Some((sizes.next_back()?, name.as_str()))
        })
    }

    /// True if several outputs have distances to the sides of boxes as distributions, as PicoDet and
    /// NanoDet write them: `[N, cells, 4 × 8]`, or 16 or 17.
    pub(super) fn has_pyramid(&self) -> bool {
        let distances =
            |shape: &&Vec<Dim>| matches!(shape.as_slice(), [_, _, Dim::Known(32 | 64 | 68)]);
        let count = self.outputs.iter().filter(distances).count();
        (3..=4).contains(&count) && self.outputs.len() == 2 * count
    }

    /// True if an output has the shape of YOLO's boxes: `[N, 4 + classes, cells]` or `[N, cells, 5
    /// + classes]`.
    pub(super) fn is_detector(&self) -> bool {
        let few = |dim: &Dim| matches!(dim, Dim::Known(5..=600));
        // An unknown cell count may also be a number of letters.
        let open = self.input.name == "images";
        let many = |dim: &Dim| match dim {
            Dim::Known(count) => *count > 600,
            _ => open,
        };
        self.outputs.iter().any(|shape| match shape.as_slice() {
            [_, a, b] => (few(a) && many(b)) || (many(a) && few(b)),
            _ => false,
        }) && !self.is_sequence()
    }

    /// True for sequence models: their hidden states have the shape of boxes, too.
    fn is_sequence(&self) -> bool {
        self.input.name == "pixel_values"
            || self
                .model
                .graph
                .outputs()
                .iter()
                .any(|output| output.name.as_deref().is_some_and(|n| n.contains("hidden")))
    }

    /// Kind of the model, from its outputs.
    pub(super) fn kind(&self, detector: bool) -> ModelKind {
        match self.outputs.first().map(Vec::as_slice) {
            _ if detector => ModelKind::Detector,
            Some([_, Dim::Known(2..)]) => ModelKind::Classifier,
            Some([_, _, _, _]) => ModelKind::Dense,
            _ => ModelKind::Other,
        }
    }

    pub(super) fn is_from_tensorflow(&self) -> bool {
        let producer = self.model.header().producer_name.as_deref();
        producer.is_some_and(|name| name.contains("tf2onnx") || name.contains("keras"))
    }

    /// Preset that suits the first arithmetic of the graph on its input, if that uses a constant.
    /// For example, a model that divides by 255 takes 0 to 255.
    pub(super) fn own_arithmetic(&self) -> Option<(&'static str, String)> {
        let graph = &self.model.graph;
        let mut readers = graph.nodes().iter().filter(|node| {
            let mut inputs = node.input.iter();
            inputs.any(|name| *name == self.input.name)
        });
        let (first, None) = (readers.next()?, readers.next()) else {
            return None;
        };
        let constant = self.constant_of(first)?;
        let hint = |preset, what| {
            let why = format!("the model itself {what} (node `{}`)", first.title());
            Some((preset, why))
        };
        match first.op_type.as_str() {
            "Div" if constant >= 60.0 => hint("raw", format!("divides by {constant}")),
            "Div" if (0.1..1.0).contains(&constant) => {
                hint("unit", format!("divides by {constant}"))
            }
            "Mul" if constant > 0.0 && constant <= 0.05 => {
                hint("raw", format!("multiplies by {constant}"))
            }
            "Sub" if constant >= 60.0 => hint("raw", format!("subtracts {constant}")),
            "Sub" if (0.1..1.0).contains(&constant) => {
                hint("unit", format!("subtracts {constant}"))
            }
            _ => None,
        }
    }

    /// Mean of a small constant that is a node's second operand.
    fn constant_of(&self, node: &Node) -> Option<f32> {
        let graph = &self.model.graph;
        if node.input_at(0)? != self.input.name {
            return None;
        }
        let name = node.input_at(1)?;
        let made = || {
            let maker = graph
                .nodes()
                .iter()
                .find(|n| n.output.iter().any(|o| o == name))?;
            (maker.op_type == "Constant").then(|| maker.tensor("value"))?
        };
        let tensor = graph.initializers.get(name).or_else(made)?;
        if tensor.is_external() || tensor.element_count().ok()? > 3 {
            return None;
        }
        let numbers = tensor.to_f32().ok()?;
        let mean = numbers.iter().sum::<f32>() / numbers.len().max(1) as f32;
        mean.is_finite().then_some(mean)
    }
}

fn metadata<'a>(model: &'a Model, key: &str) -> Option<&'a str> {
    let mut entries = model.header().metadata_props.iter();
    let found = entries.find(|entry| entry.key.as_deref() == Some(key))?;
    found.value.as_deref()
}
