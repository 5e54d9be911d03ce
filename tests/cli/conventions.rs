//! Conventions of all subcommands: the exit codes, `--quiet`, and the names of the option for
//! samples.

use std::fs;
use std::path::Path;

use super::{QUANTIZE, ended, good, misused, octet, prepared, refusal};

/// Every subcommand with arguments that succeed in the folder of [`everything`].
const EVERY: [&[&str]; 11] = [
    &[
        "quantize",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "out.onnx",
    ],
    &[
        "observe",
        "m.onnx",
        "--samples",
        "data",
        "--out",
        "out.stats",
    ],
    &["merge", "a.stats", "--out", "out.stats"],
    &["inspect", "m.onnx"],
    &["run", "m.onnx", "--samples", "data/s0.npz"],
    &[
        "search",
        "m.onnx",
        "--samples",
        "data",
        "--budget",
        "sqnr=30",
    ],
    &["compare", "m.onnx", "q.onnx", "--samples", "data"],
    &["verify", "m.onnx", "q.onnx", "--samples", "data"],
    &["doctor", "m.onnx"],
    &["completions", "bash"],
    &["check", "m.onnx", "--target", "onnxruntime"],
];

/// Names of the option for samples.
const SAMPLES: [&str; 4] = ["--samples", "--calib", "--data", "--input"];

/// A folder with a model, samples, its quantized model and statistics.
fn everything(test: &str) -> std::path::PathBuf {
    let folder = prepared(test);
    good(&folder, &QUANTIZE);
    let observe = ["observe", "m.onnx", "--samples", "data", "--out", "a.stats"];
    good(&folder, &observe);
    folder
}

/// The arguments with `from` replaced.
fn with<'a>(arguments: &[&'a str], from: &[&str], to: &'a str) -> Vec<&'a str> {
    let change = |&word: &&'a str| if from.contains(&word) { to } else { word };
    arguments.iter().map(change).collect()
}

/// Names of the subcommands in `octet --help`.
fn subcommands(folder: &Path) -> Vec<String> {
    let (help, _) = good(folder, &["--help"]);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// A result without what changes by itself: the free space.
fn steady(printed: &str) -> String {
    let changes = |line: &&str| line.starts_with("memory: ") || line.starts_with("disk: ");
    let lines = printed.lines().filter(|line| !changes(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn these_tests_know_every_subcommand() {
    let known: Vec<&str> = EVERY.iter().map(|arguments| arguments[0]).collect();
    let mut listed = subcommands(&prepared("conventions-known"));
    listed.sort_by_key(|name| known.iter().position(|other| other == name));
    assert_eq!(listed, known);
}

#[test]
fn exit_codes_are_by_kind_for_every_subcommand() {
    let folder = everything("conventions-codes");
    for arguments in EVERY {
        // 2: the command line.
        let unknown = [arguments, &["--frobnicate"]].concat();
        misused(&folder, &unknown, &["--frobnicate", "octet --help"]);
        // 3: an input file.
        let gone = with(arguments, &["m.onnx", "a.stats"], "gone");
        if gone != arguments {
            let output = octet(&folder, &gone);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{gone:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(
                said.contains("gone") && said.contains("check the path"),
                "{said}"
            );
        }
        // 0.
        good(&folder, arguments);
    }
    // 4: the gates. One sample shows only itself.
    let one = ["compare", "m.onnx", "q.onnx", "--samples", "data/s0.npz"];
    let output = octet(&folder, &[&one[..], &["--require", "ship"]].concat());
    assert_eq!(output.status.code(), Some(4));
    let other = [EVERY[7], &["--activations", "i8"]].concat();
    refusal(&octet(&folder, &other), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_ends_every_subcommand_with_code_1() {
    let folder = everything("conventions-full");
    for arguments in EVERY {
        let files = ["out.onnx", "out.stats"];
        let writes = arguments.iter().any(|word| files.contains(word));
        let output = match writes {
            true => octet(&folder, &with(arguments, &files, "/dev/full")),
            false => std::process::Command::new(env!("CARGO_BIN_EXE_octet"))
                .args(arguments)
                .current_dir(&folder)
                .stdout(fs::File::create("/dev/full").unwrap())
                .output()
                .unwrap(),
        };
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("octet: can't "), "{arguments:?}: {said}");
    }
}

#[test]
fn quiet_leaves_results_and_errors() {
    let folder = everything("conventions-quiet");
    for arguments in EVERY {
        let loud = steady(&good(&folder, arguments).0);
        let after = [arguments, &["--quiet"]].concat();
        let before = [&["-q"], arguments].concat();
        for quiet in [after, before] {
            let (printed, said) = good(&folder, &quiet);
            assert_eq!((steady(&printed), said), (loud.clone(), String::new()));
        }
    }
    let (_, said) = good(&folder, EVERY[0]);
    assert!(
        said.contains("note:"),
        "there is something to leave out: {said}"
    );
    let gone = ["inspect", "gone.onnx", "--quiet"];
    ended(&folder, &gone, 3, &["gone.onnx"]);
    let both = [EVERY[0], &["--quiet", "--verbose"]].concat();
    misused(&folder, &both, &["--quiet", "--verbose", "leave one out"]);
}

#[test]
fn samples_have_one_name_everywhere_and_the_former_names_still_work() {
    let folder = everything("conventions-samples");
    let inspect: &[&str] = &["inspect", "m.onnx", "--samples", "data"];
    let mut tried = 0;
    for arguments in EVERY.into_iter().chain([inspect]) {
        if !arguments.contains(&"--samples") {
            continue;
        }
        let (wanted, _) = good(&folder, arguments);
        for name in SAMPLES {
            let (printed, _) = good(&folder, &with(arguments, &["--samples"], name));
            assert_eq!(printed, wanted, "{name} of {arguments:?}");
        }
        tried += 1;
        let (help, _) = good(&folder, &[arguments[0], "--help"]);
        assert!(help.contains("--samples <"), "{help}");
    }
    assert_eq!(tried, 7);
}

#[test]
fn a_model_and_samples_alone_are_quantized_beside_the_model() {
    let folder = prepared("conventions-short");
    let (printed, _) = good(&folder, &["m.onnx", "data"]);
    assert!(printed.starts_with("m_int8.onnx: "), "{printed}");
    let short = fs::read(folder.join("m_int8.onnx")).unwrap();
    good(&folder, &QUANTIZE);
    assert!(short == fs::read(folder.join("q.onnx")).unwrap());
    // Options follow, several samples are allowed, and nothing is replaced.
    misused(
        &folder,
        &["m.onnx", "data"],
        &["m_int8.onnx exists already", "--out"],
    );
    let files = [
        "-q",
        "m.onnx",
        "data/s0.npz",
        "data/s1.npz",
        "--out",
        "q.onnx",
    ];
    assert_eq!(good(&folder, &files).1, "");
    misused(&folder, &["m.onnx"], &["no samples", "--samples"]);
    ended(
        &folder,
        &["gone.onnx", "data"],
        3,
        &["gone.onnx", "check the path"],
    );
    ended(&folder, &["data", "data"], 3, &["data", "directory"]);
    // A subcommand wins over a file of its name.
    fs::copy(folder.join("m.onnx"), folder.join("inspect")).unwrap();
    assert!(good(&folder, &["inspect", "m.onnx"]).0.contains("opset 13"));
    assert!(
        good(&folder, &["./inspect", "data"])
            .0
            .contains("inspect_int8")
    );
}

#[test]
fn a_word_that_is_neither_command_nor_model_gets_a_suggestion() {
    let folder = prepared("conventions-word");
    let words = [
        "`quantise` is neither a command nor a model",
        "did you mean quantize?",
    ];
    misused(&folder, &["quantise", "m.onnx"], &words);
    misused(
        &folder,
        &["frobnicate"],
        &["neither a command nor a model", "octet --help"],
    );
}
