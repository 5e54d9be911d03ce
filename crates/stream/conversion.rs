//! The conversion: a plan of all constants, then one after the other from source to result.

use std::collections::VecDeque;

use octet_graph::Model;
use octet_onnx::schema::ModelProto;
use octet_onnx::{Pieces, Stretch, pieces, tensors};
use octet_quantize::recipe::{Emitted, PlannedRecipe, RecipeKind, RecipeSummary};
use octet_quantize::{
    Quantized, RefusedConstants, Settings, plan_streamed, recipe_entry, recipe_notes,
};

use crate::constant_plan::{ConstantPlan, Work};
use crate::current_constant::{CurrentConstant, SliceStep, bytes_to_read, each_read, part};
use crate::{JournalError, OutputFiles, StreamError, WeightsFile};

/// The next thing that the caller does.
#[derive(Debug, PartialEq, Eq)]
pub enum ConversionStep {
    /// Read these bytes of the source and pass them to [`Conversion::feed`].
    Read(Stretch),
    /// Read these bytes of the source and write them as they are.
    Copy {
        /// The bytes of the source.
        from: Stretch,
        /// Index in [`Conversion::files`].
        file: usize,
        /// Offset in the file.
        offset: u64,
        /// True if the next step reads the same bytes.
        again: bool,
    },
    /// Write these bytes of the result.
    Write {
        /// Index in [`Conversion::files`].
        file: usize,
        /// Offset in the file.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Some constants can't be converted, so the plan changed. Begin the files of constants again, as
    /// [`Conversion::files`] says now.
    Restart,
    /// All constants are written: [`Conversion::finish`].
    Finished,
}

/// The conversion of one model.
pub struct Conversion {
    /// Source of the plan.
    order: ConversionOrder,
    /// Constants that stay as they are.
    refused: RefusedConstants,
    /// True after a constant was refused: the remaining recipes are only checked.
    searching: bool,
    model: ModelProto,
    quantized: Quantized,
    files: Vec<WeightsFile>,
    /// Recipes in the order in which the source is read.
    waiting: VecDeque<Work>,
    current: Option<CurrentConstant>,
    writes: VecDeque<ConversionStep>,
    /// Recipes whose outputs are written, in order, and facts about them.
    done: Vec<PlannedRecipe>,
    finished: Vec<RecipeSummary>,
    bytes_to_read: u64,
    bytes_read: u64,
}

/// A model, and the form in which it is wanted.
struct ConversionOrder {
    model: ModelProto,
    settings: Settings,
    output: OutputFiles,
}

/// A finished conversion.
pub struct Converted {
    /// The model file. Write it last: its presence says that the constants are complete.
    pub model: Pieces,
    /// Nodes, tensors and notes.
    pub quantized: Quantized,
    /// The recipes that changed a constant, with facts about the outcome.
    pub summaries: Vec<(PlannedRecipe, RecipeSummary)>,
}

impl Conversion {
    /// Plans the conversion of a model whose large constants are external.
    pub fn new(
        model: ModelProto,
        settings: &Settings,
        output: OutputFiles,
    ) -> Result<Conversion, StreamError> {
        let order = ConversionOrder {
            model,
            settings: settings.clone(),
            output,
        };
        Conversion::planned(order, RefusedConstants::default())
    }

    fn planned(
        order: ConversionOrder,
        mut refused: RefusedConstants,
    ) -> Result<Conversion, StreamError> {
        let model = Model::from_proto(order.model.clone())?;
        let (quantized, recipes) = plan_streamed(&model, &order.settings, &mut refused)?;
        let mut model = quantized.model.to_proto();
        let mut plan = ConstantPlan::new(recipes, order.output.clone())?;
        tensors::each_mut(&mut model, &mut |tensor| plan.place(tensor))?;
        let ConstantPlan {
            placement,
            mut work,
            ..
        } = plan;
        // A source is read from its beginning to its end.
        work.sort_by(|one, other| one.source.cmp(&other.source));
        let waiting = VecDeque::from(work);
        Ok(Conversion {
            order,
            refused,
            searching: false,
            model,
            quantized,
            files: placement.files,
            bytes_to_read: bytes_to_read(&waiting)?,
            waiting,
            current: None,
            writes: VecDeque::new(),
            done: Vec::new(),
            finished: Vec::new(),
            bytes_read: 0,
        })
    }

    /// The files of constants, with their final sizes.
    pub fn files(&self) -> &[WeightsFile] {
        &self.files
    }

    /// Nodes and notes of the plan.
    pub fn quantized(&self) -> &Quantized {
        &self.quantized
    }

    /// Bytes of the source that are read, over all passes, and those read so far.
    pub fn progress(&self) -> (u64, u64) {
        (self.bytes_read, self.bytes_to_read)
    }

    /// Facts about the recipes whose outputs are written, in the order of the conversion.
    ///
    /// A caller that records them after the writes are on the disk can go on later with
    /// [`Self::resume`].
    pub fn finished(&self) -> &[RecipeSummary] {
        &self.finished
    }

    /// Constants that can't be converted, as far as they were read.
    pub fn refused(&self) -> &RefusedConstants {
        &self.refused
    }

    /// Plans again, without constants that an earlier conversion could not convert. Before the first
    /// step.
    pub(crate) fn refuse(&mut self, refused: &RefusedConstants) -> Result<(), StreamError> {
        if self.refused == *refused {
            return Ok(());
        }
        self.refused = refused.clone();
        self.replan()
    }

    /// Skips the recipes that an earlier conversion of this model finished with these settings and
    /// this output. Before the first step.
    pub fn resume(&mut self, finished: &[RecipeSummary]) -> Result<(), StreamError> {
        if finished.len() > self.waiting.len() {
            return Err(StreamError::Journal(JournalError::Damaged));
        }
        for summary in finished {
            let Some(work) = self.waiting.pop_front() else {
                break;
            };
            self.done.push(work.planned);
            self.finished.push(summary.clone());
        }
        let left = bytes_to_read(&self.waiting)?;
        self.bytes_read = self.bytes_to_read.saturating_sub(left);
        Ok(())
    }

    /// Bytes that the recipes keep, at most.
    pub fn memory(&self) -> Result<u64, StreamError> {
        let mut most = 0;
        for work in &self.waiting {
            most = most.max(work.planned.start()?.memory());
        }
        Ok(most)
    }

    /// The parts of the source that are read from here on, in order, if the plan stays.
    pub fn reads(&self) -> Result<Vec<Stretch>, StreamError> {
        let mut reads = Vec::new();
        if let Some(current) = &self.current {
            reads.extend(current.reads());
        }
        each_read(&self.waiting, |work, slices| {
            let parts = |source| slices.clone().map(move |range| part(source, &range));
            reads.extend(work.source.iter().flat_map(parts));
        })?;
        Ok(reads)
    }

    /// The next step. A write or a copy must be done before the next call.
    pub fn next_step(&mut self) -> Result<ConversionStep, StreamError> {
        loop {
            if let Some(write) = self.writes.pop_front() {
                return Ok(write);
            }
            let Some(current) = &mut self.current else {
                let Some(work) = self.waiting.pop_front() else {
                    if !self.searching {
                        return Ok(ConversionStep::Finished);
                    }
                    self.replan()?;
                    return Ok(ConversionStep::Restart);
                };
                self.current = Some(CurrentConstant::start(work, &mut self.waiting)?);
                continue;
            };
            match (current.next(), &current.work.source) {
                (SliceStep::End, _) => self.end_constant(),
                (SliceStep::Feed(range), Some(source)) => {
                    return Ok(ConversionStep::Read(part(source, &range)));
                }
                (SliceStep::Feed(range), None) => {
                    let data = current.work.planned.source.raw_data.clone();
                    let range = range.start as usize..range.end as usize;
                    self.feed(data.unwrap_or_default().get(range).unwrap_or_default())?;
                }
                (SliceStep::Copy { range, to, again }, source) => {
                    if !again {
                        self.bytes_read += range.end - range.start;
                    }
                    if let Some(source) = source {
                        let (file, offset) = to;
                        return Ok(ConversionStep::Copy {
                            from: part(source, &range),
                            file,
                            offset,
                            again,
                        });
                    }
                }
            }
        }
    }

    /// Notes that the current constant is written, and the copy beside it.
    fn end_constant(&mut self) {
        let Some(CurrentConstant {
            work, recipe, copy, ..
        }) = self.current.take()
        else {
            return;
        };
        self.done.push(work.planned);
        let summary = recipe.map(|recipe| recipe.summary());
        self.finished.push(summary.unwrap_or_default());
        if let Some(copy) = copy {
            self.done.push(copy.planned);
            self.finished.push(RecipeSummary::default());
        }
    }

    /// Takes the bytes that the last step asked for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let (work, Some(recipe)) = (&current.work, &mut current.recipe) else {
            return Ok(());
        };
        let wanted = recipe.next().unwrap_or_default();
        let missing = (wanted.end - wanted.start).saturating_sub(bytes.len() as u64);
        if let (Some(stretch), 1..) = (&work.source, missing) {
            return Err(StreamError::Short {
                file: stretch.file.clone(),
                missing,
            });
        }
        self.bytes_read += bytes.len() as u64;
        let writes = &mut self.writes;
        let places = &work.places;
        let searching = self.searching;
        let mut emit = |emitted: Emitted| {
            if searching {
                return;
            }
            let (file, start) = places[emitted.output];
            writes.push_back(ConversionStep::Write {
                file,
                offset: start + emitted.offset,
                bytes: emitted.bytes,
            });
        };
        match recipe.feed(bytes, &mut emit) {
            Ok(()) => {
                current.end_slice();
                Ok(())
            }
            // A constant that was refused before would be refused for ever.
            Err(source) => match self.refused.add(&work.planned, &source) {
                true => {
                    self.search();
                    Ok(())
                }
                false => Err(StreamError::Constant {
                    tensor: work.planned.source.title().to_owned(),
                    source,
                }),
            },
        }
    }

    /// Leaves the current constant, and only looks for others that can't be converted.
    fn search(&mut self) {
        self.current = None;
        self.writes.clear();
        self.waiting.retain(|work| !work.is_copy());
        self.searching = true;
    }

    /// Plans again, without the constants that were refused.
    fn replan(&mut self) -> Result<(), StreamError> {
        let order = ConversionOrder {
            model: std::mem::take(&mut self.order.model),
            settings: self.order.settings.clone(),
            output: self.order.output.clone(),
        };
        *self = Conversion::planned(order, std::mem::take(&mut self.refused))?;
        Ok(())
    }

    /// The size of the model file.
    pub fn model_bytes(&self) -> Result<u64, StreamError> {
        Ok(pieces(&self.model)?.bytes() as u64)
    }

    /// The model file. All steps must be done.
    pub fn finish(mut self) -> Result<Converted, StreamError> {
        let summaries = self.done.into_iter().zip(self.finished);
        let summaries = summaries.filter(|(planned, _)| planned.kind != RecipeKind::Copy);
        let summaries: Vec<(PlannedRecipe, RecipeSummary)> = summaries.collect();
        for (planned, summary) in &summaries {
            self.quantized
                .tensors
                .extend(recipe_entry(planned, summary));
            self.quantized.notes.extend(recipe_notes(planned, summary));
        }
        Ok(Converted {
            model: pieces(&self.model)?,
            quantized: self.quantized,
            summaries,
        })
    }
}
