//! Image sizes that a model accepts. Inferred shapes are checked against each other wherever values
//! combine. Our own shape rules suffice; nothing is planned or run.

use std::fmt;

use super::super::InputSpec;
use super::super::image_placement::Axes;
use octet_graph::operators::Operator;
use octet_graph::prepare::{Types, infer_from};
use octet_graph::{Graph, Model};
use octet_onnx::schema::NodeProto;

/// Maximum number of nodes for such trials, since each trial infers the shapes of all.
const LARGEST: usize = 4000;

/// Sizes for which models are made, the usual ones first.
const USUAL: [u32; 14] = [
    224, 640, 384, 512, 256, 320, 299, 448, 336, 518, 800, 1024, 128, 112,
];

/// A node whose input shapes don't fit each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeMismatch {
    /// Operator.
    pub operator: String,
    /// Name that is shown to people.
    pub node: String,
    /// Shapes of its inputs.
    pub shapes: Vec<Vec<usize>>,
}

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes: Vec<String> = self.shapes.iter().map(|s| format!("{s:?}")).collect();
        write!(
            out,
            "{} (node `{}`) would get the shapes {}, which don't match",
            self.operator,
            self.node,
            shapes.join(" and ")
        )
    }
}

impl ShapeMismatch {
    /// The first node that rejects what follows from inputs of these shapes.
    pub fn find(graph: &Graph, inputs: &[&[usize]]) -> Option<ShapeMismatch> {
        let types = infer_from(graph, inputs);
        graph.nodes.iter().find_map(|node| refusal(node, &types))
    }
}

fn refusal(node: &NodeProto, types: &Types) -> Option<ShapeMismatch> {
    if Operator::of(node).shapes_fit(node, types) {
        return None;
    }
    let names = node.input.iter().filter(|name| !name.is_empty());
    let shapes: Option<_> = names.map(|name| types.get(name)?.sizes()).collect();
    Some(ShapeMismatch {
        operator: node.operator(),
        node: node.title().to_string(),
        shapes: shapes?,
    })
}

/// Trials of a model with images of several sizes.
pub(super) struct Trial<'a> {
    graph: &'a Graph,
    axes: Axes<'a>,
    /// False if trials can show nothing for this model.
    possible: bool,
}

impl<'a> Trial<'a> {
    pub(super) fn new(model: &'a Model, input: &InputSpec, axes: Axes<'a>) -> Trial<'a> {
        let graph = &model.graph;
        // The rules take shapes for the first inputs. An old file may list initializers before
        // them.
        let first = graph.inputs.first().and_then(|value| value.name.as_deref());
        let possible = first == Some(input.name.as_str()) && graph.nodes.len() <= LARGEST;
        Trial {
            graph,
            axes,
            possible,
        }
    }

    /// Node that rejects an image of this height and width, as far as that can be known.
    pub(super) fn refusal(&self, (height, width): (u32, u32)) -> Option<ShapeMismatch> {
        if !self.possible {
            return None;
        }
        let shape = self.axes.shape(height as usize, width as usize);
        ShapeMismatch::find(self.graph, &[&shape])
    }

    /// Smallest power of two whose multiples the model accepts for height and width; `None` if
    /// there is none.
    pub(super) fn multiple(&self) -> Option<u32> {
        if !self.possible {
            return None;
        }
        (0..8).map(|power| 1u32 << power).find(|&multiple| {
            // Odd multiples from about 96 on, so that no larger power of two divides them.
            let odd = (96 / multiple) | 1;
            let sides = [odd, odd + 2, odd + 4].map(|times| times * multiple);
            sides
                .iter()
                .all(|&side| self.refusal((side, side)).is_none())
        })
    }

    /// The only usual size that the model accepts, if all others are rejected.
    pub(super) fn only_size(&self) -> Option<u32> {
        if !self.possible {
            return None;
        }
        let mut taken = USUAL
            .iter()
            .filter(|&&side| self.refusal((side, side)).is_none());
        let only = *taken.next()?;
        taken.next().is_none().then_some(only)
    }
}
