//! Reads a model's weights on a thread of its own, ahead of the conversion. Without threads they are
//! read when they are wanted.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use octet::onnx::Stretch;
use octet_host::process::STARTS_THREADS;

use super::Failure;
use super::stream_source::Source;

/// Slices that wait to be converted, beside the one that is read.
const WAITING: usize = 1;

type ReadSlice = (Stretch, Result<Vec<u8>, Failure>);

/// Stretches that are read in order.
pub enum ReadAhead {
    Threaded(ReadingThread),
    Direct {
        source: Source,
        reads: std::vec::IntoIter<Stretch>,
        buffer: Vec<u8>,
    },
}

/// A thread that reads.
pub struct ReadingThread {
    slices: Option<Receiver<ReadSlice>>,
    used: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    /// Starts to read.
    pub fn start(source: &Source, reads: Vec<Stretch>) -> Result<ReadAhead, Failure> {
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
    pub fn take(&mut self, wanted: &Stretch) -> Option<Result<Vec<u8>, Failure>> {
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
    pub fn reuse(&mut self, done: Vec<u8>) {
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
