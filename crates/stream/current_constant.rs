//! The constant that a conversion makes, and the reads of those that wait.

use std::collections::VecDeque;
use std::ops::Range;

use octet_onnx::Stretch;
use octet_quantize::recipe::{Recipe, Slices};

use crate::StreamError;
use crate::constant_plan::Work;

/// The constant that is made.
pub(crate) struct CurrentConstant {
    pub(crate) work: Work,
    /// `None` if the constant is only copied.
    pub(crate) recipe: Option<Box<dyn Recipe>>,
    /// A copy of the same source, which is made beside.
    pub(crate) copy: Option<Work>,
    slices: Slices,
    /// The slice of the last step.
    slice: Option<Range<u64>>,
    /// True once a step has copied the slice.
    is_copied: bool,
}

/// A step on a slice of the source.
pub(crate) enum SliceStep {
    /// It is copied.
    Copy {
        range: Range<u64>,
        /// File and offset.
        to: (usize, u64),
        /// True if the recipe takes it after that.
        again: bool,
    },
    /// The recipe takes it.
    Feed(Range<u64>),
    /// There is none left.
    End,
}

impl CurrentConstant {
    /// Starts with a constant. The next one of those that wait is made beside, if it is a copy of the
    /// same source.
    pub(crate) fn start(
        work: Work,
        waiting: &mut VecDeque<Work>,
    ) -> Result<CurrentConstant, StreamError> {
        let recipe = work.planned.start()?;
        let slices = recipe.slices().clone();
        let copy = match is_read_for_both(&work, &slices, waiting.front()) {
            true => waiting.pop_front(),
            false => None,
        };
        Ok(CurrentConstant {
            recipe: (!work.is_copy()).then_some(recipe),
            work,
            copy,
            slices,
            slice: None,
            is_copied: false,
        })
    }

    /// The next step. A copy is done before the next call; a slice for the recipe is offered until
    /// [`Self::end_slice`].
    pub(crate) fn next(&mut self) -> SliceStep {
        if self.is_copied && self.recipe.is_none() {
            self.end_slice();
        }
        if self.slice.is_none() {
            self.slice = self.slices.next();
        }
        let Some(range) = self.slice.clone() else {
            return SliceStep::End;
        };
        let copied = match &self.recipe {
            None => Some(&self.work),
            Some(_) => self.copy.as_ref(),
        };
        let place = copied.and_then(|work| work.places.first());
        match place {
            Some(&(file, start)) if !self.is_copied => {
                self.is_copied = true;
                SliceStep::Copy {
                    to: (file, start + range.start),
                    again: self.recipe.is_some(),
                    range,
                }
            }
            _ => SliceStep::Feed(range),
        }
    }

    /// Ends the work on a slice.
    pub(crate) fn end_slice(&mut self) {
        self.slice = None;
        self.is_copied = false;
    }

    /// The reads that are left, with that of the last step.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Stretch> {
        let left = self.slice.iter().cloned().chain(self.slices.clone());
        let source = self.work.source.iter();
        source.flat_map(move |source| left.clone().map(|range| part(source, &range)))
    }
}

/// A part of a stretch.
pub(crate) fn part(stretch: &Stretch, range: &Range<u64>) -> Stretch {
    Stretch {
        file: stretch.file.clone(),
        offset: stretch.offset + range.start,
        length: range.end - range.start,
    }
}

/// True if the next constant is a copy of this one's source, which is read once for both.
fn is_read_for_both(work: &Work, slices: &Slices, next: Option<&Work>) -> bool {
    let same = next.is_some_and(|next| next.is_copy() && next.source == work.source);
    same && !work.is_copy() && slices.passes() == 1
}

/// Calls `visit` with the constants that are read for, and the slices of each.
pub(crate) fn each_read(
    waiting: &VecDeque<Work>,
    mut visit: impl FnMut(&Work, &Slices),
) -> Result<(), StreamError> {
    let mut works = waiting.iter().peekable();
    while let Some(work) = works.next() {
        let recipe = work.planned.start()?;
        if is_read_for_both(work, recipe.slices(), works.peek().copied()) {
            works.next();
        }
        visit(work, recipe.slices());
    }
    Ok(())
}

/// Bytes that constants read, over all passes.
pub(crate) fn bytes_to_read(waiting: &VecDeque<Work>) -> Result<u64, StreamError> {
    let mut bytes = 0;
    each_read(waiting, |_, slices| bytes += slices.total())?;
    Ok(bytes)
}
