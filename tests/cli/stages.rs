//! The lines of stages on the error stream where there is no terminal.

use std::process::Output;

use super::{QUANTIZE, prepared, with_stages};

/// The beginnings of these lines.
const STAGES: [&str; 8] = [
    "reading",
    "preparing",
    "calibrating",
    "extra pass",
    "fine-tuning",
    "quantizing",
    "comparing",
    "shard",
];

/// True for the line of a stage.
pub fn is_stage(line: &str) -> bool {
    let name = line.strip_prefix("octet: ");
    name.is_some_and(|name| STAGES.iter().any(|stage| name.starts_with(stage)))
}

fn stages(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    let lines = said.lines().filter(|line| is_stage(line));
    lines.map(|line| line.replace("octet: ", "")).collect()
}

#[test]
fn each_stage_of_a_run_is_a_line() {
    let folder = prepared("stages");
    let run = |arguments: &[&str]| stages(&with_stages(&folder, arguments));
    assert_eq!(
        run(&QUANTIZE),
        ["reading m.onnx", "preparing", "calibrating", "quantizing"]
    );
    let extra = [&QUANTIZE[..], &["--method", "ort-entropy:2048/128"]].concat();
    assert_eq!(
        run(&extra),
        [
            "reading m.onnx",
            "preparing",
            "calibrating",
            "extra pass",
            "quantizing"
        ]
    );
    let compare = ["compare", "m.onnx", "q.onnx", "--samples", "data"];
    assert_eq!(run(&compare), ["reading m.onnx", "comparing"]);
    let streamed = [
        "quantize", "m.onnx", "--scheme", "float16", "--stream", "--out", "h.onnx",
    ];
    assert_eq!(run(&streamed), ["quantizing to h.onnx"]);
}

#[test]
fn quiet_hides_the_stages() {
    let folder = prepared("quiet_stages");
    let quiet = with_stages(&folder, &[&QUANTIZE[..], &["--quiet"]].concat());
    assert!(stages(&quiet).is_empty());
    assert!(quiet.stderr.is_empty());
}
