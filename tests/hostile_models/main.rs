//! Hostile models: each fails with a message or passes the whole pipeline, in less than ten
//! seconds.
//!
//! They run in child processes, so that a model that hangs or crashes is reported by its number.
//! `OCTET_DAMAGED=17` runs that one alone, `OCTET_DAMAGED=5000..90000` a range. `OCTET_DAMAGED_HERE`
//! runs them in this process, and `OCTET_DAMAGED_FILE` is a path for the file of the last one.
#![allow(clippy::unwrap_used)]

mod pipeline;
mod slow_models;

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bytes::Bytes;
use octet_test_models::RandomChoice;
use octet_test_models::hostile_models::damaged;
use pipeline::{ModelKinds, run_pipeline};

/// The number of models in every run of the tests.
const MODELS: u64 = 5000;

/// The time limit of a model.
const LONGEST: Duration = Duration::from_secs(10);

/// The prefix of the child process's report lines.
const MARK: &str = "damaged model ";

#[test]
fn damaged_models_fail_with_a_message_or_pass_the_pipeline_in_time() {
    if let Ok(numbers) = std::env::var("OCTET_DAMAGED_HERE") {
        return run_here(range(&numbers));
    }
    let wanted = std::env::var("OCTET_DAMAGED");
    let wanted = wanted.map_or(0..MODELS, |numbers| range(&numbers));
    let at_once = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let share = (wanted.end - wanted.start).div_ceil(at_once).max(1);
    let shares = (wanted.start..wanted.end).step_by(share as usize);
    let shares: Vec<_> = shares
        .map(|from| {
            let share = from..(from + share).min(wanted.end);
            std::thread::spawn(move || run_in_child(share))
        })
        .collect();
    let mut all = Outcomes::default();
    for share in shares {
        let outcomes = share.join().unwrap();
        all.whole += outcomes.whole;
        all.refused += outcomes.refused;
        all.wrong.extend(outcomes.wrong);
    }
    let Outcomes {
        whole,
        refused,
        wrong,
    } = all;
    assert!(
        wrong.is_empty(),
        "{} models:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // Damage that always or never causes an error would test little.
    let count = whole + refused;
    let fair = count < 100 || (count / 10..count * 9 / 10).contains(&whole);
    assert!(fair, "{whole} of {count} models went the whole way");
}

fn range(numbers: &str) -> Range<u64> {
    match numbers.split_once("..") {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => {
            let one = numbers.parse().unwrap();
            one..one + 1
        }
    }
}

/// The outcomes of the models.
#[derive(Default)]
struct Outcomes {
    whole: usize,
    refused: usize,
    /// Models that exceeded the time limit, panicked or ended their process.
    wrong: Vec<String>,
}

/// Runs models in a child process, and starts another after a crash or timeout.
fn run_in_child(mut numbers: Range<u64>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    while !numbers.is_empty() {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["damaged_models", "--nocapture", "--test-threads=1"])
            .env(
                "OCTET_DAMAGED_HERE",
                format!("{}..{}", numbers.start, numbers.end),
            )
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, heard) = channel();
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| {
                if let Some((_, text)) = line.split_once(MARK) {
                    let _ = sender.send(text.to_owned());
                }
            });
        });
        let mut begun = format!("{}, before it began", numbers.start);
        let ended = loop {
            match heard.recv_timeout(LONGEST) {
                Ok(text) => match text.split_once(" ended: ") {
                    None => begun = text,
                    Some((number, how)) => {
                        numbers.start = number.parse::<u64>().unwrap() + 1;
                        match how {
                            "whole" => outcomes.whole += 1,
                            "refused" => outcomes.refused += 1,
                            how => outcomes.wrong.push(format!("{how}: {begun}")),
                        }
                    }
                },
                Err(RecvTimeoutError::Timeout) => break "took too long",
                Err(RecvTimeoutError::Disconnected) => break "ended its process",
            }
        };
        let _ = process.kill();
        let _ = process.wait();
        reader.join().unwrap();
        if !numbers.is_empty() {
            outcomes.wrong.push(format!("{ended}: {begun}"));
            numbers.start += 1;
        }
    }
    outcomes
}

/// Runs models in this process, and prints a line when each begins and ends.
fn run_here(numbers: Range<u64>) {
    let kinds = ModelKinds::new();
    let say = |text: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{MARK}{text}").unwrap();
        out.flush().unwrap();
    };
    for number in numbers {
        let mut random = RandomChoice(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 3);
        let (kind, model) = kinds.one(&mut random);
        let (file, changes) = damaged(model, &mut random);
        say(format!("{number}, {kind}: {}", changes.replace('\n', " ")));
        if let Ok(path) = std::env::var("OCTET_DAMAGED_FILE") {
            std::fs::write(path, &file).unwrap();
        }
        let pipeline = || run_pipeline(&Bytes::from(file), &mut random);
        let how = match catch_unwind(AssertUnwindSafe(pipeline)) {
            Ok(how) => how,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("panicked, {}", text.unwrap_or_default())
            }
        };
        say(format!("{number} ended: {}", how.replace('\n', " ")));
    }
}
