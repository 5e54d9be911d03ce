//! Each target takes its seeds, and some thousand damaged ones, in less than ten seconds each.
//!
//! `OCTET_FUZZ=sample:17` repeats one file, `OCTET_FUZZ=sample:5000..90000` takes others. With `OCTET_FUZZ_KEEP=FOLDER`
//! the files are written there.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

use octet_fuzz::{FuzzTarget, TARGETS, damaged_bytes, damaged_model};
use octet_test_models::RandomChoice;

/// Files for each target in every run of the tests.
const FILES: u64 = 2000;

/// The time limit of a file.
const LONGEST: Duration = Duration::from_secs(10);

#[test]
fn damaged_files_are_refused_or_used() {
    let wanted = std::env::var("OCTET_FUZZ").ok();
    let (only, numbers) = match wanted.as_deref().and_then(|text| text.split_once(':')) {
        Some((name, numbers)) => (Some(name.to_owned()), range(numbers)),
        None => (wanted, 0..FILES),
    };
    let chosen = |target: &&FuzzTarget| only.as_ref().is_none_or(|name| target.name == name);
    let chosen: Vec<&FuzzTarget> = TARGETS.iter().filter(chosen).collect();
    assert!(!chosen.is_empty(), "no target is called {only:?}");
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running = chosen.into_iter().map(|target| {
            let numbers = numbers.clone();
            scope.spawn(move || failure(target, numbers))
        });
        let running: Vec<_> = running.collect();
        running
            .into_iter()
            .filter_map(|one| one.join().unwrap())
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_seed_is_a_valid_file() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(seeds.len() > 2, "{} has few seeds", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
    }
    let read = |file: &Vec<u8>| octet_onnx::read(file.clone().into()).is_ok();
    assert!(
        TARGETS
            .iter()
            .filter(|t| t.models)
            .all(|t| (t.seeds)().iter().all(read))
    );
}

fn range(numbers: &str) -> Range<u64> {
    match numbers.split_once("..") {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => numbers.parse().map(|one: u64| one..one + 1).unwrap(),
    }
}

/// The first file that breaks a promise, and how.
fn failure(target: &'static FuzzTarget, numbers: Range<u64>) -> Option<String> {
    let (sender, outcomes) = channel();
    std::thread::spawn(move || {
        let seeds = (target.seeds)();
        for number in numbers {
            let mut random = RandomChoice(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let seed = random.one(&seeds).clone();
            let file = match target.models {
                true => damaged_model(&seed, &mut random),
                false => damaged_bytes(seed, &mut random),
            };
            if let Ok(folder) = std::env::var("OCTET_FUZZ_KEEP") {
                std::fs::write(format!("{folder}/{}-{number}", target.name), &file).unwrap();
            }
            let _ = sender.send((number, None));
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(&file)));
            let _ = sender.send((number, Some(outcome.is_ok())));
        }
    });
    let mut last = 0;
    loop {
        match outcomes.recv_timeout(LONGEST) {
            Ok((number, None | Some(true))) => last = number,
            Ok((number, Some(false))) => return Some(format!("{}:{number} panicked", target.name)),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(_) => return Some(format!("{}:{last} takes too long", target.name)),
        }
    }
}
