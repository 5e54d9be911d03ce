//! Reads a model's weights on a thread of its own, ahead of the conversion.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use octet::onnx::Stretch;

use super::Failure;
use super::stream_source::Source;

/// Slices that wait to be converted, beside the one that is read.
const WAITING: usize = 1;

type ReadSlice = (Stretch, Result<Vec<u8>, Failure>);

/// Stretches that are read in order.
pub struct ReadAhead {
    slices: Option<Receiver<ReadSlice>>,
    used: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    /// Starts to read.
    pub fn start(source: &Source, reads: Vec<Stretch>) -> Result<ReadAhead, Failure> {
        let mut source = source.duplicate()?;
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
        Ok(ReadAhead {
            slices: Some(slices),
            used,
            thread: Some(thread),
        })
    }

    /// The bytes of a stretch; `None` if another one comes next.
    pub fn take(&mut self, wanted: &Stretch) -> Option<Result<Vec<u8>, Failure>> {
        let (stretch, read) = self.slices.as_ref()?.recv().ok()?;
        (stretch == *wanted).then_some(read)
    }

    /// Takes the buffer of a slice that is converted.
    pub fn reuse(&mut self, buffer: Vec<u8>) {
        // The thread ends before the last slices are converted.
        let _ = self.used.send(buffer);
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // The thread ends at its next slice. Another one reads the same handles afterwards.
        self.slices = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
