//! Writes the result of a conversion on a thread of its own, while the next weights are converted.
//! Without threads they are written at once.

use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use octet_host::fs::File;
use octet_host::process::STARTS_THREADS;

use super::stream_parts::unwritable;
use super::{Failure, files};

/// Bytes that wait to be written, unless a single write has more.
pub const WAITING: u64 = 32 << 20;

/// A file of the result.
pub struct WrittenPart {
    /// Its name in the end.
    pub path: PathBuf,
    pub file: File,
    /// Its size in the end.
    pub bytes: u64,
}

enum WriteTask {
    Write {
        file: usize,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A journal about everything that was written before.
    Journal { path: PathBuf, text: String },
}

/// Bytes that wait, and the end of the thread.
#[derive(Default)]
struct Waiting {
    state: Mutex<WaitingState>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingState {
    bytes: u64,
    /// True after an error.
    failed: bool,
}

/// Writes in order.
pub enum WriteBehind {
    Threaded(WritingThread),
    Direct(Vec<WrittenPart>),
}

/// A thread that writes.
pub struct WritingThread {
    tasks: Option<Sender<WriteTask>>,
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl WriteBehind {
    /// Starts to write.
    pub fn start(parts: Vec<WrittenPart>) -> WriteBehind {
        match STARTS_THREADS {
            true => WriteBehind::Threaded(WritingThread::start(parts)),
            false => WriteBehind::Direct(parts),
        }
    }

    /// Writes bytes of a file; waits while too many are on their way.
    pub fn write(&mut self, file: usize, offset: u64, bytes: Vec<u8>) -> Result<(), Failure> {
        if let WriteBehind::Threaded(thread) = self {
            thread.waiting.admit(bytes.len() as u64);
        }
        self.run(WriteTask::Write {
            file,
            offset,
            bytes,
        })
    }

    /// Writes a journal when everything before is on the disk.
    pub fn write_journal(&mut self, path: PathBuf, text: String) -> Result<(), Failure> {
        self.run(WriteTask::Journal { path, text })
    }

    fn run(&mut self, task: WriteTask) -> Result<(), Failure> {
        match self {
            WriteBehind::Threaded(thread) => thread.send(task),
            WriteBehind::Direct(parts) => run(parts, task),
        }
    }

    /// Waits until everything is written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        match self {
            WriteBehind::Threaded(thread) => thread.finish(),
            WriteBehind::Direct(_) => Ok(()),
        }
    }
}

impl WritingThread {
    fn start(parts: Vec<WrittenPart>) -> WritingThread {
        let (tasks, todo) = mpsc::channel();
        let waiting = Arc::new(Waiting::default());
        let shared = waiting.clone();
        let thread = thread::spawn(move || {
            let mut parts = parts;
            for task in todo {
                let bytes = match &task {
                    WriteTask::Write { bytes, .. } => bytes.len() as u64,
                    WriteTask::Journal { .. } => 0,
                };
                let done = run(&mut parts, task);
                shared.change(|state| {
                    state.bytes -= bytes;
                    state.failed = done.is_err();
                });
                done?;
            }
            Ok(())
        });
        WritingThread {
            tasks: Some(tasks),
            waiting,
            thread: Some(thread),
        }
    }

    fn send(&mut self, task: WriteTask) -> Result<(), Failure> {
        match self.tasks.as_ref().map(|tasks| tasks.send(task)) {
            Some(Ok(())) => Ok(()),
            _ => self.finish(),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.tasks = None;
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let panicked = |_| Failure::unfinished("the files of the result could not be written");
        thread.join().map_err(panicked)?
    }
}

impl Drop for WritingThread {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl Waiting {
    fn change(&self, change: impl FnOnce(&mut WaitingState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for room, and takes it.
    fn admit(&self, bytes: u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |state: &mut WaitingState| {
            !state.failed && state.bytes > 0 && state.bytes + bytes > WAITING
        };
        let waited = self.changed.wait_while(state, is_full);
        waited.unwrap_or_else(PoisonError::into_inner).bytes += bytes;
    }
}

fn run(parts: &mut [WrittenPart], task: WriteTask) -> Result<(), Failure> {
    match task {
        WriteTask::Write {
            file,
            offset,
            bytes,
        } => {
            let WrittenPart {
                path,
                file,
                bytes: size,
            } = &mut parts[file];
            let sought = file.seek(SeekFrom::Start(offset));
            let written = sought.and_then(|_| file.write_all(&bytes));
            written.map_err(|error| unwritable(path, *size, &error))
        }
        WriteTask::Journal { path, text } => {
            for part in parts.iter() {
                let synced = part.file.sync_data();
                synced.map_err(|error| unwritable(&part.path, part.bytes, &error))?;
            }
            files::write(&path, &[text], "--out")
        }
    }
}
