//! Packed weights of matrix products. Steps with the same weights share them: an unrolled loop has
//! many such steps.

use std::sync::Arc;

use octet_kernels::int8::{Error, Form, Layout, Weights};

use crate::pattern::weights::SignedWeights;

/// The matrices of a region that are packed so far.
#[derive(Default)]
pub(crate) struct PackedMatrices(Vec<PackedMatrix>);

/// A packed matrix, and what it was packed from.
struct PackedMatrix {
    form: Form,
    layout: Layout,
    sizes: [usize; 2],
    integers: Arc<[i8]>,
    zero_points: Vec<i8>,
    packed: Arc<Weights>,
}

impl PackedMatrices {
    /// Packs a matrix of this depth and number of columns, unless the same is known.
    pub(crate) fn pack(
        &mut self,
        form: Form,
        weights: &SignedWeights,
        layout: Layout,
        sizes: [usize; 2],
    ) -> Result<Arc<Weights>, Error> {
        let (integers, zero_points) = (&weights.integers, &weights.zero_points);
        let same = |one: &&PackedMatrix| {
            Arc::ptr_eq(&one.integers, integers)
                && one.zero_points == *zero_points
                && (one.form, one.layout, one.sizes) == (form, layout, sizes)
        };
        if let Some(known) = self.0.iter().find(same) {
            return Ok(Arc::clone(&known.packed));
        }
        let packed = Weights::pack(form, integers, layout, sizes, zero_points)?;
        let packed = Arc::new(packed);
        self.0.push(PackedMatrix {
            form,
            layout,
            sizes,
            integers: Arc::clone(integers),
            zero_points: zero_points.clone(),
            packed: Arc::clone(&packed),
        });
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_matrices_are_shared() {
        let weights = |integers: &Arc<[i8]>, zero_points: Vec<i8>| SignedWeights {
            shape: vec![2, 3],
            integers: Arc::clone(integers),
            scales: vec![1.0],
            zero_points,
            stored_as_i8: true,
        };
        let [one, other]: [Arc<[i8]>; 2] = [0, 1].map(|_| Arc::from([1, 2, 3, 4, 5, 6]));
        let (form, depth_first) = (Form::best(), Layout::DepthFirst);
        let mut matrices = PackedMatrices::default();
        let mut pack = |integers, zero_points, layout, sizes| {
            let weights = weights(integers, zero_points);
            matrices.pack(form, &weights, layout, sizes).unwrap()
        };
        let first = pack(&one, vec![], depth_first, [2, 3]);
        assert!(Arc::ptr_eq(
            &first,
            &pack(&one, vec![], depth_first, [2, 3])
        ));
        for different in [
            pack(&other, vec![], depth_first, [2, 3]),
            pack(&one, vec![1, 1, 1], depth_first, [2, 3]),
            pack(&one, vec![], Layout::ColumnAfterColumn, [2, 3]),
            pack(&one, vec![], depth_first, [3, 2]),
        ] {
            assert!(!Arc::ptr_eq(&first, &different));
        }
    }
}
