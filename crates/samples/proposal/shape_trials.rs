//! Image sizes that a model accepts.

use super::super::image_placement::Axes;
use super::super::{InputSpec, ShapeMismatch};
use octet_graph::{Graph, Model};

/// Maximum number of nodes for such trials, since each trial infers the shapes of all.
const LARGEST: usize = 4000;

/// Sizes for which models are made, the usual ones first.
const USUAL: [u32; 14] = [
    224, 640, 384, 512, 256, 320, 299, 448, 336, 518, 800, 1024, 128, 112,
];

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
        let possible = first == Some(input.name.as_str()) && graph.nodes().len() <= LARGEST;
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
