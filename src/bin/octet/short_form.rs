//! `octet MODEL SAMPLES`, the short form of `octet quantize MODEL --samples SAMPLES`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use octet_host::fs;

/// Options that may precede the model.
const BEFORE: [&str; 2] = ["--quiet", "-q"];

/// The arguments of the command that these mean; the first one is the program. The name of a
/// subcommand wins over a file of that name. A word that looks like no path stays as it is, and
/// clap refuses it with a suggestion.
pub fn expanded(
    arguments: impl IntoIterator<Item = OsString>,
    is_subcommand: impl Fn(&OsStr) -> bool,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = arguments.into_iter().collect();
    let model = all.iter().skip(1).position(|word| !is_before(word));
    let Some(model) = model.map(|place| place + 1) else {
        return all;
    };
    if is_option(&all[model]) || is_subcommand(&all[model]) || !is_path(&all[model]) {
        return all;
    }
    let after = model + 1;
    let samples = all[after..].iter().take_while(|word| !is_option(word));
    if samples.count() > 0 {
        all.insert(after, "--samples".into());
    }
    all.insert(model, "quantize".into());
    all
}

fn is_before(word: &OsStr) -> bool {
    BEFORE.iter().any(|option| word == *option)
}

fn is_option(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// True for what exists, and for what can only be meant as a path.
fn is_path(word: &OsStr) -> bool {
    let path = Path::new(word);
    let separated = word
        .as_encoded_bytes()
        .iter()
        .any(|byte| b"/\\".contains(byte));
    separated || path.extension().is_some() || fs::exists(path).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from);
        let all = expanded(arguments, |word| word == "inspect" || word == "quantize");
        let all = all.iter().map(|word| word.to_string_lossy());
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_model_and_samples_are_to_be_quantized() {
        for (short, long) in [
            ("octet m.onnx", "octet quantize m.onnx"),
            ("octet m.onnx a b", "octet quantize m.onnx --samples a b"),
            (
                "octet m.onnx a --method minmax",
                "octet quantize m.onnx --samples a --method minmax",
            ),
            ("octet -q m.onnx a", "octet -q quantize m.onnx --samples a"),
            ("octet m.onnx --demo 2", "octet quantize m.onnx --demo 2"),
            ("octet folder/m a", "octet quantize folder/m --samples a"),
        ] {
            assert_eq!(words(short), long);
        }
    }

    #[test]
    fn other_command_lines_stay_as_they_are() {
        for line in [
            "octet",
            "octet --help",
            "octet --quiet",
            "octet inspect m.onnx",
            "octet -q inspect m.onnx",
            "octet quantise m.onnx",
        ] {
            assert_eq!(words(line), line);
        }
    }
}
