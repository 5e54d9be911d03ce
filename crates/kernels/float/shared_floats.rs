//! Floats of which several threads write disjoint parts.

use std::marker::PhantomData;

pub(super) struct SharedFloats<'a> {
    start: *mut f32,
    length: usize,
    output: PhantomData<&'a mut [f32]>,
}

// SAFETY: threads get references to disjoint parts only, by the contract of `slice`.
unsafe impl Sync for SharedFloats<'_> {}

impl<'a> SharedFloats<'a> {
    pub(super) fn new(output: &'a mut [f32]) -> SharedFloats<'a> {
        SharedFloats {
            start: output.as_mut_ptr(),
            length: output.len(),
            output: PhantomData,
        }
    }

    /// # Safety
    ///
    /// While the slice lives, there is no other reference to its floats.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slice(&self, at: usize, count: usize) -> &mut [f32] {
        assert!(at <= self.length && count <= self.length - at);
        // SAFETY: the floats are within the output, and the caller has the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), count) }
    }
}
