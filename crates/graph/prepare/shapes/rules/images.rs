//! Image operators whose output sizes come from inputs or attributes: regions, grids, Col2Im,
//! crops.

use super::{Context, positions};
use crate::Dim;
use crate::prepare::shapes::{count, sizes, windows};

impl Context<'_> {
    /// The output shape of such an operator.
    pub(super) fn image_shape(&self, operator: &str) -> Option<Vec<Dim>> {
        let node = self.node;
        let own = self.input(0)?.shape.as_deref();
        let size = |key: &str| Dim::Known(node.int(key).unwrap_or(1).max(0) as usize);
        match operator {
            "MaxUnpool" => match node.input_at(2) {
                Some(_) => self.shape_from_input(2),
                None => windows::shape(node, self.types),
            },
            "RoiAlign" | "MaxRoiPool" => {
                let [height, width] = match (operator, node.ints("pooled_shape")) {
                    ("RoiAlign", _) => ["output_height", "output_width"].map(size),
                    (_, Some(&[height, width])) => {
                        [height, width].map(|size| Dim::Known(size.max(0) as usize))
                    }
                    _ => return None,
                };
                let regions = self.input(1)?.shape.as_ref()?.first()?.clone();
                Some(vec![regions, own?.get(1)?.clone(), height, width])
            }
            "Det" => {
                let own = own?;
                Some(own[..own.len().checked_sub(2)?].to_vec())
            }
            "AffineGrid" => {
                // The channel axis is dropped, and an axis of coordinates is appended.
                let mut target = self
                    .shape_from_input(1)
                    .filter(|target| matches!(target.len(), 4 | 5))?;
                target.remove(1);
                let axes = target.len() - 1;
                target.push(Dim::Known(axes));
                Some(target)
            }
            "Col2Im" => {
                let (picture, block) =
                    (self.shape_from_input(1)?, sizes(&self.shape_from_input(2)?));
                let channels = match (&own?.get(1)?, block) {
                    (Dim::Known(rows), Some(block)) if count(&block) > 0 => {
                        Dim::Known(rows / count(&block))
                    }
                    _ => Dim::Unknown,
                };
                Some([&[own?[0].clone(), channels], &*picture].concat())
            }
            "CenterCropPad" => {
                let mut dims = own?.to_vec();
                let axes = match node.ints("axes") {
                    Some(axes) => positions(axes, dims.len())?,
                    None => (0..dims.len()).collect(),
                };
                let target = self
                    .shape_from_input(1)
                    .filter(|target| target.len() == axes.len())?;
                for (axis, size) in axes.into_iter().zip(target) {
                    dims[axis] = size;
                }
                Some(dims)
            }
            _ => None,
        }
    }
}
