//! Damaged models: each is rejected with an error or passes through all stages, in less than ten
//! seconds.
//!
//! The models run in separate processes, so that the number of one that hangs or ends its process
//! is known. `OCTET_DAMAGED=17` runs only that one, `OCTET_DAMAGED=5000..90000` runs more.
#![allow(clippy::unwrap_used)]

#[path = "damaged/damage.rs"]
mod damage;
mod graphs;
#[path = "damaged/known.rs"]
mod known;
mod networks;
#[path = "damaged/sound.rs"]
mod sound;
#[path = "damaged/way.rs"]
mod way;
#[path = "damaged/wiring.rs"]
mod wiring;

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bytes::Bytes;
use damage::damaged;
use graphs::Random;
use way::{Kinds, whole_way};

/// Number of models in each run of the tests.
const MODELS: u64 = 5000;

/// Time limit for one model.
const LONGEST: Duration = Duration::from_secs(10);

/// Prefix of the lines that the worker process prints.
const MARK: &str = "damaged model ";

#[test]
fn damaged_models_are_refused_in_words_or_go_the_whole_way_in_time() {
    if let Ok(numbers) = std::env::var("OCTET_DAMAGED_HERE") {
        return each_here(range(&numbers));
    }
    let wanted = std::env::var("OCTET_DAMAGED");
    let wanted = wanted.map_or(0..MODELS, |numbers| range(&numbers));
    let at_once = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let share = (wanted.end - wanted.start).div_ceil(at_once).max(1);
    let shares = (wanted.start..wanted.end).step_by(share as usize);
    let shares: Vec<_> = shares
        .map(|from| {
            let share = from..(from + share).min(wanted.end);
            std::thread::spawn(move || each_elsewhere(share))
        })
        .collect();
    let mut all = Found::default();
    for share in shares {
        let found = share.join().unwrap();
        all.whole += found.whole;
        all.refused += found.refused;
        all.wrong.extend(found.wrong);
    }
    let Found {
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
    // Damage that breaks all models, or none, would test little.
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

/// The results of all models.
#[derive(Default)]
struct Found {
    whole: usize,
    refused: usize,
    /// Models that took too long, panicked or ended their process.
    wrong: Vec<String>,
}

/// Runs models in a worker process; after one that doesn't end, another process continues.
fn each_elsewhere(mut numbers: Range<u64>) -> Found {
    let mut found = Found::default();
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
                if let Some((_, said)) = line.split_once(MARK) {
                    let _ = sender.send(said.to_owned());
                }
            });
        });
        let mut begun = format!("{}, before it began", numbers.start);
        let ended = loop {
            match heard.recv_timeout(LONGEST) {
                Ok(said) => match said.split_once(" ended: ") {
                    None => begun = said,
                    Some((number, how)) => {
                        numbers.start = number.parse::<u64>().unwrap() + 1;
                        match how {
                            "whole" => found.whole += 1,
                            "refused" => found.refused += 1,
                            how => found.wrong.push(format!("{how}: {begun}")),
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
            found.wrong.push(format!("{ended}: {begun}"));
            numbers.start += 1;
        }
    }
    found
}

/// Runs models in this process and prints the begin and result of each.
fn each_here(numbers: Range<u64>) {
    let kinds = Kinds::new();
    let say = |text: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{MARK}{text}").unwrap();
        out.flush().unwrap();
    };
    for number in numbers {
        let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 3);
        let (kind, model) = kinds.one(&mut random);
        let (file, changes) = damaged(model, &mut random);
        say(format!("{number}, {kind}: {}", changes.replace('\n', " ")));
        let way = || whole_way(&Bytes::from(file), &mut random);
        let how = match catch_unwind(AssertUnwindSafe(way)) {
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
