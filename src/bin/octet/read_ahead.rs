//! Reads a model's weights on a thread of its own, ahead of the conversion. Without threads they are
//! read when they are wanted.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use octet::onnx::Stretch;
use octet::stream::{Conversion, StreamError};
use octet_host::process::STARTS_THREADS;

use super::Failure;
use super::stream_source::Source;

/// Slices that wait to be converted, beside the one that is read.
const WAITING: usize = 1;

type ReadSlice = (Stretch, Result<Vec<u8>, Failure>);

/// The bytes that a conversion asks for.
pub struct ConversionReads<'a> {
    source: &'a Source,
    ahead: Option<ReadAhead>,
    /// Bytes that the next step reads again.
    kept: Option<(Stretch, Vec<u8>)>,
}

impl<'a> ConversionReads<'a> {
    pub fn new(source: &'a Source) -> ConversionReads<'a> {
        ConversionReads {
            source,
            ahead: None,
            kept: None,
        }
    }

    /// The bytes of the stretch that the last step named.
    pub fn take(
        &mut self,
        wanted: &Stretch,
        conversion: &Conversion,
        about: impl Fn(StreamError) -> Failure,
    ) -> Result<Vec<u8>, Failure> {
        if let Some((_, bytes)) = self.kept.take_if(|(stretch, _)| stretch == wanted) {
            return Ok(bytes);
        }
        let ahead = self.ahead.as_mut();
        let bytes = match ahead.and_then(|ahead| ahead.take(wanted)) {
            Some(read) => read?,
            None => {
                // The conversion begins, or a constant was refused and it goes on elsewhere.
                self.ahead = None;
                let reads = conversion.reads().map_err(&about)?;
                let ahead = self.ahead.insert(ReadAhead::start(self.source, reads)?);
                ahead.take(wanted).unwrap_or_else(|| Ok(Vec::new()))?
            }
        };
        match wanted.length - bytes.len() as u64 {
            0 => Ok(bytes),
            missing => Err(about(StreamError::Short {
                file: wanted.file.clone(),
                missing,
            })),
        }
    }

    /// Keeps bytes that the next step reads again.
    pub fn keep(&mut self, stretch: Stretch, bytes: Vec<u8>) {
        self.kept = Some((stretch, bytes));
    }

    /// Takes the buffer of a slice that is converted.
    pub fn reuse(&mut self, done: Vec<u8>) {
        if let Some(ahead) = &mut self.ahead {
            ahead.reuse(done);
        }
    }
}

/// Stretches that are read in order.
enum ReadAhead {
    Threaded(ReadingThread),
    Direct {
        source: Source,
        reads: std::vec::IntoIter<Stretch>,
        buffer: Vec<u8>,
    },
}

/// A thread that reads.
struct ReadingThread {
    slices: Option<Receiver<ReadSlice>>,
    used: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    /// Starts to read.
    fn start(source: &Source, reads: Vec<Stretch>) -> Result<ReadAhead, Failure> {
        let source = source.duplicate()?;
        Ok(match STARTS_THREADS {
            true => ReadAhead::Threaded(ReadingThread::start(source, reads)),
            false => ReadAhead::Direct {
                source,
                reads: reads.into_iter(),
                buffer: Vec::new(),
            },
        })
    }

    /// The bytes of a stretch; `None` if another one comes next.
    fn take(&mut self, wanted: &Stretch) -> Option<Result<Vec<u8>, Failure>> {
        let (stretch, read) = match self {
            ReadAhead::Threaded(thread) => thread.slices.as_ref()?.recv().ok()?,
            ReadAhead::Direct {
                source,
                reads,
                buffer,
            } => {
                let stretch = reads.next()?;
                let mut bytes = std::mem::take(buffer);
                let read = source.read(&stretch, &mut bytes).map(|()| bytes);
                (stretch, read)
            }
        };
        (stretch == *wanted).then_some(read)
    }

    /// Takes the buffer of a slice that is converted.
    fn reuse(&mut self, done: Vec<u8>) {
        match self {
            // The thread ends before the last slices are converted.
            ReadAhead::Threaded(thread) => drop(thread.used.send(done)),
            ReadAhead::Direct { buffer, .. } => *buffer = done,
        }
    }
}

impl ReadingThread {
    fn start(mut source: Source, reads: Vec<Stretch>) -> ReadingThread {
        let (send, slices) = mpsc::sync_channel(WAITING);
        let (used, buffers) = mpsc::channel();
        let thread = thread::spawn(move || {
            for stretch in reads {
                let mut buffer = buffers.try_recv().unwrap_or_default();
                let read = source.read(&stretch, &mut buffer).map(|()| buffer);
                // Nobody waits after an error, or when the plan changed.
                if send.send((stretch, read)).is_err() {
                    return;
                }
            }
        });
        ReadingThread {
            slices: Some(slices),
            used,
            thread: Some(thread),
        }
    }
}

impl Drop for ReadingThread {
    fn drop(&mut self) {
        // The thread ends at its next slice. Another one reads the same handles afterwards.
        self.slices = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
