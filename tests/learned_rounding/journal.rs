//! The journal of a run: what has learned is never learned again, and the result is the same.

use std::sync::Mutex;

use octet::quantize::Settings;
use octet::session::{Error, Event, ProgressMonitor, Session};
use octet_test_models::networks;

use super::{FOUR_BITS, Subject, TAUGHT, alone, settings};

/// Collects a journal, and stops the run when it has a number of records.
struct Interrupted {
    records: Mutex<Vec<Vec<u8>>>,
    most: usize,
}

impl Interrupted {
    fn after(most: usize) -> Interrupted {
        Interrupted {
            records: Mutex::default(),
            most,
        }
    }
}

impl ProgressMonitor for Interrupted {
    fn event(&self, _event: &Event) {}

    fn cancelled(&self) -> bool {
        self.records.lock().unwrap().len() >= self.most
    }

    fn learned(&self, record: &[u8]) {
        self.records.lock().unwrap().push(record.to_vec());
    }
}

#[test]
fn a_stopped_run_goes_on_from_its_journal_and_gives_the_same_file() {
    let _alone = alone();
    let subject = Subject::new(
        &networks::residual(&["1", "3", "12", "12"]),
        &[1, 3, 12, 12],
    );
    let samples = subject.samples(TAUGHT);
    let plain = settings(&format!("{{{FOUR_BITS}}}"));
    let chosen = |steps: usize| {
        settings(&format!(
            r#"{{{FOUR_BITS}, "rounding": "closed-form", "finetune": {{"num_iterations": {steps}, "blocks": true, "distillation": 20}}}}"#
        ))
    };
    let mut session = Subject::open(subject.file.clone());
    session
        .calibrate(&samples, &Subject::decoding(), &plain)
        .unwrap();
    let begin = |session: &mut Session, chosen: &Settings, count: usize| {
        let mut run = session
            .begin_tuning(chosen, &octet::tune::unnamed_file)
            .unwrap();
        for sample in &samples[..count] {
            let inputs = session.decode(sample, &Subject::decoding()).unwrap();
            run.add(inputs).unwrap();
        }
        run
    };
    let (whole, shorter, fewer) = (
        begin(&mut session, &chosen(30), 12),
        begin(&mut session, &chosen(29), 12),
        begin(&mut session, &chosen(30), 11),
    );
    let headers = [&whole, &shorter, &fewer].map(|run| run.journal());
    assert!(headers[0] != headers[1] && headers[0] != headers[2]);
    drop((shorter, fewer));
    let all = Interrupted::after(usize::MAX);
    session.tune(whole, &all).unwrap();
    let expected = session.quantize(&chosen(30)).unwrap().model;
    let all = all.records.into_inner().unwrap();
    assert!(all.len() > 3);
    for most in 1..all.len() {
        let mut run = begin(&mut session, &chosen(30), 12);
        let stopped = Interrupted::after(most);
        let begun = begin(&mut session, &chosen(30), 12);
        let mut journal = begun.journal();
        assert!(matches!(session.tune(begun, &stopped), Err(Error::Stopped)));
        let records = stopped.records.into_inner().unwrap();
        assert_eq!(records.len(), most);
        journal.extend(records.concat());
        let resumed = run.resume(&journal);
        assert_eq!((resumed.parts, resumed.bytes), (most, journal.len()));
        let rest = Interrupted::after(usize::MAX);
        let summary = session.tune(run, &rest).unwrap();
        assert_eq!(rest.records.into_inner().unwrap(), all[most..]);
        assert_eq!(summary.layers.len(), all.len());
        let made = session.quantize(&chosen(30)).unwrap().model;
        assert!(
            made.as_slice().concat() == expected.as_slice().concat(),
            "{most}"
        );
    }
}
