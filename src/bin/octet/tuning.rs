//! Learned rounding on the command line.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use octet::allocator;
use octet::quantize::Settings;
use octet::samples::SampleSettings;
use octet::session::{Event, ProgressMonitor, Session, TuningRun};
use octet_host::fs::{self, File, OpenOptions};

use super::calibration::failure_of;
use super::progress::Progress;
use super::quantize::QuantizeOptions;
use super::samples::Samples;
use super::{Failure, files};

/// Blocks of this size go back to the system once they are free. Values of all sizes come and go
/// between layers, and would leave gaps: SqueezeNet took 115 MiB in place of 79.
const GIVEN_BACK: i32 = 512 << 10;
/// With blocks or distillation, each step needs the same buffers again. Taking them from the system
/// took a quarter of the time.
const GIVEN_BACK_BY_STEPS: i32 = 32 << 20;

#[cfg(not(target_family = "wasm"))]
use octet::tune::unnamed_file as value_file;

/// The file of values in Node.
#[cfg(target_family = "wasm")]
fn value_file() -> io::Result<Box<dyn octet::tune::ValueFile>> {
    Ok(Box::new(octet_host::fs::File::unnamed()?))
}

/// Feeds the samples, and learns the constants that the settings ask for.
pub fn tune(
    session: &mut Session,
    settings: &Settings,
    (samples, reading): (&Samples, &SampleSettings),
    options: &QuantizeOptions,
    progress: &Progress,
) -> Result<(), Failure> {
    let named = |error| failure_of(options, error);
    let finetune = settings.finetune.as_ref();
    let in_steps = finetune.is_some_and(|one| one.blocks || one.distillation.unwrap_or(0) > 0);
    allocator::give_back_large_blocks(match in_steps {
        true => GIVEN_BACK_BY_STEPS,
        false => GIVEN_BACK,
    });
    let tuning = session.begin_tuning(settings, &value_file);
    let mut tuning = tuning.map_err(named)?;
    if let Some(forecast) = tuning.forecast() {
        progress.tell(&format!(
            "{} layers; the data of `{}` needs most memory, {} MiB",
            forecast.layers,
            forecast.layer,
            forecast.layer_bytes >> 20
        ));
    }
    let most = finetune.and_then(|finetune| finetune.data_size);
    let mut used = 0;
    for sample in samples.each(session) {
        if most.is_some_and(|most| used >= most) {
            break;
        }
        match session.decode(&sample?, reading) {
            Ok(inputs) => {
                let added = tuning.add(inputs);
                added.map_err(named)?;
                used += 1;
            }
            // The calibration has reported it.
            Err(error) if options.skips(&error) => {}
            Err(error) => return Err(named(error)),
        }
    }
    let Some(path) = &options.journal else {
        session.tune(tuning, progress).map_err(named)?;
        return Ok(());
    };
    let journal = TuningJournal::open(path, &mut tuning, progress)?;
    session.tune(tuning, &journal).map_err(named)?;
    journal.end();
    Ok(())
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::unfinished(format!(
        "{}: the journal can't be kept there: {}; choose another place for --journal",
        path.display(),
        files::system_message(error)
    ))
}

/// The file of `--journal`, which receives each part that has learned.
struct TuningJournal<'a> {
    path: &'a Path,
    file: Mutex<io::Result<File>>,
    progress: &'a Progress,
}

impl TuningJournal<'_> {
    /// Takes over the parts that the file holds, or begins it.
    fn open<'a>(
        path: &'a Path,
        run: &mut TuningRun,
        progress: &'a Progress,
    ) -> Result<TuningJournal<'a>, Failure> {
        let before = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|error| refused(path, &error))?,
        };
        let resumed = run.resume(&before);
        if resumed.bytes == 0 && !before.is_empty() && !TuningRun::is_journal(&before) {
            return Err(Failure::usage(format!(
                "{}: this file is no journal of octet; choose another name for --journal",
                path.display()
            )));
        }
        if resumed.parts > 0 {
            progress.note(&format!(
                "{}: continues after {} layers that an earlier run has learned",
                path.display(),
                resumed.parts
            ));
        }
        let begun = || -> io::Result<File> {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            file.set_len(resumed.bytes as u64)?;
            file.seek(SeekFrom::End(0))?;
            if resumed.bytes == 0 {
                file.write_all(&run.journal())?;
            }
            Ok(file)
        };
        Ok(TuningJournal {
            path,
            file: Mutex::new(Ok(begun().map_err(|error| refused(path, &error))?)),
            progress,
        })
    }

    /// Reports a record that could not be written.
    fn end(self) {
        let file = self.file.into_inner();
        if let Err(error) = file.unwrap_or_else(PoisonError::into_inner) {
            self.progress.note(&format!(
                "{}: the journal ends early: {}; the result is complete",
                self.path.display(),
                files::system_message(&error)
            ));
        }
    }
}

impl ProgressMonitor for TuningJournal<'_> {
    fn event(&self, event: &Event) {
        self.progress.event(event);
    }

    fn cancelled(&self) -> bool {
        self.progress.cancelled()
    }

    fn learned(&self, record: &[u8]) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = match &mut *file {
            Ok(file) => file.write_all(record).err(),
            Err(_) => None,
        };
        if let Some(error) = failed {
            *file = Err(error);
        }
    }
}
